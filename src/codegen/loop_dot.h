// Matrix products in plain loops: small ones, where a library call costs more than the work, and dtypes
// that the library does not have.
#pragma once

#include "codegen/matmul.h"

namespace reprise::codegen {

// Multiply-adds up to which loops are faster than a call of oneDNN.
inline constexpr std::int64_t small_dot = 4096;

// Any numeric dtype; the result has the same, or f32 where that is a half. Needs no scratch memory; no epilogue.
std::shared_ptr<const Matmul> make_loop_dot(const MatmulSpec&);

}  // namespace reprise::codegen
