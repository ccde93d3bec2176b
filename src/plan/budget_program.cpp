#include "plan/budget_program.h"

#include "ops/device_put.h"
#include "ops/records.h"
#include "plan/seconds.h"
#include "plan/storage.h"
#include "program/effects.h"
#include "transform/dce.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace reprise::plan {
namespace {

std::size_t number_of(Var v) { return static_cast<std::size_t>(v); }
std::size_t number_of_node(int n) { return static_cast<std::size_t>(n); }

template <class T>
void sort_once(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

constexpr std::size_t small_scratch = 64 << 10;  // shared by all steps (plan/memory.cpp)

}  // namespace

// Walks the steps in order and makes a node of every value that one of them stores.
class BudgetGraphMaker {
 public:
  BudgetGraphMaker(BudgetProgram& out, const std::vector<std::size_t>& scratch_bytes,
                   bool policies_are_free)
      : out_(out),
        s_(*out.schedule_),
        p_(*s_.program),
        scratch_(scratch_bytes),
        free_(policies_are_free),
        storage_(find_storage(p_)) {
    out_.is_view_ = storage_.is_view;
    out_.node_of_.assign(s_.types.size(), -1);
    made_by_.assign(p_.types.size(), -1);
    for (std::size_t i = 0; i < p_.eqns.size(); ++i) {
      for (Var v : p_.eqns[i].out) made_by_[number_of(v)] = static_cast<std::ptrdiff_t>(i);
    }
    last_write_.assign(s_.types.size(), 0);
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      for (Var v : s_.steps[i].writes) last_write_[number_of(v)] = i;
    }
    find_fixed();
  }

