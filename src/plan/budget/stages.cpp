#include "plan/budget/stages.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace reprise::budget {
namespace {

constexpr std::size_t most_stages = 256;

// The bytes of the values made before each node and read after it, without forced ones.
std::vector<std::int64_t> bytes_across(const Graph& graph) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(graph.size()) + 2, 0);
  std::vector<std::int64_t> across(static_cast<std::size_t>(graph.size()), 0);
  for (int v = 0; v < graph.size(); ++v) {
    if (graph[v].output || graph.last_reader(v) <= v + 1) continue;
    at(change, v + 1) += graph[v].bytes;
    at(change, graph.last_reader(v)) -= graph[v].bytes;
  }
  std::int64_t sum = 0;
  for (int s = 0; s < graph.size(); ++s) {
    sum += at(change, s);
    at(across, s) = sum;
    for (int u : graph[s].operands) {
      if (!graph[u].output && graph.last_reader(u) > s) at(across, s) -= graph[u].bytes;
    }
  }
  return across;
}

std::vector<int> values_by_price(const Graph& graph) {
  std::vector<int> order;
  for (int v = 0; v < graph.size(); ++v) {
    if (!graph[v].output && graph[v].bytes > 0) order.push_back(v);
  }
  const auto price = [&](int v) { return graph[v].cost / static_cast<double>(graph[v].bytes); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return price(a) < price(b); });
  return order;
}

// A fractional knapsack: the cheapest way to drop `over` bytes of the values, in their order.
template <class IsFree>
double drop(const Graph& graph, const std::vector<int>& values, std::int64_t over,
            const IsFree& is_free) {
  double cost = 0;
  for (int v : values) {
    if (is_free(v)) continue;
    const std::int64_t bytes = graph[v].bytes;
    if (bytes >= over) {
      return cost + graph[v].cost * (static_cast<double>(over) / static_cast<double>(bytes));
    }
    cost += graph[v].cost;
    over -= bytes;
  }
  return cost;
}

}  // namespace

std::vector<std::int64_t> forced_bytes(const Graph& graph) {
  std::vector<std::int64_t> forced(static_cast<std::size_t>(graph.size()));
  std::int64_t outputs = 0;
  for (int s = 0; s < graph.size(); ++s) {
    at(forced, s) = outputs + graph[s].bytes + graph[s].scratch;
    for (int u : graph[s].operands) {
      if (!graph[u].output) at(forced, s) += graph[u].bytes;
    }
    if (graph[s].output) outputs += graph[s].bytes;
  }
  return forced;
}

Stages::Stages(const Graph& graph, std::int64_t budget)
    : graph_(graph), words_(words_for(graph.size())) {
  const std::vector<std::int64_t> forced = forced_bytes(graph), across = bytes_across(graph);
  const std::vector<int> by_price = values_by_price(graph);
  std::vector<std::pair<double, int>> demands;
  for (int s = 0; s < graph.size(); ++s) {
    if (at(forced, s) > budget) {
      impossible_ = s;
      return;
    }
    const std::int64_t over = at(forced, s) + at(across, s) - budget;
    if (over > 0) demands.push_back({alone(s, over, by_price), s});
  }
  std::stable_sort(demands.begin(), demands.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const int apart = graph.size() / static_cast<int>(most_stages);
  std::vector<bool> near(static_cast<std::size_t>(graph.size()), false);
  for (const auto& [cost, s] : demands) {
    if (stages_.size() == most_stages) break;
    if (near[static_cast<std::size_t>(s)]) continue;
    for (int t = std::max(0, s - apart); t <= std::min(graph.size() - 1, s + apart); ++t) {
      near[static_cast<std::size_t>(t)] = true;
    }
    stages_.push_back(stage_at(s, at(forced, s) + at(across, s) - budget, by_price));
  }
}

bool Stages::lives_across(int v, int stage) const {
  if (v >= stage || graph_.last_reader(v) <= stage) return false;
  const std::vector<int>& operands = graph_[stage].operands;
  return !std::binary_search(operands.begin(), operands.end(), v);
}

double Stages::alone(int node, std::int64_t over, const std::vector<int>& by_price) const {
  return drop(graph_, by_price, over, [&](int v) { return !lives_across(v, node); });
}

Stages::Stage Stages::stage_at(int node, std::int64_t over,
                               const std::vector<int>& by_price) const {
  Stage stage{node, over, alone(node, over, by_price), {}, std::vector<Word>(words_, 0)};
  for (int v : by_price) {
    if (!lives_across(v, node)) continue;
    stage.across.push_back(v);
    insert(stage.members.data(), v);
  }
  return stage;
}

std::vector<int> Stages::demanding(std::size_t count) const {
  std::vector<int> nodes;
  for (const Stage& stage : stages_) {
    if (nodes.size() < count) nodes.push_back(stage.node);
  }
  return nodes;
}

void Stages::advance(int s) {
  std::erase_if(stages_, [&](const Stage& stage) { return stage.node < s; });
}

double Stages::extra(const Word* missing) const {
  double most = 0;
  for (const Stage& stage : stages_) {
    if (stage.alone <= most) break;  // missing values only make it less
    most = std::max(most, extra(stage, missing));
  }
  return most;
}

double Stages::extra(const Stage& stage, const Word* missing) const {
  std::int64_t over = stage.over;
  bool any = false;
  for (std::size_t w = 0; w < words_; ++w) {
    for (Word bits = missing[w] & stage.members[w]; bits != 0; bits &= bits - 1) {
      over -= graph_[static_cast<int>(w * 64) + std::countr_zero(bits)].bytes;
      any = true;
    }
  }
  if (!any) return stage.alone;
  if (over <= 0) return 0;
  return drop(graph_, stage.across, over, [&](int v) { return has(missing, v); });
}

}  // namespace reprise::budget
