#include "ops/mapped_axes.h"
#include "program/print.h"
#include "reprise/lax.h"

#include <cmath>

namespace reprise {
namespace {

const double nan = std::nan("");
Array waves(Shape shape) { return some_direction(Type{float64, std::move(shape)}, 7); }

TEST_CASE("sort orders one axis, NaN last") {
  check_numbers(lax::sort({array({3.0, nan, -1.0, 2.0})}, 0)[0], {-1, 2, 3, nan});
  const Array x = array({{3, 1}, {2, 9}, {5, 0}});
  check_numbers(lax::sort({x}, 0)[0], {2, 0, 3, 1, 5, 9});
  check_numbers(lax::sort({x}, -1)[0], {1, 3, 2, 9, 0, 5});
  check_numbers(lax::sort({array({true, false, true})}, 0)[0], {0, 1, 1});
  CHECK(lax::sort({waves({2, 0})}, 1)[0].shape() == Shape{2, 0});
  CHECK(lax::sort({waves({0, 2})}, 1)[0].shape() == Shape{0, 2});
}

TEST_CASE("sort is stable and takes zeros of both signs as equal") {
  const Arrays y = lax::sort({array({0.0, -0.0, -1.0, 0.0}), array({0, 1, 2, 3})}, 0);
  check_numbers(y[0], {-1.0, 0.0, -0.0, 0.0});
  check_numbers(y[1], {2, 0, 1, 3});
}

TEST_CASE("sort compares the first num_keys operands, the others follow") {
  const Array a = array({1, 0, 1, 0}), b = array({2.0, 5.0, 1.0, 4.0}), c = array({0, 1, 2, 3});
  const Arrays y = lax::sort({a, b, c}, 0, 2);
  check_numbers(y[0], {0, 0, 1, 1});
  check_numbers(y[1], {4, 5, 1, 2});
  check_numbers(y[2], {3, 1, 2, 0});
}

TEST_CASE("sort and top_k: derivatives agree with finite differences") {
  for (std::int64_t axis : {0, 1}) {
    check_derivatives([=](const Arrays& x) { return lax::sort({x[0]}, axis); }, {waves({4, 5})});
  }
  const Array keys = array({{3, 1, 2}, {1, 2, 3}});
  const auto follows = [](const Arrays& x) -> Arrays { return {lax::sort({x[0], x[1]}, 1)[1]}; };
  check_derivatives(follows, {keys, waves({2, 3})});
  const auto largest = [](const Arrays& x) -> Arrays { return {lax::top_k(x[0], 2).first}; };
  check_derivatives(largest, {waves({3, 5})});
}

TEST_CASE("sort and top_k map over every axis") {
  const Array x = waves({3, 4, 5});
  const auto sorted = [](const Arrays& a) { return lax::sort({a[0]}, 0); };
  const auto largest = [](const Arrays& a) -> Arrays { return {lax::top_k(a[0], 2).first}; };
  for (std::int64_t at = 0; at <= 2; ++at) {
    check_mapped(sorted, {x}, {at});
    check_mapped(largest, {x}, {at});
  }
  const auto follows = [](const Arrays& a) -> Arrays { return {lax::sort({a[0], a[1]}, 1)[1]}; };
  const Array y = waves({4, 5});
  for (std::int64_t at = 0; at <= 2; ++at) {
    check_mapped(follows, {x, y}, {at, std::nullopt});
    check_mapped(follows, {y, x}, {std::nullopt, at});
    check_mapped(follows, {x, x}, {at, 2 - at});
  }
}

TEST_CASE("top_k gives the largest elements and their first positions") {
  const auto [values, positions] =
      lax::top_k(array({{1.0, 3.0, 3.0, 2.0}, {4.0, nan, 0.0, 5.0}}), 3);
  check_numbers(values, {3, 3, 2, nan, 5, 4});
  check_numbers(positions, {1, 2, 3, 1, 3, 0});
  CHECK(positions.dtype() == int32);
  CHECK(lax::top_k(array({1, 2}), 0).first.shape() == Shape{0});
  CHECK(lax::top_k(waves({0, 3}), 2).first.shape() == Shape{0, 2});
}

TEST_CASE("sort and top_k print as in JAX") {
  const auto both = [](const Arrays& x) -> Arrays {
    const Array s = lax::sort({x[0]}, 0)[0];
    const auto [values, positions] = lax::top_k(s, 2);
    return {values, positions};
  };
  CHECK(to_text(*trace(both, {Type{float32, {3}}}).program) ==
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = sort[dimension=0 is_stable=True num_keys=1] a\n"
        "    c:f32[2] d:i32[2] = top_k[axis=0 k=2] b\n"
        "  in (c, d) }");
}

TEST_CASE("sort and top_k reject operands that do not fit") {
  const Array x = waves({2, 3});
  CHECK_THROWS_WITH_AS(lax::sort({x, waves({3})}, 0),
                       doctest::Contains("sort: operands must have equal shapes"), TypeError);
  CHECK_THROWS_AS(lax::sort({x}, 2), TypeError);
  CHECK_THROWS_AS(lax::sort({waves({})}, 0), TypeError);
  CHECK_THROWS_AS(lax::sort({}, 0), TypeError);
  CHECK_THROWS_WITH_AS(lax::sort({x}, 0, 2), doctest::Contains("sort: num_keys must be between"),
                       TypeError);
  CHECK_THROWS_WITH_AS(lax::top_k(x, 4), doctest::Contains("top_k: k must be between 0 and"),
                       TypeError);
  CHECK_THROWS_AS(lax::top_k(x, -1), TypeError);
  CHECK_THROWS_AS(lax::top_k(waves({}), 0), TypeError);
}

}  // namespace
}  // namespace reprise