  void run() {
    for (std::size_t i = 0; i < s_.steps.size(); ++i) add_step(i);
    add_outputs();
    double total = 0;
    for (const budget::Node& n : nodes_) total += n.cost;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      // So dear that it is repeated only where nothing else helps; such a schedule is not taken.
      if (out_.values_[n].fixed) nodes_[n].cost += 1000 * total;
    }
    out_.graph_ = std::make_shared<const budget::Graph>(std::move(nodes_));
  }

 private:
  static const Equation* equation_of(const Step& step) {
    if (const auto* d = std::get_if<DotStep>(&step.what)) return d->eqn;
    if (const auto* l = std::get_if<LoopStep>(&step.what)) return l->eqn;
    if (const auto* e = std::get_if<EvalStep>(&step.what)) return e->eqn;
    return nullptr;
  }
  void find_fixed() {
    is_fixed_.assign(p_.types.size(), false);
    for (const Equation& e : p_.eqns) {
      if (effect_of(e).is_any()) {
        for (Var v : e.out) is_fixed_[number_of(v)] = true;
      }
      const bool by_policy = e.prim == &reduce_precision_p && !free_;
      const bool to_host = e.prim == &device_put_p && space_of(e) == MemorySpace::host;
      if (!by_policy && !to_host) continue;
      is_fixed_[number_of(e.out[0])] = true;
      const Var root = storage_.view[number_of(e.out[0])].root;
      if (root >= 0) is_fixed_[number_of(root)] = true;
    }
  }

  void add_step(std::size_t i) {
    const Step& step = s_.steps[i];
    if (const Equation* e = equation_of(step)) {
      for (Var v : e->out) add_value(v, i);
      if (e->out.empty()) add_effect(*e, i);
      return;
    }
    for (Var v : step.writes) {
      if (last_write_[number_of(v)] != i) continue;
      if (number_of(v) < p_.types.size())
        add_value(v, i);
      else
        copied_by_[v] = i;
    }
  }
  static std::size_t aligned_bytes(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  // What a step works in: scratch memory, and operands copied to an order that it can read, which
  // the scheduler makes wherever the step stands.
  std::int64_t scratch_of(std::size_t i) const {
    const std::size_t own = i < scratch_.size() && scratch_[i] > small_scratch ? scratch_[i] : 0;
    std::size_t bytes = aligned_bytes(own);
    for (Var read : s_.steps[i].reads) {
      if (copied_by_.contains(read)) bytes += aligned_bytes(s_.types[number_of(read)].nbytes());
    }
    return static_cast<std::int64_t>(bytes);
  }
  double copying_seconds(std::size_t i) const {
    double seconds = 0;
    for (Var read : s_.steps[i].reads) {
      const auto copy = copied_by_.find(read);
      if (copy != copied_by_.end()) seconds += seconds_of(s_, s_.steps[copy->second]);
    }
    return seconds;
  }

  // What has no results happens once, in its place, as outputs are made once.
  void add_effect(const Equation& e, std::size_t i) {
    BudgetProgram::Value value{-1, i, {}, {}, false};
    for (const Atom& a : e.in) {
      if (a.is_var()) find_way(a.var, value);
    }
    sort_once(value.eqns);
    sort_once(value.operands);
    value.eqns.push_back(static_cast<std::size_t>(&e - p_.eqns.data()));
    nodes_.push_back({0, 0, value.operands, true});
    out_.values_.push_back(std::move(value));
  }

  // The equations that lead to v from stored values and arguments.
  void find_way(Var v, BudgetProgram::Value& value) const {
    std::set<std::size_t> todo;
    std::set<int> operands;
    const auto visit = [&](const Atom& a) {
      if (!a.is_var()) return;
      const int node = out_.node_of_[number_of(a.var)];
      if (node >= 0)
        operands.insert(node);
      else if (made_by_[number_of(a.var)] >= 0)
        todo.insert(static_cast<std::size_t>(made_by_[number_of(a.var)]));
    };
    visit(Atom::of(v));
    while (!todo.empty()) {
      const std::size_t i = *todo.rbegin();
      todo.erase(i);
      value.eqns.push_back(i);
      for (const Atom& a : p_.eqns[i].in) visit(a);
    }
    sort_once(value.eqns);
    value.operands.insert(value.operands.end(), operands.begin(), operands.end());
  }
  void add_value(Var v, std::size_t i) {
    if (out_.node_of_[number_of(v)] >= 0 || made_by_[number_of(v)] < 0) return;
    BudgetProgram::Value value{v, i, {}, {}, is_fixed_[number_of(v)]};
    find_way(v, value);
    const double seconds = seconds_to(v, i, value) + copying_seconds(i);
    nodes_.push_back({bytes_of(v), seconds, value.operands, false, scratch_of(i)});
    out_.node_of_[number_of(v)] = static_cast<int>(nodes_.size()) - 1;
    out_.values_.push_back(std::move(value));
  }
  std::int64_t bytes_of(Var v) const {
    return static_cast<std::int64_t>(aligned_bytes(p_.type(v).nbytes()));
  }
  double seconds_to(Var v, std::size_t i, const BudgetProgram::Value& value) const {
    if (equation_of(s_.steps[i]) != nullptr && value.eqns.size() == 1)
      return seconds_of(s_, s_.steps[i]);
    double bytes = static_cast<double>(p_.type(v).nbytes()), seconds = 0;
    for (int n : value.operands) bytes += static_cast<double>(nodes_[number_of_node(n)].bytes);
    for (std::size_t e : value.eqns) seconds += work_seconds(p_, p_.eqns[e]);
    return seconds + traffic_seconds(bytes);
  }
  void add_outputs() {
    out_.outputs_.step = s_.steps.size();
    for (const Atom& a : p_.out) {
      if (a.is_var()) find_way(a.var, out_.outputs_);
    }
    for (int n : out_.outputs_.operands) nodes_[number_of_node(n)].output = true;
    sort_once(out_.outputs_.eqns);
  }

  BudgetProgram& out_;
  const Schedule& s_;
  const Program& p_;
  const std::vector<std::size_t>& scratch_;
  const bool free_;
  const Storage storage_;
  std::vector<std::ptrdiff_t> made_by_;  // the equation of each variable
  std::vector<std::size_t> last_write_;
  std::vector<bool> is_fixed_;
  std::unordered_map<Var, std::size_t> copied_by_;  // copies of operands: the steps that make them
  std::vector<budget::Node> nodes_;
};

namespace {

// Writes the equations of a schedule's entries one after the other.
class BudgetEmitter {
 public:
  BudgetEmitter(const Program& p, const std::vector<int>& node_of, const std::vector<bool>& is_view)
      : p_(p),
        node_of_(node_of),
        is_view_(is_view),
        now_(p.types.size(), -1),
        is_bound_(p.types.size(), false) {
    out_ = p;
    out_.eqns.clear();
  }

