// Activation functions.
#include "ops/op_table.h"
#include "reprise/nn_functions.h"

#include <cmath>

namespace reprise::op_table {
namespace {

Row activation(const char* name, Array (*f)(Operand), double (*formula)(double), double low = -3,
               double high = 3.2) {
  return {.name = name,
          .f = one(f),
          .in = {{.shape = {2, 3}, .low = low, .high = high, .fill = Fill::distinct}},
          .reference = each(formula),
          .ulps = 16,
          .variants = scalar_and_empty()};
}
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return std::log1p(std::exp(x)); }
double tanh_gelu(double x) {
  const double k = std::sqrt(2 / std::acos(-1.0));
  return x / 2 * (1 + std::tanh(k * (x + 0.044715 * x * x * x)));
}

// Each row of the last axis by itself.
using RowFormula = std::vector<double> (*)(const std::vector<double>&);
Reference by_rows(RowFormula f) {
  return [f](const Many& x) {
    Numbers result = x[0];
    const auto n = static_cast<std::size_t>(x[0].shape.back());
    for (std::size_t start = 0; n > 0 && start < result.values.size(); start += n) {
      const auto first = x[0].values.begin() + static_cast<std::ptrdiff_t>(start);
      const std::vector<double> row = f({first, first + static_cast<std::ptrdiff_t>(n)});
      std::copy(row.begin(), row.end(), result.values.begin() + static_cast<std::ptrdiff_t>(start));
    }
    return Many{result};
  };
}
std::vector<double> softmax_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += std::exp(x);
  std::vector<double> result;
  for (double x : v) result.push_back(std::exp(x) / sum);
  return result;
}
std::vector<double> log_softmax_of(const std::vector<double>& v) {
  std::vector<double> result = softmax_of(v);
  for (double& x : result) x = std::log(x);
  return result;
}
std::vector<double> standardize_of(const std::vector<double>& v) {
  const auto n = static_cast<double>(v.size());
  double mean = 0, square = 0;
  for (double x : v) {
    mean += x / n;
    square += x * x / n;
  }
  std::vector<double> result;
  for (double x : v) result.push_back((x - mean) / std::sqrt(square - mean * mean + 1e-5));
  return result;
}
Row normalisation(const char* name, std::function<Array(const Array&)> f, RowFormula formula) {
  return {.name = name,
          .f = [f](const Arrays& x) { return Arrays{f(x[0])}; },
          .in = {{.shape = {3, 4}, .fill = Fill::distinct}},
          .reference = by_rows(formula),
          .ulps = 64,
          .variants = {{{3}}, {{0, 3}}, {{1, 1}}}};
}

}  // namespace

Rows nn_rows() {
  const auto exact_gelu = [](Operand x) { return nn::gelu(x, false); };
  const auto elu = [](Operand x) { return nn::elu(x); };
  const auto leaky = [](Operand x) { return nn::leaky_relu(x); };
  Rows rows = {
      activation("relu", nn::relu, [](double x) { return std::fmax(x, 0); }),
      activation(
          "relu6", nn::relu6, [](double x) { return std::fmin(6, std::fmax(x, 0)); }, -9, 10),
      activation("sigmoid", nn::sigmoid, sigmoid_of),
      activation("log_sigmoid", nn::log_sigmoid, [](double x) { return -softplus_of(-x); }),
      activation("softplus", nn::softplus, softplus_of),
      activation("silu", nn::silu, [](double x) { return x * sigmoid_of(x); }),
      activation("elu", elu, [](double x) { return x > 0 ? x : std::expm1(x); }),
      activation("leaky_relu", leaky, [](double x) { return x > 0 ? x : 0.01 * x; }),
      activation(
          "gelu", [](Operand x) { return nn::gelu(x); }, tanh_gelu),
      activation("gelu, exact", exact_gelu,
                 [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }),
      normalisation(
          "softmax", [](const Array& x) { return nn::softmax(x); }, softmax_of),
      normalisation(
          "log_softmax", [](const Array& x) { return nn::log_softmax(x); }, log_softmax_of),
      normalisation(
          "standardize", [](const Array& x) { return nn::standardize(x); }, standardize_of),
  };
  rows.push_back({.name = "one_hot",
                  .f = [](const Arrays& x) { return Arrays{nn::one_hot(x[0], 4)}; },
                  .in = {{.shape = {3}, .fixed = {2, 0, 5}}},
                  .reference =
                      [](const Many& x) {
                        Shape shape = x[0].shape;
                        shape.push_back(4);
                        return Many{tabulate(shape, [&](Shape i) {
                          const auto k = static_cast<double>(i.back());
                          i.pop_back();
                          return double(x[0].at(i) == k);
                        })};
                      },
                  .dtypes = {int32, int64, uint8},
                  .derivative = Derivative::none,
                  .variants = {{{}}, {{0}}, {{2, 2}}}});
  return rows;
}

}  // namespace reprise::op_table
