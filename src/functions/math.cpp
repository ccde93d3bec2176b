// Elementwise functions: promote the operands, then one or a few primitives, as jax.numpy does.
#include "functions/promote.h"
#include "functions/unit.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "reprise/ops_math.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

using Unary = Array (*)(Operand);
using Binary = Array (*)(Operand, Operand);

Array apply(Unary f, const Operand& x, Works in) {
  const AtUser at(x.at);
  return f(promote_dtype(x.array, in));
}
Array apply(const char* op, Binary f, const Operand& x, const Operand& y, Works in = Works::any) {
  const AtUser at(later(x, y));
  const Arrays p = promote(op, {x.array, y.array}, in);
  return f(p[0], p[1]);
}

bool is_unsigned(Dtype d) { return d >= Dtype::u8 && d <= Dtype::u64; }

Array as_bool(const Array& x) {
  return x.dtype() == Dtype::bool_ ? x : lax::ne(x, lax::const_like(x, 0));
}
Array logical(const char* op, Binary f, const Operand& x, const Operand& y) {
  const AtUser at(later(x, y));
  const Arrays p = promote(op, {x.array, y.array});
  const Array a = as_bool(p[0]);
  const Array b = as_bool(p[1]);
  return f(a, b);
}
Array bool_of(const Array& x, bool value) {
  Literal l;
  l.dtype = Dtype::bool_;
  l.integer = value;
  return lax::filled(x.shape(), l);
}
Array scaled(const Operand& x, double factor) {
  const AtUser at(x.at);
  const Array v = promote_dtype(x.array, Works::inexact);
  return lax::mul(v, lax::const_like(v, factor));
}

}  // namespace

// ------------------------------------------------------------------------------------- arithmetic
Array add(Operand x, Operand y) {
  const bool both_bool = x.array.dtype() == Dtype::bool_ && y.array.dtype() == Dtype::bool_;
  return apply("add", both_bool ? lax::bitwise_or : lax::add, x, y);
}
Array subtract(Operand x, Operand y) { return apply("subtract", lax::sub, x, y); }
Array multiply(Operand x, Operand y) {
  const bool both_bool = x.array.dtype() == Dtype::bool_ && y.array.dtype() == Dtype::bool_;
  return apply("multiply", both_bool ? lax::bitwise_and : lax::mul, x, y);
}
Array divide(Operand x, Operand y) { return apply("divide", lax::div, x, y, Works::inexact); }
Array true_divide(Operand x, Operand y) { return divide(x, y); }
Array mod(Operand x, Operand y) { return remainder(x, y); }

Array power(Operand x, Operand y) {
  const AtUser at(later(x, y));
  const bool constant = !is_traced(y.array) && y.array.ndim() == 0 && is_integer(y.array.dtype());
  if (constant) {
    const Array base = promote_dtype(x.array, Works::numeric);
    return lax::integer_pow(base, y.array.item<std::int64_t>());
  }
  const Arrays shaped = promote_shapes("power", {x.array, y.array});
  const Arrays same = promote_dtypes(shaped, Works::numeric);
  // An integer exponent stays one, so that the derivative by x is right at x = 0.
  const bool by_integer = is_floating(shaped[0].dtype()) && is_integer(shaped[1].dtype());
  return pow_p.bind1(by_integer ? shaped : same);
}
Array pow(Operand x, Operand y) { return power(x, y); }

Array negative(Operand x) { return apply(lax::neg, x, Works::any); }
Array positive(Operand x) { return x.array; }
Array reciprocal(Operand x) {
  const AtUser at(x.at);
  return lax::integer_pow(promote_dtype(x.array, Works::inexact), -1);
}
Array square(Operand x) { return apply(lax::square, x, Works::numeric); }
Array abs(Operand x) {
  const bool never_negative = is_unsigned(x.array.dtype()) || x.array.dtype() == Dtype::bool_;
  return never_negative ? x.array : apply(lax::abs, x, Works::any);
}
Array absolute(Operand x) { return abs(x); }
Array fabs(Operand x) { return apply(lax::abs, x, Works::inexact); }
Array sign(Operand x) { return apply(lax::sign, x, Works::any); }

