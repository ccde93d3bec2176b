#include "ops/lax.h"
#include "ops/rules_check.h"
#include <reprise/jit.h>

#include <bit>
#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

struct Row {
  const char* name;
  Array (*f)(Operand);
  double (*reference)(double);
  std::vector<double> points;  // inside the domain
};
const std::vector<Row>& rows() {
  using namespace lax;
  static const std::vector<Row> all{
      {"exp", exp, std::exp, {-2, 0, 1.5}},
      {"exp2", exp2, std::exp2, {-2, 0.5, 1.5}},
      {"log", log, std::log, {0.1, 1, 9}},
      {"log1p", log1p, std::log1p, {-0.5, 1e-9, 9}},
      {"expm1", expm1, std::expm1, {-0.5, 1e-9, 2}},
      {"sin", sin, std::sin, {-2, 0.5, 3}},
      {"cos", cos, std::cos, {-2, 0.5, 3}},
      {"tan", tan, std::tan, {-1, 0.5, 1.2}},
      {"asin", asin, std::asin, {-0.7, 0, 0.7}},
      {"acos", acos, std::acos, {-0.7, 0, 0.7}},
      {"atan", atan, std::atan, {-3, 0, 0.7}},
      {"sinh", sinh, std::sinh, {-2, 0.5, 3}},
      {"cosh", cosh, std::cosh, {-2, 0.5, 3}},
      {"tanh", tanh, std::tanh, {-2, 0.5, 1}},
      {"asinh", asinh, std::asinh, {-2, 0.5, 3}},
      {"acosh", acosh, std::acosh, {1.5, 2, 3}},
      {"atanh", atanh, std::atanh, {-0.7, 0, 0.7}},
      {"logistic", logistic, [](double v) { return std::exp(v) / (1 + std::exp(v)); }, {-2, 0, 3}},
      {"sqrt", sqrt, std::sqrt, {0.1, 1, 4}},
      {"rsqrt", rsqrt, [](double v) { return std::pow(v, -0.5); }, {0.1, 1, 4}},
      {"cbrt", cbrt, std::cbrt, {-8, 0.1, 27}},
      {"square", square, [](double v) { return v * v; }, {-2, 0.5, 3}},
      {"neg", neg, [](double v) { return -v; }, {-2, 0.5, 3}},
      {"abs", abs, [](double v) { return v < 0 ? -v : v; }, {-2, 0.5, 3}},
      {"erf", erf, std::erf, {-2, 0.5, 1}},
      {"erfc", erfc, std::erfc, {-2, 0.5, 1}}};
  return all;
}

TEST_CASE("unary functions compute and differentiate what their names say") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const Array x = array(row.points);
    const std::vector<double> got = row.f(x).to_vector<double>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i] == doctest::Approx(row.reference(row.points[i])).epsilon(1e-14));
    }
    check_derivatives([&](const Arrays& a) { return Arrays{row.f(a[0])}; }, {x});
  }
}

TEST_CASE("unary functions of halves are computed in float and rounded once") {
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const Array x = lax::convert(array(row.points), bfloat16);
    const Array wide = row.f(lax::convert(x, float32));
    check_numbers(row.f(x), lax::convert(wide, bfloat16).to_vector<double>());
  }
}

TEST_CASE("unary functions keep NaN and the sign of zero") {
  const Array x = array({0.0, -0.0, inf, -inf, nan});
  check_numbers(lax::neg(x), {-0.0, 0.0, -inf, inf, nan});
  check_numbers(lax::abs(x), {0.0, 0.0, inf, inf, nan});
  check_numbers(lax::sign(x), {0.0, -0.0, 1, -1, nan});
  check_numbers(lax::sqrt(x), {0.0, -0.0, inf, nan, nan});
  check_numbers(lax::rsqrt(x), {inf, -inf, 0.0, nan, nan});
  check_numbers(lax::exp(x), {1, 1, inf, 0.0, nan});
  check_numbers(lax::log(x), {-inf, -inf, inf, nan, nan});
  check_numbers(lax::tanh(x), {0.0, -0.0, 1, -1, nan});
  check_numbers(lax::logistic(x), {0.5, 0.5, 1, 0.0, nan});
  check_numbers(lax::floor(x), {0.0, -0.0, inf, -inf, nan});
  check_numbers(lax::is_finite(x), {1, 1, 0, 0, 0});
  CHECK(lax::is_finite(x).dtype() == bool_);
}

