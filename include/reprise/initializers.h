// Initialisers of parameters, with the names and the numbers of jax.nn.initializers (which Flax
// calls flax.linen.initializers and flax.nnx.initializers).
//
//   namespace init = rp::nn::initializers;
//   Array kernel = init::lecun_normal()(rp::random::key(0), {784, 128});
//   init::Initializer wide = init::variance_scaling(2.0, "fan_out", "normal");
//   Array other = wide(key, {3, 3, 16, 32}, rp::bfloat16);
//
// Any function (key, shape, dtype) -> Array is an initialiser too. Each draws once from the whole
// key, so that the same key and shape give the same numbers as JAX, to the bit in f32 (orthogonal
// ones: to about 1e-6). An initialiser may be called inside jit and vmap.
#pragma once

#include "reprise/array.h"
#include "reprise/ops_reduce.h"

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#pragma GCC visibility push(default)
namespace reprise::nn::initializers {

// A function (key, shape, dtype) -> Array with a default dtype.
class Initializer {
 public:
  // The dtype is the one used when a call names none.
  template <class F>
  requires(!std::same_as<F, Initializer> &&
           std::is_invocable_r_v<Array, const F&, const Array&, const Shape&, Dtype>)
      Initializer(F f, Dtype dtype = float32)  // NOLINT: implicit by design
      : function_(std::move(f)), dtype_(dtype) {}

  Array operator()(Operand key, const Shape& shape,
                   std::optional<Dtype> dtype = std::nullopt) const;

 private:
  std::function<Array(const Array&, const Shape&, Dtype)> function_;
  Dtype dtype_;
};

// --------------------------------------------------------------------------------------- constants
// The key is not read.
Array zeros(Operand key, const Shape& shape, Dtype dtype = float32);
Array ones(Operand key, const Shape& shape, Dtype dtype = float32);
Initializer zeros_init();
Initializer ones_init();
// A number, or an array that broadcasts to the shape.
Initializer constant(Array value, Dtype dtype = float32);

// ------------------------------------------------------------------------------- of a given width
Initializer normal(double stddev = 1e-2, Dtype dtype = float32);
Initializer uniform(double scale = 1e-2, Dtype dtype = float32);  // in [0, scale)
// The normal distribution cut off at lower and upper, times stddev (which is not corrected for
// that).
Initializer truncated_normal(double stddev = 1e-2, Dtype dtype = float32, double lower = -2.0,
                             double upper = 2.0);

// -------------------------------------------------------------------- by the sizes of the layer
// Which axes of a kernel count as inputs and outputs; those not named are the window of a
// convolution. A batch axis holds independent kernels.
struct FanAxes {
  ReduceAxes in_axis = -2, out_axis = -1, batch_axis = {};  // batch_axis: none by default
};
// Variance scale / n, where n is by mode "fan_in" the inputs of one output, "fan_out" the outputs
// of one input, "fan_avg" or "fan_geo_avg" their means; the distribution is "truncated_normal" (at
// two standard deviations), "normal" or "uniform". A TypeError at the call if the mode or the
// distribution is another one, or if the kernel lacks the axes.
Initializer variance_scaling(double scale, std::string mode, std::string distribution,
                             FanAxes axes = {}, Dtype dtype = float32);

Initializer lecun_normal(FanAxes axes = {}, Dtype dtype = float32);  // scale 1, fan_in
Initializer lecun_uniform(FanAxes axes = {}, Dtype dtype = float32);
Initializer he_normal(FanAxes axes = {}, Dtype dtype = float32);  // scale 2, fan_in
Initializer he_uniform(FanAxes axes = {}, Dtype dtype = float32);
Initializer kaiming_normal(FanAxes axes = {}, Dtype dtype = float32);  // the same
Initializer kaiming_uniform(FanAxes axes = {}, Dtype dtype = float32);
Initializer glorot_normal(FanAxes axes = {}, Dtype dtype = float32);  // scale 1, fan_avg
Initializer glorot_uniform(FanAxes axes = {}, Dtype dtype = float32);
Initializer xavier_normal(FanAxes axes = {}, Dtype dtype = float32);  // the same
Initializer xavier_uniform(FanAxes axes = {}, Dtype dtype = float32);

// -------------------------------------------------------------------------------------- orthogonal
// The other axes flattened to rows, a matrix with orthonormal columns (rows, if these are fewer)
// times scale. A TypeError for fewer than two dimensions.
Initializer orthogonal(double scale = 1.0, std::int64_t column_axis = -1, Dtype dtype = float32);
// For convolutions in 1, 2 or 3 dimensions: an orthogonal matrix at the centre of the window, zero
// elsewhere. A TypeError unless the last dimension is at least as large as the one before.
Initializer delta_orthogonal(double scale = 1.0, std::int64_t column_axis = -1,
                             Dtype dtype = float32);

}  // namespace reprise::nn::initializers

namespace reprise::nn {
using initializers::Initializer;  // the type alone, for layers
}  // namespace reprise::nn
#pragma GCC visibility pop
