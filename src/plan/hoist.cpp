#include "plan/hoist.h"

#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "plan/cost.h"
#include "plan/host_values.h"
#include "plan/memory.h"
#include "program/effects.h"
#include "transform/dce.h"
#include "transform/rewrite.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace reprise::plan {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

// ----------------------------------------------------------------------------------------- memory
std::size_t arena_of(const Schedule& s);

// What a loop needs besides its operands and results: the largest of its bodies, and where carried
// values alternate.
std::size_t scratch_of(const Schedule& s, const Step& step) {
  const auto* loop = std::get_if<LoopStep>(&step.what);
  if (loop == nullptr) return 0;
  std::size_t bytes = 0;
  for (const auto& body : loop->bodies) bytes = std::max(bytes, aligned(arena_of(*body)));
  if (loop->eqn->prim == &cond_p) return bytes;
  const std::size_t carried = alternating_results(*loop->eqn);
  for (std::size_t k = 0; k < carried; ++k)
    bytes += aligned(s.program->type(loop->eqn->out[k]).nbytes());
  return bytes;
}
std::size_t arena_of(const Schedule& s) {
  MemoryRequest request;
  request.outputs_given = true;
  for (const Step& step : s.steps) {
    request.scratch_bytes.push_back(scratch_of(s, step));
    request.host_scratch_bytes.push_back(0);
  }
  return plan_memory(s, request).arena_bytes;
}
Schedule scheduled(const Program& body) {
  return make_schedule(std::make_shared<const Program>(body), {.is_body = true});
}

// ------------------------------------------------------------------------------------------- loops
class Loop {
 public:
  explicit Loop(const Equation& e)
      : shape_(scan_shape(e.params)),
        body_(*e.params.get<ProgramPtr>("jaxpr")),
        is_invariant_(body_.types.size()),
        made_by_(body_.types.size()) {
    for (std::size_t i = 0; i < shape_.consts; ++i) is_invariant_[at(body_.in[i])] = true;
    for (const Equation& inner : body_.eqns) {
      const bool all = !effect_of(inner).is_any() &&  // else it happens at every step
                       std::all_of(inner.in.begin(), inner.in.end(), [&](const Atom& a) {
                         return !a.is_var() || is_invariant_[at(a.var)];
                       });
      for (Var v : inner.out) {
        is_invariant_[at(v)] = all;
        made_by_[at(v)] = &inner;
      }
    }
  }

