#include "remat/straight_line.h"

#include "control/body.h"
#include "control/records.h"
#include "control/scan.h"
#include "control/while.h"
#include "ops/lax.h"
#include "program/walk.h"
#include "remat/checkpoint.h"

#include <algorithm>

namespace reprise {
namespace {

Arrays open(const Program& p, Arrays args);

Arrays open_scan(const Arrays& x, const Params& params) {
  const ScanShape s = scan_shape(params);
  const Program& body = *params.get<ProgramPtr>("jaxpr");
  const Arrays consts = slice_of(x, 0, s.consts);
  Arrays carry = slice_of(x, s.consts, s.consts + s.carry);
  const auto length = static_cast<std::size_t>(s.length);
  std::vector<Arrays> xs, ys(body.out.size() - s.carry, Arrays(length));
  for (std::size_t k = s.consts + s.carry; k < x.size(); ++k) {
    xs.push_back(length == 0 ? Arrays{} : lax::unstack(x[k], 0));
  }
  for (std::size_t step = 0; step < length; ++step) {
    const std::size_t i = s.reverse ? length - 1 - step : step;
    Arrays args = concat(consts, carry);
    for (const Arrays& rows : xs) args.push_back(rows[i]);
    const Arrays out = open(body, std::move(args));
    carry = slice_of(out, 0, s.carry);
    for (std::size_t k = 0; k < ys.size(); ++k) ys[k][i] = out[s.carry + k];
  }
  for (std::size_t k = 0; k < ys.size(); ++k) {
    Type empty = body.out_types()[s.carry + k];
    empty.shape.insert(empty.shape.begin(), 0);
    carry.push_back(length == 0 ? lax::zeros(empty) : lax::stack(ys[k], 0));
  }
  return carry;
}

Arrays open_cond(const Arrays& x, const Params& params) {
  const Programs& branches = params.get<Programs>("branches");
  const auto last = static_cast<std::int32_t>(branches.size()) - 1;
  const Array index = concrete(x[0], "cond");
  const std::int32_t i = std::clamp(*elements<std::int32_t>(index), 0, last);
  return open(*branches[static_cast<std::size_t>(i)], slice_of(x, 1, x.size()));
}

Arrays open_while(const Arrays& x, const WhileLoop& l) {
  const Arrays for_cond = slice_of(x, 0, l.cond_consts),
               for_body = slice_of(x, l.cond_consts, l.first_carry());
  Arrays carry = slice_of(x, l.first_carry(), x.size());
  for (;;) {
    const Array more = open(*l.cond, concat(for_cond, carry))[0];
    const Array any = concrete(l.is_mapped() ? any_more(more) : more, "while_loop");
    if (!*elements<bool>(any)) return carry;
    const Arrays next = open(*l.body, concat(for_body, carry));
    carry = l.is_mapped() ? where_more(more, next, carry) : next;
  }
}

Arrays open_equation(const Equation& e, const Arrays& x) {
  if (e.prim == &scan_p) return open_scan(x, e.params);
  if (e.prim == &cond_p) return open_cond(x, e.params);
  if (e.prim == &while_p) return open_while(x, loop_of(e.params));
  if (e.prim == &remat_p) return open(*e.params.get<ProgramPtr>("jaxpr"), x);
  if (e.prim->inlined_body) return open(*e.params.get<ProgramPtr>(e.prim->inlined_body), x);
  return e.prim->bind(x, e.params);
}

Arrays open(const Program& p, Arrays args) { return walk(p, std::move(args), open_equation); }

}  // namespace

ProgramPtr straight_line(const Program& p, const Arrays& args) {
  auto opened = [&](const Arrays& x) { return open(p, x); };
  const TraceInfo info{
      .transform = "straight_line", .name = p.name, .body = true, .concrete_args = &args};
  return trace(opened, p.in_types(), info).program;
}

}  // namespace reprise
