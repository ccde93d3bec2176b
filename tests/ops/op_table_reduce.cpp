// Reductions and running reductions.
#include "ops/op_table.h"
#include "ops/records.h"

#include <cmath>
#include <limits>

namespace reprise::op_table {
namespace {

using Combine = double (*)(double, double);
double sum_of(double a, double b) { return a + b; }
double product_of(double a, double b) { return a * b; }
double larger(double a, double b) { return a < b ? b : a; }
double smaller(double a, double b) { return b < a ? b : a; }
constexpr double inf = std::numeric_limits<double>::infinity();

struct Reduction {
  const Primitive& primitive;
  Array (*f)(Operand, const lax::Ints&);
  double start;
  Combine combine;
  In in;
  Dtypes dtypes;
};
void add_reduction(Rows& rows, const Reduction& r, const Shape& shape, const lax::Ints& axes,
                   const std::vector<std::vector<Shape>>& variants) {
  std::string text;
  for (std::int64_t a : axes) text += " " + std::to_string(a);
  In in = r.in;
  in.shape = shape;
  rows.push_back(
      {.name = std::string(r.primitive.name) + " over" + text,
       .f = [f = r.f, axes](const Arrays& x) { return Arrays{f(x[0], axes)}; },
       .in = {in},
       .reference = [start = r.start, combine = r.combine,
                     axes](const Many& x) { return Many{fold(x[0], axes, start, combine)}; },
       .primitive = &r.primitive,
       .dtypes = r.dtypes,
       .derivative = is_floating(r.dtypes[0]) ? Derivative::smooth : Derivative::none,
       .ulps = 16,
       .variants = variants});
  if (!std::isinf(r.start)) return;
  // The extreme of nothing is infinite: values only.
  Row nothing = rows.back();
  nothing.name += ", of nothing";
  nothing.derivative = Derivative::none;
  nothing.dtypes = floats;
  rows.back().variants.clear();
  rows.push_back(std::move(nothing));
}
void add_reductions(Rows& rows) {
  const In uniform{.low = 0.5, .high = 1.5}, distinct{.fill = Fill::distinct};
  const Reduction reductions[] = {
      {reduce_sum_p, lax::reduce_sum, 0, sum_of, uniform, numbers},
      {reduce_prod_p, lax::reduce_prod, 1, product_of, uniform, numbers},
      {reduce_max_p, lax::reduce_max, -inf, larger, distinct, numbers},
      {reduce_min_p, lax::reduce_min, inf, smaller, distinct, numbers},
      {reduce_and_p, lax::reduce_and, 1, product_of, {}, {bool_}},
      {reduce_or_p, lax::reduce_or, 0, larger, {}, {bool_}}};
  for (const Reduction& r : reductions) {
    add_reduction(rows, r, {2, 3}, {0}, {{{0, 3}}, {{2, 0}}, {{1, 2}}});
    add_reduction(rows, r, {2, 3}, {1}, {{{3, 0}}, {{0, 2}}});
    add_reduction(rows, r, {2, 2, 2}, {0, 2}, {{{2, 0, 1}}, {{0, 2, 2}}});
    add_reduction(rows, r, {2, 3}, {0, 1}, {{{0, 0}}, {{1, 1}}});
    add_reduction(rows, r, {2, 2}, {}, {{{}}, {{0}}});
  }
  const auto zeros = [&](std::vector<double> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    rows.push_back({.name = "reduce_prod with " + std::to_string(n) + " numbers, some zero",
                    .f = [](const Arrays& x) { return Arrays{lax::reduce_prod(x[0], {0})}; },
                    .in = {{.shape = {n}, .fixed = std::move(values)}},
                    .reference = [](const Many& x) { return Many{fold(x[0], {0}, 1, product_of)}; },
                    .primitive = &reduce_prod_p});
  };
  zeros({2, 0, -1.5});
  zeros({0, 3, 0, 2});
  rows.push_back({.name = "reduce_max with NaN",
                  .f = [](const Arrays& x) { return Arrays{lax::reduce_max(x[0], {1})}; },
                  .in = {{.shape = {3, 2}, .fixed = {1, NAN, NAN, 2, -INFINITY, 4}}},
                  .reference =
                      [](const Many& x) {
                        return Many{fold(x[0], {1}, -inf, [](double a, double b) {
                          return std::isnan(a) || std::isnan(b) ? NAN : larger(a, b);
                        })};
                      },
                  .primitive = &reduce_max_p,
                  .derivative = Derivative::none});
}

struct Cumulative {
  const Primitive& primitive;
  Array (*f)(Operand, std::int64_t, bool);
  Combine combine;
  In in;
};
void add_cumulative(Rows& rows) {
  const In uniform{.low = 0.5, .high = 1.5}, distinct{.fill = Fill::distinct};
  const Cumulative all[] = {{cumsum_p, lax::cumsum, sum_of, uniform},
                            {cumprod_p, lax::cumprod, product_of, uniform},
                            {cummax_p, lax::cummax, larger, distinct},
                            {cummin_p, lax::cummin, smaller, distinct}};
  for (const Cumulative& c : all) {
    for (const std::size_t axis : {0u, 1u}) {
      for (const bool reverse : {false, true}) {
        In in = c.in;
        in.shape = {3, 4};
        rows.push_back({.name = std::string(c.primitive.name) + " along " + std::to_string(axis) +
                                (reverse ? ", reversed" : ""),
                        .f =
                            [=, f = c.f](const Arrays& x) {
                              return Arrays{f(x[0], static_cast<std::int64_t>(axis), reverse)};
                            },
                        .in = {in},
                        .reference =
                            [=, combine = c.combine](const Many& x) {
                              return Many{tabulate(x[0].shape, [&](const Shape& i) {
                                Shape at = i;
                                double result = x[0].at(at);
                                const std::int64_t last = reverse ? x[0].shape[axis] - 1 : 0;
                                while (at[axis] != last) {
                                  at[axis] += reverse ? 1 : -1;
                                  result = combine(result, x[0].at(at));
                                }
                                return result;
                              })};
                            },
                        .primitive = &c.primitive,
                        .dtypes = numbers,
                        .ulps = 16,
                        .variants = {{{0, 2}}, {{2, 0}}, {{1, 1}}}});
      }
    }
  }
}

}  // namespace

Rows reduce_rows() {
  Rows rows;
  add_reductions(rows);
  add_cumulative(rows);
  return rows;
}

}  // namespace reprise::op_table