  // The values that leave; empty: all stay.
  std::vector<Var> choose() const {
    const auto begin = body_.eqns.begin(), end = body_.eqns.end();
    if (shape_.length < 2 ||
        std::none_of(begin, end, [&](const Equation& e) { return is_work(e); }))
      return {};
    // Transfers to the host are placed by what surrounds the loop.
    if (std::any_of(begin, end, [&](const Equation& e) {
          return is_put_to_host(body_, e) || is_put_to_device(body_, e);
        }))
      return {};
    const Schedule now = scheduled(body_);
    std::vector<Var> candidates = stored(now);
    if (candidates.empty()) return {};
    const std::size_t before = arena_of(now);
    if (fits(candidates, before)) return candidates;
    // Not all of them: the dearest first, each if there is room.
    constexpr std::size_t most = 8;
    const auto cost = [&](Var v) {
      const Cost c = cost_of(body_, *made_by_[at(v)]);
      return c.flops + c.bytes;
    };
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](Var a, Var b) { return cost(a) > cost(b); });
    if (candidates.size() > most) candidates.resize(most);
    std::vector<Var> chosen;
    for (Var v : candidates) {
      chosen.push_back(v);
      if (!fits(chosen, before)) chosen.pop_back();
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  // The body with the chosen values as constants behind those it has.
  Program without(const std::vector<Var>& chosen) const {
    Program body = body_;
    std::vector<bool> leaves(body_.types.size());
    for (Var v : chosen) leaves[at(v)] = true;
    for (Equation& e : body.eqns) {
      for (Var& v : e.out) {
        if (leaves[at(v)]) v = body.fresh(body_.type(v));
      }
    }
    body.in.insert(body.in.begin() + static_cast<std::ptrdiff_t>(shape_.consts), chosen.begin(),
                   chosen.end());
    body.arg_names.clear();
    return drop_dead(body);
  }
  // The equations that make the chosen values, in order.
  std::vector<const Equation*> makers(const std::vector<Var>& chosen) const {
    std::vector<bool> needed(body_.types.size());
    for (Var v : chosen) needed[at(v)] = true;
    std::vector<const Equation*> all;
    for (std::size_t i = body_.eqns.size(); i-- > 0;) {
      const Equation& e = body_.eqns[i];
      if (std::none_of(e.out.begin(), e.out.end(), [&](Var v) { return needed[at(v)]; })) continue;
      all.push_back(&e);
      for (const Atom& a : e.in) {
        if (a.is_var()) needed[at(a.var)] = true;
      }
    }
    std::reverse(all.begin(), all.end());
    return all;
  }
  const Program& body() const { return body_; }
  const ScanShape& shape() const { return shape_; }

 private:
  bool is_work(const Equation& e) const {
    return !e.out.empty() && is_invariant_[at(e.out[0])] && e.prim->kind != Kind::shape;
  }
  // What is fused into its readers costs no memory inside, and would outside.
  std::vector<Var> stored(const Schedule& s) const {
    std::vector<bool> is_output(body_.types.size());
    for (const Atom& a : body_.out) {
      if (a.is_var()) is_output[at(a.var)] = true;
    }
    std::vector<Var> all;
    for (const Step& step : s.steps) {
      for (Var v : step.writes) {
        const bool is_variable = at(v) < made_by_.size() && made_by_[at(v)] != nullptr;
        if (is_variable && is_invariant_[at(v)] && !is_output[at(v)]) all.push_back(v);
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  bool fits(const std::vector<Var>& chosen, std::size_t before) const {
    std::size_t bytes = arena_of(scheduled(without(chosen)));
    for (Var v : chosen) bytes += aligned(body_.type(v).nbytes());
    return bytes <= before;
  }

  ScanShape shape_;
  const Program& body_;
  std::vector<bool> is_invariant_;
  std::vector<const Equation*> made_by_;
};

// Appends what makes the chosen values, then the loop without it.
void append_hoisted(Rewriter& rewrite, const Loop& loop, const Equation& e,
                    const std::vector<Var>& chosen) {
  const Program& body = loop.body();
  std::unordered_map<Var, Atom> outside;
  for (std::size_t i = 0; i < loop.shape().consts; ++i) outside[body.in[i]] = e.in[i];
  for (const Equation* maker : loop.makers(chosen)) {
    Equation copy = *maker;
    for (Atom& a : copy.in) {
      if (a.is_var()) a = outside.at(a.var);
    }
    for (Var& v : copy.out) {
      const Var fresh = rewrite.fresh(body.type(v));
      outside[v] = Atom::of(fresh);
      v = fresh;
    }
    rewrite.append(std::move(copy));
  }
  Equation smaller = e;
  smaller.params =
      e.params.with("jaxpr", std::make_shared<const Program>(loop.without(chosen)))
          .with("num_consts", static_cast<std::int64_t>(loop.shape().consts + chosen.size()));
  std::vector<Atom> values;
  for (Var v : chosen) values.push_back(outside.at(v));
  smaller.in.insert(smaller.in.begin() + static_cast<std::ptrdiff_t>(loop.shape().consts),
                    values.begin(), values.end());
  rewrite.append(std::move(smaller));
}

}  // namespace

bool is_hoisted(const Program& before, const Program& after) {
  std::unordered_set<const Program*> seen;
  const auto differ = [&](const auto& self, const Program& a, const Program& b) -> bool {
    if (a.eqns.size() != b.eqns.size()) return true;
    for (std::size_t i = 0; i < a.eqns.size(); ++i) {
      std::vector<const Program*> now;
      for_each_program(b.eqns[i].params,
                       [&](const ProgramPtr& body) { now.push_back(body.get()); });
      std::size_t k = 0;
      bool found = false;
      for_each_program(a.eqns[i].params, [&](const ProgramPtr& body) {
        const Program& other = *now[k++];
        found = found || (seen.insert(body.get()).second && self(self, *body, other));
      });
      if (found) return true;
    }
    return false;
  };
  return differ(differ, before, after);
}

Program hoist(const Program& p) {
  Rewriter rewrite(p);
  bool changed = false;
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(
        e.params, "hoist", hoist);  // from inner loops first: what leaves them may leave this one
    if (e.prim != &scan_p) {
      rewrite.append(std::move(now));
      continue;
    }
    const Loop loop(now);
    const std::vector<Var> chosen = loop.choose();
    changed |= !chosen.empty();
    if (chosen.empty())
      rewrite.append(std::move(now));
    else
      append_hoisted(rewrite, loop, now, chosen);
  }
  Program out = rewrite.finish();
  return changed ? drop_dead(out) : out;
}

}  // namespace reprise::plan
