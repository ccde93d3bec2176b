// New arrays: filled with one value, counting, triangular. While tracing they are equations
// (broadcast_in_dim, iota), otherwise concrete arrays.
#include "array/access.h"
#include "base/dtype.h"
#include "functions/promote.h"
#include "functions/unit.h"
#include "ops/lax.h"
#include "ops/reduce.h"
#include "reprise/ops_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise {
namespace {

Array repeated(const char* op, const Shape& shape, const Array& value, Dtype dtype, bool weak) {
  if (const Literal* number = content(value).number()) {
    return lax::filled(shape, convert_literal(*number, dtype, weak));
  }
  const std::size_t rank = value.shape().size();
  bool fits = rank <= shape.size();
  for (std::size_t d = 0; fits && d < rank; ++d) {
    const std::int64_t mine = value.shape()[rank - 1 - d];
    fits = mine == 1 || mine == shape[shape.size() - 1 - d];
  }
  if (!fits) {
    fail<TypeError>(op, ": the value must broadcast to the shape, got ", value.type(), " for ",
                    to_string(shape));
  }
  return stretch_to(lax::convert(value, dtype, weak), shape);
}

Literal scalar_literal(const char* op, const Array& x) {
  if (x.ndim() != 0) fail<TypeError>(op, ": scalars are needed, got ", x.type());
  const Array value = concrete(x, op);
  if (content(value).number()) return *content(value).number();
  return load_literal(value.dtype(), content(value).elements);
}
double as_double(const Literal& l) { return convert_literal(l, Dtype::f64, false).real; }
std::int64_t as_integer(const Literal& l) { return convert_literal(l, Dtype::i64, false).integer; }

// How many numbers arange gives.
std::int64_t count_integers(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const bool up = step > 0;
  if (up ? start >= stop : start <= stop) return 0;
  const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(stop);
  const std::uint64_t distance = up ? to - from : from - to;
  const std::uint64_t size =
      up ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = (distance - 1) / size + 1;
  if (count > static_cast<std::uint64_t>(INT64_MAX)) {
    fail<RuntimeError>("arange: too many elements, got ", count);
  }
  return static_cast<std::int64_t>(count);
}
std::int64_t count_floats(double start, double stop, double step) {
  const double count = std::ceil((stop - start) / step);
  if (std::isnan(count) || count > 0x1p62) {
    fail<TypeError>("arange: the number of elements must be finite, got start ", start, ", stop ",
                    stop, ", step ", step);
  }
  return count <= 0 ? 0 : static_cast<std::int64_t>(count);
}

// start + step * (0, 1, 2, ...); without start or step the operation is left out.
Array counted(const Literal* start, const Literal& stop, const Literal* step,
              std::optional<Dtype> dtype) {
  Literal zero, one;
  zero.dtype = one.dtype = Dtype::i32;
  zero.weak_type = one.weak_type = true;
  zero.integer = 0;
  one.integer = 1;
  const Literal &first = start ? *start : zero, &by = step ? *step : one;
  Promoted common = promote_types(first.dtype, first.weak_type, stop.dtype, stop.weak_type);
  common = promote_types(common.dtype, common.weak_type, by.dtype, by.weak_type);
  const Dtype out = dtype.value_or(common.dtype);
  if (!is_integer(out) && !is_floating(out)) {
    fail<TypeError>("arange: a number dtype is needed, got ", out);
  }
  if (as_double(by) == 0) fail<TypeError>("arange: the step must not be zero, got step 0");
  const std::int64_t size =
      is_floating(common.dtype)
          ? count_floats(as_double(first), as_double(stop), as_double(by))
          : count_integers(as_integer(first), as_integer(stop), as_integer(by));
  Array result = lax::iota(out, {size}, 0);
  if (step) result = lax::mul(make_number(convert_literal(by, out, false)), result);
  if (step || as_double(first) != 0) {
    result = lax::add(make_number(convert_literal(first, out, false)), result);
  }
  return result;
}

// A diagonal far outside every matrix is as good as any other.
std::int64_t within_matrices(std::int64_t k) {
  constexpr std::int64_t far = std::int64_t{1} << 53;
  return std::clamp(k, -far, far);
}
// Positions in a matrix, with room for a shift to diagonal k.
Dtype matrix_index_dtype(std::int64_t n, std::int64_t m, std::int64_t k) {
  return index_dtype(std::max(n, m) + std::abs(k));
}

// column <= row + k
Array lower_triangle(std::int64_t n, std::int64_t m, std::int64_t k) {
  const Dtype dtype = matrix_index_dtype(n, m, k);
  const Array row = lax::iota(dtype, {n, m}, 0);
  const Array shifted = lax::add(row, lax::const_like(row, static_cast<double>(k)));
  const Array column = lax::iota(dtype, {n, m}, 1);
  return lax::ge(shifted, column);
}

// Chooses x or zero by the triangle of its last two dimensions.
Array triangle_of(const char* op, const Operand& x, std::int64_t k, bool keep_lower) {
  const AtUser at(x.at);
  if (x.array.ndim() < 2) {
    fail<TypeError>(op, ": at least two dimensions are needed, got ", x.array.type());
  }
  return unit(op, x, [&](const Array& v) {
    const Array mask = stretch_to(lower_triangle(v.shape(-2), v.shape(-1), k), v.shape());
    const Array zero = lax::zeros(v.type());
    return lax::select_n(mask, keep_lower ? Arrays{zero, v} : Arrays{v, zero});
  });
}

}  // namespace

