// Matrix products in plain loops: dtypes that neither the library nor the tiles have, and results
// with gaps.
#pragma once

#include "products/matmul.h"

namespace reprise::codegen {

// Any numeric dtype; the result has the same, or f32 where that is a half. Needs no scratch memory;
// no epilogue.
std::shared_ptr<const Matmul> make_loop_dot(const MatmulSpec&);

}  // namespace reprise::codegen
