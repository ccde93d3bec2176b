#include "ops/lax.h"
#include "ops/rules_check.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
using Binary = Array (*)(Operand, Operand);

FlatFunction flat(Binary f) {
  return [f](const Arrays& a) { return Arrays{f(a[0], a[1])}; };
}
Array f64(std::vector<double> v, Shape shape) { return array(v, std::move(shape)); }
Array i32(const std::vector<std::int32_t>& v) { return array(v); }

TEST_CASE("binary functions differentiate by both operands, also when one is stretched") {
  // No quotient is whole: there rem jumps.
  const Array x = f64({1.6, 0.7, 2.2, 3.1, 0.4, 1.1}, {2, 3});
  const Array full = f64({0.3, 2.5, 1.2, 0.9, 1.7, 2.9}, {2, 3});
  const Array column = f64({0.3, 2.5}, {2, 1});
  const Array row = f64({0.6, 1.3, 2.4}, {1, 3});
  const Array scalar = f64({1.9}, {});
  for (Binary f : {lax::add, lax::sub, lax::mul, lax::div, lax::rem, lax::pow, lax::atan2, lax::max,
                   lax::min}) {
    for (const Array& y : {full, column, row, scalar}) {
      CAPTURE(y.type());
      check_derivatives(flat(f), {x, y});
      check_derivatives(flat(f), {y, x});
    }
  }
}

TEST_CASE("binary functions map over either operand or both") {
  const Array x = f64({1.5, 0.7, 2.2, 3.1, 0.4, 1.1}, {2, 3});
  const Array y = f64({0.6, 1.3, 2.4}, {3}), pair = f64({0.6, 1.3}, {2});
  for (Binary f : {lax::add, lax::div, lax::pow, lax::max, lax::lt}) {
    check_batching(flat(f), {x, x}, {true, true});
    check_batching(flat(f), {x, y}, {true, false});
    check_batching(flat(f), {y, x}, {false, true});
    check_batching(flat(f), {pair, x}, {true, true});
    check_batching(flat(f), {pair, y}, {true, false});
  }
}

TEST_CASE("the derivative of a tie is shared") {
  const Traced t = trace(flat(lax::max), {Type{float64, {1}}, Type{float64, {1}}});
  const Array x = f64({2}, {1});
  check_numbers(*jvp(*t.program, {x, x}, {f64({1}, {1}), std::nullopt}).tangents[0], {0.5});
}

TEST_CASE("integer division has a result for every pair") {
  const Array x = i32({7, -7, 7, -7, 5, INT32_MIN, INT32_MIN, 0});
  const Array y = i32({2, 2, -2, -2, 0, -1, 0, 0});
  check_numbers(lax::div(x, y), {3, -3, -3, 3, -1, INT32_MIN, -1, -1});
  check_numbers(lax::rem(x, y), {1, -1, 1, -1, 5, 0, INT32_MIN, 0});
  const Array a = array(std::vector<std::uint8_t>{7, 7, 0}),
              b = array(std::vector<std::uint8_t>{2, 0, 0});
  check_numbers(lax::div(a, b), {3, 255, 255});
  check_numbers(lax::rem(a, b), {1, 7, 0});
}

TEST_CASE("integer arithmetic wraps around") {
  const Array big = i32({INT32_MAX, INT32_MIN});
  check_numbers(lax::add(big, i32({1, -1})), {INT32_MIN, INT32_MAX});
  check_numbers(lax::sub(big, i32({-1, 1})), {INT32_MIN, INT32_MAX});
  check_numbers(lax::mul(big, i32({2, 2})), {-2, 0});
  check_numbers(lax::pow(i32({3, 2, -2, 2, 1, -1}), i32({4, 33, 31, -1, -5, -3})),
                {81, 0, INT32_MIN, 0, 1, -1});
}

TEST_CASE("shifts by too many places or by negative ones lose all bits") {
  const Array x = i32({1, -8, -8, 12, -1});
  const Array by = i32({31, 1, 32, 2, -1});
  check_numbers(lax::shift_left(x, by), {INT32_MIN, -16, 0, 48, 0});
  check_numbers(lax::shift_right_arithmetic(x, by), {0, -4, -1, 3, -1});
  check_numbers(lax::shift_right_logical(x, by), {0, 0x7ffffffc, 0, 3, 0});
  // The arithmetic shift sees unsigned numbers as signed, as XLA does.
  const Array bytes = array(std::vector<std::uint8_t>{128, 128, 3});
  const Array places = array(std::vector<std::uint8_t>{1, 9, 1});
  check_numbers(lax::shift_right_arithmetic(bytes, places), {192, 255, 1});
  check_numbers(lax::shift_right_logical(bytes, places), {64, 0, 1});
}