Array operator+(Operand x, Operand y) { return add(x, y); }
Array operator-(Operand x, Operand y) { return subtract(x, y); }
Array operator*(Operand x, Operand y) { return multiply(x, y); }
Array operator/(Operand x, Operand y) { return divide(x, y); }
Array operator%(Operand x, Operand y) { return remainder(x, y); }
Array operator-(Operand x) { return negative(x); }
Array operator+(Operand x) { return positive(x); }
Array& Array::operator+=(const Array& y) & { return *this = add({*this, {}}, {y, {}}); }
Array& Array::operator-=(const Array& y) & { return *this = subtract({*this, {}}, {y, {}}); }
Array& Array::operator*=(const Array& y) & { return *this = multiply({*this, {}}, {y, {}}); }
Array& Array::operator/=(const Array& y) & { return *this = divide({*this, {}}, {y, {}}); }

// --------------------------------------------------------------------------------------- rounding
Array floor(Operand x) {
  return is_floating(x.array.dtype()) ? apply(lax::floor, x, Works::any) : x.array;
}
Array ceil(Operand x) {
  return is_floating(x.array.dtype()) ? apply(lax::ceil, x, Works::any) : x.array;
}
Array trunc(Operand x) {
  return unit("trunc", x, [](const Array& v) {
    if (!is_floating(v.dtype())) return v;
    const Array negative_part = lax::lt(v, lax::const_like(v, 0));
    const Array up = lax::ceil(v);
    const Array down = lax::floor(v);
    return where(negative_part, up, down);
  });
}
Array rint(Operand x) {
  return unit("rint", x, [](const Array& v) {
    if (!is_floating(v.dtype())) return promote_dtype(v, Works::inexact);
    return lax::round(v, lax::RoundingMethod::to_nearest_even);
  });
}
Array round(Operand x, std::int64_t decimals) {
  const AtUser at(x.at);
  const Dtype dtype = x.array.dtype();
  if (!is_floating(dtype) && (decimals < 0 || !is_integer(dtype))) {
    fail<TypeError>("round: only floating dtypes round to tens or hundreds, got ", x.array.type(),
                    " and ", decimals, " decimals");
  }
  return unit("round", x, [&](const Array& v) {
    if (!is_floating(dtype)) return v;
    if (decimals == 0) return lax::round(v, lax::RoundingMethod::to_nearest_even);
    const Array wide = dtype == Dtype::f16 ? lax::convert(v, Dtype::f32) : v;
    const Array factor = lax::const_like(wide, std::pow(10.0, static_cast<double>(decimals)));
    const Array product = lax::mul(wide, factor);
    const Array whole = lax::round(product, lax::RoundingMethod::to_nearest_even);
    const Array quotient = lax::div(whole, factor);
    return dtype == Dtype::f16 ? lax::convert(quotient, Dtype::f16) : quotient;
  });
}

