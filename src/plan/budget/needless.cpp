#include "plan/budget/needless.h"

#include <algorithm>
#include <utility>

namespace reprise::budget {
namespace {

std::vector<std::pair<double, int>> repetitions(const Graph& graph, const Schedule& schedule) {
  std::vector<std::pair<double, int>> steps;
  int made = 0;
  for (int step = 0; step < static_cast<int>(schedule.size()); ++step) {
    if (at(schedule, step) == made) {
      ++made;
    } else {
      steps.push_back({-graph[at(schedule, step)].cost, step});
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

// One sweep after the other, since what one leaves out may make room for another.
Schedule without_needless(const Graph& graph, Schedule schedule, std::int64_t budget) {
  double work = 2e7;  // steps of schedules looked at
  for (bool changed = true; changed && work > 0;) {
    changed = false;
    std::vector<char> left_out(schedule.size(), 0);
    Schedule shorter;
    for (const auto& [cost, step] : repetitions(graph, schedule)) {
      if ((work -= static_cast<double>(schedule.size())) < 0) break;
      at(left_out, step) = 1;
      shorter.clear();
      for (std::size_t i = 0; i < schedule.size(); ++i) {
        if (!left_out[i]) shorter.push_back(schedule[i]);
      }
      const bool fits = evaluate(graph, shorter).peak <= budget;
      at(left_out, step) = fits;
      changed |= fits;
    }
    shorter.clear();
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      if (!left_out[i]) shorter.push_back(schedule[i]);
    }
    schedule = std::move(shorter);
  }
  return schedule;
}

}  // namespace reprise::budget
