// while, and loops that were mapped: these have a predicate per element, run while any holds, and
// elements whose predicate is false keep their value.
//
//   one_predicate:  while[c -> (cond c): bool[n]]   =>   while[(more, c) -> any more], with
//                   (more, c) -> (cond c', c')  where  c' = select more (body c) c
#pragma once

#include "program/primitive.h"

namespace reprise {

struct WhileLoop {
  ProgramPtr cond, body;
  std::size_t cond_consts, body_consts;
  std::int64_t checkpoints = 0;  // carries that reverse mode keeps; 0: there is no reverse mode
  std::int64_t disk_checkpoints = 0;  // and so many more on disk
  std::size_t first_carry() const { return cond_consts + body_consts; }
  bool is_mapped() const { return !cond->out_types()[0].shape.empty(); }
};
WhileLoop loop_of(const Params&);
Params while_params(const WhileLoop&);
Arrays bind_while(const WhileLoop&, const Arrays& args);

// A loop and its tangents as one loop.
struct LoopJvp {
  WhileLoop loop;  // its body: (consts, dconsts, carry, dcarry) -> (carry, dcarry)
  Arrays args;
  std::vector<bool> nonzero;     // per carry
  std::vector<bool> is_tangent;  // per input of the new body
  std::size_t extra_consts = 0;  // leading ones: arrays that custom rules close over
};
LoopJvp jvp_while(const Arrays& x, const Tangents& dx, const Params& params);

// A loop for mapped operands, with one predicate for all elements or one for each.
struct BatchedWhile {
  WhileLoop loop;
  Arrays args;
  Axes axes;  // of the carries
};
BatchedWhile batched_while(const WhileLoop&, const Arrays& x, const Axes& axes, std::int64_t n);
Arrays bind_with_one_predicate(const WhileLoop&, const Arrays& args);

// Whether any element goes on, and the carry after a step: `next` where `more` holds, else `carry`.
Array any_more(const Array& more);
Arrays where_more(const Array& more, const Arrays& next, const Arrays& carry);

// The program, and those inside its equations, with no mapped loop: what compiled code runs.
Program one_predicate(const Program&);

}  // namespace reprise
