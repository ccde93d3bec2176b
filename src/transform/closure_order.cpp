#include "transform/closure_order.h"

#include <algorithm>

namespace reprise {
namespace {

// Values as nodes: a variable of the program is one, each reading of a closed-over variable
// another.
class Graph {
 public:
  Graph(const Program& p, const std::vector<bool>& is_closed_over)
      : is_closed_over_(is_closed_over), parents_of_(p.types.size(), none) {
    for (std::size_t v = 0; v < p.types.size(); ++v) var_.push_back(static_cast<Var>(v));
    for (const Equation& e : p.eqns) {
      std::vector<std::size_t> parents;
      for (const Atom& a : e.in) add(a, parents);
      for (Var v : e.out) parents_of_[static_cast<std::size_t>(v)] = parents_.size();
      parents_.push_back(std::move(parents));
    }
    for (Var v : p.in) add(Atom::of(v), ends_);
    for (const Atom& a : p.out) add(a, ends_);
  }

  // Children before parents, the last end first; then reversed.
  std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> children = count_children(), out;
    for (std::size_t n : ends_) --children[n];
    std::vector<std::size_t> ready;
    std::vector<bool> is_ready(children.size());
    for (std::size_t n : ends_) {
      if (children[n] == 0 && !is_ready[n]) ready.push_back(n);
      is_ready[n] = true;
    }
    while (!ready.empty()) {
      const std::size_t n = ready.back();
      ready.pop_back();
      out.push_back(n);
      for (std::size_t parent : parents(n)) {
        if (children[parent] == 1)
          ready.push_back(parent);
        else
          --children[parent];
      }
    }
    std::reverse(out.begin(), out.end());
    return out;
  }
  Var var(std::size_t node) const { return var_[node]; }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void add(const Atom& a, std::vector<std::size_t>& list) {
    if (!a.is_var()) return;
    const auto v = static_cast<std::size_t>(a.var);
    if (is_closed_over_[v]) {
      list.push_back(var_.size());
      var_.push_back(a.var);
      parents_of_.push_back(none);
    } else {
      list.push_back(v);
    }
  }
  const std::vector<std::size_t>& parents(std::size_t node) const {
    static const std::vector<std::size_t> empty;
    return parents_of_[node] == none ? empty : parents_[parents_of_[node]];
  }
  std::vector<std::size_t> count_children() const {
    std::vector<std::size_t> children(var_.size(), 0), stack = ends_;
    while (!stack.empty()) {
      const std::size_t n = stack.back();
      stack.pop_back();
      if (++children[n] > 1) continue;
      stack.insert(stack.end(), parents(n).begin(), parents(n).end());
    }
    return children;
  }

  const std::vector<bool>& is_closed_over_;
  std::vector<Var> var_;                           // per node
  std::vector<std::size_t> parents_of_;            // per node: which list
  std::vector<std::vector<std::size_t>> parents_;  // per equation
  std::vector<std::size_t> ends_;
};

}  // namespace

std::vector<Var> closure_order(const Program& p, const std::vector<bool>& is_closed_over) {
  const Graph graph(p, is_closed_over);
  std::vector<Var> order;
  std::vector<bool> listed(p.types.size());
  for (std::size_t node : graph.sorted()) {
    const auto v = static_cast<std::size_t>(graph.var(node));
    if (!is_closed_over[v] || listed[v]) continue;
    listed[v] = true;
    order.push_back(graph.var(node));
  }
  return order;
}

}  // namespace reprise
