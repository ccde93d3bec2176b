// check_recompute: the whole gradient program as one straight line, evaluated with an eye on repeats.
#include "reprise/check.h"

#include "api/flat.h"
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
    for (const Array& y : v.out) cts.push_back(is_floating(y.dtype()) ? lax::full_like(y.type(), 1) : y);
    return with_consts(v.out, v.map.transposed(cts, f.at));
  };
  return trace(both, types_of(args),
               {.transform = "check_recompute", .name = f.name, .arg_names = f.arg_names, .concrete_args = &args});
}

}  // namespace

RecomputeCheck check_recompute(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  if (is_tracing()) {
    fail_with_hint<TraceError>("call it outside of traced functions",
                               "check_recompute: numbers are needed, got a call while tracing");
  }
  const Traced whole = trace_value_and_vjp(f, args);
  const Arrays inputs = with_consts(whole.consts, args);
  const ProgramPtr line = straight_line(*whole.program, inputs);
  RepeatedValues repeated(*line, whole.consts);
  walk(*line, inputs, [&](const Equation& e, const Arrays& x) {
    const Arrays y = e.prim->bind(x, e.params);
    for (std::size_t k = 0; k < y.size(); ++k) repeated.see(e.out[k], y[k]);
    return y;
  });
  return repeated.result();
}

}  // namespace reprise::detail
