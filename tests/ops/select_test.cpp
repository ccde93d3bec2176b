#include "ops/lax.h"
#include "ops/rules_check.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

const double nan = std::nan("");

Array f64(std::vector<double> v, Shape shape) { return array(v, std::move(shape)); }
Arrays select(const Arrays& a) { return {lax::select_n(a[0], Arrays(a.begin() + 1, a.end()))}; }
Arrays clamp(const Arrays& a) { return {lax::clamp(a[0], a[1], a[2])}; }

TEST_CASE("select_n takes the case that the predicate or the index names") {
  const Array a = array({1.0, 2.0, 3.0}), b = array({10.0, 20.0, 30.0}),
              c = array({nan, -0.0, 7.0});
  check_numbers(lax::select_n(array({true, false, true}), {a, b}), {10, 2, 30});
  check_numbers(lax::select_n(array({2, 0, 1}), {a, b, c}), {nan, 2, 30});
  check_numbers(lax::select_n(true, {a, b}), {10, 20, 30});
  check_numbers(lax::select_n(array(2), {a, b, c}), {nan, -0.0, 7});
  check_numbers(lax::select_n(array({-5, 9, 1}), {a, b, c}), {1, -0.0, 30});  // nearest case
  check_numbers(lax::select_n(array({0, 0, 0}), {a}), {1, 2, 3});
}

TEST_CASE("select_n moves elements of every width") {
  const Array which = array({true, false});
  for (Dtype d : {bool_, int8, uint16, float16, bfloat16, int32, float64, int64}) {
    CAPTURE(d);
    const Array a = array({1, 1}, d), b = array({0, 0}, d);
    const Array chosen = lax::select_n(which, {a, b});
    CHECK(chosen.dtype() == d);
    check_numbers(chosen, {0, 1});
  }
}

TEST_CASE("select_n refuses cases that do not fit") {
  const Array a = array({1.0, 2.0}), b = array({1, 2});
  CHECK_THROWS_AS(lax::select_n(array({true, false}), {a, b}), TypeError);
  CHECK_THROWS_AS(lax::select_n(array({true, false}), {}), TypeError);
  CHECK_THROWS_AS(lax::select_n(array({true, false}), {a, a, a}), TypeError);
  CHECK_THROWS_AS(lax::select_n(array({true}), {a, a}), TypeError);
  CHECK_THROWS_AS(lax::select_n(a, {a, a}), TypeError);
  CHECK_THROWS_AS(lax::select_n(array({true, false}), {a, array({1.0})}), TypeError);
}

TEST_CASE("select_n differentiates by its cases") {
  const Array a = f64({1, 2, 3}, {3}), b = f64({4, 5, 6}, {3});
  check_derivatives(select, {array({true, false, true}), a, b});
  check_derivatives(select, {array(true), a, b});
  check_derivatives(select, {array({2, 0, 1}), a, b, a});
  check_derivatives(select, {array({true, false, true}), lax::convert(a, float64), b});
  const auto one_side = [&](const Arrays& x) {
    return Arrays{lax::select_n(x[0], {x[1], lax::zeros(x[1].type())})};
  };
  check_derivatives(one_side, {array({true, false, true}), a});
}

TEST_CASE("select_n maps over any of its operands") {
  const Array which = array({{true, false, true}, {false, false, true}});
  const Array pair = array({true, false}), one = array({true, false, true});
  const Array x = f64({1, 2, 3, 4, 5, 6}, {2, 3}), y = f64({7, 8, 9}, {3});
  check_batching(select, {which, x, x}, {true, true, true});
  check_batching(select, {which, y, y}, {true, false, false});
  check_batching(select, {which, x, y}, {true, true, false});
  check_batching(select, {one, x, y}, {false, true, false});
  check_batching(select, {pair, x, x}, {true, true, true});
  check_batching(select, {pair, y, y}, {true, false, false});
  check_batching(select, {pair, y, x}, {true, false, true});
  check_batching(select, {array(true), x, x}, {false, true, true});
  check_batching(select, {array(true), x, y}, {false, true, false});
  check_batching(select, {pair, f64({1}, {}), f64({2}, {})}, {true, false, false});
}

TEST_CASE("clamp limits, gives NaN where anything is NaN, and the upper bound wins") {
  const Array x = array({-2.0, 0.5, 2.0, nan});
  check_numbers(lax::clamp(-1.0, x, 1.0), {-1, 0.5, 1, nan});
  check_numbers(lax::clamp(nan, x, 1.0), {nan, nan, nan, nan});
  check_numbers(lax::clamp(2.0, x, -2.0), {-2, -2, -2, nan});
  check_numbers(lax::clamp(array({0.0, 1.0, 0.0, 0.0}), x, 1), {0.0, 1, 1, nan});
  check_numbers(lax::clamp(0, array({-3, 3, 30}), 9), {0, 3, 9});
  CHECK_THROWS_AS(lax::clamp(array({0.0}), x, 1.0), TypeError);
  CHECK_THROWS_AS(lax::clamp(array(0), x, 1.0), TypeError);
}

TEST_CASE("clamp differentiates by the operand inside and by the bounds outside") {
  const Array x = f64({-2, 0.5, 3}, {3}), low = f64({-1, -1, -1}, {3}), high = f64({1, 1, 1}, {3});
  check_derivatives(clamp, {low, x, high});
  check_derivatives(clamp, {f64({-1}, {}), x, f64({1}, {})});  // scalar bounds, which JAX refuses
}

TEST_CASE("clamp maps over any of its operands") {
  const Array x = f64({-2, 0.5, 3, 0.1, 9, -9}, {2, 3}), y = f64({-2, 0.5, 3}, {3});
  const Array low = f64({-1, 0}, {2}), high = f64({1, 2}, {2}), zero = f64({0}, {}),
              one = f64({1}, {});
  check_batching(clamp, {zero, x, one}, {false, true, false});
  check_batching(clamp, {low, x, high}, {true, true, true});
  check_batching(clamp, {low, x, one}, {true, true, false});
  check_batching(clamp, {low, y, one}, {true, false, false});
  check_batching(clamp, {x, y, x}, {true, false, true});
  check_batching(clamp, {low, zero, one}, {true, false, false});
  check_batching(clamp, {zero, one, high}, {false, false, true});
}

}  // namespace
}  // namespace reprise
