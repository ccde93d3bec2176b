// What layers compute, without their parameters: the functions that Linen's and NNX's layers share,
// with Flax's formulas in Flax's order. They may be used on their own.
//
//   Array y = rp::nn::dense(x, kernel, bias);
//   Array z = rp::nn::layer_norm(y, scale, bias);
//   Array a = rp::nn::dot_product_attention(q, k, v, {.mask = rp::nn::make_causal_mask(tokens)});
//   Array p = rp::nn::max_pool(image, {2, 2}, {{2, 2}}, "SAME");
//
// Features are the last axis. `dtype` is the one to compute in; by default it is promoted from the
// inputs and parameters (integers to floats). Arguments that do not fit give a TypeError.
#pragma once

#include "reprise/array.h"
#include "reprise/initializers.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nn {

using OptionalArray = std::optional<Array>;  // none: there is no such array
using OptionalDtype = std::optional<Dtype>;  // none: what promotion gives

// --------------------------------------------------------------------------------- options' types
// A number for each dimension of a window: one for all, or one each.
class PerDimension {
 public:
  template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  PerDimension(T all) : value_(static_cast<std::int64_t>(all)) {}  // NOLINT: implicit
  PerDimension(std::initializer_list<std::int64_t> each) : value_(Shape(each)) {}  // NOLINT
  PerDimension(Shape each) : value_(std::move(each)) {}                            // NOLINT
  Shape expanded(std::size_t rank) const;  // of any length if given one each

 private:
  std::variant<std::int64_t, Shape> value_;
};

// How a window goes over the border: "SAME" (as many outputs as steps fit into the input), "VALID"
// (no padding), for convolutions also "CIRCULAR", "REFLECT" and "CAUSAL" (one dimension, nothing
// from the future); or widths: one for all sides, or for each dimension one or (before, after).
//   .padding = "VALID"    .padding = 1    .padding = {{1, 2}, {0, 0}}
class Padding {
 public:
  struct Sides {
    template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
    Sides(T both) : low(static_cast<std::int64_t>(both)), high(low) {}  // NOLINT: implicit
    Sides(std::int64_t low_side, std::int64_t high_side) : low(low_side), high(high_side) {}
    std::int64_t low, high;
  };
  Padding(const char* name) : value_(std::string(name)) {}  // NOLINT: implicit, here and below
  Padding(std::string name) : value_(std::move(name)) {}    // NOLINT
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Padding(T all) : value_(Sides(all)) {}                                            // NOLINT
  Padding(std::initializer_list<Sides> each) : value_(std::vector<Sides>(each)) {}  // NOLINT
  Padding(std::vector<Sides> each) : value_(std::move(each)) {}                     // NOLINT
  const std::variant<std::string, Sides, std::vector<Sides>>& value() const { return value_; }

 private:
  std::variant<std::string, Sides, std::vector<Sides>> value_;
};

// ------------------------------------------------------------------------------------------ dtypes
// The dtype that the arrays are computed in: `dtype` if given, else promoted from all. If inexact
// it is floating: inferred integers become f32, a given one is a TypeError.
Dtype canonicalize_dtype(const Arrays& xs, OptionalDtype dtype = std::nullopt, bool inexact = true);
// The arrays in that dtype. Undefined ones (Array()) take no part and stay undefined.
Arrays promote_dtype(Arrays xs, OptionalDtype dtype = std::nullopt, bool inexact = true);

// ------------------------------------------------------------------------------------------ linear
// x * kernel + bias, over the last axis of x and the first of the kernel.
Array dense(Operand x, const Array& kernel, const OptionalArray& bias = std::nullopt,
            OptionalDtype dtype = std::nullopt);

// Options of dense_general.
struct DenseGeneralOptions {
  ReduceAxes axis = -1;        // of x, contracted with the axes of the kernel after the batch ones
  ReduceAxes batch_dims = {};  // leading axes of x with a kernel of their own each; none by default
  OptionalDtype dtype = std::nullopt;
};
// The kernel has the shape (batch..., contracted..., features...), the bias (batch...,
// features...); the result has the batch axes of x, its other axes, then the features.
Array dense_general(Operand x, const Array& kernel, const OptionalArray& bias = std::nullopt,
                    const DenseGeneralOptions& options = {});
