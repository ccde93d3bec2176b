// The primitive operations, one function each, named as in jax.lax: operands must have equal dtypes
// (a C++ number takes the dtype of the other operand), shapes must be equal, or a rank-0 operand or
// a dimension of size 1 stands for all. The numpy-style functions of ops.h promote and broadcast,
// then call these.
#pragma once

#include "reprise/array.h"

#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::lax {

using Ints = std::vector<std::int64_t>;  // axes, sizes, strides

// ----------------------------------------------------------------------------------- elementwise
Array neg(Operand x);
Array sign(Operand x);
Array abs(Operand x);
Array floor(Operand x);
Array ceil(Operand x);
enum class RoundingMethod : std::int64_t { away_from_zero = 0, to_nearest_even = 1 };
Array round(Operand x, RoundingMethod method = RoundingMethod::away_from_zero);
Array exp(Operand x);
Array exp2(Operand x);
Array log(Operand x);
Array log1p(Operand x);
Array expm1(Operand x);
Array sin(Operand x);
Array cos(Operand x);
Array tan(Operand x);
Array asin(Operand x);
Array acos(Operand x);
Array atan(Operand x);
Array sinh(Operand x);
Array cosh(Operand x);
Array tanh(Operand x);
Array asinh(Operand x);
Array acosh(Operand x);
Array atanh(Operand x);
Array logistic(Operand x);
Array sqrt(Operand x);
Array rsqrt(Operand x);
Array cbrt(Operand x);
Array square(Operand x);
Array integer_pow(Operand x, std::int64_t y);
Array erf(Operand x);
Array erfc(Operand x);
Array erf_inv(Operand x);
Array is_finite(Operand x);
Array bitwise_not(Operand x);
Array stop_gradient(Operand x);
Array copy(Operand x);
Array reduce_precision(Operand x, std::int64_t exponent_bits, std::int64_t mantissa_bits);
Array convert_element_type(Operand x, Dtype new_dtype, bool weak_type = false);
Array bitcast_convert_type(Operand x, Dtype new_dtype);

Array add(Operand x, Operand y);
Array sub(Operand x, Operand y);
Array mul(Operand x, Operand y);
Array div(Operand x, Operand y);  // integers: toward zero, x/0 = -1, INT_MIN/-1 = INT_MIN
Array rem(Operand x, Operand y);  // sign of x; x%0 = x
Array pow(Operand x, Operand y);
Array atan2(Operand x, Operand y);
Array max(Operand x, Operand y);
Array min(Operand x, Operand y);
Array nextafter(Operand x, Operand y);
Array bitwise_and(Operand x, Operand y);
Array bitwise_or(Operand x, Operand y);
Array bitwise_xor(Operand x, Operand y);
Array shift_left(Operand x, Operand y);
Array shift_right_logical(Operand x, Operand y);
Array shift_right_arithmetic(Operand x, Operand y);
Array eq(Operand x, Operand y);
Array ne(Operand x, Operand y);
Array lt(Operand x, Operand y);
Array le(Operand x, Operand y);
Array gt(Operand x, Operand y);
Array ge(Operand x, Operand y);
Array select_n(Operand which, const Arrays& cases, Location at = Location::current());
Array clamp(Operand min, Operand x, Operand max);

// ----------------------------------------------------------------------------------------- shape
Array full(const Shape& shape, Operand value, Dtype dtype);
Array iota(Dtype dtype, const Shape& shape, std::int64_t dimension,
           Location at = Location::current());
Array empty2(Dtype dtype, const Shape& shape, Location at = Location::current());
Array broadcast_in_dim(Operand x, const Shape& shape, const Ints& broadcast_dimensions);
Array reshape(Operand x, const Shape& new_sizes);
Array transpose(Operand x, const Ints& permutation);
Array squeeze(Operand x, const Ints& dimensions);
Array expand_dims(Operand x, const Ints& dimensions);
Array concatenate(const Arrays& xs, std::int64_t dimension, Location at = Location::current());
Array stack(const Arrays& xs, std::int64_t axis, Location at = Location::current());
Arrays unstack(Operand x, std::int64_t axis);
Arrays split(Operand x, const Ints& sizes, std::int64_t axis);
Array tile(Operand x, const Ints& reps);  // one count for each dimension
Array slice(Operand x, const Ints& start_indices, const Ints& limit_indices,
            std::optional<Ints> strides = std::nullopt);
Array dynamic_slice(Operand x, const Arrays& start_indices, const Ints& slice_sizes);
Array dynamic_update_slice(Operand x, Operand update, const Arrays& start_indices);
struct PadDimension {
  std::int64_t low = 0, high = 0, interior = 0;
};
Array pad(Operand x, Operand padding_value, const std::vector<PadDimension>& padding_config);
Array rev(Operand x, const Ints& dimensions);

