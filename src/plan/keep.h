// What lives from the forward to the backward pass where no policy speaks.
//
//   { ...; a = f x; ...; b = g a; ... | ...; use a; use b; ... }
//     =>  { ... | ...; use a; b' = g a; use b'; ... }          where keeping a alone takes fewer bytes
//
// The point where most bytes are alive is cut: of all sets of values from which the rest of the
// program can go on by repeating cheap equations (elementwise, reductions, broadcasts, shapes; no
// product is repeated, and nothing twice), the one with the fewest bytes is kept. Again for the
// next such point, until cutting the highest one gains nothing. Bodies of loops are treated alike.
#pragma once

#include "program/program.h"

namespace reprise::plan {

Program keep(const Program&);

}  // namespace reprise::plan
