#include "functions/promote.h"
#include "ops/rules_check.h"
#include "program/print.h"
#include "reprise/ops_math.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

Array i32(const std::vector<std::int32_t>& v) { return array(v); }
Array u8(const std::vector<std::uint8_t>& v) { return array(v); }
std::string text_of(const FlatFunction& f, const Types& in) {
  return to_text(*trace(f, in).program);
}
const Type f3{float32, {3}};

// ------------------------------------------------------------------------------------- promotion
TEST_CASE("operands meet in JAX's common dtype") {
  const Array f = array({1.5}), h = f.astype(float16), b = f.astype(bfloat16), i = array({1});
  CHECK((f + i).dtype() == float32);
  CHECK((i + 2).dtype() == int32);
  CHECK((i + 2.5).dtype() == float32);
  CHECK((i + 2.5).weak_type());
  CHECK((h + 2.5).dtype() == float16);
  CHECK((h + b).dtype() == float32);
  CHECK((u8({1}) + i.astype(int8)).dtype() == int16);
  CHECK((array({true}) + 2).dtype() == int32);
  CHECK((i / i).dtype() == float32);
  CHECK(sin(i).dtype() == float32);
  CHECK(exp(2).weak_type());
}

TEST_CASE("shapes broadcast as in numpy") {
  const Array x = array({{1, 2, 3}, {4, 5, 6}}), row = array({10, 20, 30}),
              column = array({{1}, {2}});
  check_numbers(x + row, {11, 22, 33, 14, 25, 36});
  check_numbers(row * column, {10, 20, 30, 20, 40, 60});
  CHECK((array(std::vector<float>{}, Shape{0, 3}) * row).shape() == Shape{0, 3});
  CHECK_THROWS_WITH_AS(add(x, array({1, 2})),
                       doctest::Contains("add: shapes do not broadcast, got i32[2,3] and i32[2]"),
                       TypeError);
}

TEST_CASE("promotion records converts and leading dimensions, numbers stay literals") {
  CHECK(text_of([](const Arrays& a) { return Arrays{a[0] * 2}; }, {f3}) ==
        "{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }");
  CHECK(text_of([](const Arrays& a) { return Arrays{a[0] * a[1]}; }, {Type{float32, {2, 3}}, f3}) ==
        "{ lambda ; a:f32[2,3] b:f32[3]. let\n"
        "    c:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] b\n"
        "    d:f32[2,3] = mul a c\n  in (d,) }");
  CHECK(
      text_of([](const Arrays& a) { return Arrays{a[0] * a[1]}; }, {Type{float32, {}, true}, f3}) ==
      "{ lambda ; a:f32[] b:f32[3]. let\n"
      "    c:f32[] = convert_element_type[new_dtype=float32 weak_type=False] a\n"
      "    d:f32[3] = mul c b\n  in (d,) }");
}

TEST_CASE("only a number that promotion changes counts as a residual") {
  const auto promoted = [](const Array& x, const Array& number) {
    const Array operand = promote("multiply", {x, number})[1];
    REQUIRE(content(operand).number() != nullptr);
    return content(operand).number()->promoted;
  };
  const auto f = [&](const Arrays& a) {
    CHECK(promoted(a[0], 2.0));        // becomes strong
    CHECK(promoted(a[1], 2));          // becomes a float
    CHECK_FALSE(promoted(a[1], 2.0));  // weak meets weak
    return a;
  };
  trace(f, {f3, Type{float32, {}, true}});
}

// ----------------------------------------------------------------------------- integers and signs
TEST_CASE("floor_divide rounds down, remainder has the sign of the divisor") {
  const Array x = i32({7, -7, 7, -7, 0}), y = i32({2, 2, -2, -2, 3});
  check_numbers(floor_divide(x, y), {3, -4, -4, 3, 0});
  check_numbers(x % y, {1, 1, -1, -1, 0});
  check_numbers(fmod(x, y), {1, -1, 1, -1, 0});
  const Array a = array({7.5, -7.5, 7.5, -7.5}), b = array({2.0, 2.0, -2.0, -2.0});
  check_numbers(floor_divide(a, b), {3, -4, -4, 3});
  check_numbers(remainder(a, b), {1.5, 0.5, -0.5, -1.5});
  check_numbers(fmod(a, b), {1.5, -1.5, 1.5, -1.5});
  check_numbers(floor_divide(u8({7, 9}), u8({2, 10})), {3, 0});
}

