// Reductions as kernels do them: along rows or over rows.
#pragma once

#include "plan/view.h"

namespace reprise::plan {

// The operand as [segments, rows, columns]: along_row sums columns, else rows are summed.
struct Reduction {
  bool along_row = true;
  std::int64_t segments = 1, rows = 1, columns = 1;
};
// Of a reduction that a kernel can do: the reduced dimensions are neighbours.
std::optional<Reduction> reduction_of(const Program&, const Equation&);

inline constexpr std::int64_t long_row = 16384;  // elements; longer ones are reduced in parts
// The largest divisor of n that is at most `wanted` and more than 64; n if there is none.
std::int64_t divisor_near(std::int64_t n, std::int64_t wanted);

// Reductions over several groups of dimensions, or over very many elements, as several equations
// that kernels can do and that threads can share.
Program split_reductions(const Program&);

}  // namespace reprise::plan