enum class GatherScatterMode : std::uint8_t { clip, fill_or_drop, promise_in_bounds };
struct GatherDimensionNumbers {
  Ints offset_dims = {}, collapsed_slice_dims = {}, start_index_map = {};
  Ints operand_batching_dims = {}, start_indices_batching_dims = {};
};
struct GatherOptions {
  GatherScatterMode mode = GatherScatterMode::promise_in_bounds;  // evaluated as clip
  bool indices_are_sorted = false;
  bool unique_indices = false;
  std::optional<double> fill_value = std::nullopt;
};
Array gather(Operand x, Operand start_indices, const GatherDimensionNumbers& dimension_numbers,
             const Ints& slice_sizes, const GatherOptions& options = {});

struct ScatterDimensionNumbers {
  Ints update_window_dims = {}, inserted_window_dims = {}, scatter_dims_to_operand_dims = {};
  Ints operand_batching_dims = {}, scatter_indices_batching_dims = {};
};
struct ScatterOptions {
  GatherScatterMode mode = GatherScatterMode::fill_or_drop;
  bool indices_are_sorted = false;
  bool unique_indices = false;
};
Array scatter(Operand x, Operand indices, Operand updates, const ScatterDimensionNumbers&,
              const ScatterOptions& options = {});
Array scatter_add(Operand x, Operand indices, Operand updates, const ScatterDimensionNumbers&,
                  const ScatterOptions& options = {});
Array scatter_mul(Operand x, Operand indices, Operand updates, const ScatterDimensionNumbers&,
                  const ScatterOptions& options = {});
Array scatter_min(Operand x, Operand indices, Operand updates, const ScatterDimensionNumbers&,
                  const ScatterOptions& options = {});
Array scatter_max(Operand x, Operand indices, Operand updates, const ScatterDimensionNumbers&,
                  const ScatterOptions& options = {});

// ------------------------------------------------------------------------------------ reductions
Array reduce_sum(Operand x, const Ints& axes);
Array reduce_prod(Operand x, const Ints& axes);
Array reduce_max(Operand x, const Ints& axes);
Array reduce_min(Operand x, const Ints& axes);
Array reduce_and(Operand x, const Ints& axes);
Array reduce_or(Operand x, const Ints& axes);
Array argmax(Operand x, std::int64_t axis, Dtype index_dtype = Dtype::i32);
Array argmin(Operand x, std::int64_t axis, Dtype index_dtype = Dtype::i32);
Array cumsum(Operand x, std::int64_t axis, bool reverse = false);
Array cumprod(Operand x, std::int64_t axis, bool reverse = false);
Array cummax(Operand x, std::int64_t axis, bool reverse = false);
Array cummin(Operand x, std::int64_t axis, bool reverse = false);
// Sorts by the first num_keys operands; the others follow. NaN sorts last.
Arrays sort(const Arrays& xs, std::int64_t dimension, std::int64_t num_keys = 1,
            bool is_stable = true, Location at = Location::current());
std::pair<Array, Array> top_k(Operand x, std::int64_t k);  // of the last axis: values, i32 indices

struct WindowDimensions {
  Ints window_dimensions, window_strides;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
  Ints base_dilation = {}, window_dilation = {};  // all 1 by default
};
Array reduce_window_max(Operand x, const WindowDimensions& window);
Array reduce_window_min(Operand x, const WindowDimensions& window);
Array reduce_window_sum(Operand x, const WindowDimensions& window);

// ------------------------------------------------------------------------ products, convolutions
// ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
struct DotDimensionNumbers {
  Ints lhs_contracting = {}, rhs_contracting = {}, lhs_batch = {}, rhs_batch = {};
};
Array dot_general(Operand lhs, Operand rhs, const DotDimensionNumbers& dimension_numbers,
                  std::optional<Dtype> preferred_element_type = std::nullopt);

// Layouts as positions of (batch, feature, spatial...) in each operand's shape.
struct ConvDimensionNumbers {
  Ints lhs_spec, rhs_spec, out_spec;
};
struct ConvOptions {
  Ints window_strides = {};                                              // default all 1
  std::vector<std::pair<std::int64_t, std::int64_t>> padding = {};       // default none
  Ints lhs_dilation = {}, rhs_dilation = {};                             // default all 1
  std::optional<ConvDimensionNumbers> dimension_numbers = std::nullopt;  // default NCHW, OIHW
  std::int64_t feature_group_count = 1, batch_group_count = 1;
  std::optional<Dtype> preferred_element_type = std::nullopt;
};
Array conv_general_dilated(Operand lhs, Operand rhs, const ConvOptions& options);
// {"NHWC", "HWIO", "NHWC"} to positions.
ConvDimensionNumbers conv_dimension_numbers(const std::string& lhs, const std::string& rhs,
                                            const std::string& out);
// "SAME" or "VALID" to explicit padding of the spatial dimensions.
std::vector<std::pair<std::int64_t, std::int64_t>> padtype_to_pads(const Shape& in_shape,
                                                                   const Ints& window_shape,
                                                                   const Ints& window_strides,
                                                                   const std::string& padding);

}  // namespace reprise::lax
#pragma GCC visibility pop
