#include "plan/seconds.h"

#include "base/machine.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "ops/records.h"
#include "plan/cost.h"
#include "program/primitive.h"

#include <algorithm>
#include <iterator>

namespace reprise::plan {
namespace {

// Elementwise operations that take a polynomial or a division.
bool is_slow(const Primitive* p) {
  const bool is_root = p == &sqrt_p || p == &rsqrt_p;  // an instruction
  return (p->lanes != nullptr && !is_root) || p == &pow_p || p == &atan2_p;
}

double bytes_of_roots(const Schedule& s, const std::vector<Var>& roots) {
  double sum = 0;
  for (Var v : roots) sum += static_cast<double>(s.types[static_cast<std::size_t>(v)].nbytes());
  return sum;
}

double kernel_seconds(const Schedule& s, const Step& step, const Kernel& k) {
  double seconds = traffic_seconds(bytes_of_roots(s, step.reads) + bytes_of_roots(s, step.writes));
  for (const Node& n : k.nodes) {
    if (n.eqn != nullptr) seconds += work_seconds(*s.program, *n.eqn);
  }
  return seconds;
}

// How often the body of a loop runs.
double times_of(const Equation& e, const Schedule& body) {
  if (e.prim == &scan_p) return static_cast<double>(scan_shape(e.params).length);
  return is_checkpointed(e.prim) ? times_run(e, *body.program) : 1;
}

double loop_seconds(const LoopStep& l) {
  double sum = 0, dearest = 0;
  for (const auto& body : l.bodies) {
    const double once = seconds_of(*body) * times_of(*l.eqn, *body);
    sum += once;
    dearest = std::max(dearest, once);
  }
  return l.eqn->prim == &cond_p ? dearest : sum;
}

}  // namespace

double traffic_seconds(double bytes) { return bytes / machine::kernel_speed; }

double work_seconds(const Program& p, const Equation& e) {
  const Cost c = cost_of(p, e);
  const double others =
      (c.flops - c.matmul_flops) /
      (is_slow(e.prim) ? machine::slow_operation_speed : machine::operation_speed);
  return c.matmul_flops / machine::product_speed + others;
}

double seconds_of(const Schedule& s, const Step& step) {
  if (const auto* k = std::get_if<Kernel>(&step.what)) return kernel_seconds(s, step, *k);
  if (const auto* l = std::get_if<LoopStep>(&step.what)) return loop_seconds(*l);
  if (const auto* r = std::get_if<RelayStep>(&step.what)) {
    double sum = 0;
    for (const Step& inside : r->steps) sum += seconds_of(s, inside);
    return sum;
  }
  const double traffic =
      traffic_seconds(bytes_of_roots(s, step.reads) + bytes_of_roots(s, step.writes));
  if (const auto* d = std::get_if<DotStep>(&step.what)) {
    return std::max(traffic, work_seconds(*s.program, *d->eqn));
  }
  if (const auto* e = std::get_if<EvalStep>(&step.what)) {
    return traffic + work_seconds(*s.program, *e->eqn);
  }
  return 0;  // a transfer goes on beside other steps
}

double seconds_of(const Schedule& s) {
  double sum = 0;
  for (const Step& step : s.steps) sum += seconds_of(s, step);
  return sum;
}

}  // namespace reprise::plan