TEST_CASE("round breaks ties away from zero or to the even number") {
  const Array x = array({0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997});
  check_numbers(lax::round(x), {1, 2, 3, -1, -2, -3, 0.0});
  check_numbers(lax::round(x, lax::RoundingMethod::to_nearest_even),
                {0.0, 2, 2, -0.0, -2, -2, 0.0});
}

TEST_CASE("integers wrap around") {
  const Array x = array(std::vector<std::int32_t>{INT32_MIN, -3, 0, 7, 65536});
  check_numbers(lax::neg(x), {INT32_MIN, 3, 0, -7, -65536});
  check_numbers(lax::abs(x), {INT32_MIN, 3, 0, 7, 65536});
  check_numbers(lax::sign(x), {-1, -1, 0, 1, 1});
  check_numbers(lax::square(x), {0, 9, 0, 49, 0});
  check_numbers(lax::bitwise_not(x), {INT32_MAX, 2, -1, -8, -65537});
  check_numbers(lax::bitwise_not(array({true, false})), {0, 1});
  check_numbers(lax::neg(array(std::vector<std::uint8_t>{0, 1, 200})), {0, 255, 56});
}

TEST_CASE("integer_pow multiplies repeatedly") {
  const Array x = array(std::vector<double>{2, -3, 0.5});
  for (std::int64_t y : {-3, -2, -1, 1, 2, 3, 4, 7}) {
    CAPTURE(y);
    std::vector<double> expected;
    for (double v : {2.0, -3.0, 0.5}) {
      double product = 1;
      for (std::int64_t k = 0; k < std::abs(y); ++k) product *= v;
      expected.push_back(y < 0 ? 1 / product : product);
    }
    check_numbers(lax::integer_pow(x, y), expected);
    check_derivatives([&](const Arrays& a) { return Arrays{lax::integer_pow(a[0], y)}; }, {x});
  }
  check_numbers(lax::integer_pow(array({0.0, nan}), 0), {1, 1});
  check_numbers(lax::integer_pow(array({0.0, -0.0}), -1), {inf, -inf});
  check_numbers(lax::integer_pow(array({3, -2}), 3), {27, -8});
  check_numbers(lax::integer_pow(array({2}), 40), {0});  // wrapped
  CHECK(lax::integer_pow(2.0, INT64_MIN).item<float>() == 0);
  CHECK_THROWS_AS(lax::integer_pow(array({3}), -1), TypeError);
}

TEST_CASE("tanh is XLA's to the bit in f32, evaluated and compiled") {
  // Values computed by JAX 0.12.0.1 on CPU: around the bounds of its branches, the worst of its
  // errors, and one where the nearest number would be another.
  const std::vector<std::pair<float, std::uint32_t>> cases{
      {-0.0f, 0x80000000},      {1e-30f, 0x0da24260},
      {3.9999e-4f, 0x39d1b5c0}, {4e-4f, 0x39d1b714},
      {-4.1e-4f, 0xb9d6f542},   {0.01f, 0x3c23d5a3},
      {-0.1f, 0xbdcc1ebb},      {0.5f, 0x3eec9a9f},
      {-0.6f, 0xbf097c15},      {-0.82004929f, 0xbf2cd324},
      {1.0f, 0x3f42f7d6},       {2.5f, 0x3f7c92c2},
      {-4.0f, 0xbf7fd40a},      {5.9188399f, 0x3f7fff0d},
      {6.8800702f, 0x3f7fffdc}, {7.9f, 0x3f7ffffc},
      {7.9987998f, 0x3f7ffffd}, {8.0f, 0x3f800000},
      {19.9f, 0x3f800000},      {20.0f, 0x3f800000},
      {-25.0f, 0xbf800000},     {static_cast<float>(-inf), 0xbf800000}};
  std::vector<float> values;
  for (const auto& [value, bits] : cases) values.push_back(value);
  const Array x = array(values);
  const auto f = [](Array v) { return lax::tanh(v); };
  const auto evaluated = f(x).to_vector<float>(), compiled = jit(f)(x).to_vector<float>();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(values[i]);
    CHECK(std::bit_cast<std::uint32_t>(evaluated[i]) == cases[i].second);
    CHECK(std::bit_cast<std::uint32_t>(compiled[i]) == cases[i].second);
  }
  CHECK(std::isnan(jit(f)(array({nan})).item<float>()));
}

