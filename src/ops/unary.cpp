// One-operand elementwise primitives: derivative and scalar code of each, side by side.
#include "ops/elementwise.h"
#include "ops/erf_inv.h"
#include "ops/records.h"
#include "ops/tanh.h"

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

// ------------------------------------------------------------------------------------ scalar code
constexpr auto negative = [](auto a) {  // integers wrap around
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return -a;
  else
    return static_cast<T>(0 - static_cast<std::uint64_t>(a));
};
constexpr auto sign_of = [](auto a) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || a == 0) return a;  // keeps the sign of zero
  }
  return static_cast<T>((a > T{0}) - (a < T{0}));
};
constexpr auto magnitude = [](auto a) {
  if constexpr (std::is_floating_point_v<decltype(a)>)
    return std::fabs(a);
  else
    return a < decltype(a){0} ? negative(a) : a;
};
constexpr auto squared = [](auto a) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return a * a;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(a));
};
constexpr auto one_minus_squared = [](auto a) {  // exact near 1
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return (1 + a) * (1 - a);
  else
    return static_cast<T>(1 - static_cast<std::uint64_t>(squared(a)));
};
constexpr auto logistic_of = [](auto a) { return 1 / (1 + std::exp(-a)); };
constexpr auto complement = [](auto a) {
  if constexpr (std::is_same_v<decltype(a), bool>)
    return !a;
  else
    return static_cast<decltype(a)>(~a);
};

// By repeated squaring; every product is rounded to the element type, as XLA does.
template <class T>
T power_of(T x, std::int64_t y) {
  using C = Compute<T>;
  const auto product = [](T a, T b) {
    if constexpr (is_floating_element<T>) {
      return elementwise::to_element<T>(static_cast<C>(a) * static_cast<C>(b));
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
  };
  const T one = elementwise::to_element<T>(C{1});
  if (y == 0) return one;
  T result = one;
  bool first = true;
  for (auto e = y < 0 ? 0 - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y);;) {
    if (e & 1) result = std::exchange(first, false) ? x : product(result, x);
    e >>= 1;
    if (e == 0) break;
    x = product(x, x);
  }
  if constexpr (is_floating_element<T>) {
    if (y < 0) return elementwise::to_element<T>(C{1} / static_cast<C>(result));
  }
  return result;
}

Arrays eval_round(const Arrays& x, const Params& params, const Types& out) {
  constexpr auto away = [](auto a) { return std::round(a); };
  constexpr auto even = [](auto a) { return std::nearbyint(a); };
  const auto method = static_cast<RoundingMethod>(params.get<std::int64_t>("rounding_method"));
  if (method == RoundingMethod::away_from_zero) {
    return elementwise::eval_unary<Domain::floating, away>(x, params, out);
  }
  return elementwise::eval_unary<Domain::floating, even>(x, params, out);
}

Types round_type(const Types& in, const Params& params) {
  const auto method = params.get<std::int64_t>("rounding_method");
  if (method != 0 && method != 1) {
    fail<TypeError>("round: rounding_method must be 0 or 1, got ", method);
  }
  return elementwise::type_of<"round", Domain::floating>(in, params);
}
Types integer_pow_type(const Types& in, const Params& params) {
  elementwise::check_domain("integer_pow", Domain::number, in);
  const auto y = params.get<std::int64_t>("y");
  if (y < 0 && is_integer(in[0].dtype)) {
    fail<TypeError>("integer_pow: integers have no negative powers, got ", in[0], " to the power ",
                    y);
  }
  return in;
}
Arrays eval_integer_pow(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const auto y = params.get<std::int64_t>("y");
  elementwise::visit_domain<Domain::number>(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = elements<T>(x[0]);
    T* to = result.data<T>();
    for (std::int64_t i = 0; i < result.size(); ++i) to[i] = power_of(in[i], y);
  });
  return {std::move(result).finish()};
}

