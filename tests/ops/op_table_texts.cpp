// Primitives that only programs read from texts have: no function of the library makes them.
#include "ops/op_table.h"
#include "ops/random.h"
#include "ops/records.h"
#include "ops/scatter.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise::op_table {
namespace {

Function bound(const Primitive& p, Params params = {}) {
  return [&p, params](const Arrays& x) { return p.bind(x, params); };
}
Row elementwise(const Primitive& p, Reference reference, std::vector<In> in, double ulps = 16) {
  const std::size_t operands = in.size();
  return {.name = p.name,
          .f = bound(p),
          .in = std::move(in),
          .reference = std::move(reference),
          .primitive = &p,
          .ulps = ulps,
          .variants = scalar_and_empty(operands)};
}
Row with(Row row, Dtypes dtypes, Derivative derivative) {
  row.dtypes = std::move(dtypes);
  row.derivative = derivative;
  return row;
}
In between(double low, double high) { return {.shape = {2, 3}, .low = low, .high = high}; }

double trigamma_of(double x) {  // by many terms and the integral of the rest
  double sum = 0;
  for (int k = 0; k < 200000; ++k) sum += 1 / ((x + k) * (x + k));
  return sum + 1 / (x + 200000 - 0.5);
}
double digamma_of(double x) {
  constexpr double h = 1e-5;
  const double slope = (std::lgamma(x + h) - std::lgamma(x - h)) / (2 * h);
  return slope;
}
// Simpson's rule.
double integral(double from, double to, const std::function<double(double)>& f) {
  constexpr int n = 4000;
  const double h = (to - from) / n;
  double sum = f(from) + f(to);
  for (int i = 1; i < n; ++i) sum += f(from + i * h) * (i % 2 == 0 ? 2 : 4);
  return sum * h / 3;
}
double igamma_of(double a, double x) {
  return integral(0, x, [a](double t) { return t == 0 ? 0 : std::pow(t, a - 1) * std::exp(-t); }) /
         std::tgamma(a);
}
double bessel_of(double x, int n) {  // Bessel's integral
  const double pi = std::acos(-1.0);
  return std::exp(-std::fabs(x)) *
         integral(0, pi, [=](double t) { return std::exp(x * std::cos(t)) * std::cos(n * t); }) /
         pi;
}

void add_gamma(Rows& rows) {
  const Derivative first = Derivative::first, none = Derivative::none;
  const Dtypes single = {float32, float16, bfloat16};  // the formulas here are not exact to f64
  rows.push_back(elementwise(lgamma_p, each(std::lgamma), {between(0.5, 4)}, 64));
  rows.push_back(
      with(elementwise(digamma_p, each(digamma_of), {between(1.6, 4)}, 64), single, first));
  rows.push_back(
      with(elementwise(polygamma_p, each([](double, double x) { return trigamma_of(x); }),
                       {{.shape = {2, 3}, .fixed = {1, 1, 1, 1, 1, 1}}, between(0.5, 4)}, 64),
           single, none));
  rows.back().variants = {};
  rows.push_back(
      with(elementwise(zeta_p, each([](double, double q) { return trigamma_of(q); }),
                       {{.shape = {2, 3}, .fixed = {2, 2, 2, 2, 2, 2}}, between(0.5, 4)}, 64),
           single, none));
  rows.back().variants = {};
  const std::vector<In> two_positive{between(1.5, 3), between(0.5, 4)};
  rows.push_back(with(elementwise(igamma_p, each(igamma_of), two_positive, 64), single, first));
  rows.push_back(
      with(elementwise(igammac_p, each([](double a, double x) { return 1 - igamma_of(a, x); }),
                       two_positive, 256),
           single, first));
  const auto by_a = [](double a, double x) {
    return (igamma_of(a + 1e-3, x) - igamma_of(a - 1e-3, x)) / 2e-3;
  };
  rows.push_back(with(elementwise(igamma_grad_a_p, each(by_a), two_positive, 256), single, none));
  rows.push_back(with(
      elementwise(random_gamma_grad_p, each([](double a, double x) {
                    const double slope = (igamma_of(a + 1e-3, x) - igamma_of(a - 1e-3, x)) / 2e-3;
                    return -slope * std::tgamma(a) / (std::pow(x, a - 1) * std::exp(-x));
                  }),
                  two_positive, 256),
      single, none));
  rows.push_back(with(elementwise(
                          regularized_incomplete_beta_p,
                          [](const Many& x) {
                            return Many{tabulate(x[2].shape, [&](const Shape& i) {
                              const double a = x[0].at(i), b = x[1].at(i);
                              const auto f = [=](double t) {
                                return std::pow(t, a - 1) * std::pow(1 - t, b - 1);
                              };
                              return integral(0, x[2].at(i), f) * std::tgamma(a + b) /
                                     (std::tgamma(a) * std::tgamma(b));
                            })};
                          },
                          {between(2, 4), between(2, 4), between(0.1, 0.9)}, 256),
                      single, none));
  rows.push_back(with(elementwise(bessel_i0e_p, each([](double x) { return bessel_of(x, 0); }),
                                  {between(-4, 4)}, 64),
                      floats, Derivative::smooth));
  rows.push_back(with(elementwise(bessel_i1e_p, each([](double x) { return bessel_of(x, 1); }),
                                  {between(0.3, 4)}, 64),
                      floats, Derivative::smooth));
}

void add_arithmetic(Rows& rows) {
  const Derivative none = Derivative::none;
  rows.push_back(elementwise(log2_p, each(std::log2), {between(0.3, 3)}));
  rows.push_back(with(
      elementwise(one_minus_square_p, each([](double x) { return 1 - x * x; }), {between(-2, 2)}),
      floats, Derivative::smooth));
  rows.push_back(with(elementwise(population_count_p, each([](double x) {
                                    return double(std::popcount(static_cast<unsigned>(x)));
                                  }),
                                  {{.shape = {3}, .fixed = {0, 5, 127}}}),
                      integers, none));
  rows.back().variants = {};
  rows.push_back(with(
      elementwise(clz_p, each([](double x) { return x == 0 ? 8.0 : 7 - std::floor(std::log2(x)); }),
                  {{.shape = {3}, .fixed = {0, 5, 127}}}),
      {uint8, int8}, none));
  rows.back().variants = {};
  rows.push_back(
      with(elementwise(lt_to_p, each([](double a, double b) { return a < b ? 1.0 : 0.0; }),
                       {between(-2, 2), between(-2, 2)}),
           everything, none));
  rows.push_back(
      with(elementwise(le_to_p, each([](double a, double b) { return a <= b ? 1.0 : 0.0; }),
                       {between(-2, 2), between(-2, 2)}),
           everything, none));
  const auto cubic = [](const Many& x) {
    return Many{tabulate(x[0].shape, [&](const Shape& i) {
      const double v = x[0].at(i);
      return x[1].at(i) + v * (x[2].at(i) + v * x[3].at(i));
    })};
  };
  rows.push_back(elementwise(polynomial_p, cubic,
                             {between(-1, 1), between(-1, 1), between(-1, 1), between(-1, 1)}, 32));
}

void add_others(Rows& rows) {
  const Derivative none = Derivative::none;
  rows.push_back({.name = "optimization_barrier",
                  .f = bound(optimization_barrier_p),
                  .in = {{.shape = {2}}, {.shape = {3}}},
                  .reference = [](const Many& x) { return x; },
                  .primitive = &optimization_barrier_p});
  rows.push_back({.name = "reduce_xor",
                  .f = bound(reduce_xor_p, {{"axes", Ints{0}}}),
                  .in = {{.shape = {3, 2}, .fixed = {1, 2, 3, 4, 5, 6}}},
                  .reference =
                      [](const Many&) {
                        return Many{Numbers{{2}, {7, 0}}};
                      },
                  .primitive = &reduce_xor_p,
                  .dtypes = integers,
                  .derivative = none});
  for (const bool reverse : {false, true}) {
    rows.push_back({.name = reverse ? "cumlogsumexp, reversed" : "cumlogsumexp",
                    .f = bound(cumlogsumexp_p, {{"axis", std::int64_t{1}}, {"reverse", reverse}}),
                    .in = {{.shape = {2, 5}}},
                    .reference =
                        [reverse](const Many& x) {
                          return Many{tabulate({2, 5}, [&](const Shape& i) {
                            double sum = 0;
                            for (std::int64_t k = 0; k < 5; ++k) {
                              if (reverse ? k >= i[1] : k <= i[1])
                                sum += std::exp(x[0].at({i[0], k}));
                            }
                            return std::log(sum);
                          })};
                        },
                    .primitive = &cumlogsumexp_p,
                    .ulps = 32});
  }
  const lax::ScatterDimensionNumbers rows_of{
      .update_window_dims = {1}, .inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}};
  rows.push_back({.name = "scatter-sub",
                  .f = bound(scatter_sub_p, scatter_params(nullptr, rows_of, {})),
                  .in = {{.shape = {3, 2}},
                         {.shape = {2, 1}, .dtype = int32, .fixed = {2, 2}},
                         {.shape = {2, 2}}},
                  .reference =
                      [](const Many& x) {
                        return Many{tabulate({3, 2}, [&](const Shape& i) {
                          const double taken = x[2].at({0, i[1]}) + x[2].at({1, i[1]});
                          return x[0].at(i) - (i[0] == 2 ? taken : 0);
                        })};
                      },
                  .primitive = &scatter_sub_p});
  rows.push_back({.name = "platform_index",
                  .f = bound(platform_index_p,
                             {{"platforms", std::string("(('tpu',), ('cuda', 'cpu'), None)")}}),
                  .in = {},
                  .reference =
                      [](const Many&) {
                        return Many{Numbers{{}, {1}}};
                      },
                  .primitive = &platform_index_p,
                  .dtypes = {int32},
                  .derivative = none});
  rows.push_back(
      {.name = "empty",
       .f = bound(empty_p, {{"dtype", float32}, {"out_sharding", None{}}, {"shape", Ints{2}}}),
       .in = {},
       .reference =
           [](const Many&) {
             return Many{Numbers{{2}, {0, 0}}};
           },
       .primitive = &empty_p,
       .dtypes = {float32},
       .derivative = none});
  rows.push_back(
      {.name = "random_gamma of a key, the same for every mapped key",
       .f =
           [](const Arrays& x) {
             const Array keys = lax::random_wrap(x[0]);
             return Arrays{random_gamma_p.bind1({keys, x[1]}, {{"log_space", false}})};
           },
       .in = {{.shape = {2}, .dtype = uint32, .fixed = {0, 0}},
              {.shape = {3}, .dtype = float32, .fixed = {2, 2, 2}}},
       // of jax.random
       .reference =
           [](const Many&) {
             return Many{Numbers{{3}, {1.5897877216339111, 1.7599413394927979, 1.12900710105896}}};
           },
       .primitive = &random_gamma_p,
       .dtypes = {float32},
       .derivative = none,
       .ulps = 64});
  rows.push_back({.name = "random_clone",
                  .f =
                      [](const Arrays& x) {
                        const Array keys = lax::random_wrap(x[0]);
                        return Arrays{lax::random_unwrap(random_clone_p.bind1({keys}))};
                      },
                  .in = {{.shape = {3, 2}, .dtype = uint32}},
                  .reference = [](const Many& x) { return x; },
                  .primitive = &random_clone_p,
                  .dtypes = {uint32},
                  .derivative = none});
}

}  // namespace

Rows text_rows() {
  Rows rows;
  add_gamma(rows);
  add_arithmetic(rows);
  add_others(rows);
  return rows;
}

}  // namespace reprise::op_table