TEST_CASE("division by zero has a result") {
  check_numbers(array({1.0, -1.0, 0.0}) / 0.0, {inf, -inf, nan});
  check_numbers(i32({5, 0}) / 0, {inf, nan});
  check_numbers(i32({5, -5}) % 0, {0, 0});
  check_numbers(fmod(i32({5, -5}), 0), {0, 0});
  check_numbers(remainder(array({5.0}), 0.0), {nan});
  check_numbers(floor_divide(array({5.0, -5.0}), 0.0), {inf, -inf});
}

TEST_CASE("bools add as or, multiply as and, and do not subtract") {
  const Array a = array({true, true, false}), b = array({true, false, false});
  CHECK((a + b).dtype() == bool_);
  check_numbers(a + b, {1, 1, 0});
  check_numbers(a * b, {1, 0, 0});
  CHECK_THROWS_AS(a - b, TypeError);
  CHECK_THROWS_AS(-a, TypeError);
  check_numbers(square(a), {1, 1, 0});
  CHECK(square(a).dtype() == int32);
}

TEST_CASE("shifts and bits work on integers") {
  const Array x = i32({5, -8, 1});
  check_numbers(x << 1, {10, -16, 2});
  check_numbers(x >> 1, {2, -4, 0});
  check_numbers(u8({200}) >> 1, {100});
  check_numbers(x << 32, {0, 0, 0});
  check_numbers(x >> 40, {0, -1, 0});
  check_numbers((x & 4) | 1, {5, 1, 1});
  check_numbers(x ^ -1, {-6, 7, -2});
  check_numbers(~x, {-6, 7, -2});
  CHECK_THROWS_AS(array({1.5}) & 1, TypeError);
}

// ------------------------------------------------------------------------------------- functions
TEST_CASE("power multiplies for an integer number and keeps integers") {
  CHECK(text_of([](const Arrays& a) { return Arrays{power(a[0], 2)}; }, {f3}) ==
        "{ lambda ; a:f32[3]. let b:f32[3] = integer_pow[y=2] a in (b,) }");
  check_numbers(power(i32({3, -2}), 3), {27, -8});
  check_numbers(power(i32({3, 2}), i32({2, 5})), {9, 32});
  check_numbers(power(array({4.0, 0.0}), 0.5), {2, 0.0});
  check_numbers(power(2.0, i32({3, -1})), {8, 0.5});
  CHECK_THROWS_AS(power(i32({3}), -1), TypeError);
}

TEST_CASE("rounding functions keep integers and signs of zero") {
  const Array x = array({1.5, 2.5, -0.4, -1.7, inf, nan});
  check_numbers(round(x), {2, 2, -0.0, -2, inf, nan});
  check_numbers(rint(x), {2, 2, -0.0, -2, inf, nan});
  check_numbers(trunc(x), {1, 2, -0.0, -1, inf, nan});
  check_numbers(floor(i32({3, -4})), {3, -4});
  CHECK(floor(i32({3})).dtype() == int32);
  CHECK(rint(i32({3})).dtype() == float32);
  check_numbers(round(array({1.25, -12.5}), 1), {1.2000000476837158, -12.5});
  check_numbers(round(array({125.0, 135.0}).astype(float16), -1), {120, 140});
  CHECK_THROWS_AS(round(i32({3}), -1), TypeError);
  CHECK_THROWS_AS(round(array({true})), TypeError);
}

TEST_CASE("abs and sign of what cannot be negative") {
  check_numbers(abs(u8({200})), {200});
  check_numbers(abs(array({true})), {1});
  check_numbers(abs(array({-0.0, -2.0, nan})), {0.0, 2, nan});
  CHECK(fabs(i32({-2})).dtype() == float32);
}