// ------------------------------------------------------------------------------------ derivatives
Tangents neg_transpose(const Tangents& ct, const Primals&, const Types&, const Params&) {
  return {neg(*ct[0])};
}
Array abs_tangent(X x, X t, X) {
  const Array positive = ge(x, const_like(x, 0));
  const Array minus = neg(t);
  return select_n(positive, {minus, t});
}
Array log1p_tangent(X x, X t, X) {
  const Array sum = add(x, const_like(x, 1));
  return div(t, sum);
}
Array expm1_tangent(X x, X t, X y) {
  const Array slope = add(y, const_like(x, 1));
  return mul(t, slope);
}
Array sqrt_tangent(X x, X t, X y) {
  const Array slope = div(const_like(x, 0.5), y);
  return mul(t, slope);
}
Array square_tangent(X x, X t, X) {
  const Array slope = mul(const_like(x, 2), x);
  return mul(t, slope);
}
Array cos_tangent(X x, X t, X) {
  const Array sine = sin(x);
  const Array product = mul(t, sine);
  return neg(product);
}
Array tanh_tangent(X x, X t, X y) {  // (t + t y) (1 - y)
  const Array ty = mul(t, y);
  const Array sum = add(t, ty);
  const Array rest = sub(const_like(x, 1), y);
  return mul(sum, rest);
}
Array logistic_tangent(X x, X t, X y) {
  const Array rest = sub(const_like(x, 1), y);
  const Array slope = mul(y, rest);
  return mul(t, slope);
}
Array one_minus_square_tangent(X x, X t, X) {
  const Array slope = mul(const_like(x, -2), x);
  return mul(t, slope);
}
Array tan_tangent(X x, X t, X y) {
  const Array y2 = square(y);
  const Array slope = add(const_like(x, 1), y2);
  return mul(t, slope);
}
Array rsqrt_one_minus_square(X x) {
  const Array x2 = square(x);
  const Array rest = sub(const_like(x, 1), x2);
  return rsqrt(rest);
}
Array asin_tangent(X x, X t, X) {
  const Array slope = rsqrt_one_minus_square(x);
  return mul(t, slope);
}
Array acos_tangent(X x, X t, X) {
  const Array slope = rsqrt_one_minus_square(x);
  const Array minus = neg(slope);
  return mul(t, minus);
}
Array atan_tangent(X x, X t, X) {
  const Array x2 = square(x);
  const Array sum = add(const_like(x, 1), x2);
  return div(t, sum);
}
Array asinh_tangent(X x, X t, X) {
  const Array x2 = square(x);
  const Array sum = add(x2, const_like(x, 1));
  const Array slope = rsqrt(sum);
  return mul(t, slope);
}
Array acosh_tangent(X x, X t, X) {
  const Array x2 = square(x);
  const Array rest = sub(x2, const_like(x, 1));
  const Array slope = rsqrt(rest);
  return mul(t, slope);
}
Array atanh_tangent(X x, X t, X) {
  const Array sum = add(const_like(x, 1), x);
  const Array by_sum = integer_pow(sum, -1);
  const Array rest = sub(const_like(x, 1), x);
  const Array by_rest = div(t, rest);
  return mul(by_sum, by_rest);
}
Array exp2_tangent(X x, X t, X y) {
  const Array log_2 = log(const_like(x, 2));
  const Array ty = mul(t, y);
  return mul(log_2, ty);
}
Array rsqrt_tangent(X x, X t, X y) {
  const Array ratio = div(y, x);
  const Array slope = mul(const_like(x, -0.5), ratio);
  return mul(t, slope);
}
Array cbrt_tangent(X x, X t, X y) {
  const Array power = integer_pow(y, -2);
  const Array slope = mul(const_like(x, 1.0 / 3.0), power);
  return mul(t, slope);
}
constexpr double two_over_sqrt_pi = 1.1283791670955126;
Array gauss_tangent(X x, X t, double factor) {  // factor * exp(-x^2) * t
  const Array x2 = square(x);
  const Array minus = neg(x2);
  const Array bell = exp(minus);
  const Array product = mul(t, bell);
  return mul(const_like(x, factor), product);
}
Array erf_inv_tangent(X x, X t, X y) {
  const Array y2 = square(y);
  const Array e = exp(y2);
  const Array product = mul(t, e);
  return mul(const_like(x, 1 / two_over_sqrt_pi), product);
}
Tangents integer_pow_tangent(const Arrays& x, const Tangents& dx, const Arrays&,
                             const Params& params) {
  const auto n = params.get<std::int64_t>("y");
  if (n == 0) return {std::nullopt};
  if (n == 1) return dx;
  const Array power = n == 2 ? x[0] : integer_pow(x[0], n - 1);
  const Array slope = mul(const_like(x[0], static_cast<double>(n)), power);
  return {mul(*dx[0], slope)};
}

