#include "plan/keep.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "program/primitive.h"
#include "plan/min_cut.h"
#include "plan/repeat.h"
#include "plan/roots.h"
#include "transform/dce.h"
#include "transform/rewrite.h"

namespace reprise::plan {
namespace {

constexpr std::size_t small_program = 256 << 10;  // bytes at the peak: not worth any work
constexpr int max_cuts = 128;
constexpr int max_failures = 6;                   // in a row: the rest is not worth the time either

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

class Cutter {
 public:
  explicit Cutter(Program p) : p_(std::move(p)), is_copy_(p_.eqns.size(), false) {}

  Program run() {
    std::unordered_set<Var> tried;  // points where cutting gains nothing, by what the equation there makes
    int failures = 0;
    for (int n = 0; n < max_cuts; ++n) {
      const Roots roots = find_roots(p_);
      const std::vector<std::size_t> live = live_bytes(p_, roots);
      const std::size_t highest = peak_of(live);
      if (highest < small_program) break;
      const auto t = highest_point(live, tried);
      if (!t || live[*t] < highest / 10 * 8) break;
      const Var mark = p_.eqns[*t].out[0];
      const bool gained = cut(*t, roots, live);
      if (!gained) tried.insert(mark);
      failures = gained ? 0 : failures + 1;
      if (failures == max_failures) break;
    }
    return std::move(p_);
  }

 private:
  // Between products, chains of cheap equations become kernels and their values need no memory: only
  // what lives while something else runs counts.
  bool counts(std::size_t i) const { return !plan::may_repeat(p_.eqns[i]) && !p_.eqns[i].out.empty(); }
  std::size_t peak_of(const std::vector<std::size_t>& live) const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (counts(i)) most = std::max(most, live[i]);
    }
    return most;
  }
  std::optional<std::size_t> highest_point(const std::vector<std::size_t>& live, const std::unordered_set<Var>& tried) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!counts(i) || tried.contains(p_.eqns[i].out[0])) continue;
      if (!best || live[i] > live[*best]) best = i;
    }
    return best;
  }

  // Cuts before equation t, if that lowers what lives there and raises the peak nowhere.
  bool cut(std::size_t t, const Roots& roots, const std::vector<std::size_t>& live) {
    made_by_.clear();
    for (std::size_t i = 0; i < t; ++i) {
      for (Var v : p_.eqns[i].out) made_by_[v] = i;
    }
    const std::vector<bool> kept = kept_values(t, roots);
    if (kept.empty()) return false;
    Program before = p_;
    const std::vector<bool> copies_before = is_copy_;
    repeat_after(t, kept);
    const std::vector<std::size_t> now = live_bytes(p_, find_roots(p_));
    if (now[t] + live[t] / 100 < live[t] && peak_of(now) <= peak_of(live)) return true;
    p_ = std::move(before);
    is_copy_ = copies_before;
    return false;
  }

  bool can_repeat(Var v) const {
    const auto e = made_by_.find(v);
    return e != made_by_.end() && !is_copy_[e->second] && plan::may_repeat(p_.eqns[e->second]);
  }
  // Values that are kept across t; empty: no cut.
  std::vector<bool> kept_values(std::size_t t, const Roots& roots) {
    MinCut graph(p_.types.size());
    std::vector<bool> seen(p_.types.size(), false);
    std::vector<Var> queue;
    auto visit = [&](Var v) {
      if (seen[at(v)]) return;
      seen[at(v)] = true;
      queue.push_back(v);
    };
    for (std::size_t i = t; i < p_.eqns.size(); ++i) {
      for (const Atom& a : p_.eqns[i].in) {
        if (!a.is_var() || !made_by_.contains(a.var) || seen[at(a.var)]) continue;
        visit(a.var);
        graph.to_sink(at(a.var));
      }
    }
    while (!queue.empty()) {
      const Var v = queue.back();
      queue.pop_back();
      const Var root = roots.of[at(v)];
      const bool alive_anyway = roots.bytes[at(root)] == 0 || roots.last_read[at(root)] == p_.eqns.size();
      const auto capacity = alive_anyway ? std::int64_t{1} : static_cast<std::int64_t>(roots.bytes[at(root)]);
      // A view is kept by keeping what it is a view of.
      graph.set_capacity(at(v), roots.is_view[at(v)] && can_repeat(v) && !alive_anyway ? MinCut::unlimited : capacity);
      if (!can_repeat(v)) {
        graph.from_source(at(v));
        continue;
      }
      const Equation& e = p_.eqns[made_by_.at(v)];
      for (const Atom& a : e.in) {
        if (!a.is_var()) continue;
        visit(a.var);
        graph.connect(at(a.var), at(v));
      }
    }
    std::vector<bool> kept;
    const std::vector<std::size_t> cut = graph.solve();
    if (!cut.empty()) kept.resize(p_.types.size(), false);
    for (std::size_t v : cut) kept[v] = true;
    return kept;
  }
  // Equations from t on read copies of what was not kept, made where they are first needed.
  void repeat_after(std::size_t t, const std::vector<bool>& kept) {
    std::vector<Equation> eqns(p_.eqns.begin(), p_.eqns.begin() + static_cast<std::ptrdiff_t>(t));
    std::vector<bool> is_copy(is_copy_.begin(), is_copy_.begin() + static_cast<std::ptrdiff_t>(t));
    std::unordered_map<Var, Var> copy_of;
    std::function<Var(Var)> available = [&](Var v) -> Var {
      if (kept[at(v)] || !made_by_.contains(v) || !can_repeat(v)) return v;
      if (const auto found = copy_of.find(v); found != copy_of.end()) return found->second;
      Equation e = p_.eqns[made_by_.at(v)];
      for (Atom& a : e.in) {
        if (a.is_var()) a.var = available(a.var);
      }
      for (Var& o : e.out) {
        const Type type = p_.type(o);  // fresh() may move the table
        const Var fresh = p_.fresh(type);
        copy_of[o] = fresh;
        o = fresh;
      }
      eqns.push_back(std::move(e));
      is_copy.push_back(true);
      return copy_of.at(v);
    };
    for (std::size_t i = t; i < p_.eqns.size(); ++i) {
      Equation e = p_.eqns[i];
      for (Atom& a : e.in) {
        if (a.is_var() && at(a.var) < kept.size()) a.var = available(a.var);
      }
      eqns.push_back(std::move(e));
      is_copy.push_back(is_copy_[i]);
    }
    p_.eqns = std::move(eqns);
    is_copy_ = std::move(is_copy);
  }

  Program p_;
  std::vector<bool> is_copy_;  // of equations: made here
  std::unordered_map<Var, std::size_t> made_by_;
};

}  // namespace

Program keep(const Program& p) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.params = map_programs(e.params, "keep", keep);
    rewrite.append(std::move(now));
  }
  return drop_dead(Cutter(rewrite.finish()).run());
}

}  // namespace reprise::plan
