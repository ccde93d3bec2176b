// Reductions and selections over small windows as elementwise operations on strided slices.
#pragma once

#include "program/trace.h"

namespace reprise::plan {

// What stands for the equation; null: it is evaluated as it is. The arguments must live as long as
// the function.
FlatFunction window_expansion(const Equation&, const std::vector<Type>& in, const Type& out);

}  // namespace reprise::plan
