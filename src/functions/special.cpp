// Functions that take care of the extremes: hypot, logaddexp, logit, nan_to_num.
#include "control/custom_rules.h"
#include "functions/promote.h"
#include "functions/unit.h"
#include "ops/lax.h"
#include "reprise/ops_math.h"

#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// Custom rules run as user code does; these belong to the line that called the function.
constexpr Location caller{};

double largest_finite(Dtype d) {
  switch (itemsize(d)) {
    case 2: return d == Dtype::f16 ? 65504.0 : 0x1.fep127;
    case 4: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

// ----------------------------------------------------------------------------------------
// logaddexp
Arrays logaddexp_body(const Arrays& x) {
  const AtUser at(caller);
  const Array large = lax::max(x[0], x[1]);
  const Array distance = lax::sub(x[0], x[1]);
  const Array same_infinities = lax::ne(distance, distance);
  const Array sum = lax::add(x[0], x[1]);
  const Array size = lax::abs(distance);
  const Array minus = lax::neg(size);
  const Array ratio = lax::exp(minus);
  const Array log_ratio = lax::log1p(ratio);
  const Array result = lax::add(large, log_ratio);
  return {lax::select_n(same_infinities, {result, sum})};
}

Array without_infinity(const Array& x) {
  const Array is_infinite = lax::eq(x, lax::const_like(x, inf));
  const Array zero = lax::zeros(x.type());
  return lax::select_n(is_infinite, {x, zero});
}
// t exp(x - y), where y = log(exp(x) + ...)
Array share_of(const Array& x, const Array& t, const Array& y) {
  const Array finite_x = without_infinity(x);
  const Array finite_y = without_infinity(y);
  const Array log_share = lax::sub(finite_x, finite_y);
  const Array share = lax::exp(log_share);
  return lax::mul(t, share);
}
Array call_logaddexp(const Arrays& x);
std::pair<Arrays, Arrays> logaddexp_jvp(const Arrays& x, const Arrays& dx) {
  const AtUser at(caller);
  const Array y = call_logaddexp(x);
  const Array by_first = share_of(x[0], dx[0], y);
  const Array by_second = share_of(x[1], dx[1], y);
  return {{y}, {lax::add(by_first, by_second)}};
}
Array call_logaddexp(const Arrays& x) {
  static const auto& rule =
      *new auto(std::make_shared<const JvpRule>("_logaddexp_jvp", logaddexp_jvp));
  return custom_jvp_call("logaddexp", logaddexp_body, rule, x)[0];
}

// --------------------------------------------------------------------------------------------
// logit
Arrays logit_body(const Arrays& x) {
  const AtUser at(caller);
  const Array p = promote_dtype(x[0], Works::inexact);
  const Array rest = lax::sub(lax::const_like(p, 1), p);
  const Array odds = lax::div(p, rest);
  return {lax::log(odds)};
}
Array call_logit(const Arrays& x);
std::pair<Arrays, Arrays> logit_jvp(const Arrays& x, const Arrays& dx) {
  const AtUser at(caller);
  const Array y = call_logit(x);
  const Array rest = lax::sub(lax::const_like(x[0], 1), x[0]);
  const Array variance = lax::mul(x[0], rest);
  return {{y}, {lax::div(dx[0], variance)}};
}
Array call_logit(const Arrays& x) {
  static const auto& rule = *new auto(std::make_shared<const JvpRule>("jvp", logit_jvp));
  return custom_jvp_call("logit", logit_body, rule, x)[0];
}

}  // namespace

Array logaddexp(Operand x, Operand y) {
  const AtUser at(later(x, y));
  return call_logaddexp(promote("logaddexp", {x.array, y.array}, Works::inexact));
}
Array logit(Operand x) {
  const AtUser at(x.at);
  return call_logit({x.array});
}

Array hypot(Operand x, Operand y) {
  return unit("hypot", x, y, [](const Array& a, const Array& b) {
    const Arrays p = promote("hypot", {a, b}, Works::inexact);
    const Array u = lax::abs(p[0]);
    const Array v = lax::abs(p[1]);
    const Array u_infinite = lax::eq(u, lax::const_like(u, inf));
    const Array v_infinite = lax::eq(v, lax::const_like(v, inf));
    const Array infinite = lax::bitwise_or(u_infinite, v_infinite);
    const Array large = lax::max(u, v);
    const Array small = lax::min(u, v);
    const Array is_zero = lax::eq(large, lax::const_like(large, 0));
    const Array is_zero_again = lax::eq(large, lax::const_like(large, 0));
    const Array one = lax::full_like(large.type(), 1);
    const Array divisor = where(is_zero_again, one, large);
    const Array ratio = lax::div(small, divisor);
    const Array ratio2 = lax::square(ratio);
    const Array sum = add(1, ratio2);
    const Array root = lax::sqrt(sum);
    const Array length = lax::mul(large, root);
    const Array finite = where(is_zero, large, length);
    return where(infinite, lax::const_like(large, inf), finite);
  });
}

Array nan_to_num(Operand x, double nan, std::optional<double> posinf,
                 std::optional<double> neginf) {
  const AtUser at(x.at);
  const auto replace = [&](const Arrays& a) -> Arrays {
    const Array& v = a[0];
    if (!is_floating(v.dtype())) return {v};
    const double largest = largest_finite(v.dtype());
    const Array is_nan = lax::ne(v, v);
    const Array no_nan = where(is_nan, lax::const_like(v, nan), v);
    const Array is_inf = lax::eq(no_nan, lax::const_like(v, inf));
    const Array no_inf = where(is_inf, lax::const_like(v, posinf.value_or(largest)), no_nan);
    const Array is_minus_inf = lax::eq(no_inf, lax::const_like(v, -inf));
    return {where(is_minus_inf, lax::const_like(v, neginf.value_or(-largest)), no_inf)};
  };
  return jit_call1("nan_to_num", replace, {x.array});
}

}  // namespace reprise
