#include "plan/budget/solve.h"

#include "golden.h"
#include "sanitized.h"

#include <doctest/doctest.h>

#include <random>

namespace reprise::budget {
namespace {

std::vector<std::int64_t> budgets_of(const nlohmann::json& json) {
  std::vector<std::int64_t> budgets;
  for (const nlohmann::json& row : json["rows"]) budgets.push_back(row["budget"]);
  return budgets;
}

void check_solution(const Graph& graph, const Solution& solution) {
  REQUIRE(solution.schedule);
  CHECK(fault_of(graph, *solution.schedule).empty());
  const Outcome outcome = counted(graph, *solution.schedule);
  CHECK(outcome.peak == solution.outcome.peak);
  CHECK(outcome.peak <= solution.budget);
  CHECK(outcome.cost == doctest::Approx(solution.outcome.cost));
  CHECK(solution.lower <= solution.outcome.cost);
  CHECK(solution.lower >= graph.cost());
}

// One graph of each family; `reprise solve` on all of them takes longer than a test should.
TEST_CASE("within budget, near the optimum, and bounds that hold") {
  std::set<std::string> chosen{"chain_h8", "random_0", "gpt_1block", "mlp_widths"};
  if (!is_sanitized) {
    chosen.insert({"resmlp_3", "resnet_4", "unet_2wide", "densenet_5", "inception_2", "rnn_7",
                   "tied_embedding"});
  }
  double sum = 0;
  int rows = 0;
  for (const nlohmann::json& json : golden("cases.json")) {
    if (!chosen.contains(json["name"])) continue;
    const Graph graph = graph_of(json);
    CAPTURE(json["name"].get<std::string>());
    CHECK(peak_bound(graph) == json["peak_bound"]);
    const std::vector<Solution> solutions = solve(graph, budgets_of(json));
    for (std::size_t k = 0; k < solutions.size(); ++k) {
      const nlohmann::json& row = json["rows"][k];
      CAPTURE(row["fraction"].get<double>());
      check_solution(graph, solutions[k]);
      CHECK(solutions[k].lower <= row["upper"].get<double>());
      const double ratio = solutions[k].outcome.cost / row["upper"].get<double>();
      CHECK(ratio <= 1.10);
      sum += ratio;
      ++rows;
    }
  }
  CHECK(rows == 6 * static_cast<int>(chosen.size()));
  CHECK(sum / rows <= 1.005);
}

TEST_CASE("chains cost no more than the dynamic programme") {
  const nlohmann::json all = golden("chains.json");
  for (const nlohmann::json& json : all["chains"]) {
    if (json["length"] != 12 && (is_sanitized || json["length"] != 40)) continue;
    const Graph graph = chain_of(json);
    CAPTURE(json["kind"].get<std::string>());
    const std::vector<Solution> solutions = solve(graph, budgets_of(json));
    for (std::size_t k = 0; k < solutions.size(); ++k) {
      check_solution(graph, solutions[k]);
      CHECK(solutions[k].outcome.cost <= json["rows"][k]["cost"]);
    }
  }
}

TEST_CASE("budgets at the ends") {
  const nlohmann::json json = golden("cases.json")[3];
  const Graph graph = graph_of(json);
  const std::int64_t peak = json["peak"], bound = json["peak_bound"];
  const std::vector<Solution> solutions = solve(graph, {peak, bound - 1, -5, peak - 1, peak * 2});
  CHECK(*solutions[0].schedule == graph.plain());
  CHECK(*solutions[4].schedule == graph.plain());
  CHECK(solutions[0].lower == graph.cost());
  CHECK_FALSE(solutions[1].schedule);
  CHECK_FALSE(solutions[2].schedule);
  CHECK(solutions[1].outcome.peak >= bound);
  CHECK(solutions[1].outcome.peak < peak);  // the lowest peak that was found
  check_solution(graph, solutions[3]);
}

TEST_CASE("graphs without nodes, without bytes and without costs") {
  CHECK(solve(Graph({}), {0})[0].schedule->empty());
  const Graph still({{0, 1, {}, false}, {0, 0, {0}, false}, {0, 1, {0, 1}, true}});
  CHECK(*solve(still, {0})[0].schedule == still.plain());
  CHECK(solve(still, {0})[0].lower == 2);
}

// Layers forward and backward, some of them read much later.
Graph random_graph(std::mt19937& random, int layers) {
  std::vector<Node> nodes;
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int k = 0; k < layers; ++k) {
    std::vector<int> operands;
    if (k > 0) operands.push_back(k - 1);
    if (k > 3 && pick(0, 3) == 0) operands.push_back(pick(0, k - 2));
    nodes.push_back({pick(1, 9), static_cast<double>(pick(1, 20)), operands, false});
  }
  for (int k = layers - 1; k >= 0; --k) {
    const int last = static_cast<int>(nodes.size()) - 1;
    nodes.push_back({pick(1, 9), static_cast<double>(pick(1, 20)), {last, k}, k == 0});
    if (pick(0, 2) == 0) nodes.push_back({pick(1, 3), 5, {k, last + 1}, true});
    if (nodes.back().output && k > 0) nodes.push_back({1, 1, {last + 1}, false});
  }
  return Graph(std::move(nodes));
}

TEST_CASE("a larger budget never costs more, in graphs of all sizes") {
  std::mt19937 random(20);
  for (int layers : {5, 12, 25, 60, 200}) {
    if (is_sanitized && layers > 25) continue;
    const Graph graph = random_graph(random, layers);
    CAPTURE(graph.size());
    const std::int64_t peak = evaluate(graph, graph.plain()).peak, bound = peak_bound(graph);
    std::vector<std::int64_t> budgets;
    for (int tenths : {9, 3, 5, 7}) budgets.push_back(bound + (peak - bound) * tenths / 10);
    const std::vector<Solution> solutions = solve(graph, budgets);
    for (const Solution& solution : solutions) check_solution(graph, solution);
    CHECK(solutions[0].outcome.cost <= solutions[3].outcome.cost);
    CHECK(solutions[3].outcome.cost <= solutions[2].outcome.cost);
    CHECK(solutions[2].outcome.cost <= solutions[1].outcome.cost);
  }
}

TEST_CASE("equal graphs have equal schedules") {
  std::mt19937 a(7), b(7);
  const Graph first = random_graph(a, 30), second = random_graph(b, 30);
  const std::int64_t budget = (evaluate(first, first.plain()).peak + peak_bound(first)) / 2;
  CHECK(solve(first, {budget})[0].schedule == solve(second, {budget})[0].schedule);
}

}  // namespace
}  // namespace reprise::budget
