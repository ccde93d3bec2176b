#include "plan/keep_loops.h"

#include "control/records.h"
#include "control/scan.h"
#include "ops/device_put.h"
#include "ops/records.h"
#include "plan/budget/one_point.h"
#include "plan/min_cut.h"
#include "plan/repeat.h"
#include "plan/roots.h"
#include "plan/seconds.h"
#include "program/effects.h"
#include "transform/dce.h"
#include "transform/rewrite.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::plan {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

struct Link {
  std::size_t result;   // of the first loop: a stacked output
  std::size_t operand;  // of the second loop: a scanned one
};

// One pair of loops: `first` stacks values that only `second` scans.
class LoopPair {
 public:
  LoopPair(Program& p, std::size_t first, std::size_t second)
      : p_(p),
        first_(p.eqns[first]),
        second_(p.eqns[second]),
        in_first_(scan_shape(first_.params)),
        in_second_(scan_shape(second_.params)),
        body_(*first_.params.get<ProgramPtr>("jaxpr")),
        roots_(find_roots(body_)) {}

  bool improve(const std::vector<int>& uses, const LoopStacks* within) {
    if (in_first_.length != in_second_.length) return false;
    find_links(uses);
    if (links_.empty()) return false;
    find_makers();
    const std::vector<Var> cut = within == nullptr ? find_cut() : find_cut_within(*within);
    std::size_t before = 0, after = 0;
    for (const Link& l : links_) before += body_.type(body_.out[l.result]).nbytes();
    for (Var v : cut) after += is_stacked(v) ? body_.type(v).nbytes() : 0;
    if (cut.empty() || after + before / 100 >= before) return false;
    kept_ = cut;
    rewrite_second(rewrite_first());
    return true;
  }

 private:
  void find_links(const std::vector<int>& uses) {
    for (std::size_t k = in_second_.consts + in_second_.carry; k < second_.in.size(); ++k) {
      const Atom& a = second_.in[k];
      if (!a.is_var() || uses[at(a.var)] != 1) continue;
      const auto out = std::find(first_.out.begin(), first_.out.end(), a.var);
      const auto m = static_cast<std::size_t>(out - first_.out.begin());
      if (out != first_.out.end() && m >= in_first_.carry) links_.push_back({m, k});
    }
  }
  void find_makers() {
    for (std::size_t i = 0; i < body_.eqns.size(); ++i) {
      for (Var v : body_.eqns[i].out) made_by_[v] = i;
    }
    for (std::size_t i = 0; i < body_.in.size(); ++i) input_number_[body_.in[i]] = i;
  }
  bool is_carried(Var v) const {
    const auto n = input_number_.find(v);
    return n != input_number_.end() && n->second >= in_first_.consts &&
           n->second < in_first_.consts + in_first_.carry;
  }
  // Whether keeping a value means stacking it: not a constant of the loop, nor an argument that it
  // scans.
  bool is_stacked(Var v) const {
    const auto n = input_number_.find(v);
    if (n == input_number_.end() || is_carried(v)) return true;
    const Atom& outside = first_.in[n->second];
    const bool is_argument =
        !outside.is_var() || std::find(p_.in.begin(), p_.in.end(), outside.var) != p_.in.end();
    return n->second >= in_first_.consts && !is_argument;
  }
  bool can_repeat(Var v) const {
    const auto i = made_by_.find(v);
    return i != made_by_.end() && may_repeat(body_.eqns[i->second]);
  }

  std::vector<Var> find_cut() const {
    CutQuestion ask;
    for (const Link& l : links_) {
      if (body_.out[l.result].is_var()) ask.needed.push_back(body_.out[l.result].var);
    }
    ask.maker = [&](Var v) { return can_repeat(v) ? &body_.eqns[made_by_.at(v)] : nullptr; };
    ask.capacity = [&](Var v) -> std::int64_t {
      if (roots_.is_view[at(v)] && can_repeat(v)) return MinCut::unlimited;
      return is_stacked(v)
                 ? std::max<std::int64_t>(static_cast<std::int64_t>(body_.type(v).nbytes()), 1)
                 : 1;
    };
    return smallest_cut(body_, ask);
  }

