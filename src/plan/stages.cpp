#include "plan/stages.h"

#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"

#include <algorithm>

namespace reprise {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

Stage stage_of(Phase p) {
  switch (p) {
    case Phase::forward: return Stage::forward;
    case Phase::recompute: return Stage::recompute;
    case Phase::backward: break;
  }
  return Stage::backward;
}

bool is_backward(const Equation& e) {
  bool inner = e.phase == Phase::backward;
  for_each_program(e.params, [&](const ProgramPtr& body) { inner = inner || has_backward(*body); });
  return inner;
}

void add(plan::Cost& sum, const plan::Cost& more, double times) {
  sum.flops += more.flops * times;
  sum.matmul_flops += more.matmul_flops * times;
  sum.bytes += more.bytes * times;
  sum.communicated += more.communicated * times;
}

plan::Cost recomputed_cost(const Program& p, Stage call);

plan::Cost recomputed_cost(const Program& p, const Equation& e, Stage stage) {
  plan::Cost c;
  if (e.prim == &cond_p) {
    for (const ProgramPtr& branch : e.params.get<Programs>("branches")) {
      const plan::Cost b = recomputed_cost(*branch, stage);
      if (b.flops >= c.flops) c = b;
    }
  } else if (e.prim->kind == Kind::call) {
    for_each_program(e.params, [&](const ProgramPtr& body) {
      const double times = e.prim == &scan_p ? static_cast<double>(scan_shape(e.params).length)
                                             : times_run(e, *body);
      // An advance in a reversal plays again what the forward pass has computed.
      const bool again =
          e.prim == &checkpointed_reverse_p && body == e.params.get<ProgramPtr>("advance_jaxpr");
      add(c, recomputed_cost(*body, again ? Stage::recompute : stage), times);
    });
  } else if (stage == Stage::recompute) {
    c = plan::cost_of(p, e);
  }
  return c;
}

plan::Cost recomputed_cost(const Program& p, Stage call) {
  plan::Cost sum;
  const std::vector<Stage> stages = stages_of(p, call);
  for (std::size_t i = 0; i < p.eqns.size(); ++i)
    add(sum, recomputed_cost(p, p.eqns[i], stages[i]), 1);
  return sum;
}

}  // namespace

bool has_backward(const Program& p) {
  return std::any_of(p.eqns.begin(), p.eqns.end(), is_backward);
}

std::vector<Stage> stages_of(const Program& p, Stage call) {
  std::vector<Stage> stages;
  for (const Equation& e : p.eqns)
    stages.push_back(e.phase == Phase::forward ? call : stage_of(e.phase));
  if (call != Stage::forward) return stages;
  // What depends on the backward pass, and what the backward pass depends on.
  std::vector<bool> later(p.types.size()), needed(p.types.size());
  const auto is_later = [&](const Atom& a) { return a.is_var() && later[at(a.var)]; };
  std::vector<bool> depends;
  for (const Equation& e : p.eqns) {
    depends.push_back(std::any_of(e.in.begin(), e.in.end(), is_later));
    if (e.phase == Phase::recompute || (!depends.back() && !is_backward(e))) continue;
    for (Var v : e.out) later[at(v)] = true;
  }
  for (std::size_t i = p.eqns.size(); i-- > 0;) {
    const Equation& e = p.eqns[i];
    const bool wanted =
        std::any_of(e.out.begin(), e.out.end(), [&](Var v) { return needed[at(v)]; });
    if (e.phase == Phase::forward && depends[i] && !wanted) stages[i] = Stage::after;
    if (e.phase == Phase::forward && !wanted) continue;
    for (const Atom& a : e.in) {
      if (a.is_var()) needed[at(a.var)] = true;
    }
  }
  return stages;
}

plan::Cost recomputed_cost(const Program& p) { return recomputed_cost(p, Stage::forward); }

}  // namespace reprise
