// From a program to machine code: the pipeline.
#pragma once

#include "engine/engine.h"
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
  bool keep = true;  // false: nothing cheap is computed again to keep less
};
ProgramPtr lowered(const Program&, const LowerOptions& options = {});

std::shared_ptr<const Executable> compile(const Program&, const CompileOptions& options = {});

// Whether a plan within the budget of the options is found.
bool fits(const Program&, const CompileOptions& options);
// Plans from the least peak to the plain one, at most about so many.
std::vector<BudgetPoint> curve_of(const Program&, const CompileOptions& options, int count);

}  // namespace reprise
