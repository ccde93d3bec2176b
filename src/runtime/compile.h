// From a program to machine code: the pipeline.
#pragma once

#include "runtime/budget.h"
#include "runtime/executable.h"

#include <memory>
#include <optional>
#include <string>

namespace reprise {

// The program as the pipeline's last program pass leaves it.
struct LowerOptions {
  bool policies_are_free = false;  // checkpoints are opened before equal equations are merged
  // of what loops stack for later loops: below 1 the rest is computed again
  double stacked_share = 1;
};
ProgramPtr lowered(const Program&, const LowerOptions& options = {});

struct CompileOptions {
  // of offloaded values; empty: REPRISE_SPILL_DIR, else they stay in memory
  std::string spill_directory = {};
  std::vector<bool> donated = {};  // inputs whose memory outputs may take over; empty: none
  // false: every stored value has memory of its own, for those who watch a run
  bool relays = true;
  // the plan's peak is at most that, or it is a RuntimeError
  std::optional<std::size_t> memory_budget = {};
  bool policies_are_free = false;  // budgets: what policies save, and play again, is only a hint
  bool only_memory = false;        // everything but machine code: it cannot run
};
std::shared_ptr<const Executable> compile(const Program&, const CompileOptions& options = {});

// Whether a plan within the budget of the options is found.
bool fits(const Program&, const CompileOptions& options);
// Plans from the least peak to the plain one, at most about so many.
std::vector<BudgetPoint> curve_of(const Program&, const CompileOptions& options, int count);

}  // namespace reprise
