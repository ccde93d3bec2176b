// What programs of JAX have and no function of the library makes: the gamma function and its
// relatives, Bessel functions, bits. Compiled programs call the evaluation here, which is in f64
// whatever the dtype.
//
//   igamma(a, x)  = 1/Gamma(a) * integral from 0 to x of t^(a-1) e^-t dt      igammac = 1 - igamma
//   polygamma(n, x) = n-th derivative of digamma     zeta(s, q) = sum over k of (q + k)^-s
#include "ops/elementwise.h"
#include "ops/lax.h"
#include "ops/records.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

using X = const Array&;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr int most_terms = 20000;  // of a series; large arguments need the root of this many

// ------------------------------------------------------------------------------- gamma functions
double log_gamma(double x) {  // std::lgamma writes to a variable that threads share
  int sign = 0;
  return lgamma_r(x, &sign);
}
// Upwards until the asymptotic series holds, by reflection for negative arguments.
double digamma_of(double x) {
  if (x == 0) return std::signbit(x) ? infinite : -infinite;
  if (x < 0) {
    if (x == std::floor(x)) return nan_value;
    return digamma_of(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  }
  double shift = 0;
  for (; x < 10; ++x) shift -= 1 / x;
  const double i = 1 / (x * x);
  const double series =
      i * (1.0 / 12 - i * (1.0 / 120 - i * (1.0 / 252 - i * (1.0 / 240 - i / 132))));
  return shift + std::log(x) - 0.5 / x - series;
}

// The sum of the first terms, the integral of the rest and its corrections (Euler, Maclaurin).
double zeta_of(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return nan_value;
  if (s == 1) return infinite;
  if (q <= 0) {
    if (q == std::floor(q)) return infinite;
    if (s != std::floor(s) || q < -10000) return nan_value;  // too many terms to add up
  }
  double sum = 0;
  for (int k = 0; k < 12 || q < 12; ++k, ++q) sum += std::pow(q, -s);
  sum += std::pow(q, 1 - s) / (s - 1) + 0.5 * std::pow(q, -s);
  constexpr double by_factorial[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                     -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                     1.0 / 74724249600};
  double term = s * std::pow(q, -s - 1);
  for (int k = 0; k < 7; ++k) {
    sum += by_factorial[k] * term;
    term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
  }
  return sum;
}
double polygamma_of(double n, double x) {
  if (n < 0 || n != std::floor(n)) return nan_value;
  if (n == 0) return digamma_of(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(log_gamma(n + 1)) * zeta_of(n + 1, x);
}

// ------------------------------------------------------------------------------ incomplete gamma
// A number with its derivative by a.
struct ByA {
  double v, d = 0;
};
ByA operator+(ByA x, ByA y) { return {x.v + y.v, x.d + y.d}; }
ByA operator-(ByA x, ByA y) { return {x.v - y.v, x.d - y.d}; }
ByA operator*(ByA x, ByA y) { return {x.v * y.v, x.d * y.v + x.v * y.d}; }
ByA operator/(ByA x, ByA y) { return {x.v / y.v, (x.d - x.v / y.v * y.d) / y.v}; }

// x^a e^-x / Gamma(a)
ByA front_factor(double a, double x) {
  const double v = std::exp(a * std::log(x) - x - log_gamma(a));
  return {v, v * (std::log(x) - digamma_of(a))};
}
bool is_small(ByA term, ByA sum) {
  constexpr double tiny = 1e-17;
  return std::abs(term.v) <= tiny * std::abs(sum.v) && std::abs(term.d) <= tiny * std::abs(sum.d);
}
// igamma by its power series, for x below a + 1.
ByA igamma_series(double a, double x) {
  ByA term = ByA{1} / ByA{a, 1}, sum = term;
  for (int n = 1; n < most_terms && !is_small(term, sum); ++n) {
    term = term * ByA{x} / ByA{a + n, 1};
    sum = sum + term;
  }
  return front_factor(a, x) * sum;
}
// igammac by its continued fraction (Lentz), for larger x.
ByA igammac_fraction(double a, double x) {
  constexpr double never_zero = 1e-300;
  ByA b{x + 1 - a, -1}, c{1 / never_zero}, d = ByA{1} / b, h = d;
  for (int i = 1; i < most_terms; ++i) {
    const ByA an = ByA{-double(i)} * ByA{i - a, -1};
    b = b + ByA{2};
    d = an * d + b;
    if (d.v == 0) d.v = never_zero;
    c = b + an / c;
    if (c.v == 0) c.v = never_zero;
    d = ByA{1} / d;
    const ByA change = d * c;
    h = h * change;
    if (std::abs(change.v - 1) < 1e-16 && std::abs(change.d) < 1e-16) break;
  }
  return front_factor(a, x) * h;
}
ByA igamma_both(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0) return {nan_value, nan_value};
  if (x == 0) return {0};
  if (std::isinf(x)) return {1};
  return x < a + 1 ? igamma_series(a, x) : ByA{1} - igammac_fraction(a, x);
}
double igamma_of(double a, double x) { return igamma_both(a, x).v; }
double igammac_of(double a, double x) {
  if (a > 0 && x >= a + 1 && std::isfinite(x)) return igammac_fraction(a, x).v;
  return 1 - igamma_both(a, x).v;
}
double igamma_grad_a_of(double a, double x) { return igamma_both(a, x).d; }
// How a gamma sample x moves with a: its quantile stays.
double random_gamma_grad_of(double a, double x) {
  return x == 0 ? 0 : -igamma_both(a, x).d * x / front_factor(a, x).v;
}

// -------------------------------------------------------------------------------- incomplete beta
double beta_fraction(double a, double b, double x) {
  constexpr double never_zero = 1e-300;
  const auto nonzero = [](double v) { return v == 0 ? never_zero : v; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m < most_terms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return h;
}
double betainc_of(double a, double b, double x) {
  if (std::isnan(a + b + x) || a <= 0 || b <= 0 || x < 0 || x > 1) return nan_value;
  if (x == 0 || x == 1) return x;
  const double log_front =
      log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x);
  if (x < (a + 1) / (a + b + 2)) return std::exp(log_front) * beta_fraction(a, b, x) / a;
  return 1 - std::exp(log_front) * beta_fraction(b, a, 1 - x) / b;
}

// ----------------------------------------------------------------------------------------- Bessel
// e^-|x| I_n(x) for n = 0 or 1: the power series, or the asymptotic one where it has digits enough.
double bessel_ine(double x, int n) {
  const double z = std::abs(x), sign = n == 1 && x < 0 ? -1 : 1;
  if (z < 40) {
    const double q = z * z / 4;
    double term = n == 0 ? 1 : z / 2, sum = term;
    for (int k = 1; k < most_terms && term > 1e-18 * sum; ++k) {
      term *= q / (double(k) * (k + n));
      sum += term;
    }
    return sign * sum * std::exp(-z);
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 30 && std::abs(term) > 1e-18; ++k) {
    term *= -(4.0 * n * n - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k * z);
    sum += term;
  }
  return sign * sum / std::sqrt(2 * std::numbers::pi * z);
}

// ----------------------------------------------------------------------------------------- records
constexpr Domain floating = Domain::floating;

Array bind(const Primitive& p, const Arrays& x) { return p.bind1(x); }
Array digamma_tangent(X x, X t, X) {
  const Array slope = bind(polygamma_p, {const_like(x, 1), x});
  return mul(t, slope);
}
Array no_tangent(X, X, X t, X) {
  fail<RuleError>(
      "polygamma, zeta, igamma_grad_a, random_gamma_grad: no derivative by this operand, got one "
      "of ",
      t.type());
}
Array polygamma_tangent(X n, X x, X t, X) {
  const Array next = add(n, const_like(n, 1));
  const Array slope = bind(polygamma_p, {next, x});
  return mul(t, slope);
}
Array zeta_tangent(X s, X q, X t, X) {
  const Array next = add(s, const_like(s, 1));
  const Array value = bind(zeta_p, {next, q});
  const Array minus_s = neg(s);
  const Array slope = mul(minus_s, value);
  return mul(t, slope);
}
// x^(a-1) e^-x / Gamma(a)
Array gamma_density(X a, X x) {
  const Array less = sub(a, const_like(a, 1));
  const Array power = mul(less, log(x));
  const Array rest = sub(power, x);
  const Array normal = bind(lgamma_p, {a});
  return exp(sub(rest, normal));
}
Array igamma_by_a(X a, X x, X t, X) {
  const Array slope = bind(igamma_grad_a_p, {a, x});
  return mul(t, slope);
}
Array igamma_by_x(X a, X x, X t, X) {
  const Array slope = gamma_density(a, x);
  return mul(t, slope);
}
Array igammac_by_a(X a, X x, X t, X y) { return neg(igamma_by_a(a, x, t, y)); }
Array igammac_by_x(X a, X x, X t, X y) { return neg(igamma_by_x(a, x, t, y)); }
Array bessel_i0e_tangent(X x, X t, X y) {
  const Array next = bind(bessel_i1e_p, {x});
  const Array falling = mul(sign(x), y);
  const Array slope = sub(next, falling);
  return mul(t, slope);
}
// i0e - i1e (sign(x) + 1/x), and 1/2 at 0.
Array bessel_i1e_tangent(X x, X t, X y) {
  const Array is_zero = eq(x, const_like(x, 0));
  const Array one = full_like(x.type(), 1);
  const Array safe = select_n(is_zero, {x, one});
  const Array inverse = div(const_like(x, 1), safe);
  const Array factor = add(sign(safe), inverse);
  const Array falling = mul(y, factor);
  const Array slope = sub(bind(bessel_i0e_p, {safe}), falling);
  const Array half = full_like(x.type(), 0.5);
  const Array chosen = select_n(is_zero, {slope, half});
  return mul(t, chosen);
}

Arrays betainc_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  visit_floating(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const elementwise::Walk walk({x[0].type(), x[1].type(), x[2].type()}, out[0].shape);
    if (result.size() == 0) return;
    elementwise::for_each_row<3>(walk, [&](std::int64_t o, const std::int64_t* at) {
      for (std::int64_t i = 0; i < walk.inner_size; ++i) {
        const auto value = [&](std::size_t k) {
          return static_cast<double>(
              static_cast<Compute<T>>(elements<T>(x[k])[at[k] + i * walk.inner[k]]));
        };
        result.data<T>()[o + i] = elementwise::to_element<T>(
            static_cast<Compute<T>>(betainc_of(value(0), value(1), value(2))));
      }
    });
  });
  return {std::move(result).finish()};
}
// Only the derivative by x has a closed form.
Tangents betainc_tangent(const Arrays& x, const Tangents& dx, const Arrays&, const Params&) {
  if (dx[0] || dx[1]) {
    fail<RuleError>(
        "regularized_incomplete_beta: there is a derivative by x only, got one by a or b");
  }
  const Array a_less = sub(x[0], const_like(x[0], 1));
  const Array b_less = sub(x[1], const_like(x[1], 1));
  const Array log_x = mul(a_less, log(x[2]));
  const Array log_rest = mul(b_less, log1p(neg(x[2])));
  const Array both_logs = add(log_x, log_rest);
  const Array log_a = bind(lgamma_p, {x[0]});
  const Array log_b = bind(lgamma_p, {x[1]});
  const Array log_sum = bind(lgamma_p, {add(x[0], x[1])});
  const Array log_beta = sub(add(log_a, log_b), log_sum);
  const Array slope = exp(sub(both_logs, log_beta));
  return {mul(*dx[2], slope)};
}

