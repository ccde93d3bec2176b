// Whole quotients and what is left over: floor_divide, remainder, fmod.
#include "functions/promote.h"
#include "functions/unit.h"
#include "ops/lax.h"
#include "reprise/ops_math.h"

namespace reprise {
namespace {

// Integers have no quotient by zero: divide by one instead.
Array nonzero_divisor(const Array& y) {
  const Array is_zero = lax::eq(y, lax::const_like(y, 0));
  const Array one = lax::full_like(y.type(), 1);
  return where(is_zero, one, y);
}

Array floor_divide_integers(const Array& x, const Array& y) {
  const Array quotient = lax::div(x, y);
  const Array x_sign = lax::sign(x);
  const Array y_sign = lax::sign(y);
  const Array signs_differ = lax::ne(x_sign, y_sign);
  const Array rest = lax::rem(x, y);
  const Array has_rest = lax::ne(rest, lax::const_like(rest, 0));
  const Array rounded_up = lax::bitwise_and(signs_differ, has_rest);
  const Array less_one = lax::sub(quotient, lax::const_like(quotient, 1));
  return where(rounded_up, less_one, quotient);
}

Array floor_divide_floats(const Array& x, const Array& y) {
  const Array rest = lax::rem(x, y);
  const Array by_zero = lax::eq(y, lax::const_like(y, 0));
  const Array without_rest = lax::sub(x, rest);
  const Array numerator = where(by_zero, x, without_rest);
  const Array quotient = lax::div(numerator, y);
  const Array has_rest = lax::ne(rest, lax::const_like(rest, 0));
  const Array y_sign = lax::sign(y);
  const Array rest_sign = lax::sign(rest);
  const Array signs_differ = lax::ne(y_sign, rest_sign);
  const Array rounded_up = lax::bitwise_and(has_rest, signs_differ);
  // The matching remainder is recorded too: JAX computes both together.
  const Array rest_plus = lax::add(rest, y);
  lax::select_n(rounded_up, {rest, rest_plus});
  const Array less_one = lax::sub(quotient, lax::const_like(quotient, 1));
  const Array down = lax::select_n(rounded_up, {quotient, less_one});
  return lax::round(down, lax::RoundingMethod::away_from_zero);
}

}  // namespace

Array floor_divide(Operand x, Operand y) {
  return unit("floor_divide", x, y, [](const Array& a, const Array& b) {
    const Arrays p = promote("floor_divide", {a, b}, Works::numeric);
    const Dtype dtype = p[0].dtype();
    if (is_floating(dtype)) return floor_divide_floats(p[0], p[1]);
    if (dtype >= Dtype::u8 && dtype <= Dtype::u64) return lax::div(p[0], p[1]);
    return floor_divide_integers(p[0], p[1]);
  });
}

Array remainder(Operand x, Operand y) {
  return unit("remainder", x, y, [](const Array& a, const Array& b) {
    const Arrays p = promote("remainder", {a, b}, Works::numeric);
    const Array divisor = is_floating(p[1].dtype()) ? p[1] : nonzero_divisor(p[1]);
    const Array rest = lax::rem(p[0], divisor);
    const Array has_rest = lax::ne(rest, lax::const_like(rest, 0));
    const Array rest_negative = lax::lt(rest, lax::const_like(rest, 0));
    const Array divisor_negative = lax::lt(divisor, lax::const_like(divisor, 0));
    const Array signs_differ = lax::ne(rest_negative, divisor_negative);
    const Array adjust = lax::bitwise_and(signs_differ, has_rest);
    const Array moved = lax::add(rest, divisor);
    return lax::select_n(adjust, {rest, moved});
  });
}

Array fmod(Operand x, Operand y) {
  return unit("fmod", x, y, [](const Array& a, const Array& b) {
    const Promoted common = promote_types(a.dtype(), a.weak_type(), b.dtype(), b.weak_type());
    const Array divisor = is_integer(common.dtype) ? nonzero_divisor(b) : b;
    const Arrays p = promote("fmod", {a, divisor}, Works::numeric);
    return lax::rem(p[0], p[1]);
  });
}

}  // namespace reprise
