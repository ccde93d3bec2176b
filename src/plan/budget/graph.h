// A program as a budget sees it: values with bytes and costs in a fixed order. Knows nothing of
// Programs; docs/budget.md states the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::budget {

struct Node {
  std::int64_t bytes = 0;
  double cost = 0;
  std::vector<int> operands;  // earlier nodes, each once, ascending; arguments are not nodes
  bool output = false;        // evaluated once, stays to the end
  std::int64_t scratch = 0;   // bytes beside it while it is evaluated
};

// Node numbers in the order of their evaluations; the first evaluations are 0, 1, .., n-1.
using Schedule = std::vector<int>;

// Nodes and steps are ints, as in schedules.
template <class T>
decltype(auto) at(std::vector<T>& list, int i) {
  return list[static_cast<std::size_t>(i)];
}
template <class T>
decltype(auto) at(const std::vector<T>& list, int i) {
  return list[static_cast<std::size_t>(i)];
}

struct Outcome {
  std::int64_t peak = 0;
  double cost = 0;
};

class Graph {
 public:
  // Throws std::invalid_argument, which names the node, unless operands are earlier nodes and bytes
  // and costs are finite and not negative. Sorts operands, removes doubles.
  explicit Graph(std::vector<Node> nodes);

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& operator[](int v) const { return at(nodes_, v); }
  const std::vector<int>& readers(int v) const { return at(readers_, v); }

  // The last node that reads v; -1 if none does.
  int last_reader(int v) const { return readers(v).empty() ? -1 : readers(v).back(); }
  // The first reader of v from node s on; size() if there is none.
  int next_reader(int v, int s) const;
  // The last node before whose first evaluation v can be of use, itself or to compute others again.
  int useful_until(int v) const { return at(useful_until_, v); }

  // What every schedule has.
  double cost() const { return cost_; }
  Schedule plain() const;

 private:
  std::vector<Node> nodes_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> useful_until_;
  double cost_ = 0;
};

// Why a sequence is no schedule of the graph; empty if it is one.
std::string fault_of(const Graph&, const Schedule&);

// Peak and cost by the rules of the model. The schedule has no fault.
Outcome evaluate(const Graph&, const Schedule&);

// For each step the last one that needs its result in memory: its last reader, itself without any,
// the end for outputs.
std::vector<int> last_needs(const Graph&, const Schedule&);

}  // namespace reprise::budget