  // A cut that keeps about so much of what is stacked and repeats whatever is cheapest for that:
  // one moment of the graph of the first body, that between the loops.
  std::vector<Var> find_cut_within(const LoopStacks& within) const {
    std::vector<int> node_of(body_.types.size(), -1);
    std::vector<budget::Node> nodes;
    std::vector<Var> values;
    double all = 0, linked = 0;
    const auto add = [&](Var v, double cost, std::vector<int> operands) {
      node_of[at(v)] = static_cast<int>(nodes.size());
      values.push_back(v);
      nodes.push_back(
          {static_cast<std::int64_t>(body_.type(v).nbytes()), cost, std::move(operands), false});
    };
    for (const Equation& e : body_.eqns) all += repeat_seconds(e);
    const double never = 1000 * all + 1;
    for (Var v : body_.in) {
      if (is_stacked(v)) add(v, never, {});
    }
    for (const Equation& e : body_.eqns) {
      std::vector<int> operands;
      for (const Atom& a : e.in) {
        if (a.is_var() && node_of[at(a.var)] >= 0) operands.push_back(node_of[at(a.var)]);
      }
      for (Var v : e.out)
        add(v, may_repeat_within(e, within) ? repeat_seconds(e) : never, operands);
    }
    const int between = static_cast<int>(nodes.size());
    nodes.push_back({});
    budget::Node reader;
    for (const Link& l : links_) {
      const Atom& a = body_.out[l.result];
      linked += static_cast<double>(body_.type(a).nbytes());
      if (a.is_var() && node_of[at(a.var)] >= 0) reader.operands.push_back(node_of[at(a.var)]);
    }
    nodes.push_back(reader);
    const budget::Moment moment = budget::one_point(
        budget::Graph(std::move(nodes)), between, static_cast<std::int64_t>(linked * within.share));
    return cut_of(moment.kept, node_of);
  }
  double repeat_seconds(const Equation& e) const {
    double bytes = 0;
    for (Var v : e.out) bytes += static_cast<double>(body_.type(v).nbytes());
    return work_seconds(body_, e) + traffic_seconds(bytes);
  }
  static bool may_repeat_within(const Equation& e, const LoopStacks& within) {
    if (effect_of(e).is_any()) return false;
    if (e.prim == &reduce_precision_p) return within.policies_are_free;
    return e.prim != &device_put_p || space_of(e) == MemorySpace::device;
  }
  // Of what is kept, that from which the linked values are computed.
  std::vector<Var> cut_of(const std::vector<char>& kept, const std::vector<int>& node_of) const {
    std::vector<bool> seen(body_.types.size(), false);
    std::vector<Var> cut, todo;
    const auto visit = [&](const Atom& a) {
      if (!a.is_var() || seen[at(a.var)]) return;
      seen[at(a.var)] = true;
      const int node = node_of[at(a.var)];
      const bool is_input = !made_by_.contains(a.var);
      (is_input || (node >= 0 && budget::at(kept, node) > 0) ? cut : todo).push_back(a.var);
    };
    for (const Link& l : links_) visit(body_.out[l.result]);
    while (!todo.empty()) {
      const Var v = todo.back();
      todo.pop_back();
      for (const Atom& a : body_.eqns[made_by_.at(v)].in) visit(a);
    }
    return cut;
  }

  // The first loop returns the kept values instead of the linked ones; the stacks, by body
  // variable.
  std::unordered_map<Var, Var> rewrite_first() {
    Program body = body_;
    Equation e = first_;
    body.out.clear();
    e.out.clear();
    for (std::size_t k = 0; k < body_.out.size(); ++k) {
      if (std::any_of(links_.begin(), links_.end(), [&](const Link& l) { return l.result == k; }))
        continue;
      body.out.push_back(body_.out[k]);
      e.out.push_back(first_.out[k]);
    }
    std::unordered_map<Var, Var> stacks;
    for (Var v : kept_) {
      if (!is_stacked(v)) continue;
      Type type = body_.type(v);
      type.shape.insert(type.shape.begin(), in_first_.length);
      stacks[v] = p_.fresh(type);
      body.out.push_back(Atom::of(v));
      e.out.push_back(stacks[v]);
    }
    e.params = e.params.with("jaxpr", std::make_shared<const Program>(std::move(body)));
    new_first_ = std::move(e);
    return stacks;
  }

  // Operands of a loop and the inputs of its body that they become.
  struct Operands {
    std::vector<Var> vars = {};
    std::vector<Atom> atoms = {};
    void add(Var v, const Atom& a) {
      vars.push_back(v);
      atoms.push_back(a);
    }
    void add(const Operands& more) {
      vars.insert(vars.end(), more.vars.begin(), more.vars.end());
      atoms.insert(atoms.end(), more.atoms.begin(), more.atoms.end());
    }
  };

