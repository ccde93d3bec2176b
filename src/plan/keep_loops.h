// What a forward loop stacks up for its backward loop.
//
//   ys.. = scan { ... a = f x; b = g a; ... -> a, b }          ys.. = scan { ... a = f x ... -> a }
//   ...  = scan { (a, b) ... use a; use b }               =>   ...  = scan { (a) b' = g a; use a; use b' }
//
// The same cut as in keep.h, inside the body: stacked values that only one later loop reads, and
// that it can compute again from fewer bytes (what the bodies share as constants or scanned
// arguments is free).
#pragma once

#include "program/program.h"

namespace reprise::plan {

Program keep_loops(const Program&);

// The same for a budget: about so much of the stacked bytes is kept, and whatever is cheapest is
// repeated, products too, but for what policies saved.
struct LoopStacks {
  double share = 1;
  bool policies_are_free = false;
};
Program restack_loops(const Program&, const LoopStacks&);

}  // namespace reprise::plan
