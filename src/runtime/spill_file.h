// A file for values that leave memory during one run. Nothing of it is left when it is closed or
// when the process dies: it has no name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace reprise {

// What went wrong with a transfer, to be thrown where the user waits for it.
struct TransferFailure {
  std::string text, hint;
};

class SpillFile {
 public:
  // Throws RuntimeError when the directory has no room for all bytes, or cannot be written.
  SpillFile(std::string directory, std::size_t bytes);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // What is read must be what was written at this position.
  std::optional<TransferFailure> write(std::size_t position, const std::byte* from,
                                       std::size_t bytes);
  std::optional<TransferFailure> read(std::size_t position, std::byte* to, std::size_t bytes);
  // a hint: the system may fetch it from the disk now
  void expect_read(std::size_t position, std::size_t bytes);

 private:
  void reserve(std::size_t bytes);

  std::string directory_;
  int file_ = -1;
  std::unordered_map<std::size_t, std::uint64_t> checksums_;  // by position
};

}  // namespace reprise