TEST_CASE("logarithms of other bases, angles and reciprocals") {
  const Array x = array(std::vector<double>{0.5, 8, 1000});
  const std::vector<double> two = log2(x).to_vector<double>(), ten = log10(x).to_vector<double>();
  const std::vector<double> radians = deg2rad(x).to_vector<double>();
  for (std::size_t i = 0; i < 3; ++i) {
    const double v = x.to_vector<double>()[i];
    CHECK(two[i] == doctest::Approx(std::log2(v)).epsilon(1e-14));
    CHECK(ten[i] == doctest::Approx(std::log10(v)).epsilon(1e-14));
    CHECK(radians[i] == doctest::Approx(v * std::acos(-1.0) / 180).epsilon(1e-14));
  }
  check_numbers(reciprocal(i32({4, 0})), {0.25, inf});
  check_numbers(arctan2(array({0.0, -0.0}), 1.0), {0.0, -0.0});
}

TEST_CASE("maximum passes NaN on, fmax passes it over") {
  const Array x = array({nan, 1.0, nan, 2.0}), y = array({1.0, nan, nan, 3.0});
  check_numbers(maximum(x, y), {nan, nan, nan, 3});
  check_numbers(minimum(x, y), {nan, nan, nan, 2});
  check_numbers(fmax(x, y), {1, 1, nan, 3});
  check_numbers(fmin(x, y), {1, 1, nan, 2});
}

TEST_CASE("clip takes either bound or both") {
  const Array x = array({-2.0, 0.5, 2.0, nan});
  check_numbers(clip(x, -1.0, 1), {-1, 0.5, 1, nan});
  check_numbers(clip(x, 0.0), {0.0, 0.5, 2, nan});
  check_numbers(clip(x, std::nullopt, 1.0), {-2, 0.5, 1, nan});
  check_numbers(clip(x), {-2, 0.5, 2, nan});
  check_numbers(clip(i32({-3, 9}), 0, 5), {0, 5});
}

TEST_CASE("where chooses, promotes and broadcasts all three") {
  const Array mask = array({true, false, true});
  check_numbers(where(mask, array({1.0, 2.0, 3.0}), 0), {1, 0.0, 3});
  check_numbers(where(array({{true}, {false}}), i32({1, 2}), 9), {1, 2, 9, 9});
  check_numbers(where(i32({2, 0, -1}), 1, 0), {1, 0, 1});
  CHECK(where(mask, 1, 2.5).dtype() == float32);
  CHECK(where(array(std::vector<float>{}, Shape{0, 2}) > 0, 1.0, 2.0).shape() == Shape{0, 2});
  CHECK_THROWS_AS(where(mask, array({1.0, 2.0}), 0), TypeError);
}

TEST_CASE("logic takes what is not zero as true") {
  const Array x = array({0.0, -0.0, 2.0, nan}), y = array({1, 0, 1, 0});
  check_numbers(logical_and(x, y), {0, 0, 1, 0});
  check_numbers(logical_or(x, y), {1, 0, 1, 1});
  check_numbers(logical_xor(x, y), {1, 0, 0, 1});
  check_numbers(logical_not(x), {1, 1, 0, 0});
  check_numbers(x < y, {1, 0, 0, 0});
  check_numbers(x >= y, {0, 1, 1, 0});
  check_numbers(not_equal(x, x), {0, 0, 0, 1});
}

TEST_CASE("tests for the extremes, of integers too") {
  const Array x = array({inf, -inf, nan, 0.0});
  check_numbers(isfinite(x), {0, 0, 0, 1});
  check_numbers(isinf(x), {1, 1, 0, 0});
  check_numbers(isnan(x), {0, 0, 1, 0});
  check_numbers(isfinite(i32({1})), {1});
  check_numbers(isinf(i32({1})), {0});
  const double most = std::numeric_limits<float>::max();
  check_numbers(nan_to_num(x), {most, -most, 0.0, 0.0});
  check_numbers(nan_to_num(x, 7, 8.0, 9.0), {8, 9, 7, 0.0});
  check_numbers(nan_to_num(x.astype(float16)), {65504, -65504, 0.0, 0.0});
  check_numbers(nan_to_num(i32({3})), {3});
}

TEST_CASE("hypot and logaddexp neither overflow nor lose infinities") {
  check_numbers(hypot(array({3.0, 3e38, 0.0, inf, nan}), array({4.0, 0.0, 0.0, nan, 1.0})),
                {5, static_cast<double>(3e38f), 0.0, inf, nan});
  const Array big = array({1000.0, -inf, inf, inf, -inf}),
              other = array({1000.0, -inf, inf, 1.0, 1.0});
  const double sum = static_cast<float>(1000 + std::log(2.0));
  check_numbers(logaddexp(big, other), {sum, -inf, inf, inf, 1});
}

