// Values that every step of a loop would compute alike, computed once before it.
//
//   hoist:  scan[{ c x. v = f c; w = g v x }] c xs   =>   v = f c;  scan[{ c v x. w = g v x }] c v
//   xs
//
// Checkpoints are open by now, so what a checkpoint computes again from the loop's constants alone
// counts as well. A value outside lives as long as the loop runs, inside only until it is read: it
// leaves the loop only if each step stores it anyway and the step's memory shrinks by as much. Each
// loop computes its own: nothing is kept from a forward loop to a backward one that a policy did
// not save.
#pragma once

#include "program/program.h"

namespace reprise::plan {

Program hoist(const Program&);
// Whether anything left a loop.
bool is_hoisted(const Program& before, const Program& after);

}  // namespace reprise::plan
