#include "plan/keep.h"

#include "plan/min_cut.h"
#include "plan/repeat.h"
#include "plan/roots.h"
#include "program/primitive.h"
#include "transform/dce.h"
#include "transform/rewrite.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace reprise::plan {
namespace {

constexpr std::size_t small_program = 256 << 10;  // bytes at the peak: not worth any work
// Each cut looks at all equations: of a very long program fewer are tried.
int max_cuts(const Program& p) {
  constexpr std::size_t most = 128, least = 8, equations = std::size_t{1} << 21;
  return static_cast<int>(std::clamp(equations / (p.eqns.size() + 1), least, most));
}
constexpr int max_failures = 6;  // in a row: the rest is not worth the time either

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

class Cutter {
 public:
  explicit Cutter(Program p) : p_(std::move(p)), is_copy_(p_.eqns.size(), false) {}

  Program run() {
    // points where cutting gains nothing, by what the equation there makes
    std::unordered_set<Var> tried;
    int failures = 0;
    for (int n = 0, most = max_cuts(p_); n < most; ++n) {
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
  // Between products, chains of cheap equations become kernels and their values need no memory:
  // only what lives while something else runs counts.
  bool counts(std::size_t i) const {
    return !plan::may_repeat(p_.eqns[i]) && !p_.eqns[i].out.empty();
  }
  std::size_t peak_of(const std::vector<std::size_t>& live) const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (counts(i)) most = std::max(most, live[i]);
    }
    return most;
  }
  std::optional<std::size_t> highest_point(const std::vector<std::size_t>& live,
                                           const std::unordered_set<Var>& tried) const {
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

  const Equation* maker(Var v) const {  // null: it cannot be repeated
    const auto e = made_by_.find(v);
    const bool can = e != made_by_.end() && !is_copy_[e->second] && may_repeat(p_.eqns[e->second]);
    return can ? &p_.eqns[e->second] : nullptr;
  }
  // Values that are kept across t; empty: no cut.
  std::vector<bool> kept_values(std::size_t t, const Roots& roots) const {
    CutQuestion ask;
    for (std::size_t i = t; i < p_.eqns.size(); ++i) {
      for (const Atom& a : p_.eqns[i].in) {
        if (a.is_var() && made_by_.contains(a.var)) ask.needed.push_back(a.var);
      }
    }
    ask.maker = [&](Var v) { return maker(v); };
    ask.capacity = [&](Var v) -> std::int64_t {
      const std::size_t root = at(roots.of[at(v)]);
      // alive anyway
      if (roots.bytes[root] == 0 || roots.last_read[root] == p_.eqns.size()) return 1;
      // A view is kept by keeping what it is a view of.
      return roots.is_view[at(v)] && maker(v) != nullptr
                 ? MinCut::unlimited
                 : static_cast<std::int64_t>(roots.bytes[root]);
    };
    std::vector<bool> kept;
    const std::vector<Var> cut = smallest_cut(p_, ask);
    if (!cut.empty()) kept.resize(p_.types.size(), false);
    for (Var v : cut) kept[at(v)] = true;
    return kept;
  }

  // Equations from t on read copies of what was not kept, made where they are first needed.
  void repeat_after(std::size_t t, const std::vector<bool>& kept) {
    std::vector<Equation> eqns(p_.eqns.begin(), p_.eqns.begin() + static_cast<std::ptrdiff_t>(t));
    std::vector<bool> is_copy(is_copy_.begin(), is_copy_.begin() + static_cast<std::ptrdiff_t>(t));
    std::unordered_map<Var, Var> copy_of;
    std::function<Var(Var)> available = [&](Var v) -> Var {
      if (kept[at(v)] || maker(v) == nullptr) return v;
      if (const auto found = copy_of.find(v); found != copy_of.end()) return found->second;
      Equation e = p_.eqns[made_by_.at(v)];
      e.phase = Phase::recompute;
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

Program keep(const Program& p) { return drop_dead(Cutter(map_bodies(p, "keep", keep)).run()); }

}  // namespace reprise::plan