  // Evaluations of one step that follow each other share what they compute on the way.
  void evaluate(const BudgetProgram::Value& value, int node) {
    enter(value.step);
    const Var before = now_[number_of(value.var)];
    if (before < 0 && is_bound_[number_of(value.var)]) {  // an equation of several results made it
      now_[number_of(value.var)] = value.var;
      return;
    }
    if (!here_.contains(value.var)) add_equations(value, node);
    now_[number_of(value.var)] = here_.at(value.var);
  }
  void happen(const BudgetProgram::Value& effect, int node) {
    enter(effect.step);
    add_equations(effect, node);
  }
  Program finish(const BudgetProgram::Value& outputs, int nodes) {
    here_.clear();
    add_equations(outputs, nodes);
    for (Atom& a : out_.out) {
      if (a.is_var()) a.var = instance(a.var, nodes);
    }
    return drop_dead(out_);
  }

 private:
  void enter(std::size_t step) {
    if (step != step_) here_.clear();
    step_ = step;
  }
  // The latest evaluation, as the equations of this node see it.
  Var instance(Var v, int node) const {
    const int maker = node_of_[number_of(v)];
    if (maker >= 0 && maker < node) return now_[number_of(v)];
    const auto found = here_.find(v);
    return found == here_.end() ? v : found->second;
  }
  void add_equations(const BudgetProgram::Value& value, int node) {
    for (std::size_t i : value.eqns) {
      const Equation& from = p_.eqns[i];
      const auto is_here = [&](Var v) { return here_.contains(v); };
      if (!from.out.empty() && std::all_of(from.out.begin(), from.out.end(), is_here)) continue;
      Equation e = from;
      for (Atom& a : e.in) {
        if (a.is_var()) a.var = instance(a.var, node);
      }
      if (is_view_[i] && find_view(i, e)) continue;
      bool again = false;
      for (Var& v : e.out) {
        const Var was = v;
        if (is_bound_[number_of(was)]) v = out_.fresh(Type(p_.type(was)));
        again |= v != was;
        is_bound_[number_of(was)] = true;
        here_[was] = v;
      }
      if (again) e.phase = Phase::recompute;
      if (is_view_[i]) views_[i] = e;
      out_.eqns.push_back(std::move(e));
    }
  }
  // A view of the same evaluation stands already.
  bool find_view(std::size_t i, const Equation& e) {
    const auto known = views_.find(i);
    if (known == views_.end() || known->second.in != e.in) return false;
    for (std::size_t k = 0; k < e.out.size(); ++k) here_[e.out[k]] = known->second.out[k];
    return true;
  }

  const Program& p_;
  const std::vector<int>& node_of_;
  const std::vector<bool>& is_view_;
  Program out_;
  std::vector<Var> now_;        // the latest evaluation of each node's variable
  std::vector<bool> is_bound_;  // the variable itself stands in the program
  std::unordered_map<Var, Var> here_;
  std::unordered_map<std::size_t, Equation> views_;
  std::size_t step_ = static_cast<std::size_t>(-1);
};

}  // namespace

BudgetProgram::BudgetProgram(std::shared_ptr<const Schedule> s,
                             const std::vector<std::size_t>& scratch_bytes, bool policies_are_free)
    : schedule_(std::move(s)) {
  BudgetGraphMaker(*this, scratch_bytes, policies_are_free).run();
}

bool BudgetProgram::breaks_policies(const budget::Schedule& schedule) const {
  std::vector<bool> seen(values_.size(), false);
  for (int n : schedule) {
    if (seen[number_of_node(n)] && values_[number_of_node(n)].fixed) return true;
    seen[number_of_node(n)] = true;
  }
  return false;
}

Program BudgetProgram::emit(const budget::Schedule& schedule) const {
  BudgetEmitter emitter(program(), node_of_, is_view_);
  for (int n : schedule) {
    if (value(n).var >= 0)
      emitter.evaluate(value(n), n);
    else if (!value(n).eqns.empty())
      emitter.happen(value(n), n);
  }
  return emitter.finish(outputs_, static_cast<int>(values_.size()));
}

}  // namespace reprise::plan
