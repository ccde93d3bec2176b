// Chains: a path of values, each made of the one before, which are then read in reverse. A dynamic
// programme over checkpoints; the optimum for uniform chains (revolve).
#pragma once

#include "plan/budget/graph.h"

#include <optional>

namespace reprise::budget {

// The cheapest schedule that repeats values of the path only and keeps each checkpoint until the
// part of the path behind it is reversed. Nothing if the graph is no chain, is too long for the
// programme, or if there is none within the budget.
std::optional<Schedule> solve_chain(const Graph&, std::int64_t budget);

}  // namespace reprise::budget
