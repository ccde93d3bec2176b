// Elementwise functions of one operand.
#include "ops/op_table.h"
#include "ops/records.h"

#include <cmath>

namespace reprise::op_table {
namespace {

Row unary(const Primitive& p, Array (*f)(Operand), double (*formula)(double), double low = -2,
          double high = 2, double ulps = 4) {
  return {.name = p.name,
          .f = one(f),
          .in = {{.shape = {2, 3}, .low = low, .high = high}},
          .reference = each(formula),
          .primitive = &p,
          .ulps = ulps,
          .variants = scalar_and_empty()};
}
Row with(Row row, Dtypes dtypes, Derivative derivative = Derivative::smooth) {
  row.dtypes = std::move(dtypes);
  row.derivative = derivative;
  return row;
}
Row named(Row row, const char* name) {
  row.name = name;
  return row;
}

double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double logistic_of(double x) { return 1 / (1 + std::exp(-x)); }
double half_even(double x) { return std::nearbyint(x); }

// The root of erf(y) = x by Newton's method.
double erf_inv_of(double x) {
  const double slope_at_0 = 2 / std::sqrt(std::acos(-1.0));
  double y = 0;
  for (int i = 0; i < 60; ++i) y -= (std::erf(y) - x) / (slope_at_0 * std::exp(-y * y));
  return y;
}

Row power_row(std::int64_t n, double (*formula)(double)) {
  return {.name = "integer_pow " + std::to_string(n),
          .f = [n](const Arrays& x) { return Arrays{lax::integer_pow(x[0], n)}; },
          .in = {{.shape = {2, 3}, .low = 0.4, .high = 1.6}},
          .reference = each(formula),
          .primitive = &integer_pow_p,
          .dtypes = n < 0 ? floats : numbers,
          .ulps = 16,
          .variants = scalar_and_empty()};
}

// Numbers where a formula over double is not the whole story.
Row special_row(const Primitive& p, Array (*f)(Operand), double (*formula)(double),
                std::vector<double> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return {.name = std::string(p.name) + " of special numbers",
          .f = one(f),
          .in = {{.shape = {n}, .fixed = std::move(values)}},
          .reference = each(formula),
          .primitive = &p,
          .derivative = Derivative::none};
}

void add_special(Rows& rows) {
  const double inf = INFINITY, nan = NAN;
  rows.push_back(special_row(exp_p, lax::exp, std::exp, {0.0, inf, -inf, nan, 1000}));
  rows.push_back(special_row(log_p, lax::log, std::log, {0.0, 1, -1, inf, nan}));
  rows.push_back(special_row(sqrt_p, lax::sqrt, std::sqrt, {0.0, 4, -1, inf, nan}));
  rows.push_back(special_row(abs_p, lax::abs, std::fabs, {-0.0, -inf, inf, nan}));
  rows.push_back(special_row(sign_p, lax::sign,
                             [](double x) { return std::isnan(x) ? x : sign_of(x); },
                             {0.0, -inf, inf, nan}));
  rows.push_back(special_row(floor_p, lax::floor, std::floor, {-0.5, 0.5, -2, inf, -inf, nan}));
  rows.push_back(special_row(tanh_p, lax::tanh, std::tanh, {0, inf, -inf, 50, nan}));
  rows.push_back(special_row(logistic_p, lax::logistic, logistic_of, {0, inf, -inf, 200, -5, nan}));
  rows.push_back(special_row(is_finite_p, lax::is_finite,
                             [](double x) { return std::isfinite(x) ? 1.0 : 0.0; },
                             {0, inf, -inf, nan, 3}));
  rows.push_back(special_row(erf_inv_p, lax::erf_inv,
                             [](double x) { return x == 0 ? 0 : x * INFINITY; }, {0, 1, -1, nan}));
}

void add_round(Rows& rows) {
  rows.push_back({.name = "round, ties away from zero",
                  .f = [](const Arrays& x) { return Arrays{lax::round(x[0])}; },
                  .in = {{.shape = {8}, .fixed = {-2.5, -1.4, -0.5, 0.2, 0.5, 1.5, 2.5, 3.75}}},
                  .reference = each([](double x) { return std::round(x); }),
                  .primitive = &round_p,
                  .derivative = Derivative::none,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "round, ties to even",
                  .f =
                      [](const Arrays& x) {
                        return Arrays{lax::round(x[0], lax::RoundingMethod::to_nearest_even)};
                      },
                  .in = {{.shape = {8}, .fixed = {-2.5, -1.4, -0.5, 0.2, 0.5, 1.5, 2.5, 3.75}}},
                  .reference = each(half_even),
                  .primitive = &round_p,
                  .derivative = Derivative::none,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "round between ties, whose derivative is zero",
                  .f = [](const Arrays& x) { return Arrays{lax::round(x[0])}; },
                  .in = {{.shape = {4}, .low = 0.6, .high = 1.4}},
                  .reference = each([](double x) { return std::round(x); }),
                  .primitive = &round_p});
}

Rows angle_rows() {
  return {
      unary(sin_p, lax::sin, std::sin),
      unary(cos_p, lax::cos, std::cos),
      unary(tan_p, lax::tan, std::tan, -1, 1),
      unary(asin_p, lax::asin, std::asin, -0.8, 0.8),
      unary(acos_p, lax::acos, std::acos, -0.8, 0.8),
      unary(atan_p, lax::atan, std::atan),
      unary(sinh_p, lax::sinh, std::sinh),
      unary(cosh_p, lax::cosh, std::cosh),
      unary(tanh_p, lax::tanh, std::tanh),
      unary(asinh_p, lax::asinh, std::asinh),
      unary(acosh_p, lax::acosh, std::acosh, 1.3, 3),
      unary(atanh_p, lax::atanh, std::atanh, -0.8, 0.8),
  };
}

}  // namespace

Rows unary_rows() {
  const Derivative none = Derivative::none;
  Rows rows = {
      with(unary(neg_p, lax::neg, [](double x) { return -x; }), numbers),
      with(unary(sign_p, lax::sign, sign_of, 0.3, 2), numbers),
      with(unary(abs_p, lax::abs, std::fabs, 0.3, 2), numbers),
      named(unary(abs_p, lax::abs, std::fabs, -2, -0.3), "abs of negative numbers"),
      unary(floor_p, lax::floor, std::floor, 1.1, 1.9),
      unary(ceil_p, lax::ceil, std::ceil, -1.9, -1.1),
      unary(exp_p, lax::exp, std::exp),
      unary(exp2_p, lax::exp2, std::exp2),
      unary(log_p, lax::log, std::log, 0.3, 3),
      unary(log1p_p, lax::log1p, std::log1p, -0.5, 2),
      unary(expm1_p, lax::expm1, std::expm1),
      unary(logistic_p, lax::logistic, logistic_of, -3, 3),
      unary(sqrt_p, lax::sqrt, std::sqrt, 0.3, 3),
      unary(
          rsqrt_p, lax::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.3, 3),
      unary(cbrt_p, lax::cbrt, std::cbrt, 0.3, 3),
      named(unary(cbrt_p, lax::cbrt, std::cbrt, -3, -0.3), "cbrt of negative numbers"),
      with(unary(square_p, lax::square, [](double x) { return x * x; }), numbers),
      unary(erf_p, lax::erf, std::erf),
      unary(erfc_p, lax::erfc, std::erfc),
      unary(erf_inv_p, lax::erf_inv, erf_inv_of, -0.8, 0.8, 64),
      with(unary(is_finite_p, lax::is_finite, [](double) { return 1.0; }), floats, none),
      power_row(0, [](double) { return 1.0; }),
      power_row(1, [](double x) { return x; }),
      power_row(2, [](double x) { return x * x; }),
      power_row(3, [](double x) { return x * x * x; }),
      power_row(7, [](double x) { return std::pow(x, 7); }),
      power_row(-1, [](double x) { return 1 / x; }),
      power_row(-4, [](double x) { return std::pow(x, -4); }),
  };
  rows.push_back(
      with(unary(not_p, lax::bitwise_not, [](double x) { return -x - 1; }), integers, none));
  rows.push_back(
      named(with(unary(not_p, lax::bitwise_not, [](double x) { return 1 - x; }), {bool_}, none),
            "not of bools"));
  Rows angles = angle_rows();
  for (Row& row : angles) rows.push_back(std::move(row));
  add_round(rows);
  add_special(rows);
  return rows;
}

}  // namespace reprise::op_table
