// Convolutions by oneDNN, or by products of ours where it has no code for the machine that keeps to
// planned memory; planned once and run many times.
//
//   out[n, o, p] = sum over i, w of lhs[n, i, (p * stride + w * rhs_dilation - low) / lhs_dilation]
//   * rhs[o, i, w]
//
// where the division is exact and inside lhs. Operands are strided views, so any order of
// dimensions will do. A convolution whose window is larger than its result, as in gradients of
// kernels, runs as a gradient of weights; one with holes in lhs, as in gradients of images, as a
// gradient of data.
#pragma once

#include "base/dtype.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::codegen {

struct ConvSpec {
  Dtype dtype = Dtype::f32;
  std::int64_t batch = 0;         // of lhs
  std::int64_t lhs_features = 0;  // all groups together
  std::int64_t out_features = 0;
  std::int64_t feature_groups = 1, batch_groups = 1;
  // Spatial dimensions, at most three.
  std::vector<std::int64_t> in, window, out;
  std::vector<std::int64_t> stride, low, high, lhs_dilation, rhs_dilation;
  bool reverse_window = false;  // rhs[o, i, window - 1 - w] instead of rhs[o, i, w]
  // Strides in elements: [batch, feature, spatial...] and for rhs [output, input, spatial...].
  std::vector<std::int64_t> lhs_strides, rhs_strides, out_strides;
  bool operator==(const ConvSpec&) const = default;
};

// Immutable; run from many threads at once, each with its own scratch (64-byte aligned).
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual std::size_t scratch_bytes() const = 0;
  // Returns false when the library reports an error.
  virtual bool run(const void* lhs, const void* rhs, void* out, void* scratch) const noexcept = 0;
};

// False: there is no fast code for this; the caller evaluates.
bool can_convolve(const ConvSpec&);
// One object per spec and number of threads for the process. Throws RuntimeError when can_convolve
// is false or the library fails.
std::shared_ptr<const Convolution> make_convolution(const ConvSpec&, int threads = 1);
// Drops those that nobody holds.
void release_unused_convolutions();

}  // namespace reprise::codegen