// ------------------------------------------------------------------------------------- polynomial
// x, c0, c1, ... -> c0 + x (c1 + x (c2 + ...))
Types polynomial_type(const Types& in, const Params&) {
  if (in.size() < 2)
    fail<TypeError>("polynomial: a coefficient is needed, got ", in.size(), " operands");
  return elementwise::type_of<"polynomial", Domain::number>(in, {});
}
Array polynomial_of(const Array& x, std::span<const Array> coefficients) {
  Array sum = coefficients.back();
  for (std::size_t k = coefficients.size() - 1; k-- > 0;) {
    const Array product = mul(sum, x);
    sum = add(product, coefficients[k]);
  }
  return sum;
}
Array stretched(const Array& y, const Type& out) {  // of a constant alone
  return y.shape() == out.shape ? y : broadcast_in_dim(y, out.shape, {});
}
Arrays polynomial_eval(const Arrays& x, const Params&, const Types& out) {
  return {stretched(polynomial_of(x[0], std::span(x).subspan(1)), out[0])};
}
Tangents polynomial_tangent(const Arrays& x, const Tangents& dx, const Arrays& y,
                            const Params& params) {
  Tangent by_x, by_coefficients;
  if (dx[0] && x.size() > 2) {
    Arrays slopes{x[0]};
    for (std::size_t k = 2; k < x.size(); ++k) {
      slopes.push_back(mul(const_like(x[k], static_cast<double>(k - 1)), x[k]));
    }
    const Array slope = polynomial_p.bind1(slopes, params);
    by_x = mul(*dx[0], slope);
  }
  Arrays changes{x[0]};
  bool any = false;
  for (std::size_t k = 1; k < x.size(); ++k) {
    any = any || dx[k];
    changes.push_back(dx[k] ? *dx[k] : zeros(x[k].type()));
  }
  if (any) by_coefficients = polynomial_p.bind1(changes, params);
  Tangent sum = add_tangents(by_x, by_coefficients);
  if (sum) sum = stretched(*sum, y[0].type());
  return {sum};
}
Tangents polynomial_transpose(const Tangents& ct, const Primals& x, const Types& in,
                              const Params&) {
  if (!x[0]) fail<RuleError>("polynomial: not linear in x, got a linear x");
  Tangents out(in.size());
  Array powers = *ct[0];
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (!x[k]) out[k] = unbroadcast(in[k], powers);
    if (k + 1 < in.size()) powers = mul(powers, *x[0]);
  }
  return out;
}

