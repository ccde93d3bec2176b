// A convolution in oneDNN's own terms: x [n, c, in], weights [group, o, i, window], y [n, o, out].
//
//   forward   computes y         x = lhs   weights = rhs   y = out
//   data      gradient of x      x = out   weights = rhs   y = lhs
//   weights   gradient of them   x = lhs   weights = out   y = rhs
#pragma once

#include "products/conv.h"

namespace reprise::codegen {

struct ConvGeometry {
  enum class Kind { forward, data, weights } kind = Kind::forward;
  std::vector<std::int64_t> x_dims, weights_dims, y_dims;
  std::vector<std::int64_t> x_strides, weights_strides, y_strides;
  std::vector<std::int64_t> stride, dilation, low, high;
};

// Sizes, types and strides that mean a convolution at all.
bool is_well_formed(const ConvSpec&);
bool result_is_empty(const ConvSpec&);
bool sum_is_empty(const ConvSpec&);

// At least one spatial dimension: a product of matrices is a convolution over one place.
ConvSpec with_a_dimension(ConvSpec);
// rhs in rows without gaps and reversed along its spatial dimensions.
ConvSpec turned(ConvSpec);

// All ways to compute it, the best one first.
std::vector<ConvGeometry> geometries(const ConvSpec&);

std::int64_t product(const std::vector<std::int64_t>& sizes);

}  // namespace reprise::codegen
