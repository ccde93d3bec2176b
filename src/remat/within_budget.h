// Checkpoints with a budget: which known values are saved so that those saved together have at most
// so many bytes, and what is computed again costs least.
//
//   p: (a, unknown da) -> (b, db), bytes   =>   a policy that saves single values of p
#pragma once

#include "program/program.h"
#include "reprise/policies.h"
#include "transform/partial_eval.h"

#include <optional>

namespace reprise {

// A policy that saves at most so many bytes of what `base` saves; without `base`, of anything. It
// is resolved for each program that is split, since it cannot answer for one equation alone.
Policy within_budget(const Policy& base, std::size_t bytes);
struct PolicyBudget {
  Policy base;
  std::size_t bytes = 0;
};
std::optional<PolicyBudget> budget_of(const Policy&);

// The choice for the program `p`, in which calls and checkpoints are opened; it speaks of this very
// program and must be used while that lives.
SplitPolicy saving_within(const Program& p, const std::vector<bool>& unknown,
                          const PolicyBudget& budget);

}  // namespace reprise
