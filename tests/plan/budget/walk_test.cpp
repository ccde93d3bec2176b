#include "plan/budget/walk.h"

#include "golden.h"

#include <doctest/doctest.h>

#include <limits>

namespace reprise::budget {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

TEST_CASE("walks keep to budgets, scratch memory included") {
  for (const nlohmann::json& json : golden("cases.json")) {
    std::vector<Node> nodes;
    const Graph plain = graph_of(json);
    for (int v = 0; v < plain.size(); ++v) {
      nodes.push_back(plain[v]);
      nodes.back().scratch = v % 3 == 0 ? plain[v].bytes / 2 : 0;
    }
    const Graph graph(std::move(nodes));
    const std::int64_t peak = evaluate(graph, graph.plain()).peak;
    CHECK(peak >= evaluate(plain, plain.plain()).peak);
    const std::int64_t least = forced_bytes(graph).empty() ? 0 : peak / 2;
    for (const std::int64_t budget : {peak, (peak * 3 + least) / 4, (peak + least) / 2}) {
      const Moments moments(graph, budget, 2);
      const auto found = walk_often(graph, moments, budget, {.shapes = 3, .rounds = 4}, no_limit);
      if (!found) continue;
      CHECK(fault_of(graph, *found).empty());
      CHECK(evaluate(graph, *found).peak <= budget);
      CHECK(evaluate(graph, *found).cost >= graph.cost() + moments.extra() - 1e-6);
      if (budget == peak) CHECK(*found == graph.plain());
    }
  }
}

TEST_CASE("a walk that would cost too much is given up") {
  const Graph graph = graph_of(golden("cases.json")[3]);
  const std::int64_t peak = evaluate(graph, graph.plain()).peak, budget = peak - 1;
  Walk walk(graph, budget);
  const auto found = walk.run({}, no_limit);
  REQUIRE(found);
  const double cost = evaluate(graph, *found).cost;
  CHECK(cost > graph.cost());
  CHECK_FALSE(walk.run({}, cost));
  CHECK(walk.run({}, cost * 1.001) == found);
  CHECK_FALSE(Walk(graph, 1).run({}, no_limit));
}

}  // namespace
}  // namespace reprise::budget
