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

Schedule without_needless(const Graph& graph, Schedule schedule, std::int64_t budget) {
  double work = 5e7;  // steps of schedules looked at: enough for thousands of nodes
  for (bool changed = true; changed && work > 0;) {
    changed = false;
    for (const auto& [cost, step] : repetitions(graph, schedule)) {
      if ((work -= static_cast<double>(schedule.size())) < 0) break;
      Schedule shorter = schedule;
      shorter.erase(shorter.begin() + step);
      if (evaluate(graph, shorter).peak > budget) continue;
      schedule = std::move(shorter);
      changed = true;
      break;  // the steps after it have new places
    }
  }
  return schedule;
}

}  // namespace reprise::budget
