// Which equations the compiler may compute a second time instead of keeping their results.
#pragma once

#include "program/program.h"

#include <functional>

namespace reprise::plan {

// Elementwise, reductions, broadcasts and shapes; never a product, a lookup or a call. Nor values
// that a policy saved: they are rounded where they are made (remat/checkpoint.cpp), which marks
// them.
bool may_repeat(const Equation&);

// The values with the least capacity from which all `needed` ones can be had by repeating
// equations; among equal sets the one that repeats least. Empty: there is none. `maker`: the
// equation that may be repeated to make a value, or null.
struct CutQuestion {
  std::vector<Var> needed;
  std::function<const Equation*(Var)> maker;
  std::function<std::int64_t(Var)> capacity;
};
std::vector<Var> smallest_cut(const Program&, const CutQuestion&);

}  // namespace reprise::plan
