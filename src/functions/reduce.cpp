// Reductions over axes in numpy style.
#include "ops/reduce.h"

#include "base/dtype.h"
#include "control/call.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise {
namespace {

using Reduction = Array (*)(Operand, const Ints&);

Ints canonical_axes(const char* op, const ReduceAxes& axis, const Array& x) {
  if (!axis.axes()) return lax::iota_ints(x.ndim());
  Ints axes;
  for (std::int64_t a : *axis.axes()) axes.push_back(canonical_axis(op, a, x.ndim()));
  check_axes(op, "reduced", axes, x.type());
  return axes;
}

// The result of a reduction with the reduced axes put back, of size 1.
Array with_kept_axes(const Array& reduced, const Shape& in, const Ints& axes) {
  Shape shape = in;
  for (std::int64_t a : axes) shape[static_cast<std::size_t>(a)] = 1;
  return lax::broadcast_in_dim(reduced, shape,
                               other_axes(static_cast<std::int64_t>(in.size()), axes));
}
Array reduced(Reduction reduce, const Array& x, const Ints& axes, bool keepdims) {
  const Array y = reduce(x, axes);
  return keepdims ? with_kept_axes(y, x.shape(), axes) : y;
}

bool is_half_dtype(Dtype d) { return d == Dtype::f16 || d == Dtype::bf16; }
// Where sums and products of a dtype are computed, and what they result in.
Dtype computing_dtype(Dtype d) { return is_half_dtype(d) ? Dtype::f32 : d; }
Dtype sum_dtype(Dtype d) {
  if (d == Dtype::i8 || d == Dtype::i16) return Dtype::i32;
  if (d == Dtype::u8 || d == Dtype::u16) return Dtype::u32;
  return d;
}

Array total(Reduction reduce, const Array& x, const Ints& axes, bool keepdims) {
  const bool counts = x.dtype() == Dtype::bool_;
  const Dtype dtype =
      counts ? index_dtype(element_count(sizes_at(x.shape(), axes))) : sum_dtype(x.dtype());
  const Array wide = lax::convert(x, computing_dtype(dtype));
  const Array y = reduced(reduce, wide, axes, keepdims);
  return lax::convert(y, dtype);
}

std::int64_t count_of(const Array& x, const Ints& axes) {
  return element_count(sizes_at(x.shape(), axes));
}
void check_not_empty(const char* op, const Array& x, const Ints& axes) {
  if (count_of(x, axes) == 0) {
    fail<TypeError>(op, ": a reduced axis is empty and there is no neutral element, got axes ",
                    python_tuple(axes), " of ", x.type());
  }
}
Array extreme(const char* op, Reduction reduce, const Operand& x, const ReduceAxes& axis,
              bool keepdims) {
  const AtUser at(x.at);
  const Ints axes = canonical_axes(op, axis, x.array);
  check_not_empty(op, x.array, axes);
  const Array strong = lax::convert(x.array, x.array.dtype());
  return reduced(reduce, strong, axes, keepdims);
}
Array logical(const char* op, Reduction reduce, const Operand& x, const ReduceAxes& axis,
              bool keepdims) {
  const AtUser at(x.at);
  const Ints axes = canonical_axes(op, axis, x.array);
  const Array truth = lax::convert(x.array, Dtype::bool_);
  return reduced(reduce, truth, axes, keepdims);
}

using Position = Array (*)(Operand, std::int64_t, Dtype);
Array position(const char* op, Position find, const Operand& x, std::optional<std::int64_t> axis,
               bool keepdims) {
  const AtUser at(x.at);
  Array row = x.array;
  Ints axes = lax::iota_ints(row.ndim());
  if (axis) {
    axes = {canonical_axis(op, *axis, row.ndim())};
  } else {
    row = lax::reshape(row, {row.size()});
  }
  check_not_empty(op, x.array, axes);
  const std::int64_t along = axis ? axes[0] : 0;
  const Array index = find(row, along, index_dtype(row.shape(along)));
  return keepdims ? with_kept_axes(index, x.array.shape(), axes) : index;
}

// The sum divided by the number of summands, which is no residual.
Array mean_of(const Array& x, const Ints& axes, bool keepdims) {
  const Array sum_of = reduced(lax::reduce_sum, x, axes, keepdims);
  return lax::div(sum_of, lax::const_like(sum_of, static_cast<double>(count_of(x, axes))));
}

// args: x and ddof.
Array variance(const Arrays& args, const Ints& axes, bool keepdims) {
  const Array& x = args[0];
  const Dtype dtype = is_floating(x.dtype()) ? x.dtype() : Dtype::f32;
  const Array wide = lax::convert(x, computing_dtype(dtype));
  const Array center = mean_of(wide, axes, true);
  const Array distance = lax::sub(wide, center);
  const Array squares = lax::square(distance);
  const Array correction = lax::convert(args[1], wide.dtype());
  const Array count = lax::const_like(wide, static_cast<double>(count_of(x, axes)));
  const Array divisor = lax::sub(count, correction);
  const Array sum_of = reduced(lax::reduce_sum, squares, axes, keepdims);
  const Array quotient = lax::div(sum_of, divisor);
  const Array narrow = lax::convert(quotient, dtype);
  const Array enough = lax::gt(divisor, lax::const_like(divisor, 0));
  return where(enough, narrow, std::numeric_limits<double>::quiet_NaN());
}
Array call_variance(const Arrays& args, const Ints& axes, bool keepdims) {
  return jit_call1(
      "_var", [=](const Arrays& a) -> Arrays { return {variance(a, axes, keepdims)}; }, args);
}

}  // namespace