TEST_CASE("erf_inv inverts erf and is XLA's to the bit in f32") {
  for (double y : {-0.999, -0.5, 0.0, 0.1, 0.9, 0.999999}) {
    const Array x = array(std::vector<double>{y});
    CHECK(lax::erf(lax::erf_inv(x)).item<double>() == doctest::Approx(y).epsilon(1e-14));
  }
  // Away from the poles at -1 and 1, which the step of a finite difference must not come near.
  const Array inside = array(std::vector<double>{-0.9, 0.0, 0.5});
  check_derivatives([](const Arrays& a) { return Arrays{lax::erf_inv(a[0])}; }, {inside});
  // Values computed by JAX 0.10.2 on CPU.
  const Array x = array({-0.9, -0.3, 0.01, 0.5, 0.99999});
  const std::vector<float> expected{-0x1.29c012p+0f, -0x1.17007ap-2f, 0x1.22680cp-7f,
                                    0x1.e861fcp-2f, 0x1.8fc52ep+1f};
  CHECK(lax::erf_inv(x).to_vector<float>() == expected);
  check_numbers(lax::erf_inv(array({1.0, -1.0, 2.0, nan})), {inf, -inf, nan, nan});
}

TEST_CASE("compiled erf_inv has the evaluator's bits") {
  std::vector<float> values{
      0.0f, -0.0f, 1.0f, -1.0f, 1.5f, 1e-30f, -1e-42f, 0x1.fffffep-1f, static_cast<float>(nan)};
  for (int i = -20000; i < 20000; ++i) values.push_back(static_cast<float>(i) / 20000.0f);
  for (int e = 1; e < 24; ++e) values.push_back(1.0f - std::ldexp(1.0f, -e));
  const Array x = array(values);
  const auto f = [](Array v) { return lax::erf_inv(v); };
  const auto got = jit(f)(x).to_vector<float>(), expected = f(x).to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool same =
        std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]);
    if (!same && !(std::isnan(got[i]) && std::isnan(expected[i])))
      FAIL_CHECK("erf_inv of " << values[i]);
  }
}

TEST_CASE("unary functions take zero elements and scalars, and refuse the wrong dtype") {
  CHECK(lax::sin(array(std::vector<float>{}, Shape{0, 3})).shape() == Shape{0, 3});
  CHECK(lax::sin(0.5).weak_type());
  CHECK_THROWS_AS(lax::sin(array({1})), TypeError);
  CHECK_THROWS_AS(lax::neg(array({true})), TypeError);
  CHECK_THROWS_AS(lax::bitwise_not(1.5), TypeError);
}

TEST_CASE("piecewise constant functions have no tangent") {
  for (auto f : {lax::sign, lax::floor, lax::ceil}) {
    const Traced t = trace([&](const Arrays& a) { return Arrays{f(a[0])}; }, {Type{float32, {2}}});
    const Array x = array({0.5, 1.5});
    CHECK_FALSE(jvp(*t.program, {x}, {x}).tangents[0].has_value());
  }
}

}  // namespace
}  // namespace reprise