TEST_CASE("functions with rules of their own differentiate right, also where operands are equal") {
  const auto f64 = [](std::vector<double> v) { return array(v); };
  const FlatFunction add_exp = [](const Arrays& a) { return Arrays{logaddexp(a[0], a[1])}; };
  check_derivatives(add_exp, {f64({0.5, 2, -3}), f64({0.5, -1, 4})});
  check_derivatives([](const Arrays& a) { return Arrays{logit(a[0])}; }, {f64({0.1, 0.5, 0.8})});
  check_derivatives([](const Arrays& a) { return Arrays{hypot(a[0], a[1])}; },
                    {f64({3, 0.5}), f64({4, -2})});
  check_derivatives([](const Arrays& a) { return Arrays{a[0] % a[1]}; },
                    {f64({7.5, -7.5}), f64({2, 2})});
  check_derivatives([](const Arrays& a) { return Arrays{clip(a[0], -1.0, 1.0)}; },
                    {f64({-3, 0.5, 2})});
  check_derivatives([](const Arrays& a) { return Arrays{where(a[0] > 0, a[0] * a[0], a[0])}; },
                    {f64({-3, 0.5, 2})});
  check_batching(add_exp, {array({{0.5, 2.0}, {1.0, 3.0}}), array({0.5, 1.0})}, {true, false});
  check_numbers(logit(array({0.5, 1.0, 0.0})), {0.0, inf, -inf});
}

TEST_CASE("compound assignment gives the array a new value, copies keep the old one") {
  Array x = array({1.0, 2.0});
  const Array old = x;
  x += 1;
  x *= array({10.0, 20.0});
  x -= 5.0;
  x /= 3;
  check_numbers(x, {5, static_cast<double>(55.0f / 3)});
  check_numbers(old, {1, 2});
}

TEST_CASE("errors and equations carry the user's line") {
  try {
    add(array({1.0, 2.0}), array({1.0, 2.0, 3.0}));
    FAIL("shapes that do not broadcast were accepted");
  } catch (const TypeError& e) {
    CHECK(std::string(e.what()).find("math_test.cpp:") != std::string::npos);
  }
  const Traced t = trace([](const Arrays& a) { return Arrays{a[0] % 2.0}; }, {f3});
  CHECK(to_string(t.program->eqns[0].at).find("math_test.cpp:") != std::string::npos);
}

// What JAX 0.10.2 gives for the same expressions, in silence: the number is first converted to the
// array's dtype.
TEST_CASE("a C++ integer takes the dtype of the array it meets, and wraps") {
  const Array u = u8({1, 1});
  CHECK((u + 300).to_vector<int>() == std::vector<int>{45, 45});
  CHECK((300 + u).dtype() == uint8);
  CHECK((u - 300).to_vector<int>() == std::vector<int>{213, 213});
  CHECK((u * 300).to_vector<int>() == std::vector<int>{44, 44});
  CHECK((u + -1).to_vector<int>() == std::vector<int>{0, 0});
  CHECK((u < 300).to_vector<int>() == std::vector<int>{1, 1});
  CHECK(equal(u, 300).to_vector<int>() == std::vector<int>{0, 0});
  CHECK((u & 300).to_vector<int>() == std::vector<int>{0, 0});
  CHECK((u % 300).to_vector<int>() == std::vector<int>{1, 1});
  CHECK(maximum(u, 300).to_vector<int>() == std::vector<int>{44, 44});
  CHECK(where(array({true, false}), u, 300).to_vector<int>() == std::vector<int>{1, 44});
  CHECK(clip(u, 0, 300).to_vector<int>() == std::vector<int>{1, 1});
  CHECK(full({1}, 300, uint8).item<int>() == 44);
  CHECK(full({1}, 0.5, int32).item<int>() == 0);
  CHECK(full_like(u, -1).to_vector<int>() == std::vector<int>{255, 255});
  CHECK(where(array({true, false}), i32({1, 1}), 0.5).dtype() == float32);
  CHECK_THROWS_AS(static_cast<void>(i32({1}) + (1l << 31)), TypeError);
  CHECK_THROWS_AS(static_cast<void>(i32({1}) < (1l << 31)), TypeError);
}

}  // namespace
}  // namespace reprise