template <Name name, Domain domain>
constexpr Primitive with_params(decltype(Primitive::eval) eval) {
  return {.name = name.text,
          .kind = Kind::elementwise,
          .type = elementwise::type_of<name, domain>,
          .eval = eval,
          .tangent = elementwise::zero_tangent,
          .batch = elementwise::batch,
          .arity = 1};
}
constexpr Primitive with_rules(Primitive p, std::span<const ParamRule> params) {
  p.param_rules = params;
  return p;
}
constexpr Primitive typed(Primitive p, decltype(Primitive::type) type) {
  p.type = type;
  return p;
}
constexpr Primitive tangents(Primitive p, decltype(Primitive::tangent) tangent) {
  p.tangent = tangent;
  return p;
}

constexpr Domain number = Domain::number, floating = Domain::floating;
constexpr ParamRule round_rules[] = {{"rounding_method", form::integer}};
constexpr ParamRule power_rules[] = {{"y", form::integer}};

}  // namespace

// clang-format off
constinit const Primitive
    neg_p      = with_transpose(unary<"neg", number,
                   [](X, X t, X) { return neg(t); }, negative>, neg_transpose),
    sign_p     = step_unary<"sign", number, sign_of>,
    abs_p      = unary<"abs", number, abs_tangent, magnitude>,
    floor_p    = step_unary<"floor", floating, [](auto v) { return std::floor(v); }>,
    ceil_p     = step_unary<"ceil", floating, [](auto v) { return std::ceil(v); }>,
    round_p    = with_rules(typed(with_params<"round", floating>(eval_round), round_type), round_rules),
    exp_p      = unary<"exp", floating, [](X, X t, X y) { return mul(t, y); },
                   [](auto v) { return std::exp(v); }>,
    exp2_p     = unary<"exp2", floating, exp2_tangent, [](auto v) { return std::exp2(v); }>,
    log_p      = unary<"log", floating, [](X x, X t, X) { return div(t, x); },
                   [](auto v) { return std::log(v); }>,
    log1p_p    = unary<"log1p", floating, log1p_tangent, [](auto v) { return std::log1p(v); }>,
    expm1_p    = unary<"expm1", floating, expm1_tangent, [](auto v) { return std::expm1(v); }>,
    sin_p      = unary<"sin", floating,
                   [](X x, X t, X) { const Array k = cos(x); return mul(t, k); },
                   [](auto v) { return std::sin(v); }>,
    cos_p      = unary<"cos", floating, cos_tangent, [](auto v) { return std::cos(v); }>,
    tan_p      = unary<"tan", floating, tan_tangent, [](auto v) { return std::tan(v); }>,
    asin_p     = unary<"asin", floating, asin_tangent, [](auto v) { return std::asin(v); }>,
    acos_p     = unary<"acos", floating, acos_tangent, [](auto v) { return std::acos(v); }>,
    atan_p     = unary<"atan", floating, atan_tangent, [](auto v) { return std::atan(v); }>,
    sinh_p     = unary<"sinh", floating,
                   [](X x, X t, X) { const Array k = cosh(x); return mul(t, k); },
                   [](auto v) { return std::sinh(v); }>,
    cosh_p     = unary<"cosh", floating,
                   [](X x, X t, X) { const Array k = sinh(x); return mul(t, k); },
                   [](auto v) { return std::cosh(v); }>,
    tanh_p     = unary<"tanh", floating, tanh_tangent, [](auto v) { return xla_tanh(v); }>,
    asinh_p    = unary<"asinh", floating, asinh_tangent, [](auto v) { return std::asinh(v); }>,
    acosh_p    = unary<"acosh", floating, acosh_tangent, [](auto v) { return std::acosh(v); }>,
    atanh_p    = unary<"atanh", floating, atanh_tangent, [](auto v) { return std::atanh(v); }>,
    logistic_p = unary<"logistic", floating, logistic_tangent, logistic_of>,
    sqrt_p     = unary<"sqrt", floating, sqrt_tangent, [](auto v) { return std::sqrt(v); }>,
    rsqrt_p    = unary<"rsqrt", floating, rsqrt_tangent, [](auto v) { return 1 / std::sqrt(v); }>,
    cbrt_p     = unary<"cbrt", floating, cbrt_tangent, [](auto v) { return std::cbrt(v); }>,
    square_p   = unary<"square", number, square_tangent, squared>,
    integer_pow_p = with_rules(typed(tangents(with_params<"integer_pow", number>(eval_integer_pow),
                                   integer_pow_tangent), integer_pow_type), power_rules),
    erf_p      = unary<"erf", floating,
                   [](X x, X t, X) { return gauss_tangent(x, t, two_over_sqrt_pi); },
                   [](auto v) { return std::erf(v); }>,
    erfc_p     = unary<"erfc", floating,
                   [](X x, X t, X) { return gauss_tangent(x, t, -two_over_sqrt_pi); },
                   [](auto v) { return std::erfc(v); }>,
    erf_inv_p  = unary<"erf_inv", floating, erf_inv_tangent, [](auto v) { return inverse_erf(v); }>,
    is_finite_p = typed(step_unary<"is_finite", floating,
                   [](auto v) -> bool { return std::isfinite(v); }>,
                        elementwise::type_of<"is_finite", floating, true>),
    not_p      = step_unary<"not", Domain::integral, complement>,
    one_minus_square_p = unary<"one_minus_square", number, one_minus_square_tangent, one_minus_squared>;
