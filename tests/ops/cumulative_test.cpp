#include "ops/mapped_axes.h"
#include "program/print.h"
#include "reprise/lax.h"

#include <cmath>
#include <functional>

namespace reprise {
namespace {

Array waves(Shape shape) { return some_direction(Type{float64, std::move(shape)}, 5); }

using Cumulative = Array (*)(Operand, std::int64_t, bool);
FlatFunction along(Cumulative c, std::int64_t axis, bool reverse) {
  return [=](const Arrays& x) -> Arrays { return {c(x[0], axis, reverse)}; };
}
struct Operation {
  Cumulative function;
  std::function<double(double, double)> combine;
};
const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{
      {lax::cumsum, [](double a, double b) { return a + b; }},
      {lax::cumprod, [](double a, double b) { return a * b; }},
      {lax::cummax, [](double a, double b) { return std::max(a, b); }},
      {lax::cummin, [](double a, double b) { return std::min(a, b); }}};
  return all;
}

TEST_CASE("cumulative operations agree with plain loops in both directions") {
  const std::int64_t n = 150;
  const Array x = waves({2, n, 3});
  const std::vector<double> v = x.to_vector<double>();
  for (const Operation& o : operations()) {
    for (bool reverse : {false, true}) {
      const std::vector<double> got = o.function(x, 1, reverse).to_vector<double>();
      for (std::int64_t i = 0; i < 2; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) {
          double so_far = 0;
          for (std::int64_t step = 0; step < n; ++step) {
            const std::int64_t k = reverse ? n - 1 - step : step;
            const auto at = static_cast<std::size_t>((i * n + k) * 3 + j);
            so_far = step == 0 ? v[at] : o.combine(so_far, v[at]);
            CHECK(got[at] == doctest::Approx(so_far).epsilon(1e-12));
          }
        }
      }
    }
  }
}

TEST_CASE("cumulative operations: derivatives agree with finite differences") {
  for (const Operation& o : operations()) {
    for (bool reverse : {false, true}) {
      for (std::int64_t n : {1, 2, 3, 4, 5, 8, 9}) {
        check_derivatives(along(o.function, 1, reverse), {waves({2, n})});
      }
    }
  }
}

TEST_CASE("cumulative operations map over every axis") {
  for (const Operation& o : operations()) {
    for (std::int64_t at = 0; at <= 2; ++at) {
      check_mapped(along(o.function, 1, false), {counting({3, 2, 4})}, {at});
    }
  }
}

TEST_CASE("cumulative operations take empty axes, integers and half precision") {
  CHECK(lax::cumsum(waves({2, 0}), 1).shape() == Shape{2, 0});
  CHECK(lax::cumprod(waves({0, 2}), 1).shape() == Shape{0, 2});
  CHECK(lax::cumsum(array({1, 2, 3}), 0).to_vector<int>() == std::vector<int>{1, 3, 6});
  CHECK(lax::cummax(array({1, 3, 2}), 0, true).to_vector<int>() == std::vector<int>{3, 3, 2});
  const Array h = array(std::vector<float>(600, 1.0f)).astype(bfloat16);
  CHECK(lax::cumsum(h, 0).to_vector<float>()[599] == 600);
}

TEST_CASE("the transpose of cumsum runs the other way") {
  const Traced t = trace(along(lax::cumsum, 0, false), {Type{float32, {3}}});
  const auto back = [&](const Arrays& ct) -> Arrays {
    return {*backward(*t.program, {std::nullopt}, {ct[0]})[0]};
  };
  CHECK(to_text(*trace(back, {Type{float32, {3}}}).program) ==
        "{ lambda ; a:f32[3]. let b:f32[3] = cumsum[axis=0 reverse=True] a in (b,) }");
}

TEST_CASE("cumulative operations reject axes and dtypes that do not fit") {
  CHECK_THROWS_WITH_AS(
      lax::cumsum(waves({3}), 1),
      doctest::Contains("cumsum: cumulative axis is out of range, got axis 1 of f64[3]"),
      TypeError);
  CHECK_THROWS_AS(lax::cumsum(waves({3}), -1), TypeError);
  CHECK_THROWS_AS(lax::cumsum(waves({}), 0), TypeError);
  CHECK_THROWS_AS(lax::cumprod(array({true}), 0), TypeError);
}

}  // namespace
}  // namespace reprise
