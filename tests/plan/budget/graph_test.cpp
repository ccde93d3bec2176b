#include "plan/budget/graph.h"

#include "golden.h"

#include <doctest/doctest.h>

#include <limits>

namespace reprise::budget {
namespace {

// a -> b -> c, and d reads a and c.
Graph diamond() {
  return Graph(
      {{4, 1, {}, false}, {8, 2, {0}, false}, {2, 3, {1}, false}, {1, 4, {2, 0, 0}, true}});
}

TEST_CASE("what reads a value, and for how long it is of use") {
  const Graph graph = diamond();
  CHECK(graph[3].operands == std::vector<int>{0, 2});
  CHECK(graph.readers(0) == std::vector<int>{1, 3});
  CHECK(graph.next_reader(0, 2) == 3);
  CHECK(graph.next_reader(1, 3) == graph.size());
  CHECK(graph.useful_until(1) == 3);  // c may be computed again for d
  CHECK(graph.useful_until(3) == -1);
  CHECK(graph.cost() == 10);
}

TEST_CASE("peak and cost of schedules") {
  const Graph graph = diamond();
  CHECK(evaluate(graph, graph.plain()).peak == 14);
  CHECK(evaluate(graph, {0, 1, 2, 0, 3}).peak == 12);
  CHECK(evaluate(graph, {0, 1, 2, 0, 3}).cost == 11);
}

TEST_CASE("what is no schedule") {
  const Graph graph = diamond();
  CHECK(fault_of(graph, {0, 1, 2, 0, 3}).empty());
  CHECK(fault_of(graph, {0, 2, 1, 3}) == "step 1, node 2: first evaluations are out of order");
  CHECK(fault_of(graph, {0, 1, 2, 3, 3}) == "step 4, node 3: an output is evaluated twice");
  CHECK(fault_of(graph, {0, 1, 2}) == "not all nodes are evaluated");
  CHECK(fault_of(graph, {-1}) == "step 0, node -1: first evaluations are out of order");
}

TEST_CASE("bad nodes are refused") {
  CHECK_THROWS_WITH(Graph({{-1, 0, {}, false}}), "node 0 has negative bytes");
  CHECK_THROWS_WITH(Graph({{1, -1, {}, false}}),
                    "node 0 has a cost that is negative or not finite");
  CHECK_THROWS_WITH(Graph({{1, 1, {0}, false}}),
                    "node 0 has an operand that is not an earlier node");
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 4;
  CHECK_THROWS_WITH(Graph({{huge, 1, {}, false}, {1, 1, {}, false}}),
                    "node 1: the bytes of all nodes together are too many");
}

TEST_CASE("the known schedules have the peaks and costs that are told") {
  for (const nlohmann::json& json : golden("cases.json")) {
    const Graph graph = graph_of(json);
    CAPTURE(json["name"].get<std::string>());
    CHECK(evaluate(graph, graph.plain()).peak == json["peak"]);
    for (const nlohmann::json& row : json["rows"]) {
      const Schedule schedule = row["schedule"];
      CHECK(fault_of(graph, schedule).empty());
      const Outcome fast = evaluate(graph, schedule), plain = counted(graph, schedule);
      CHECK(fast.peak == row["peak"]);
      CHECK(fast.cost == row["upper"]);
      CHECK(plain.peak == fast.peak);
      CHECK(plain.cost == fast.cost);
    }
  }
}

}  // namespace
}  // namespace reprise::budget
