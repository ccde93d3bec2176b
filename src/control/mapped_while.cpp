#include "control/body.h"
#include "control/records.h"
#include "control/while.h"
#include "ops/lax.h"
#include "transform/rewrite.h"

namespace reprise {
namespace {

// The carry of the new loop is (more, carry): the condition is asked once for every step.
Arrays step_mapped(const WhileLoop& l, const Arrays& x) {
  const Arrays cond_consts = slice_of(x, 0, l.cond_consts);
  const Arrays body_consts = slice_of(x, l.cond_consts, l.first_carry());
  const Arrays carry = slice_of(x, l.first_carry() + 1, x.size());
  const Arrays next = eval(*l.body, concat(body_consts, carry));
  const Arrays kept = where_more(x[l.first_carry()], next, carry);
  return concat(eval(*l.cond, concat(cond_consts, kept)), kept);
}

}  // namespace

Arrays bind_with_one_predicate(const WhileLoop& l, const Arrays& x) {
  const Arrays consts = slice_of(x, 0, l.first_carry());
  const Arrays init = slice_of(x, l.first_carry(), x.size());
  const Arrays more = eval(*l.cond, concat(slice_of(x, 0, l.cond_consts), init));
  const Arrays args = concat(consts, concat(more, init));
  Types step_types, carry_types;
  for (std::size_t i = 0; i < args.size(); ++i) {
    step_types.push_back(args[i].type());
    if (i >= l.first_carry()) carry_types.push_back(args[i].type());
  }
  const TraceInfo info{.transform = "while_loop", .name = l.body->name, .body = true};
  const auto any = [](const Arrays& carry) { return Arrays{any_more(carry[0])}; };
  const auto step = [&](const Arrays& all) { return step_mapped(l, all); };
  const ProgramPtr cond = trace(any, carry_types, info).program;
  const ProgramPtr body = trace(step, step_types, info).program;
  const WhileLoop joined{cond, body, 0, l.first_carry(), l.checkpoints, l.disk_checkpoints};
  const Arrays out = bind_while(joined, args);
  return slice_of(out, 1, out.size());
}

Array any_more(const Array& more) { return lax::reduce_or(more, lax::iota_ints(more.ndim())); }

Arrays where_more(const Array& more, const Arrays& next, const Arrays& carry) {
  Arrays out;
  for (std::size_t k = 0; k < carry.size(); ++k) {
    const Array which = lax::broadcast_in_dim(more, carry[k].shape(), lax::iota_ints(more.ndim()));
    out.push_back(lax::select_n(which, {carry[k], next[k]}));
  }
  return out;
}

Program one_predicate(const Program& p) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, "one_predicate", one_predicate);
    if (e.prim != &while_p || !loop_of(e.params).is_mapped()) {
      rewrite.append(std::move(now));
      continue;
    }
    Types in;
    for (const Atom& a : e.in) in.push_back(p.type(a));
    const AtEquation at(e.at);
    const WhileLoop loop = loop_of(now.params);
    const auto formula = [&](const Arrays& x) { return bind_with_one_predicate(loop, x); };
    const Traced traced = trace(formula, in, {.transform = "while_loop", .body = true});
    const std::vector<Atom> out = rewrite.splice(*traced.program, now.in, e.phase);
    for (std::size_t k = 0; k < out.size(); ++k) rewrite.replace(e.out[k], out[k]);
  }
  return rewrite.finish();
}

}  // namespace reprise