Array sum(Operand x, ReduceAxes axis, bool keepdims) {
  const AtUser at(x.at);
  return total(lax::reduce_sum, x.array, canonical_axes("sum", axis, x.array), keepdims);
}
Array prod(Operand x, ReduceAxes axis, bool keepdims) {
  const AtUser at(x.at);
  return total(lax::reduce_prod, x.array, canonical_axes("prod", axis, x.array), keepdims);
}
Array mean(Operand x, ReduceAxes axis, bool keepdims) {
  const AtUser at(x.at);
  const Ints axes = canonical_axes("mean", axis, x.array);
  const Dtype dtype = is_floating(x.array.dtype()) ? x.array.dtype() : Dtype::f32;
  const Array number =
      x.array.dtype() == Dtype::bool_ ? lax::convert(x.array, Dtype::i32) : x.array;
  const Array wide = lax::convert(number, computing_dtype(dtype));
  const Array y = mean_of(wide, axes, keepdims);
  return lax::convert(y, dtype);
}
Array var(Operand x, ReduceAxes axis, bool keepdims, std::int64_t ddof) {
  const AtUser at(x.at);
  return call_variance({x.array, ddof}, canonical_axes("var", axis, x.array), keepdims);
}
Array std_(Operand x, ReduceAxes axis, bool keepdims, std::int64_t ddof) {
  const AtUser at(x.at);
  const Ints axes = canonical_axes("std_", axis, x.array);
  const auto root = [=](const Arrays& args) -> Arrays {
    const Array square_of = call_variance(args, axes, keepdims);
    return {lax::sqrt(square_of)};
  };
  return jit_call1("_std", root, {x.array, ddof});
}

Array max(Operand x, ReduceAxes axis, bool keepdims) {
  return extreme("max", lax::reduce_max, x, axis, keepdims);
}
Array min(Operand x, ReduceAxes axis, bool keepdims) {
  return extreme("min", lax::reduce_min, x, axis, keepdims);
}
Array amax(Operand x, ReduceAxes axis, bool keepdims) {
  return extreme("amax", lax::reduce_max, x, axis, keepdims);
}
Array amin(Operand x, ReduceAxes axis, bool keepdims) {
  return extreme("amin", lax::reduce_min, x, axis, keepdims);
}
Array any(Operand x, ReduceAxes axis, bool keepdims) {
  return logical("any", lax::reduce_or, x, axis, keepdims);
}
Array all(Operand x, ReduceAxes axis, bool keepdims) {
  return logical("all", lax::reduce_and, x, axis, keepdims);
}
Array argmax(Operand x, std::optional<std::int64_t> axis, bool keepdims) {
  return position("argmax", lax::argmax, x, axis, keepdims);
}
Array argmin(Operand x, std::optional<std::int64_t> axis, bool keepdims) {
  return position("argmin", lax::argmin, x, axis, keepdims);
}

// Shifted by the largest element, unless that is infinite.
Array logsumexp(Operand x, ReduceAxes axis, bool keepdims) {
  const AtUser at(x.at);
  const Ints axes = canonical_axes("logsumexp", axis, x.array);
  const Array a = promote_dtype(x.array, Works::inexact);
  const Array strong = lax::convert(a, a.dtype());
  Array largest = lax::reduce_max(strong, axes);
  largest = lax::max(lax::const_like(largest, -std::numeric_limits<double>::infinity()), largest);
  if (keepdims) largest = with_kept_axes(largest, a.shape(), axes);
  const Array finite = lax::is_finite(largest);
  const Array zero = lax::zeros(largest.type());
  const Array usable = lax::select_n(finite, {zero, largest});
  const Array shift = lax::stop_gradient(usable);
  const Array stretched = keepdims ? shift : with_kept_axes(shift, a.shape(), axes);
  const Array less = lax::sub(a, stretched);
  const Array power_of = lax::exp(less);
  const Array sum_of = total(lax::reduce_sum, power_of, axes, keepdims);
  lax::sign(sum_of);  // JAX records it, for callers that ask for the sign
  const Array magnitude = lax::abs(sum_of);
  const Array log_of = lax::log(magnitude);
  return lax::add(log_of, shift);
}

}  // namespace reprise
