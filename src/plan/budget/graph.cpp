#include "plan/budget/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace reprise::budget {

Graph::Graph(std::vector<Node> nodes)
    : nodes_(std::move(nodes)), readers_(nodes_.size()), useful_until_(nodes_.size(), -1) {
  std::int64_t sum = 0;
  for (int v = 0; v < size(); ++v) {
    Node& node = at(nodes_, v);
    const std::string name = "node " + std::to_string(v);
    if (node.bytes < 0 || node.scratch < 0)
      throw std::invalid_argument(name + " has negative bytes");
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
    if (node.scratch > most || node.bytes > most - sum - node.scratch) {
      throw std::invalid_argument(name + ": the bytes of all nodes together are too many");
    }
    sum += node.bytes + node.scratch;
    if (!(node.cost >= 0) || !std::isfinite(node.cost)) {
      throw std::invalid_argument(name + " has a cost that is negative or not finite");
    }
    std::sort(node.operands.begin(), node.operands.end());
    node.operands.erase(std::unique(node.operands.begin(), node.operands.end()),
                        node.operands.end());
    if (!node.operands.empty() && (node.operands.front() < 0 || node.operands.back() >= v)) {
      throw std::invalid_argument(name + " has an operand that is not an earlier node");
    }
    for (int u : node.operands) at(readers_, u).push_back(v);
    cost_ += node.cost;
  }
  for (int v = size() - 1; v >= 0; --v) {
    int& until = at(useful_until_, v);
    for (int r : readers(v)) {
      until = std::max({until, r, at(nodes_, r).output ? r : useful_until(r)});
    }
  }
}

int Graph::next_reader(int v, int s) const {
  const std::vector<int>& all = readers(v);
  const auto it = std::lower_bound(all.begin(), all.end(), s);
  return it == all.end() ? size() : *it;
}

Schedule Graph::plain() const {
  Schedule schedule(nodes_.size());
  std::iota(schedule.begin(), schedule.end(), 0);
  return schedule;
}

std::string fault_of(const Graph& graph, const Schedule& schedule) {
  int made = 0;
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    const int v = schedule[step];
    const std::string at = "step " + std::to_string(step) + ", node " + std::to_string(v) + ": ";
    if (v < 0 || v > made || v >= graph.size()) return at + "first evaluations are out of order";
    if (v == made) {
      ++made;
    } else if (graph[v].output) {
      return at + "an output is evaluated twice";
    }
  }
  return made == graph.size() ? "" : "not all nodes are evaluated";
}

std::vector<int> last_needs(const Graph& graph, const Schedule& schedule) {
  std::vector<int> needs(schedule.size()), latest(static_cast<std::size_t>(graph.size()), -1);
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    const int v = schedule[step];
    for (int u : graph[v].operands) {
      int& need = at(needs, at(latest, u));
      need = std::max(need, static_cast<int>(step));
    }
    at(latest, v) = static_cast<int>(step);
    needs[step] = static_cast<int>(graph[v].output ? schedule.size() - 1 : step);
  }
  return needs;
}

Outcome evaluate(const Graph& graph, const Schedule& schedule) {
  const std::vector<int> needs = last_needs(graph, schedule);
  std::vector<std::int64_t> freed(schedule.size() + 1, 0);
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    freed[static_cast<std::size_t>(needs[step]) + 1] += graph[schedule[step]].bytes;
  }
  Outcome outcome;
  std::int64_t used = 0;
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    used += graph[schedule[step]].bytes - freed[step];
    outcome.peak = std::max(outcome.peak, used + graph[schedule[step]].scratch);
    outcome.cost += graph[schedule[step]].cost;
  }
  return outcome;
}

}  // namespace reprise::budget