// ---------------------------------------------------------------------------------------- one
// value
Array zeros(const Shape& shape, Dtype dtype, Location at) {
  const AtUser scope(at);
  return lax::filled(shape, make_literal(dtype, 0));
}
Array ones(const Shape& shape, Dtype dtype, Location at) {
  const AtUser scope(at);
  return lax::filled(shape, make_literal(dtype, 1));
}
Array empty(const Shape& shape, Dtype dtype, Location at) { return zeros(shape, dtype, at); }
Array full(const Shape& shape, Operand value, std::optional<Dtype> dtype) {
  const AtUser at(value.at);
  const bool weak = !dtype && value.array.weak_type();
  return repeated("full", shape, value.array, dtype.value_or(value.array.dtype()), weak);
}
Array full_of_integer(const Shape& shape, std::uint64_t bits, bool is_signed, Dtype dtype,
                      Location at) {
  const AtUser scope(at);
  Literal wide;
  wide.dtype = is_signed ? Dtype::i64 : Dtype::u64;
  wide.natural = bits;
  const Literal value = convert_literal(wide, dtype, false);
  const bool negative_flips = is_integer(dtype) && is_signed == (dtype <= Dtype::u64) &&
                              static_cast<std::int64_t>(bits) < 0;
  if (is_integer(dtype) &&
      (negative_flips || convert_literal(value, wide.dtype, false).natural != bits)) {
    fail<TypeError>("full: the value must fit the dtype, got ", to_string(wide), " for ", dtype);
  }
  return lax::filled(shape, value);
}
Array zeros_like(Operand x, std::optional<Dtype> dtype) { return full_like(x, 0, dtype); }
Array ones_like(Operand x, std::optional<Dtype> dtype) { return full_like(x, 1, dtype); }
Array full_like(Operand x, Operand value, std::optional<Dtype> dtype) {
  const AtUser at(x.at);
  const bool weak = !dtype && x.array.weak_type();
  return repeated("full_like", x.array.shape(), value.array, dtype.value_or(x.array.dtype()), weak);
}

