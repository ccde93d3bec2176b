// Repetitions that a budget does not ask for.
#pragma once

#include "plan/budget/graph.h"

namespace reprise::budget {

// Leaves out repetitions, the costly first, while the peak stays within the budget.
Schedule without_needless(const Graph&, Schedule, std::int64_t budget);

}  // namespace reprise::budget
