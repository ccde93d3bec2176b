// Small random graphs at every budget, against exhaustive search.
#include "golden.h"
#include "plan/budget/solve.h"
#include "sanitized.h"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <queue>
#include <random>

namespace reprise::budget {
namespace {

// Dijkstra over (next node, set in memory): evaluates what can be, drops one value at a time.
std::optional<double> least_cost(const Graph& graph, std::int64_t budget) {
  using State = std::pair<int, unsigned>;
  using Entry = std::pair<double, State>;
  std::map<State, double> least{{{0, 0}, 0}};
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, {0, 0}});
  while (!queue.empty()) {
    const auto [cost, state] = queue.top();
    queue.pop();
    const auto [next, memory] = state;
    if (next == graph.size()) return cost;
    if (least[state] < cost) continue;
    const auto go = [&](double sum, State to) {
      const auto [it, is_new] = least.insert({to, sum});
      if (!is_new && it->second <= sum) return;
      it->second = sum;
      queue.push({sum, to});
    };
    std::int64_t used = 0;
    const auto there = [set = memory](int v) { return (set >> v & 1) != 0; };
    for (int v = 0; v < next; ++v) used += there(v) ? graph[v].bytes : 0;
    for (int v = 0; v <= next; ++v) {
      const unsigned bit = 1u << v;
      if (there(v)) {
        if (!graph[v].output) go(cost, {next, memory & ~bit});
        continue;
      }
      const std::vector<int>& operands = graph[v].operands;
      if ((v < next && graph[v].output) || used + graph[v].bytes > budget ||
          !std::all_of(operands.begin(), operands.end(), there)) {
        continue;
      }
      go(cost + graph[v].cost, {v == next ? next + 1 : next, memory | bit});
    }
  }
  return std::nullopt;
}

Graph small_graph(std::mt19937& random) {
  const auto pick = [&](unsigned most) { return static_cast<int>(random() % (most + 1)); };
  std::vector<Node> nodes(static_cast<std::size_t>(1 + pick(7)));
  for (int v = 0; v < static_cast<int>(nodes.size()); ++v) {
    Node& node = at(nodes, v);
    node.bytes = pick(6);
    node.cost = pick(9);
    node.output = pick(4) == 0;
    for (int u = 0; u < v; ++u) {
      if (pick(2) == 0) node.operands.push_back(u);
    }
  }
  return Graph(std::move(nodes));
}

TEST_CASE("the least cost wherever there is a schedule, and bounds below it") {
  std::mt19937 random(3);
  const int trials = is_sanitized ? 20 : 120;
  int solved = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Graph graph = small_graph(random);
    const std::int64_t bound = peak_bound(graph);
    std::vector<std::int64_t> budgets;
    for (std::int64_t b = bound - 1; b <= evaluate(graph, graph.plain()).peak; ++b) {
      budgets.push_back(b);
    }
    CAPTURE(trial);
    for (const Solution& solution : solve(graph, budgets)) {
      const std::optional<double> least = least_cost(graph, solution.budget);
      CAPTURE(solution.budget);
      REQUIRE(solution.schedule.has_value() == least.has_value());
      if (!least) continue;
      CHECK(solution.budget >= bound);
      CHECK(fault_of(graph, *solution.schedule).empty());
      CHECK(counted(graph, *solution.schedule).peak <= solution.budget);
      CHECK(solution.outcome.cost == *least);
      CHECK(solution.lower <= *least);
      ++solved;
    }
  }
  CHECK(solved > trials);  // more than one budget a graph
}

}  // namespace
}  // namespace reprise::budget