// -----------------------------------------------------------------------------------------
// counting
Array arange(Operand stop, std::optional<Dtype> dtype) {
  const AtUser at(stop.at);
  return counted(nullptr, scalar_literal("arange", stop.array), nullptr, dtype);
}
Array arange(Operand start, Operand stop, std::optional<Dtype> dtype) {
  const AtUser at(start.at);
  const Literal first = scalar_literal("arange", start.array);
  return counted(&first, scalar_literal("arange", stop.array), nullptr, dtype);
}
Array arange(Operand start, Operand stop, Operand step, std::optional<Dtype> dtype) {
  const AtUser at(start.at);
  const Literal first = scalar_literal("arange", start.array);
  const Literal by = scalar_literal("arange", step.array);
  return counted(&first, scalar_literal("arange", stop.array), &by, dtype);
}
Array iota(Dtype dtype, std::int64_t size, Location at) { return lax::iota(dtype, {size}, 0, at); }

Array linspace(Operand start, Operand stop, std::int64_t num, bool endpoint,
               std::optional<Dtype> dtype) {
  const AtUser at(start.at);
  if (start.array.ndim() != 0 || stop.array.ndim() != 0 || num < 0) {
    fail<TypeError>("linspace: two scalars and a number that is not negative are needed, got ",
                    start.array.type(), ", ", stop.array.type(), " and ", num);
  }
  const Arrays bounds = {start.array, stop.array};
  const Promoted common = promote_types(bounds[0].dtype(), bounds[0].weak_type(), bounds[1].dtype(),
                                        bounds[1].weak_type());
  const Dtype inexact = is_floating(common.dtype) ? common.dtype : Dtype::f32;
  const Dtype out = dtype.value_or(inexact), work = is_floating(out) ? out : inexact;
  return unit("_linspace", start, stop, [&](const Array& a, const Array& b) {
    const Array first = lax::convert(a, work);
    const Array last = lax::convert(b, work);
    if (num == 0) return zeros({0}, out);
    Array points;
    if (num == 1) {
      points = lax::reshape(first, {1});
    } else {
      const std::int64_t parts = endpoint ? num - 1 : num;
      const Array count = lax::const_like(first, static_cast<double>(parts));
      const Array distance = lax::sub(last, first);
      lax::div(distance, count);  // the step: JAX computes it for callers who ask
      const Array index = lax::iota(work, {parts}, 0);
      const Array t = lax::div(index, count);
      const Array from = lax::reshape(first, {1});
      const Array rest = lax::sub(lax::const_like(t, 1), t);
      const Array from_part = lax::mul(from, rest);
      const Array to = lax::reshape(last, {1});
      const Array to_part = lax::mul(to, t);
      points = lax::add(from_part, to_part);
      if (endpoint) points = lax::concatenate({points, lax::broadcast_in_dim(last, {1}, {})}, 0);
    }
    if (is_floating(out)) return points;
    return lax::convert(lax::floor(points), out);
  });
}

// --------------------------------------------------------------------------------------- triangles
Array eye(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, Dtype dtype, Location at) {
  const AtUser scope(at);
  const Shape shape{n, m.value_or(n)};
  const std::int64_t diagonal = within_matrices(k);
  const Dtype index = matrix_index_dtype(shape[0], shape[1], diagonal);
  const Array row = lax::iota(index, shape, 0);
  const Array column = lax::iota(index, shape, 1);
  const Array shifted = lax::add(row, lax::const_like(row, static_cast<double>(diagonal)));
  const Array is_diagonal = lax::eq(shifted, column);
  return lax::convert(is_diagonal, dtype);
}
Array identity(std::int64_t n, Dtype dtype, Location at) { return eye(n, n, 0, dtype, at); }
Array tri(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, Dtype dtype, Location at) {
  const AtUser scope(at);
  const Array mask = lower_triangle(n, m.value_or(n), within_matrices(k));
  return lax::convert(mask, dtype);
}
Array tril(Operand x, std::int64_t k) { return triangle_of("tril", x, within_matrices(k), true); }
Array triu(Operand x, std::int64_t k) {
  return triangle_of("triu", x, within_matrices(k) - 1, false);
}

}  // namespace reprise