// clang-format on

namespace {
Array bind_unary(const Primitive& p, const Operand& x, Params params = {}) {
  const AtUser at(x.at);
  return p.bind1({x.array}, std::move(params));
}
}  // namespace

namespace lax {
Array neg(Operand x) { return bind_unary(neg_p, x); }
Array sign(Operand x) { return bind_unary(sign_p, x); }
Array abs(Operand x) { return bind_unary(abs_p, x); }
Array floor(Operand x) { return bind_unary(floor_p, x); }
Array ceil(Operand x) { return bind_unary(ceil_p, x); }
Array round(Operand x, RoundingMethod method) {
  return bind_unary(round_p, x, {{"rounding_method", static_cast<std::int64_t>(method)}});
}
Array square(Operand x) { return bind_unary(square_p, x); }
Array integer_pow(Operand x, std::int64_t y) { return bind_unary(integer_pow_p, x, {{"y", y}}); }
Array is_finite(Operand x) { return bind_unary(is_finite_p, x); }
Array bitwise_not(Operand x) { return bind_unary(not_p, x); }

#define REPRISE_BIND_RECORD(name) \
  Array name(Operand x) { return bind_unary(name##_p, x); }
REPRISE_FLOATING_FUNCTIONS(REPRISE_BIND_RECORD)
#undef REPRISE_BIND_RECORD
}  // namespace lax

}  // namespace reprise