TEST_CASE("floating division and remainders follow IEEE") {
  const Array x = array({1.0, -1.0, 0.0, inf, 5.5, -5.5, 5.5});
  const Array y = array({0.0, 0.0, 0.0, inf, 2.0, 2.0, inf});
  check_numbers(lax::div(x, y), {inf, -inf, nan, nan, 2.75, -2.75, 0.0});
  check_numbers(lax::rem(x, y), {nan, nan, nan, nan, 1.5, -1.5, 5.5});
}

TEST_CASE("max and min give NaN if either is, and order the zeros") {
  const Array x = array({nan, 1.0, -0.0, 0.0, -inf});
  const Array y = array({1.0, nan, 0.0, -0.0, inf});
  check_numbers(lax::max(x, y), {nan, nan, 0.0, 0.0, inf});
  check_numbers(lax::min(x, y), {nan, nan, -0.0, -0.0, -inf});
  check_numbers(lax::max(array({true, false}), array({false, false})), {1, 0});
}

TEST_CASE("comparisons with NaN are false, except not equal") {
  const Array x = array({nan, 1.0, 0.0}), y = array({nan, 2.0, -0.0});
  check_numbers(lax::eq(x, y), {0, 0, 1});
  check_numbers(lax::ne(x, y), {1, 1, 0});
  check_numbers(lax::lt(x, y), {0, 1, 0});
  check_numbers(lax::ge(x, y), {0, 0, 1});
  CHECK(lax::eq(x, y).dtype() == bool_);
}

TEST_CASE("a floating base takes an integer exponent, with a derivative at zero") {
  const Array x = f64({0.0, 0.0, 2.0, -3.0}, {4});
  const Array y = i32({0, 1, 3, 2});
  check_numbers(lax::pow(x, y), {1, 0.0, 8, 9});
  const Traced t = trace(flat(lax::pow), {x.type(), y.type()});
  const Array one = f64({1, 1, 1, 1}, {4});
  check_numbers(*jvp(*t.program, {x, y}, {one, std::nullopt}).tangents[0], {0.0, 1, 12, -6});
  check_numbers(lax::pow(array({0.0, -8.0, inf}), array({0.0, 0.5, -1.0})), {1, nan, 0.0});
}

TEST_CASE("nextafter steps in the format of its operands") {
  check_numbers(lax::nextafter(array({1.0, 0.0, -1.0}), array({2.0, -1.0, 0.0})),
                {1 + 0x1p-23, -0x1p-149, -(1 - 0x1p-24)});
  const auto half = [](const Array& x) { return lax::convert(x, float16); };
  const auto brain = [](const Array& x) { return lax::convert(x, bfloat16); };
  const Array x = array({1.0, 1.0, -1.0, 0.0, 0.0, 3.0, nan});
  const Array y = array({2.0, 0.0, -2.0, 1.0, -1.0, 3.0, 1.0});
  check_numbers(lax::nextafter(half(x), half(y)),
                {1 + 0x1p-10, 1 - 0x1p-11, -1 - 0x1p-10, 0x1p-24, -0x1p-24, 3, nan});
  check_numbers(lax::nextafter(brain(x), brain(y)),
                {1 + 0x1p-7, 1 - 0x1p-8, -1 - 0x1p-7, 0x1p-133, -0x1p-133, 3, nan});
  const Array largest = array({65504.0});
  check_numbers(lax::nextafter(half(largest), half(array({inf}))), {inf});
}

TEST_CASE("a number takes the dtype of the array, arrays must agree") {
  CHECK(lax::mul(array({1.5}), 2).dtype() == float32);
  CHECK(lax::add(1, lax::convert(array({1.5}), bfloat16)).dtype() == bfloat16);
  CHECK_THROWS_AS(lax::add(array({1}), array({1.5})), TypeError);
  CHECK_THROWS_AS(lax::add(array({1.0, 2.0}), array({1.0, 2.0, 3.0})), TypeError);
  CHECK_THROWS_AS(lax::add(array({true}), array({true})), TypeError);
  CHECK_THROWS_AS(lax::bitwise_and(array({1.5}), array({1.5})), TypeError);
  CHECK(lax::add(f64({}, {0, 3}), f64({1, 2, 3}, {1, 3})).shape() == Shape{0, 3});
}

}  // namespace
}  // namespace reprise
