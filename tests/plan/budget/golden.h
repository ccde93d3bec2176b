// Graphs with known optima, and a count of peak and cost that shares nothing with the solver.
#pragma once

#include "plan/budget/graph.h"
#include "test_data.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

namespace reprise::budget {

inline nlohmann::json golden(const std::string& name) {
  std::ifstream file(golden_path("budget/" + std::string(name)));
  return nlohmann::json::parse(file);
}

inline Graph graph_of(const nlohmann::json& json) {
  std::vector<Node> nodes;
  for (const nlohmann::json& node : json["nodes"]) {
    nodes.push_back(
        {node["bytes"], node["cost"], node["operands"].get<std::vector<int>>(), node["output"]});
  }
  return Graph(std::move(nodes));
}

// x_k = F_k(x_{k-1}); b_{L+1} = G(x_L); then w_k and b_k from b_{k+1} and x_{k-1}.
inline Graph chain_of(const nlohmann::json& json) {
  const int length = json["length"];
  const auto size = json["size"].get<std::vector<std::int64_t>>();
  const auto cost = json["cost"].get<std::vector<double>>();
  const auto back = json["bcost"].get<std::vector<double>>();
  std::vector<Node> nodes;
  for (int k = 0; k < length; ++k) {
    nodes.push_back(
        {at(size, k), at(cost, k), k > 0 ? std::vector{k - 1} : std::vector<int>{}, false});
  }
  nodes.push_back({size.back(), 1, {length - 1}, false});
  int b = length;
  for (int k = length; k >= 1; --k) {
    std::vector<int> operands = k > 1 ? std::vector{k - 2, b} : std::vector{b};
    if (!json["wsize"].is_null()) {
      const auto i = static_cast<std::size_t>(k - 1);
      nodes.push_back({json["wsize"][i], json["wcost"][i], operands, true});
      if (k == 1) break;
    }
    b = static_cast<int>(nodes.size());
    nodes.push_back({at(size, std::max(0, k - 2)), at(back, k - 1), operands, k == 1});
  }
  return Graph(std::move(nodes));
}

// Step by step, with the set of instances in memory: quadratic and plain.
inline Outcome counted(const Graph& graph, const Schedule& schedule) {
  const std::size_t steps = schedule.size();
  const auto reads = [&](std::size_t step, int v) {
    const std::vector<int>& all = graph[schedule[step]].operands;
    return std::count(all.begin(), all.end(), v) > 0;
  };
  Outcome outcome;
  for (std::size_t now = 0; now < steps; ++now) {
    std::int64_t sum = 0;
    std::set<int> seen;  // only the latest instance is read
    for (std::size_t made = now + 1; made-- > 0;) {
      const int v = schedule[made];
      if (!seen.insert(v).second) continue;
      bool needed = made == now || graph[v].output;
      for (std::size_t step = std::max(now, made + 1); step < steps && !needed; ++step) {
        needed = reads(step, v);
        if (schedule[step] == v) break;
      }
      if (needed) sum += graph[v].bytes;
    }
    outcome.peak = std::max(outcome.peak, sum);
    outcome.cost += graph[schedule[now]].cost;
  }
  return outcome;
}

}  // namespace reprise::budget
