// Where bytes for a path go: into a file that is put into its place when it is whole, or straight
// into a pipe.
#pragma once

#include <string>

namespace reprise::io {

struct Destination {
  std::string
      file;  // with symbolic links followed, also one that leads to nothing yet; empty: a stream
  int stream = -1;  // an open pipe or descriptor of this process (/dev/stdout), owned by who asked
};

// A RuntimeError for devices, directories and sockets: a save must never replace them. A pipe
// without a reader waits for one, as it does for every program.
Destination destination_of(const char* op, const std::string& path);

// Removes what processes that died while they wrote `file` have left beside it.
void remove_stale_temporaries(const std::string& file);
// A new file beside `file`, which nobody removes while the descriptor is open; -1: errno says why
// not.
int open_temporary(const std::string& file, std::string& name);

}  // namespace reprise::io
