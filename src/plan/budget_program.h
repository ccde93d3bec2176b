// A planned program as a graph for budgets, and schedules of that graph as programs.
//
//   schedule of steps   =>   graph of stored values       (docs/budget.md has the model)
//   schedule of nodes   =>   { ... eqn* ... } in which what a schedule repeats stands again
//
// A node is a value that a step stores: the result of a product, a loop or a kernel. What kernels
// compute on the way is no value of its own and is computed again with it.
#pragma once

#include "plan/budget/graph.h"
#include "plan/schedule.h"

#include <memory>
#include <vector>

namespace reprise::plan {

class BudgetProgram {
 public:
  struct Value {
    Var var = -1;                   // -1: an effect
    std::size_t step = 0;           // that makes it
    std::vector<std::size_t> eqns;  // from stored values and arguments to it, in order
    std::vector<int> operands;      // nodes
    bool fixed = false;             // a policy saved it, or it goes to the host: never repeated
  };

  // `scratch_bytes`: of every step. Values that policies saved are fixed unless they are free.
  BudgetProgram(std::shared_ptr<const Schedule>, const std::vector<std::size_t>& scratch_bytes,
                bool policies_are_free);

  const budget::Graph& graph() const { return *graph_; }
  const Value& value(int node) const { return budget::at(values_, node); }
  const Program& program() const { return *schedule_->program; }
  double seconds(int node) const { return (*graph_)[node].cost; }
  // Whether it repeats a value that is fixed.
  bool breaks_policies(const budget::Schedule&) const;
  Program emit(const budget::Schedule&) const;

 private:
  friend class BudgetGraphMaker;
  std::shared_ptr<const Schedule> schedule_;
  std::vector<Value> values_;
  Value outputs_;              // what leads to the program's outputs
  std::vector<int> node_of_;   // of variables; -1: computed on the way, or an argument
  std::vector<bool> is_view_;  // of equations
  std::shared_ptr<const budget::Graph> graph_;
};

}  // namespace reprise::plan