// Fills the kernel of a general dense layer as that of a plain one: (inputs, outputs), where the
// last `features` dimensions are the outputs, or (outputs) when all are.
Initializer flattened_init(Initializer init, std::int64_t features);

// Rows of the embedding by number; -1 is the last, what is outside gives NaN. A TypeError unless
// the indices are integers.
Array embed(const Array& embedding, Operand indices, OptionalDtype dtype = std::nullopt);
// The inner products of queries with all rows of the embedding.
Array embed_attend(Operand query, const Array& embedding, OptionalDtype dtype = std::nullopt);

// Each element zero with probability `rate`, the others divided by 1 - rate. Axes in broadcast_dims
// share one decision. Rate 0 returns x and rate 1 zeros; neither reads the key.
Array dropout(Operand x, double rate, const Array& key, const Shape& broadcast_dims = {});

// ------------------------------------------------------------------------------------- convolution
// Options of conv.
struct ConvOptions {
  PerDimension strides = 1;
  Padding padding = "SAME";
  PerDimension input_dilation = 1, kernel_dilation = 1;
  std::int64_t feature_group_count = 1;
  OptionalDtype dtype = std::nullopt;
};
// x (batch..., spatial..., in), kernel (window..., in / groups, out), bias (out). Any number of
// batch axes. The kernel is not flipped.
Array conv(Operand x, const Array& kernel, const OptionalArray& bias = std::nullopt,
           const ConvOptions& options = {});

// ----------------------------------------------------------------------------------------- pooling
// x is (batch..., spatial..., features), the window and its strides (1 by default) are spatial.
enum class Pooling : std::uint8_t { sum, max, min };
Array pool(Operand x, Pooling kind, const Shape& window_shape,
           const std::optional<Shape>& strides = std::nullopt, const Padding& padding = "VALID");
// Without count_include_pad the padding does not count in the average.
Array avg_pool(Operand x, const Shape& window_shape,
               const std::optional<Shape>& strides = std::nullopt, const Padding& padding = "VALID",
               bool count_include_pad = true);
Array max_pool(Operand x, const Shape& window_shape,
               const std::optional<Shape>& strides = std::nullopt,
               const Padding& padding = "VALID");
Array min_pool(Operand x, const Shape& window_shape,
               const std::optional<Shape>& strides = std::nullopt,
               const Padding& padding = "VALID");

// ----------------------------------------------------------------------------------- normalisation
struct Statistics {
  Array mean, var;  // without the reduced axes
};
struct StatisticsOptions {
  ReduceAxes axes = -1;
  OptionalDtype dtype = std::nullopt;  // at least f32, unless force_float32_reductions is off
  bool use_mean = true;                // else the mean is 0 and the variance the mean square
  bool use_fast_variance = true;       // mean(x^2) - mean(x)^2, cut at 0; else mean((x - mean)^2)
  OptionalArray mask = std::nullopt;   // counts where true; broadcasts to x
  bool force_float32_reductions = true;
};
Statistics compute_stats(Operand x, const StatisticsOptions& options = {});

// Options of normalize.
struct NormalizeOptions {
  ReduceAxes reduction_axes = -1;  // the axes that the statistics lack
  ReduceAxes feature_axes = -1;    // the axes of scale and bias, in this order
  OptionalArray scale = std::nullopt, bias = std::nullopt;
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;  // of the result
};
// (x - mean) * (rsqrt(var + epsilon) * scale) + bias
Array normalize(Operand x, const Statistics& statistics, const NormalizeOptions& options = {});
// The sizes of x along its feature axes: the shape of scale and bias.
Shape feature_shape(const Array& x, const ReduceAxes& feature_axes);

