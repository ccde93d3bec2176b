#include "plan/cost.h"

#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "ops/collective.h"
#include "ops/conv.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise::plan {
namespace {

void add(Cost& sum, const Cost& more, double times) {
  sum.flops += more.flops * times;
  sum.matmul_flops += more.matmul_flops * times;
  sum.bytes += more.bytes * times;
  sum.communicated += more.communicated * times;
}

double dot_flops(const Program& p, const Equation& e) {
  const auto& dims = e.params.get<DotDims>("dimension_numbers");
  const Shape lhs = p.type(e.in[0]).shape;
  double n = 2 * static_cast<double>(p.type(e.out[0]).size());
  for (std::int64_t d : dims.lhs_contracting)
    n *= static_cast<double>(lhs[static_cast<std::size_t>(d)]);
  return n;
}

// Every output element is a sum over the kernel's window and input features.
double conv_flops(const Program& p, const Equation& e) {
  const Type kernel = p.type(e.in[1]);
  const auto numbers = e.params.get_opaque<LayoutParam>("dimension_numbers");
  const double features =
      static_cast<double>(kernel.shape[static_cast<std::size_t>(numbers->layout.rhs_spec[0])]);
  return 2 * static_cast<double>(p.type(e.out[0]).size()) * static_cast<double>(kernel.size()) /
         features;
}

}  // namespace

Cost cost_of(const Program& p, const Equation& e) {
  Cost c;
  if (e.prim == &scan_p) {
    add(c, cost_of(*e.params.get<ProgramPtr>("jaxpr")),
        static_cast<double>(scan_shape(e.params).length));
    return c;
  }
  if (is_checkpointed(e.prim)) {
    for_each_program(e.params,
                     [&](const ProgramPtr& body) { add(c, cost_of(*body), times_run(e, *body)); });
    return c;
  }
  if (e.prim == &cond_p) {
    for (const ProgramPtr& branch : e.params.get<Programs>("branches")) {
      const Cost b = cost_of(*branch);
      if (b.flops >= c.flops) c = b;
    }
    return c;
  }
  if (e.prim->kind == Kind::call) {  // of a while loop one step, for want of a count
    for_each_program(e.params, [&](const ProgramPtr& body) { add(c, cost_of(*body), 1); });
    return c;
  }
  for (const Atom& a : e.in) c.bytes += static_cast<double>(p.type(a).nbytes());
  double largest = 0;
  for (Var v : e.out) {
    c.bytes += static_cast<double>(p.type(v).nbytes());
    largest = std::max(largest, static_cast<double>(p.type(v).size()));
  }
  if (e.prim->effect.is_shared)
    c.communicated = static_cast<double>(communicated_bytes(e, p.type(e.in[0]), p.type(e.out[0])));
  if (e.prim == &dot_general_p)
    c.flops = c.matmul_flops = dot_flops(p, e);
  else if (e.prim == &conv_general_dilated_p)
    c.flops = c.matmul_flops = conv_flops(p, e);
  else if (e.prim->kind == Kind::elementwise)
    c.flops = largest;
  else if (e.prim->kind == Kind::reduce)
    c.flops = static_cast<double>(p.type(e.in[0]).size());
  return c;
}

Cost cost_of(const Program& p) {
  Cost sum;
  for (const Equation& e : p.eqns) add(sum, cost_of(p, e), 1);
  return sum;
}

}  // namespace reprise::plan
