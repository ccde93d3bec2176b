// Which equations the compiler may compute a second time instead of keeping their results.
#pragma once

#include "program/program.h"

namespace reprise::plan {

// Elementwise, reductions, broadcasts and shapes; never a product, a lookup or a call. Nor values that a
// policy saved: they are rounded where they are made (remat/checkpoint.cpp), which marks them.
bool may_repeat(const Equation&);

}  // namespace reprise::plan