// Options of layer_norm, rms_norm, group_norm and instance_norm.
struct NormOptions {
  std::optional<ReduceAxes> reduction_axes = std::nullopt, feature_axes = std::nullopt;
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  bool use_fast_variance = true;
  OptionalArray mask = std::nullopt;
  bool force_float32_reductions = true;
};
// Statistics over the reduction axes, the last by default.
Array layer_norm(Operand x, const OptionalArray& scale = std::nullopt,
                 const OptionalArray& bias = std::nullopt, const NormOptions& options = {});
Array rms_norm(Operand x, const OptionalArray& scale = std::nullopt,
               const NormOptions& options = {});
// The same for each of num_groups groups of features: over the features of the group and all axes
// but the first, or the reduction axes, the last of which is that of the features.
Array group_norm(Operand x, std::int64_t num_groups, const OptionalArray& scale = std::nullopt,
                 const OptionalArray& bias = std::nullopt, const NormOptions& options = {});
// Over all axes but the first and the feature axes.
Array instance_norm(Operand x, const OptionalArray& scale = std::nullopt,
                    const OptionalArray& bias = std::nullopt, const NormOptions& options = {});
// All axes but the given ones: what batch normalisation reduces.
Shape other_axes(const Array& x, const ReduceAxes& axes);
// momentum * old + (1 - momentum) * batch
Array running_average(Operand old, const Array& batch, double momentum);

// --------------------------------------------------------------------------------------- attention
// Options of dot_product_attention and its parts.
struct AttentionOptions {
  OptionalArray bias = std::nullopt;  // added to the logits (batch..., heads, queries, keys)
  OptionalArray mask = std::nullopt;  // logits are left out where it is false
  bool broadcast_dropout = true;      // batch entries and heads share one mask
  OptionalArray dropout_rng = std::nullopt;
  double dropout_rate = 0.0;
  bool deterministic = false;  // no dropout
  OptionalDtype dtype = std::nullopt;
  bool force_fp32_for_softmax = false;
  bool is_causal = false;  // a query sees keys up to its own position
};
// query (batch..., queries, heads, depth), key (batch..., keys, heads, depth) -> (batch..., heads,
// queries, keys). The queries are divided by sqrt(depth) first. Fewer key heads than query heads
// serve groups of these.
Array dot_product_attention_weights(Operand query, const Array& key,
                                    const AttentionOptions& options = {});
// weights (batch..., heads, queries, keys), value (batch..., keys, heads, depth) -> (batch...,
// queries, heads, depth)
Array attention_values(Operand weights, const Array& value);
Array dot_product_attention(Operand query, const Array& key, const Array& value,
                            const AttentionOptions& options = {});

// Options of scaled_attention.
struct ScaledAttentionOptions {
  OptionalArray bias = std::nullopt;
  OptionalArray mask = std::nullopt;
  std::optional<double> scale = std::nullopt;  // of the logits, by default 1 / sqrt(depth)
  bool is_causal = false;
};
// What JAX calls jax.nn.dot_product_attention, and NNX computes without dropout: the logits are
// scaled instead of the queries, and the softmax is computed in f32. At most one batch axis.
Array scaled_attention(Operand query, const Array& key, const Array& value,
                       const ScaledAttentionOptions& options = {});

// Masks of shape (batch..., 1, queries, keys), from inputs of shape (batch..., queries) and
// (batch..., keys), such as tokens > 0.
using PairwiseFunction = std::function<Array(const Array&, const Array&)>;
Array make_attention_mask(Operand query_input, Operand key_input,
                          const PairwiseFunction& pairwise_fn = multiply,
                          std::int64_t extra_batch_dims = 0, Dtype dtype = float32);
Array make_causal_mask(Operand x, std::int64_t extra_batch_dims = 0, Dtype dtype = float32);
// True where all are; those left out do not count, and nothing comes of nothing.
OptionalArray combine_masks(const std::vector<OptionalArray>& masks, Dtype dtype = float32,
                            Location at = Location::current());

}  // namespace reprise::nn
#pragma GCC visibility pop
