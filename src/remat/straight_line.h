// One run of a program as a list of plain equations: calls and checkpoints opened, loops unrolled,
// the branches taken that these arguments take.
//
//   { a. let b = remat2[f] a; c = scan[g] b in (c,) }, values of a
//     =>  { a. let ...f...; r0 r1 = unstack b; ...g...; ...g...; c = stack ... in (c,) }
#pragma once

#include "program/trace.h"

namespace reprise {

// `args` are concrete: conditions ask for numbers. What was scanned is taken apart by unstack and
// joined by stack. Nothing is merged, left out or reordered. A mapped while stays one equation: its
// elements stop at different times.
ProgramPtr straight_line(const Program& p, const Arrays& args);

}  // namespace reprise
