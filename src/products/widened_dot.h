// Matrix products of halves in generated code, for machines where the library has none: blocks of
// the operands are widened to f32 and multiplied by tiles (tiled_dot.h). Sums are rounded once,
// when they are whole. Bits do not depend on the number of threads.
#pragma once

#include "products/matmul.h"

namespace reprise::codegen {

// bf16 or f16 to themselves or to f32, and a sum that is not empty.
bool can_widen(const MatmulSpec&);
std::shared_ptr<const Matmul> make_widened_dot(const MatmulSpec&, int threads = 1);

}  // namespace reprise::codegen