Array log2_tangent(X x, X t, X) {
  const Array two = log(const_like(x, 2));
  const Array slope = mul(x, two);
  return div(t, slope);
}

// ------------------------------------------------------------------------------------ bits, order
constexpr auto set_bits = [](auto a) {
  using T = decltype(a);
  return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
};
constexpr auto leading_zeros = [](auto a) {
  using T = decltype(a);
  return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
};
// An integer with the total order of floating-point numbers: -NaN, -inf, ..., -0, 0, ..., inf, NaN.
template <class T>
auto ordered(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
    const auto bits = std::bit_cast<Bits>(v);
    return bits < 0 ? static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max()) : bits;
  } else {
    return v;
  }
}

constexpr ParamRule polynomial_rules[] = {{"unroll", form::none | form::integer, absent}};

template <auto f>
constexpr auto rounded =
    [](auto... v) { return static_cast<std::common_type_t<decltype(v)...>>(f(v...)); };

constexpr Primitive evaluated(Primitive p) {  // elementwise kinds are those with machine code
  p.kind = Kind::index;
  return p;
}

}  // namespace

// clang-format off
constinit const Primitive
    lgamma_p    = evaluated(unary<"lgamma", floating,
                    [](X x, X t, X) { const Array k = bind(digamma_p, {x}); return mul(t, k); },
                    rounded<log_gamma>>),
    digamma_p   = evaluated(unary<"digamma", floating, digamma_tangent, rounded<digamma_of>>),
    polygamma_p = evaluated(binary<"polygamma", floating, no_tangent, polygamma_tangent, rounded<polygamma_of>>),
    zeta_p      = evaluated(binary<"zeta", floating, no_tangent, zeta_tangent, rounded<zeta_of>>),
    igamma_p    = evaluated(binary<"igamma", floating, igamma_by_a, igamma_by_x, rounded<igamma_of>>),
    igammac_p   = evaluated(binary<"igammac", floating, igammac_by_a, igammac_by_x, rounded<igammac_of>>),
    igamma_grad_a_p     = evaluated(binary<"igamma_grad_a", floating, no_tangent, no_tangent,
                            rounded<igamma_grad_a_of>>),
    random_gamma_grad_p = evaluated(binary<"random_gamma_grad", floating, no_tangent, no_tangent,
                            rounded<random_gamma_grad_of>>),
    bessel_i0e_p = evaluated(unary<"bessel_i0e", floating, bessel_i0e_tangent,
                     rounded<[](double v) { return bessel_ine(v, 0); }>>),
    bessel_i1e_p = evaluated(unary<"bessel_i1e", floating, bessel_i1e_tangent,
                     rounded<[](double v) { return bessel_ine(v, 1); }>>),
    log2_p  = evaluated(unary<"log2", floating, log2_tangent, [](auto v) { return std::log2(v); }>),
    population_count_p = evaluated(step_unary<"population_count", Domain::integer, set_bits>),
    clz_p   = evaluated(step_unary<"clz", Domain::integer, leading_zeros>),
    lt_to_p = evaluated(step_binary<"lt_to", Domain::any,
                [](auto a, auto b) -> bool { return ordered(a) < ordered(b); }, true>),
    le_to_p = evaluated(step_binary<"le_to", Domain::any,
                [](auto a, auto b) -> bool { return ordered(a) <= ordered(b); }, true>),
    polynomial_p = {.name = "polynomial",
                    .kind = Kind::index,
                    .type = polynomial_type,
                    .eval = polynomial_eval,
                    .tangent = polynomial_tangent,
                    .transpose = polynomial_transpose,
                    .batch = elementwise::batch,
                    .param_rules = polynomial_rules},
    regularized_incomplete_beta_p = {.name = "regularized_incomplete_beta",
                                     .kind = Kind::index,
                                     .type = elementwise::type_of<"regularized_incomplete_beta", floating>,
                                     .eval = betainc_eval,
                                     .tangent = betainc_tangent,
                                     .batch = elementwise::batch,
                                     .arity = 3};
// clang-format on

}  // namespace reprise
