// Functions in numpy style: built from primitives, so what counts is that the whole fits together.
#include "ops/op_table.h"
#include "reprise/ops.h"

#include <cmath>

namespace reprise::op_table {
namespace {

using Variants = std::vector<std::vector<Shape>>;

Row unary(const char* name, Array (*f)(Operand), double (*formula)(double), double low,
          double high) {
  return {.name = name,
          .f = one(f),
          .in = {{.shape = {2, 3}, .low = low, .high = high}},
          .reference = each(formula),
          .ulps = 16,
          .variants = scalar_and_empty()};
}
Row binary(const char* name, Array (*f)(Operand, Operand), double (*formula)(double, double),
           double low = 0.4, double high = 2) {
  return {.name = name,
          .f = two(f),
          .in = {{.shape = {2, 3}}, {.shape = {2, 3}, .low = low, .high = high}},
          .reference = each(formula),
          .ulps = 16,
          .variants = {{{}, {}}, {{0}, {0}}, {{}, {2, 3}}, {{2, 1}, {1, 3}}, {{1, 3}, {}}}};
}
double floor_mod(double a, double b) { return a - b * std::floor(a / b); }

void add_elementwise(Rows& rows) {
  rows.push_back(binary("add", add, [](double a, double b) { return a + b; }));
  rows.push_back(binary("subtract", subtract, [](double a, double b) { return a - b; }));
  rows.push_back(binary("multiply", multiply, [](double a, double b) { return a * b; }));
  rows.push_back(binary("divide", divide, [](double a, double b) { return a / b; }));
  rows.push_back(binary("hypot", hypot, [](double a, double b) { return std::hypot(a, b); }));
  rows.push_back(binary("logaddexp", logaddexp,
                        [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }));
  rows.push_back(binary(
      "maximum", maximum, [](double a, double b) { return std::fmax(a, b); }, 2, 3));
  rows.push_back(binary(
      "fmin", fmin, [](double a, double b) { return std::fmin(a, b); }, 2, 3));
  rows.push_back(binary("arctan2", arctan2, [](double a, double b) { return std::atan2(a, b); }));
  Row whole = binary(
      "floor_divide", floor_divide, [](double a, double b) { return std::floor(a / b); }, 3, 4);
  whole.dtypes = {float64, float32};
  rows.push_back(whole);
  Row rest = binary("remainder", remainder, floor_mod, 3, 4);
  rest.in[0].low = 0.5;
  rows.push_back(rest);
  Row power_row = binary("power", power, [](double a, double b) { return std::pow(a, b); });
  power_row.in[0].low = 0.4;
  rows.push_back(power_row);
}
void add_functions(Rows& rows) {
  rows.push_back(unary("log2", log2, std::log2, 0.3, 3));
  rows.push_back(unary("log10", log10, std::log10, 0.3, 3));
  rows.push_back(unary(
      "reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.3, 3));
  rows.push_back(unary(
      "logit", logit, [](double x) { return std::log(x / (1 - x)); }, 0.2, 0.8));
  rows.push_back(unary(
      "deg2rad", deg2rad, [](double x) { return x * std::acos(-1.0) / 180; }, -90, 90));
  rows.push_back(unary("trunc", trunc, std::trunc, 1.1, 1.9));
}
void add_choices(Rows& rows) {
  rows.push_back({.name = "clip",
                  .f = [](const Arrays& x) { return Arrays{clip(x[0], -1.0, 1.1)}; },
                  .in = {{.shape = {3, 4}, .fill = Fill::distinct}},
                  .reference = each([](double x) { return std::fmin(1.1, std::fmax(-1, x)); }),
                  .dtypes = {float64, float32},
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "nan_to_num",
                  .f = [](const Arrays& x) { return Arrays{nan_to_num(x[0], 7.0, 8.0, 9.0)}; },
                  .in = {{.shape = {4}, .fixed = {1.5, NAN, INFINITY, -INFINITY}}},
                  .reference = each([](double x) {
                    return std::isnan(x) ? 7.0 : std::isinf(x) ? (x > 0 ? 8.0 : 9.0) : x;
                  }),
                  .derivative = Derivative::none});
  rows.push_back({.name = "where",
                  .f = [](const Arrays& x) { return Arrays{where(x[0], x[1], x[2])}; },
                  .in = {{.shape = {2, 3}, .dtype = bool_, .fixed = {1, 0, 0, 1, 1}},
                         {.shape = {2, 3}},
                         {.shape = {2, 3}}},
                  .reference =
                      [](const Many& x) {
                        return Many{tabulate(x[0].shape, [&](const Shape& i) {
                          return x[0].at(i) != 0 ? x[1].at(i) : x[2].at(i);
                        })};
                      },
                  .dtypes = everything,
                  .variants = {{{}, {}, {}}, {{0, 2}, {0, 2}, {0, 2}}}});
}

// ------------------------------------------------------------------------------------- statistics
using Statistic = double (*)(const std::vector<double>&);
double mean_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}
double var_of(const std::vector<double>& v) {
  const double m = mean_of(v);
  double sum = 0;
  for (double x : v) sum += (x - m) * (x - m);
  return sum / static_cast<double>(v.size());
}
double std_of(const std::vector<double>& v) { return std::sqrt(var_of(v)); }
double logsumexp_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += std::exp(x);
  return std::log(sum);
}
// The statistic of each row of the last axis; kept with size 1 if wanted.
Reference by_rows(Statistic f, bool keepdims) {
  return [=](const Many& x) {
    Shape shape = x[0].shape;
    const std::int64_t n = shape.back();
    shape.back() = 1;
    if (!keepdims) shape.pop_back();
    return Many{tabulate(shape, [&](Shape i) {
      if (!keepdims) i.push_back(0);
      std::vector<double> row;
      for (i.back() = 0; i.back() < n; ++i.back()) row.push_back(x[0].at(i));
      return f(row);
    })};
  };
}
void add_statistics(Rows& rows) {
  const auto by_row = [&](const char* name, std::function<Array(const Array&, bool)> f,
                          Statistic formula) {
    for (const bool keepdims : {false, true}) {
      rows.push_back({.name = std::string(name) + (keepdims ? ", kept" : ""),
                      .f = [=](const Arrays& x) { return Arrays{f(x[0], keepdims)}; },
                      .in = {{.shape = {3, 4}}},
                      .reference = by_rows(formula, keepdims),
                      .ulps = 64,
                      .variants = {{{4}}, {{0, 4}}}});
    }
  };
  by_row(
      "mean", [](const Array& x, bool k) { return mean(x, -1, k); }, mean_of);
  by_row(
      "var", [](const Array& x, bool k) { return var(x, -1, k); }, var_of);
  by_row(
      "std", [](const Array& x, bool k) { return std_(x, -1, k); }, std_of);
  by_row(
      "logsumexp", [](const Array& x, bool k) { return logsumexp(x, -1, k); }, logsumexp_of);
  rows.push_back({.name = "sum of everything",
                  .f = [](const Arrays& x) { return Arrays{sum(x[0])}; },
                  .in = {{.shape = {3, 4}}},
                  .reference =
                      [](const Many& x) {
                        double total = 0;
                        for (double v : x[0].values) total += v;
                        return Many{{{}, {total}}};
                      },
                  .ulps = 64,
                  .variants = scalar_and_empty()});
}

// --------------------------------------------------------------------------------------- products
// Sums of products by letters: every letter runs over all its values.
Reference by_letters(const std::string& inputs, const std::string& output) {
  return [=](const Many& x) {
    std::string letters;
    Shape sizes;
    std::size_t operand = 0, axis = 0;
    for (char c : inputs) {
      if (c == ',') {
        ++operand;
        axis = 0;
        continue;
      }
      if (letters.find(c) == std::string::npos) {
        letters += c;
        sizes.push_back(x[operand].shape[axis]);
      }
      ++axis;
    }
    const auto pick = [&](const std::string& text, const Shape& values) {
      Shape result;
      for (char c : text) result.push_back(values[letters.find(c)]);
      return result;
    };
    Numbers result = tabulate(pick(output, sizes), [](const Shape&) { return 0.0; });
    for_each_index(sizes, [&](const Shape& values) {
      double product = 1;
      std::size_t start = 0;
      for (const Numbers& factor : x) {
        const std::size_t end = std::min(inputs.find(',', start), inputs.size());
        product *= factor.at(pick(inputs.substr(start, end - start), values));
        start = end + 1;
      }
      result.at(pick(output, values)) += product;
    });
    return Many{result};
  };
}
void add_products(Rows& rows) {
  const auto product = [&](const std::string& name, Function f, const std::vector<Shape>& shapes,
                           const std::string& inputs, const std::string& output,
                           Variants variants = {}) {
    std::vector<In> in;
    for (const Shape& s : shapes) in.push_back({.shape = s});
    rows.push_back({.name = name,
                    .f = std::move(f),
                    .in = in,
                    .reference = by_letters(inputs, output),
                    .ulps = 64,
                    .variants = std::move(variants)});
  };
  const auto letters = [&](const std::string& inputs, const std::string& output,
                           const std::vector<Shape>& shapes, Variants variants = {}) {
    const std::string text = inputs + "->" + output;
    product(
        "einsum " + text, [=](const Arrays& x) { return Arrays{einsum(text, x)}; }, shapes, inputs,
        output, std::move(variants));
  };
  const Function matrix = [](const Arrays& x) { return Arrays{matmul(x[0], x[1])}; };
  product("matmul", matrix, {{2, 3}, {3, 4}}, "ij,jk", "ik", {{{0, 3}, {3, 2}}, {{2, 0}, {0, 3}}});
  product("matmul, batched", matrix, {{2, 2, 3}, {2, 3, 2}}, "bij,bjk", "bik");
  product("matmul of vectors", matrix, {{3}, {3}}, "i,i", "");
  product(
      "dot", [](const Arrays& x) { return Arrays{dot(x[0], x[1])}; }, {{2, 3}, {4, 3, 2}}, "ij,kjl",
      "ikl");
  product(
      "tensordot", [](const Arrays& x) { return Arrays{tensordot(x[0], x[1], 2)}; },
      {{2, 3, 2}, {3, 2, 4}}, "aij,ijb", "ab");
  product(
      "inner", [](const Arrays& x) { return Arrays{inner(x[0], x[1])}; }, {{2, 3}, {4, 3}}, "ij,kj",
      "ik");
  product("outer", [](const Arrays& x) { return Arrays{outer(x[0], x[1])}; }, {{2}, {3}}, "i,j",
          "ij", {{{0}, {3}}});
  letters("ij,jk", "ik", {{2, 3}, {3, 4}}, {{{0, 3}, {3, 4}}});
  letters("bhqd,bhkd", "bhqk", {{2, 2, 3, 2}, {2, 2, 4, 2}});
  letters("ij", "ji", {{2, 3}});
  letters("ij", "", {{2, 3}}, {{{0, 3}}});
  letters("ii", "i", {{3, 3}});
  letters("ij,ij", "", {{2, 3}, {2, 3}});
  letters("ij,jk,kl", "il", {{2, 3}, {3, 2}, {2, 4}});
}

// --------------------------------------------------------------------------------------- indexing
void add_indexing(Rows& rows) {
  const In table{.shape = {4, 3}};
  const In picks{.shape = {5}, .dtype = int32, .fixed = {3, 0, 2, 2, 1}};
  rows.push_back({.name = "take along axis 0",
                  .f = [](const Arrays& x) { return Arrays{take(x[0], x[1], 0)}; },
                  .in = {table, picks},
                  .reference =
                      [](const Many& x) {
                        const Shape shape{x[1].shape[0], x[0].shape[1]};
                        return Many{tabulate(shape, [&](const Shape& i) {
                          return x[0].at({static_cast<std::int64_t>(x[1].at({i[0]})), i[1]});
                        })};
                      },
                  .variants = {{{4, 3}, {0}}, {{4, 0}, {5}}}});
  rows.push_back(
      {.name = "take along axis 1, clipped",
       .f = [](const Arrays& x) { return Arrays{take(x[0], x[1], 1, {.mode = IndexMode::clip})}; },
       .in = {table, picks},
       .reference =
           [](const Many& x) {
             return Many{tabulate({4, 5}, [&](const Shape& i) {
               return x[0].at({i[0], static_cast<std::int64_t>(std::fmin(2, x[1].at({i[1]})))});
             })};
           }});
  rows.push_back({.name = "take_along_axis",
                  .f = [](const Arrays& x) { return Arrays{take_along_axis(x[0], x[1], 0)}; },
                  .in = {table, {.shape = {2, 3}, .dtype = int32, .fixed = {3, 0, 2, 1, 1, 0}}},
                  .reference =
                      [](const Many& x) {
                        return Many{tabulate({2, 3}, [&](const Shape& i) {
                          return x[0].at({static_cast<std::int64_t>(x[1].at(i)), i[1]});
                        })};
                      }});
  rows.push_back({.name = "x[indices]",
                  .f = [](const Arrays& x) { return Arrays{x[0][x[1]]}; },
                  .in = {table, picks},
                  .reference =
                      [](const Many& x) {
                        return Many{tabulate({5, 3}, [&](const Shape& i) {
                          return x[0].at({static_cast<std::int64_t>(x[1].at({i[0]})), i[1]});
                        })};
                      }});
  rows.push_back(
      {.name = "x(1, slice backwards)",
       .f = [](const Arrays& x) { return Arrays{x[0](1, slice(std::nullopt, std::nullopt, -1))}; },
       .in = {table},
       .reference =
           [](const Many& x) {
             return Many{tabulate({3}, [&](const Shape& i) { return x[0].at({1, 2 - i[0]}); })};
           }});
}

// x with the rows that `picks` names changed by the rows of v.
Reference rows_changed(double (*combine)(double, double)) {
  return [=](const Many& x) {
    Numbers result = x[0];
    for_each_index(x[2].shape, [&](const Shape& i) {
      double& element = result.at({static_cast<std::int64_t>(x[1].at({i[0]})), i[1]});
      element = combine(element, x[2].at(i));
    });
    return Many{result};
  };
}
void add_updates(Rows& rows) {
  const std::vector<In> in = {{.shape = {4, 3}, .low = 0.5, .high = 2},
                              {.shape = {3}, .dtype = int32, .fixed = {3, 0, 2}},
                              {.shape = {3, 3}, .low = 3, .high = 4}};
  const auto update = [&](const char* name, Function f, double (*combine)(double, double)) {
    rows.push_back({.name = name,
                    .f = std::move(f),
                    .in = in,
                    .reference = rows_changed(combine),
                    .variants = {{{4, 3}, {0}, {0, 3}}, {{4, 0}, {3}, {3, 0}}}});
  };
  update(
      "at.set", [](const Arrays& x) { return Arrays{x[0].at(x[1]).set(x[2])}; },
      [](double, double b) { return b; });
  update(
      "at.add", [](const Arrays& x) { return Arrays{x[0].at(x[1]).add(x[2])}; },
      [](double a, double b) { return a + b; });
  update(
      "at.multiply",
      [](const Arrays& x) {
        return Arrays{x[0].at(x[1]).multiply(x[2], {.unique_indices = true})};
      },
      [](double a, double b) { return a * b; });
  update(
      "at.min", [](const Arrays& x) { return Arrays{x[0].at(x[1]).min(x[2])}; },
      [](double a, double b) { return std::fmin(a, b); });
  update(
      "at.max", [](const Arrays& x) { return Arrays{x[0].at(x[1]).max(x[2])}; },
      [](double a, double b) { return std::fmax(a, b); });
}

void add_shapes(Rows& rows) {
  rows.push_back({.name = "roll",
                  .f = [](const Arrays& x) { return Arrays{roll(x[0], 1, 1)}; },
                  .in = {{.shape = {2, 3}}},
                  .reference =
                      [](const Many& x) {
                        return Many{tabulate(x[0].shape, [&](const Shape& i) {
                          const std::int64_t n = x[0].shape[1];
                          return x[0].at({i[0], (i[1] + n - 1) % n});
                        })};
                      },
                  .variants = {{{0, 3}}, {{2, 0}}}});
  rows.push_back({.name = "repeat",
                  .f = [](const Arrays& x) { return Arrays{repeat(x[0], 2, 0)}; },
                  .in = {{.shape = {2, 3}}},
                  .reference =
                      [](const Many& x) {
                        Shape shape = x[0].shape;
                        shape[0] *= 2;
                        return Many{tabulate(shape, [&](const Shape& i) {
                          return x[0].at({i[0] / 2, i[1]});
                        })};
                      },
                  .variants = {{{0, 3}}, {{2, 0}}}});
  const auto triangle = [&](const char* name, Array (*f)(Operand, std::int64_t), bool below) {
    rows.push_back({.name = name,
                    .f = [f](const Arrays& x) { return Arrays{f(x[0], 1)}; },
                    .in = {{.shape = {3, 4}}},
                    .reference =
                        [below](const Many& x) {
                          return Many{tabulate(x[0].shape, [&](const Shape& i) {
                            const bool keeps = below ? i[1] - i[0] <= 1 : i[1] - i[0] >= 1;
                            return keeps ? x[0].at(i) : 0;
                          })};
                        },
                    .dtypes = numbers,
                    .variants = {{{0, 3}}, {{2, 0}}}});
  };
  triangle("tril", tril, true);
  triangle("triu", triu, false);
}

}  // namespace

Rows numpy_rows() {
  Rows rows;
  add_elementwise(rows);
  add_functions(rows);
  add_choices(rows);
  add_statistics(rows);
  add_products(rows);
  add_indexing(rows);
  add_updates(rows);
  add_shapes(rows);
  return rows;
}

}  // namespace reprise::op_table
