// Elementwise functions and new arrays, in numpy style with the names of jax.numpy.
//
//   rp::Array y = rp::exp(-rp::square(x) / 2.0);      // operators and functions mix
//   rp::Array m = rp::where(x > 0, x, 0.0);           // shapes broadcast, dtypes promote
//
// Operands are Arrays or C++ numbers. Dtypes follow JAX's promotion rules: a number takes the dtype
// of the array it meets, integers meeting floats become floats. Shapes follow numpy: missing
// leading dimensions and dimensions of size 1 are repeated. Operands that do not fit give a
// TypeError. Functions of real numbers (exp, sin, ...) take integers as f32.
#pragma once

#include "reprise/array.h"

#include <optional>

#pragma GCC visibility push(default)
namespace reprise {

// ------------------------------------------------------------------------------------- arithmetic
Array add(Operand x, Operand y);  // bool: or
Array subtract(Operand x, Operand y);
Array multiply(Operand x, Operand y);  // bool: and
Array divide(Operand x, Operand y);    // of integers: a float
Array true_divide(Operand x, Operand y);
Array floor_divide(Operand x, Operand y);  // rounded down
Array remainder(Operand x, Operand y);     // the sign of y; integers: x % 0 = 0
Array mod(Operand x, Operand y);           // the same
Array fmod(Operand x, Operand y);          // the sign of x
// x to the power y. A C++ integer as y multiplies repeatedly: power(x, 2) is exact where x*x is.
Array power(Operand x, Operand y);
Array pow(Operand x, Operand y);
Array negative(Operand x);
Array positive(Operand x);
Array reciprocal(Operand x);
Array square(Operand x);
Array abs(Operand x);
Array absolute(Operand x);
Array fabs(Operand x);
Array sign(Operand x);  // -1, 0 or 1; keeps NaN and the sign of zero

Array operator+(Operand x, Operand y);
Array operator-(Operand x, Operand y);
Array operator*(Operand x, Operand y);
Array operator/(Operand x, Operand y);  // true_divide
Array operator%(Operand x, Operand y);  // remainder
Array operator-(Operand x);
Array operator+(Operand x);

// --------------------------------------------------------------------------------------- rounding
Array floor(Operand x);  // integers stay as they are, here and below
Array ceil(Operand x);
Array trunc(Operand x);
Array rint(Operand x);                              // to the nearest even integer
Array round(Operand x, std::int64_t decimals = 0);  // the same for the given decimal place

// ------------------------------------------------------------------ exponentials, roots, angles
Array exp(Operand x);
Array exp2(Operand x);
Array expm1(Operand x);  // exp(x) - 1, accurate near 0
Array log(Operand x);
Array log2(Operand x);
Array log10(Operand x);
Array log1p(Operand x);  // log(1 + x), accurate near 0
Array sqrt(Operand x);
Array cbrt(Operand x);
Array sin(Operand x);
Array cos(Operand x);
Array tan(Operand x);
Array arcsin(Operand x);
Array arccos(Operand x);
Array arctan(Operand x);
Array arctan2(Operand y, Operand x);  // the angle of the point (x, y)
Array sinh(Operand x);
Array cosh(Operand x);
Array tanh(Operand x);
Array arcsinh(Operand x);
Array arccosh(Operand x);
Array arctanh(Operand x);
Array asin(Operand x);
Array acos(Operand x);
Array atan(Operand x);
Array atan2(Operand y, Operand x);
Array asinh(Operand x);
Array acosh(Operand x);
Array atanh(Operand x);
Array deg2rad(Operand x);
Array rad2deg(Operand x);
Array hypot(Operand x, Operand y);      // sqrt(x^2 + y^2) without overflow on the way
Array logaddexp(Operand x, Operand y);  // log(exp(x) + exp(y)) without overflow on the way
Array erf(Operand x);
Array erfc(Operand x);
Array erfinv(Operand x);
Array logit(Operand x);  // log(x / (1 - x))

// ----------------------------------------------------------------------------- order and choice
Array maximum(Operand x, Operand y);  // NaN if either is
Array minimum(Operand x, Operand y);
Array fmax(Operand x, Operand y);  // the other one if one is NaN
Array fmin(Operand x, Operand y);
// x limited to [min, max]; either bound may be left out: clip(x, std::nullopt, 1.0).
Array clip(Operand x, std::optional<Operand> min = std::nullopt,
           std::optional<Operand> max = std::nullopt);
// x where the condition holds, else y. The condition may be any dtype: not zero means true.
Array where(Operand condition, Operand x, Operand y);

Array equal(Operand x, Operand y);
Array not_equal(Operand x, Operand y);
Array less(Operand x, Operand y);
Array less_equal(Operand x, Operand y);
Array greater(Operand x, Operand y);
Array greater_equal(Operand x, Operand y);
// Elementwise, the result is a bool array. There is no == and !=: they would have to be one bool.
REPRISE_UNAVAILABLE(
    "write rp::equal(x, y), elementwise, or rp::all(rp::equal(x, y)).item<bool>() for one bool")
bool operator==(const Operand& x, const Operand& y);
REPRISE_UNAVAILABLE(
    "write rp::not_equal(x, y), elementwise, or rp::any(rp::not_equal(x, y)).item<bool>() for one "
    "bool")
bool operator!=(const Operand& x, const Operand& y);
Array operator<(Operand x, Operand y);
Array operator<=(Operand x, Operand y);
Array operator>(Operand x, Operand y);
Array operator>=(Operand x, Operand y);

// --------------------------------------------------------------------------------- logic and bits
Array logical_and(Operand x, Operand y);
Array logical_or(Operand x, Operand y);
Array logical_xor(Operand x, Operand y);
Array logical_not(Operand x);
Array bitwise_and(Operand x, Operand y);
Array bitwise_or(Operand x, Operand y);
Array bitwise_xor(Operand x, Operand y);
Array bitwise_not(Operand x);
Array invert(Operand x);
Array left_shift(Operand x, Operand y);
Array right_shift(Operand x, Operand y);  // keeps the sign of signed integers
Array operator&(Operand x, Operand y);
Array operator|(Operand x, Operand y);
Array operator^(Operand x, Operand y);
Array operator~(Operand x);
Array operator<<(Operand x, Operand y);
Array operator>>(Operand x, Operand y);

Array isfinite(Operand x);
Array isinf(Operand x);
Array isnan(Operand x);
// NaN replaced by `nan`, infinities by the given numbers or by the largest finite ones.
Array nan_to_num(Operand x, double nan = 0.0, std::optional<double> posinf = std::nullopt,
                 std::optional<double> neginf = std::nullopt);

Array stop_gradient(Operand x);  // x, whose derivative is zero

// ------------------------------------------------------------------------------------- new arrays
Array zeros(const Shape& shape, Dtype dtype = float32, Location at = Location::current());
Array ones(const Shape& shape, Dtype dtype = float32, Location at = Location::current());
Array empty(const Shape& shape, Dtype dtype = float32, Location at = Location::current());
// The value repeated; it may itself be an array that broadcasts to the shape.
Array full(const Shape& shape, Operand value, std::optional<Dtype> dtype = std::nullopt);
// The same for integers of 64 bits, which need their dtype: full({2}, 1l << 40, rp::int64).
template <class T>
concept Integer64 = std::is_integral_v<T> && sizeof(T) == 8;
template <Integer64 T>
Array full(const Shape& shape, T value, Dtype dtype, Location at = Location::current());

// The shape and dtype of x, filled with one value.
Array zeros_like(Operand x, std::optional<Dtype> dtype = std::nullopt);
Array ones_like(Operand x, std::optional<Dtype> dtype = std::nullopt);
Array full_like(Operand x, Operand value, std::optional<Dtype> dtype = std::nullopt);

// start, start + step, ... below stop. Integers give i32, floats f32.
Array arange(Operand stop, std::optional<Dtype> dtype = std::nullopt);
Array arange(Operand start, Operand stop, std::optional<Dtype> dtype = std::nullopt);
Array arange(Operand start, Operand stop, Operand step, std::optional<Dtype> dtype = std::nullopt);
// `num` numbers evenly spaced from start to stop, stop included unless endpoint is false.
Array linspace(Operand start, Operand stop, std::int64_t num = 50, bool endpoint = true,
               std::optional<Dtype> dtype = std::nullopt);
Array iota(Dtype dtype, std::int64_t size, Location at = Location::current());  // 0, 1, 2, ...

// n x m, one on the diagonal k above the main one, zero elsewhere; m is n unless given.
Array eye(std::int64_t n, std::optional<std::int64_t> m = std::nullopt, std::int64_t k = 0,
          Dtype dtype = float32, Location at = Location::current());
Array identity(std::int64_t n, Dtype dtype = float32, Location at = Location::current());
// n x m, one at and below the diagonal k, zero above.
Array tri(std::int64_t n, std::optional<std::int64_t> m = std::nullopt, std::int64_t k = 0,
          Dtype dtype = float32, Location at = Location::current());
Array tril(Operand x, std::int64_t k = 0);  // the last two dimensions, zero above the diagonal k
Array triu(Operand x, std::int64_t k = 0);  // zero below the diagonal k

// For full.
Array full_of_integer(const Shape& shape, std::uint64_t bits, bool is_signed, Dtype dtype,
                      Location at);
template <Integer64 T>
Array full(const Shape& shape, T value, Dtype dtype, Location at) {
  return full_of_integer(shape, static_cast<std::uint64_t>(value), std::is_signed_v<T>, dtype, at);
}

}  // namespace reprise
#pragma GCC visibility pop
