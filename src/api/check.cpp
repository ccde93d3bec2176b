// check_recompute: the whole gradient program as one straight line, evaluated with an eye on
// repeats.
#include "reprise/check.h"

#include "api/engine.h"
#include "api/flat.h"
#include "control/body.h"
#include "ops/lax.h"
#include "program/walk.h"
#include "remat/recompute.h"
#include "remat/straight_line.h"
#include "reprise/autodiff.h"

namespace reprise::detail {
namespace {

// args -> (outputs, cotangents of the arguments)
Traced trace_value_and_vjp(const Callee& f, const Arrays& args) {
  auto both = [&](const Arrays& x) {
    const VjpOutputs v = vjp(f, x);
    Arrays cts;
    for (const Array& y : v.out)
      cts.push_back(is_floating(y.dtype()) ? lax::full_like(y.type(), 1) : y);
    return concat(v.out, v.map.transposed(cts, f.at));
  };
  return trace(both, leaf_types(args),
               {.transform = "check_recompute",
                .name = f.name,
                .arg_names = f.arg_names,
                .concrete_args = &args});
}

// The stored values of the compiled program: each shown when it is complete.
RecomputeCheck check_compiled(const Program& p, const Arrays& inputs) {
  const auto compiled = engine().compile(p, {.relays = false});
  RepeatedValues repeated(compiled->lowered());
  compiled->run_shown(
      inputs, [&](Var v) { return repeated.wants(v); },
      [&](Var v, const Array& value) { repeated.see(v, value); });
  return repeated.result();
}

}  // namespace

RecomputeCheck check_recompute(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  if (is_tracing()) {
    fail_with_hint<TraceError>("call it outside of traced functions",
                               "check_recompute: numbers are needed, got a call while tracing");
  }
  const Traced whole = trace_value_and_vjp(f, args);
  const Arrays inputs = concat(whole.consts, args);
  const ProgramPtr line = straight_line(*whole.program, inputs);
  RepeatedValues repeated(*line, whole.consts);
  walk(*line, inputs, [&](const Equation& e, const Arrays& x) {
    const Arrays y = e.prim->bind(x, e.params);
    for (std::size_t k = 0; k < y.size(); ++k) repeated.see(e.out[k], y[k]);
    return y;
  });
  RecomputeCheck check = repeated.result();
  if (!check.ok) return check;
  const RecomputeCheck compiled = check_compiled(*whole.program, inputs);
  check.compared_compiled = compiled.compared;
  if (!compiled.ok) {
    check.ok = false;
    check.first_difference = "compiled: " + compiled.first_difference;
  }
  return check;
}

}  // namespace reprise::detail
