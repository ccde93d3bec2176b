#include "ops/reduce.h"

#include "ops/mapped_axes.h"
#include "ops/window.h"
#include "program/print.h"
#include "reprise/lax.h"

#include <cmath>
#include <functional>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

Array waves(Shape shape, unsigned seed = 1) {
  return some_direction(Type{float64, std::move(shape)}, seed);
}
using Reduction = Array (*)(Operand, const lax::Ints&);
FlatFunction reduction(Reduction r, const lax::Ints& axes) {
  return [=](const Arrays& x) -> Arrays { return {r(x[0], axes)}; };
}
const std::vector<lax::Ints>& axis_lists() {
  static const std::vector<lax::Ints> all{{},     {0},    {1},    {2},      {0, 1},
                                          {1, 2}, {0, 2}, {2, 0}, {0, 1, 2}};
  return all;
}

std::vector<double> naive(const Array& x, const lax::Ints& axes, double start,
                          const std::function<double(double, double)>& combine) {
  const lax::Ints kept = other_axes(x.ndim(), axes);
  const Shape strides = row_major_strides(x.shape());
  const std::vector<double> v = x.to_vector<double>();
  std::vector<double> out;
  for_each_index(sizes_at(x.shape(), kept), [&](const Shape& i) {
    double result = start;
    for_each_index(sizes_at(x.shape(), axes), [&](const Shape& k) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < kept.size(); ++d) at += i[d] * sizes_at(strides, kept)[d];
      for (std::size_t d = 0; d < axes.size(); ++d) at += k[d] * sizes_at(strides, axes)[d];
      result = combine(result, v[static_cast<std::size_t>(at)]);
    });
    out.push_back(result);
  });
  return out;
}
void check_close(const Array& got, const std::vector<double>& expected) {
  const std::vector<double> v = got.to_vector<double>();
  REQUIRE(v.size() == expected.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    CHECK(v[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("reductions over any axes agree with plain loops") {
  const Array x = waves({3, 4, 40});
  for (const lax::Ints& axes : axis_lists()) {
    check_close(lax::reduce_sum(x, axes),
                naive(x, axes, 0, [](double a, double b) { return a + b; }));
    check_close(lax::reduce_prod(x, axes),
                naive(x, axes, 1, [](double a, double b) { return a * b; }));
    check_close(lax::reduce_max(x, axes),
                naive(x, axes, -inf, [](double a, double b) { return std::max(a, b); }));
    check_close(lax::reduce_min(x, axes),
                naive(x, axes, inf, [](double a, double b) { return std::min(a, b); }));
  }
}

TEST_CASE("reductions of nothing give the neutral element") {
  const Array x = waves({2, 0});
  check_numbers(lax::reduce_sum(x, {1}), {0, 0});
  check_numbers(lax::reduce_prod(x, {1}), {1, 1});
  check_numbers(lax::reduce_max(x, {1}), {-inf, -inf});
  check_numbers(lax::reduce_min(x, {1}), {inf, inf});
  CHECK(lax::reduce_sum(x, {0}).shape() == Shape{0});
  const Array i = array(std::vector<std::int32_t>{}, Shape{0});
  CHECK(lax::reduce_max(i, {0}).item<int>() == std::numeric_limits<std::int32_t>::min());
  const Array b = array(std::vector<bool>{}, Shape{0});
  CHECK(lax::reduce_and(b, {0}).item<bool>());
  CHECK_FALSE(lax::reduce_or(b, {0}).item<bool>());
}

TEST_CASE("long f32 sums keep their precision, half precision is summed in f32") {
  const Array tenths = array(std::vector<float>(1000003, 0.1f));
  CHECK(lax::reduce_sum(tenths, {0}).item<double>() == doctest::Approx(100000.3).epsilon(1e-6));
  const Array columns = lax::reshape(array(std::vector<float>(2000000, 0.1f)), {1000000, 2});
  CHECK(lax::reduce_sum(columns, {0}).to_vector<double>()[1] ==
        doctest::Approx(100000).epsilon(1e-6));
  const Array h = array(std::vector<float>(5000, 1.0f)).astype(bfloat16);
  CHECK(lax::reduce_sum(h, {0}).item<float>() == 4992);  // 5000 rounded to bfloat16
}

TEST_CASE("NaN wins in extremes, integers wrap around in sums") {
  check_numbers(lax::reduce_max(array({{1.0, nan, 3.0}, {nan, 1.0, 2.0}}), {1}), {nan, nan});
  check_numbers(lax::reduce_min(array({1.0, nan, 3.0}), {0}), {nan});
  const Array big = array(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::max(), 1});
  CHECK(lax::reduce_sum(big, {0}).item<int>() == std::numeric_limits<std::int32_t>::min());
  CHECK(lax::reduce_prod(array({-3, 7}), {0}).item<int>() == -21);
  CHECK(lax::reduce_max(array({false, true}), {0}).item<bool>());
}

TEST_CASE("reduce_and and reduce_or are logical for bool and bitwise for integers") {
  const Array b = array({{true, false}, {true, true}});
  CHECK(lax::reduce_and(b, {1}).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(lax::reduce_or(b, {0}).to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(lax::reduce_and(array({12, 10}), {0}).item<int>() == 8);
  CHECK(lax::reduce_or(array({12, 10}), {0}).item<int>() == 14);
}

TEST_CASE("argmax and argmin give the first extreme, or the first NaN") {
  const Array x = array({{3.0, 1.0, 3.0}, {2.0, 5.0, 5.0}});
  CHECK(lax::argmax(x, 1).to_vector<int>() == std::vector<int>{0, 1});
  CHECK(lax::argmin(x, 0).to_vector<int>() == std::vector<int>{1, 0, 0});
  CHECK(lax::argmax(x, 0, uint8).dtype() == uint8);
  CHECK(lax::argmax(array({1.0, nan, 7.0, nan}), 0).item<int>() == 1);
  CHECK(lax::argmin(array({1.0, nan, 0.0, nan}), 0).item<int>() == 1);
  CHECK(lax::argmax(waves({0, 2}), 1).shape() == Shape{0});
}

TEST_CASE("reductions: derivatives agree with finite differences") {
  const Array x = waves({2, 3, 4});
  for (const lax::Ints& axes : axis_lists()) {
    check_derivatives(reduction(lax::reduce_sum, axes), {x});
    check_derivatives(reduction(lax::reduce_prod, axes), {x});
    check_derivatives(reduction(lax::reduce_max, axes), {x});
    check_derivatives(reduction(lax::reduce_min, axes), {x});
  }
}

TEST_CASE(
    "the derivative of a product exists where elements are zero, ties share that of a maximum") {
  const auto gradient = [](Reduction r, const Array& x) {
    const Traced t = trace(reduction(r, {0}), {x.type()});
    const Linearized l = linearize(*t.program, {x}, {true});
    Primals args(l.residuals.begin(), l.residuals.end());
    args.push_back(std::nullopt);
    return *backward(*l.linear, args, {lax::const_like(x, 1)})[0];
  };
  check_numbers(gradient(lax::reduce_prod, array({2.0, 0.0, 3.0})), {0, 6, 0});
  check_numbers(gradient(lax::reduce_max, array({1.0, 2.0, 2.0})), {0, 0.5, 0.5});
}

TEST_CASE("reductions map over every axis") {
  const Array x = counting({3, 2, 3, 4});
  for (const lax::Ints& axes : axis_lists()) {
    for (std::int64_t at = 0; at <= 3; ++at) {
      for (Reduction r : {lax::reduce_sum, lax::reduce_max, lax::reduce_min, lax::reduce_prod}) {
        check_mapped(reduction(r, axes), {x}, {at});
      }
    }
  }
  for (std::int64_t at = 0; at <= 3; ++at) {
    check_mapped([](const Arrays& a) -> Arrays { return {lax::argmax(a[0], 1)}; }, {x}, {at});
  }
}

TEST_CASE("reductions print as in JAX") {
  const auto text = [](Reduction r, const lax::Ints& axes) {
    return to_text(*trace(reduction(r, axes), {Type{float32, {2, 3}}}).program);
  };
  CHECK(text(lax::reduce_sum, {1}) ==
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:f32[2] = reduce_sum[axes=(1,) out_sharding=None] a\n"
        "  in (b,) }");
  CHECK(text(lax::reduce_max, {0, 1}) ==
        "{ lambda ; a:f32[2,3]. let b:f32[] = reduce_max[axes=(0, 1)] a in (b,) }");
}

TEST_CASE("reductions reject axes and dtypes that do not fit") {
  const Array x = waves({2, 3});
  CHECK_THROWS_WITH_AS(lax::reduce_sum(x, {2}),
                       doctest::Contains("reduce_sum: reduced axis is out of range, got axis 2 of "
                                         "f64[2,3]"),
                       TypeError);
  CHECK_THROWS_WITH_AS(lax::reduce_max(x, {1, 1}),
                       doctest::Contains("reduce_max: reduced axes repeat"), TypeError);
  CHECK_THROWS_WITH_AS(lax::reduce_sum(array({true}), {0}),
                       doctest::Contains("reduce_sum: a number dtype is needed, got bool[1]"),
                       TypeError);
  CHECK_THROWS_AS(lax::reduce_and(x, {0}), TypeError);
  CHECK_THROWS_AS(lax::argmax(x, 0, float32), TypeError);
  CHECK_THROWS_WITH_AS(lax::argmax(waves({2, 0}), 1),
                       doctest::Contains("argmax: the reduced axis must not be empty"), TypeError);
}

}  // namespace
}  // namespace reprise
