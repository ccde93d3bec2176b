// Convolutions as sums of matrix products in generated code (tiled_dot.h), for machines where the
// library has no code that keeps to planned memory: one product for each place of the window, of
// the operands where they are.
#pragma once

#include "products/conv_geometry.h"

namespace reprise::codegen {

// Null: no geometry takes the spec. Bits do not depend on the number of threads.
std::shared_ptr<const Convolution> make_conv_products(const ConvSpec&, int threads = 1);

}  // namespace reprise::codegen