// -------------------------------------------------------------------- exponentials, roots, angles
Array exp(Operand x) { return apply(lax::exp, x, Works::inexact); }
Array exp2(Operand x) { return apply(lax::exp2, x, Works::inexact); }
Array expm1(Operand x) { return apply(lax::expm1, x, Works::inexact); }
Array log(Operand x) { return apply(lax::log, x, Works::inexact); }
Array log2(Operand x) {
  const AtUser at(x.at);
  const Array v = promote_dtype(x.array, Works::inexact);
  const Array log_x = lax::log(v);
  const Array log_2 = lax::log(lax::const_like(v, 2));
  return lax::div(log_x, log_2);
}
Array log10(Operand x) {
  const AtUser at(x.at);
  const Array log_x = log(x);
  return lax::mul(log_x, lax::const_like(log_x, 1 / std::log(10.0)));
}
Array log1p(Operand x) { return apply(lax::log1p, x, Works::inexact); }
Array sqrt(Operand x) { return apply(lax::sqrt, x, Works::inexact); }
Array cbrt(Operand x) { return apply(lax::cbrt, x, Works::inexact); }
Array sin(Operand x) { return apply(lax::sin, x, Works::inexact); }
Array cos(Operand x) { return apply(lax::cos, x, Works::inexact); }
Array tan(Operand x) { return apply(lax::tan, x, Works::inexact); }
Array arcsin(Operand x) { return apply(lax::asin, x, Works::inexact); }
Array arccos(Operand x) { return apply(lax::acos, x, Works::inexact); }
Array arctan(Operand x) { return apply(lax::atan, x, Works::inexact); }
Array arctan2(Operand y, Operand x) { return apply("arctan2", lax::atan2, y, x, Works::inexact); }
Array sinh(Operand x) { return apply(lax::sinh, x, Works::inexact); }
Array cosh(Operand x) { return apply(lax::cosh, x, Works::inexact); }
Array tanh(Operand x) { return apply(lax::tanh, x, Works::inexact); }
Array arcsinh(Operand x) { return apply(lax::asinh, x, Works::inexact); }
Array arccosh(Operand x) {
  return unit("arccosh", x,
              [](const Array& v) { return lax::acosh(promote_dtype(v, Works::inexact)); });
}
Array arctanh(Operand x) { return apply(lax::atanh, x, Works::inexact); }
Array asin(Operand x) { return arcsin(x); }
Array acos(Operand x) { return arccos(x); }
Array atan(Operand x) { return arctan(x); }
Array atan2(Operand y, Operand x) { return arctan2(y, x); }
Array asinh(Operand x) { return arcsinh(x); }
Array acosh(Operand x) { return arccosh(x); }
Array atanh(Operand x) { return arctanh(x); }
constexpr double pi = 3.14159265358979323846;
Array deg2rad(Operand x) { return scaled(x, pi / 180); }
Array rad2deg(Operand x) { return scaled(x, 180 / pi); }
Array erf(Operand x) { return apply(lax::erf, x, Works::inexact); }
Array erfc(Operand x) { return apply(lax::erfc, x, Works::inexact); }
Array erfinv(Operand x) { return apply(lax::erf_inv, x, Works::inexact); }

// -------------------------------------------------------------------------------- order and choice
Array maximum(Operand x, Operand y) { return apply("maximum", lax::max, x, y); }
Array minimum(Operand x, Operand y) { return apply("minimum", lax::min, x, y); }
Array fmax(Operand x, Operand y) {
  return unit("fmax", x, y, [](const Array& a, const Array& b) {
    const Array larger = greater(a, b);
    const Array other_is_nan = isnan(b);
    const Array take_a = logical_or(larger, other_is_nan);
    return where(take_a, a, b);
  });
}
Array fmin(Operand x, Operand y) {
  return unit("fmin", x, y, [](const Array& a, const Array& b) {
    const Array smaller = less(a, b);
    const Array other_is_nan = isnan(b);
    const Array take_a = logical_or(smaller, other_is_nan);
    return where(take_a, a, b);
  });
}
Array clip(Operand x, std::optional<Operand> min, std::optional<Operand> max) {
  const AtUser at(x.at);
  Arrays args{x.array};
  if (min) args.push_back(min->array);
  if (max) args.push_back(max->array);
  return jit_call1(
      "clip",
      [&](const Arrays& a) {
        Array v = a[0];
        if (min) v = maximum(a[1], v);
        if (max) v = minimum(a.back(), v);
        return Arrays{v};
      },
      args);
}
Array where(Operand condition, Operand x, Operand y) {
  const AtUser at(condition.at);
  return jit_call1("_where",
                   [](const Arrays& a) -> Arrays {
                     const Array which = as_bool(a[0]);
                     const Arrays p = promote_dtypes({a[1], a[2]});
                     const Shape shape = broadcast_shape("where", {which, p[0], p[1]});
                     const Array mask = which.ndim() == 0 ? which : stretch_to(which, shape);
                     const Array on_true = stretch_to(p[0], shape);
                     const Array on_false = stretch_to(p[1], shape);
                     if (on_true.size() == 0) return {on_true};
                     return {lax::select_n(mask, {on_false, on_true})};
                   },
                   {condition.array, x.array, y.array});
}

