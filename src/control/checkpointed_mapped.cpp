// Loops of unknown length whose elements have conditions of their own. All run as long as any does;
// an element whose condition is false keeps its carry and, in the reversal, its cotangents.
//
//   while:   c -> body c               =>   (more, count, c) -> (cond c', count + more, c')
//                                           where c' = select more (body c) c
//   step:    (c, back) -> back'        =>   (counts, c, i, back) -> (i - 1, select (i < counts)
//   back' back)
//
// `i` is the number of the step that is reversed: steps are, from the last to the first. States
// that are played again run on where an element had ended, which nothing reads.
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "ops/lax.h"

namespace reprise {

Arrays bind_counting_while(const WhileLoop& l, const Arrays& x) {
  const Arrays consts = slice_of(x, 0, l.first_carry());
  const Arrays init = slice_of(x, l.first_carry(), x.size());
  const Arrays cond_consts = slice_of(x, 0, l.cond_consts);
  const Arrays more = eval(*l.cond, concat(cond_consts, init));
  const Array no_steps = lax::zeros({Dtype::i32, more[0].shape()});
  const Arrays args = concat(consts, concat({more[0], no_steps}, init));
  Types step_types, carry_types;
  for (std::size_t i = 0; i < args.size(); ++i) {
    step_types.push_back(args[i].type());
    if (i >= l.first_carry()) carry_types.push_back(args[i].type());
  }
  const auto any = [](const Arrays& carry) { return Arrays{any_more(carry[0])}; };
  const auto step = [&](const Arrays& a) {
    const Array unfinished = a[l.first_carry()], count = a[l.first_carry() + 1];
    const Arrays carry = slice_of(a, l.first_carry() + 2, a.size());
    const Arrays next = eval(*l.body, concat(slice_of(a, l.cond_consts, l.first_carry()), carry));
    const Arrays kept = where_more(unfinished, next, carry);
    const Array one_more = lax::convert(unfinished, Dtype::i32);
    const Array counted = lax::add(count, one_more);
    const Arrays test = eval(*l.cond, concat(slice_of(a, 0, l.cond_consts), kept));
    return concat({test[0], counted}, kept);
  };
  const TraceInfo info{.transform = "while_loop", .name = l.body->name, .body = true};
  const WhileLoop joined{trace(any, carry_types, info).program,
                         trace(step, step_types, info).program,
                         0,
                         l.first_carry(),
                         l.checkpoints,
                         l.disk_checkpoints};
  const Arrays out = checkpointed_while_p.bind(args, while_params(joined));
  // The carries and what is kept of them, without the first two; the counts stand for the length.
  const std::size_t carry = init.size(), states = carry + 3;
  Arrays result = concat(slice_of(out, 2, 2 + carry), {out[1], out[states]});
  for (std::size_t section = states + 1; section < out.size(); section += 2 + carry)
    result = concat(result, slice_of(out, section + 2, section + 2 + carry));
  return result;
}

ReverseLoop masked(const ReverseLoop& l, const Types& inputs, const Type& counts) {
  const std::size_t forward = l.advance->in.size();
  Types types{counts};
  types.insert(types.end(), inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(forward));
  const Types for_advance = types;
  types.push_back({Dtype::i32, {}});
  types.insert(types.end(), inputs.begin() + static_cast<std::ptrdiff_t>(forward), inputs.end());
  const auto step = [&](const Arrays& a) {
    const Array &ends = a[0], &i = a[1 + forward];
    const Arrays back = slice_of(a, forward + 2, a.size());
    const Arrays next = eval(*l.step, concat(slice_of(a, 1, 1 + forward), back));
    const Array now = lax::broadcast_in_dim(i, ends.shape(), {});
    const Array takes_part = lax::lt(now, ends);
    const Array before = lax::sub(i, lax::const_like(i, 1));
    return concat({before}, where_more(takes_part, next, back));
  };
  const auto advance = [&](const Arrays& a) { return eval(*l.advance, slice_of(a, 1, a.size())); };
  const TraceInfo info{.transform = "transpose", .name = l.step->name, .body = true};
  ReverseLoop r = l;
  r.step = trace(step, types, info).program;
  r.advance = trace(advance, for_advance, info).program;
  ++r.consts;
  ++r.back;
  return r;
}

}  // namespace reprise
