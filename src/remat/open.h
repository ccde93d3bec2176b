// Checkpoints opened in place: their bodies, recomputation included, become ordinary equations.
//
//   { ... b = remat2[f] a ... }   =>   { ... body of f on a ... }
//
// After this nothing may merge equal equations: the second computation is the point.
#pragma once

#include "program/program.h"

namespace reprise {

Program open_checkpoints(const Program&);
Program open_mergeable_checkpoints(const Program&);  // only those with prevent_cse = false

}  // namespace reprise