Array equal(Operand x, Operand y) { return apply("equal", lax::eq, x, y); }
Array not_equal(Operand x, Operand y) { return apply("not_equal", lax::ne, x, y); }
Array less(Operand x, Operand y) { return apply("less", lax::lt, x, y); }
Array less_equal(Operand x, Operand y) { return apply("less_equal", lax::le, x, y); }
Array greater(Operand x, Operand y) { return apply("greater", lax::gt, x, y); }
Array greater_equal(Operand x, Operand y) { return apply("greater_equal", lax::ge, x, y); }
Array operator<(Operand x, Operand y) { return less(x, y); }
Array operator<=(Operand x, Operand y) { return less_equal(x, y); }
Array operator>(Operand x, Operand y) { return greater(x, y); }
Array operator>=(Operand x, Operand y) { return greater_equal(x, y); }

// --------------------------------------------------------------------------------- logic and bits
Array logical_and(Operand x, Operand y) { return logical("logical_and", lax::bitwise_and, x, y); }
Array logical_or(Operand x, Operand y) { return logical("logical_or", lax::bitwise_or, x, y); }
Array logical_xor(Operand x, Operand y) { return logical("logical_xor", lax::bitwise_xor, x, y); }
Array logical_not(Operand x) {
  const AtUser at(x.at);
  return lax::bitwise_not(as_bool(x.array));
}
Array bitwise_and(Operand x, Operand y) { return apply("bitwise_and", lax::bitwise_and, x, y); }
Array bitwise_or(Operand x, Operand y) { return apply("bitwise_or", lax::bitwise_or, x, y); }
Array bitwise_xor(Operand x, Operand y) { return apply("bitwise_xor", lax::bitwise_xor, x, y); }
Array bitwise_not(Operand x) { return apply(lax::bitwise_not, x, Works::any); }
Array invert(Operand x) { return bitwise_not(x); }
Array left_shift(Operand x, Operand y) {
  return apply("left_shift", lax::shift_left, x, y, Works::numeric);
}
Array right_shift(Operand x, Operand y) {
  const AtUser at(later(x, y));
  const Arrays p = promote("right_shift", {x.array, y.array}, Works::numeric);
  if (is_unsigned(p[0].dtype())) return lax::shift_right_logical(p[0], p[1]);
  return lax::shift_right_arithmetic(p[0], p[1]);
}
Array operator&(Operand x, Operand y) { return bitwise_and(x, y); }
Array operator|(Operand x, Operand y) { return bitwise_or(x, y); }
Array operator^(Operand x, Operand y) { return bitwise_xor(x, y); }
Array operator~(Operand x) { return bitwise_not(x); }
Array operator<<(Operand x, Operand y) { return left_shift(x, y); }
Array operator>>(Operand x, Operand y) { return right_shift(x, y); }

Array isfinite(Operand x) {
  const AtUser at(x.at);
  return is_floating(x.array.dtype()) ? lax::is_finite(x.array) : bool_of(x.array, true);
}
Array isinf(Operand x) {
  return unit("isinf", x, [](const Array& v) {
    if (!is_floating(v.dtype())) return bool_of(v, false);
    const Array size = lax::abs(v);
    return lax::eq(size, lax::const_like(v, std::numeric_limits<double>::infinity()));
  });
}
Array isnan(Operand x) {
  const AtUser at(x.at);
  return lax::ne(x.array, x.array);
}

// -------------------------------------------------------------------------------------------- rest
Array stop_gradient(Operand x) { return lax::stop_gradient(x); }
Array Array::astype(Dtype dtype, Location at) const {
  return lax::convert_element_type({*this, at}, dtype);
}

}  // namespace reprise
