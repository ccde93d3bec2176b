// Schedules within a budget: the cheapest that is found, and what is proven.
#pragma once

#include "plan/budget/graph.h"

#include <optional>
#include <vector>

namespace reprise::budget {

struct Solution {
  std::int64_t budget = 0;
  std::optional<Schedule> schedule;  // none was found within the budget
  Outcome outcome;                   // of the schedule; without one, of the lowest peak found
  double lower = 0;                  // no schedule within the budget costs less
};

// No schedule has a lower peak.
std::int64_t peak_bound(const Graph&);

// For one budget, by walks alone: for whoever asks for many of one graph.
Solution solve_once(const Graph&, std::int64_t budget);

// One for each budget, in their order. A larger budget never costs more than a smaller one.
std::vector<Solution> solve(const Graph&, const std::vector<std::int64_t>& budgets);

}  // namespace reprise::budget
