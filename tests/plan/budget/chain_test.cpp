#include "plan/budget/chain.h"

#include "golden.h"

#include <doctest/doctest.h>

namespace reprise::budget {
namespace {

TEST_CASE("the dynamic programme's values") {
  const nlohmann::json all = golden("chains.json");
  for (const nlohmann::json& json : all["chains"]) {
    const Graph graph = chain_of(json);
    CAPTURE(json["kind"].get<std::string>() + std::to_string(graph.size()));
    CHECK(evaluate(graph, graph.plain()).peak == json["peak"]);
    CHECK(graph.cost() == json["cost_without"]);
    for (const nlohmann::json& row : json["rows"]) {
      const auto schedule = solve_chain(graph, row["budget"]);
      REQUIRE(schedule);
      CHECK(fault_of(graph, *schedule).empty());
      CHECK(evaluate(graph, *schedule).peak <= row["budget"]);
      CHECK(evaluate(graph, *schedule).cost == row["cost"]);
    }
    CHECK_FALSE(solve_chain(graph, json["rows"][0]["budget"].get<std::int64_t>() - 1));
  }
}

// One state of one byte per step, and the gradient beside it. While a step is reversed there are
// its state, the gradient before and after it: with s checkpoints, the argument one of them, s + 2
// bytes.
TEST_CASE("revolve's closed form for uniform loops") {
  int checked = 0;
  const nlohmann::json all = golden("chains.json");
  for (const nlohmann::json& row : all["revolve"]) {
    const int steps = row[0], checkpoints = row[1];
    if (steps < 2) continue;
    const std::vector<int> ones(static_cast<std::size_t>(steps), 1);
    const Graph graph = chain_of({{"length", steps},
                                  {"size", ones},
                                  {"cost", ones},
                                  {"bcost", ones},
                                  {"wsize", nullptr},
                                  {"wcost", nullptr}});
    CAPTURE(steps);
    CAPTURE(checkpoints);
    const auto schedule = solve_chain(graph, checkpoints + 2);
    REQUIRE(schedule);
    const Outcome outcome = evaluate(graph, *schedule);
    CHECK(outcome.peak <= checkpoints + 2);
    const int advances = row[3];
    CHECK(outcome.cost - graph.cost() == advances - (steps - 1));
    ++checked;
  }
  CHECK(checked > 50);
}

TEST_CASE("what is no chain") {
  CHECK_FALSE(solve_chain(Graph({}), 1));
  CHECK_FALSE(solve_chain(Graph({{1, 1, {}, true}}), 1));
  // Reads two values of the path at once.
  const Graph graph({{1, 1, {}, false},
                     {1, 1, {0}, false},
                     {1, 1, {1}, false},
                     {1, 1, {2}, false},
                     {1, 1, {0, 1, 3}, true}});
  CHECK_FALSE(solve_chain(graph, 10));
}

}  // namespace
}  // namespace reprise::budget
