// Matrix products in generated code: any strides without a copy of the operands, f32 and f64, one thread.
//
// The library is faster for large products of f32; these are for small ones, for many small matrices with gaps between
// their rows, and for f64, which the library does not have.
#pragma once

#include "codegen/matmul.h"

namespace reprise::codegen {

// f32 or f64, no epilogue, and the rows or the columns of the result are dense.
bool can_tile(const MatmulSpec&);
std::shared_ptr<const Matmul> make_tiled_dot(const MatmulSpec&);

}  // namespace reprise::codegen