  // The second loop takes the kept values and computes the linked ones from them.
  void rewrite_second(const std::unordered_map<Var, Var>& stacks) {
    Program body = *second_.params.get<ProgramPtr>("jaxpr");
    Equation e = second_;
    Operands consts, carried, scanned;
    for (std::size_t k = 0; k < e.in.size(); ++k) {
      const bool is_linked =
          std::any_of(links_.begin(), links_.end(), [&](const Link& l) { return l.operand == k; });
      if (k < in_second_.consts)
        consts.add(body.in[k], e.in[k]);
      else if (k < in_second_.consts + in_second_.carry)
        carried.add(body.in[k], e.in[k]);
      else if (!is_linked)
        scanned.add(body.in[k], e.in[k]);
    }
    std::unordered_map<Var, Atom> here;  // variables of the first body -> values in the second
    for (Var v : kept_) {
      const Var inside = body.fresh(body_.type(v));
      here[v] = Atom::of(inside);
      if (const auto stack = stacks.find(v); stack != stacks.end()) {
        scanned.add(inside, Atom::of(stack->second));
      } else {
        const std::size_t n = input_number_.at(v);
        (n < in_first_.consts ? consts : scanned).add(inside, first_.in[n]);
      }
    }
    compute_linked(body, here);
    const auto num_consts = static_cast<std::int64_t>(consts.vars.size());
    consts.add(carried);
    consts.add(scanned);
    body.in = std::move(consts.vars);
    body.arg_names.clear();
    e.in = std::move(consts.atoms);
    e.params = e.params.with("jaxpr", std::make_shared<const Program>(std::move(body)))
                   .with("num_consts", num_consts);
    first_ = std::move(new_first_);
    second_ = std::move(e);
  }
  // What the second body took from the first, computed in it from the values that are `here`.
  void compute_linked(Program& body, std::unordered_map<Var, Atom>& here) const {
    std::unordered_map<Var, Atom> replaced;  // linked inputs of the second body
    std::vector<Equation> eqns = repeated(body, here);
    for (const Link& l : links_) {
      const Atom& a = body_.out[l.result];
      replaced[body.in[l.operand]] = a.is_var() ? here.at(a.var) : a;
    }
    const auto now = [&](const Atom& a) {
      return a.is_var() && replaced.contains(a.var) ? replaced.at(a.var) : a;
    };
    for (Equation& old : body.eqns) {
      for (Atom& a : old.in) a = now(a);
      eqns.push_back(std::move(old));
    }
    body.eqns = std::move(eqns);
    for (Atom& a : body.out) a = now(a);
  }
  // Copies of the first body's equations that lead from the kept values to the linked ones.
  std::vector<Equation> repeated(Program& body, std::unordered_map<Var, Atom>& here) const {
    std::vector<bool> needed(body_.types.size(), false);
    for (const Link& l : links_) {
      if (body_.out[l.result].is_var()) needed[at(body_.out[l.result].var)] = true;
    }
    std::vector<std::size_t> order;
    for (std::size_t i = body_.eqns.size(); i-- > 0;) {
      const Equation& e = body_.eqns[i];
      const bool wanted = std::any_of(e.out.begin(), e.out.end(),
                                      [&](Var v) { return needed[at(v)] && !here.contains(v); });
      if (!wanted) continue;
      order.push_back(i);
      for (const Atom& a : e.in) {
        if (a.is_var()) needed[at(a.var)] = true;
      }
    }
    std::reverse(order.begin(), order.end());
    std::vector<Equation> out;
    for (std::size_t i : order) {
      Equation e = body_.eqns[i];
      e.phase = Phase::recompute;
      for (Atom& a : e.in) {
        if (a.is_var()) a = here.at(a.var);
      }
      for (Var& v : e.out) {
        const Var fresh = body.fresh(body_.type(v));
        if (!here.contains(v)) here[v] = Atom::of(fresh);
        v = fresh;
      }
      out.push_back(std::move(e));
    }
    return out;
  }

  Program& p_;
  Equation &first_, &second_;
  ScanShape in_first_, in_second_;
  const Program body_;  // of the first loop
  Roots roots_;
  std::vector<Link> links_;
  std::unordered_map<Var, std::size_t> made_by_, input_number_;
  std::vector<Var> kept_;
  Equation new_first_;
};

std::vector<int> uses_of(const Program& p) {
  std::vector<int> uses(p.types.size(), 0);
  const auto count = [&](const Atom& a) {
    if (a.is_var()) ++uses[at(a.var)];
  };
  for (const Equation& e : p.eqns) std::for_each(e.in.begin(), e.in.end(), count);
  std::for_each(p.out.begin(), p.out.end(), count);
  return uses;
}

// null: repeating what costs next to nothing, for the fewest bytes.
Program improve_pairs(Program out, const LoopStacks* within) {
  std::vector<int> uses = uses_of(out);
  bool changed = false;
  for (std::size_t i = 0; i < out.eqns.size(); ++i) {
    for (std::size_t j = i + 1; j < out.eqns.size() && out.eqns[i].prim == &scan_p; ++j) {
      if (out.eqns[j].prim != &scan_p || !LoopPair(out, i, j).improve(uses, within)) continue;
      uses = uses_of(out);  // the pair has new variables
      changed = true;
    }
  }
  return changed ? drop_dead(out) : out;
}

}  // namespace

Program keep_loops(const Program& p) {
  return improve_pairs(map_bodies(p, "keep_loops", keep_loops), nullptr);
}

Program restack_loops(const Program& p, const LoopStacks& within) {
  return improve_pairs(p, &within);
}

}  // namespace reprise::plan
