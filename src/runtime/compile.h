// From a program to machine code: the pipeline.
#pragma once

#include <memory>
#include <string>

#include "runtime/executable.h"

namespace reprise {

// The program as the pipeline's last program pass leaves it.
ProgramPtr lowered(const Program&);

struct CompileOptions {
  std::string spill_directory = {};  // of offloaded values; empty: REPRISE_SPILL_DIR, else they stay in memory
  std::vector<bool> donated = {};    // inputs whose memory outputs may take over; empty: none
  bool relays = true;                // false: every stored value has memory of its own, for those who watch a run
};
std::shared_ptr<const Executable> compile(const Program&, const CompileOptions& options = {});

}  // namespace reprise
