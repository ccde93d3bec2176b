#include "ops/mapped_axes.h"
#include "program/print.h"
#include "reprise/ops_reduce.h"

#include <cmath>

namespace reprise {
namespace {

const double nan = std::nan("");
const Array x = array({{3.0, 1.0, 2.0}, {6.0, 5.0, 4.0}});

TEST_CASE("cumulative functions run along an axis, or over x as one row") {
  check_numbers(cumsum(x), {3, 4, 6, 12, 17, 21});
  check_numbers(cumsum(x, 0), {3, 1, 2, 9, 6, 6});
  check_numbers(cumprod(x, -1), {3, 3, 6, 6, 30, 120});
  check_numbers(cummax(x, 1), {3, 3, 3, 6, 6, 6});
  check_numbers(cummin(x, -1), {3, 1, 1, 6, 5, 4});
  CHECK(cumsum(array({true, true})).dtype() == int32);
  CHECK(cumsum(array({1, 2}).astype(int8)).dtype() == int8);
  CHECK(cumsum(2.5).shape() == Shape{1});
}

TEST_CASE("sort and argsort agree, in both directions") {
  check_numbers(sort(x), {1, 2, 3, 4, 5, 6});
  check_numbers(sort(x, 0, true), {6, 5, 4, 3, 1, 2});
  check_numbers(sort(x, std::nullopt, true), {6, 5, 4, 3, 2, 1});
  check_numbers(argsort(x), {1, 2, 0, 2, 1, 0});
  check_numbers(argsort(array({2, 1, 2, 1})), {1, 3, 0, 2});
  check_numbers(argsort(array({2, 1, 2, 1}), 0, true), {0, 2, 1, 3});
  check_numbers(argsort(x, std::nullopt), {1, 2, 0, 5, 4, 3});
  check_numbers(sort(array({nan, 1.0, 0.0})), {0, 1, nan});
}

TEST_CASE("top_k searches the last axis") {
  const auto [values, positions] = top_k(x, 2);
  check_numbers(values, {3, 2, 6, 5});
  check_numbers(positions, {0, 2, 0, 1});
}

TEST_CASE("cumulative functions and sorting are calls of named functions") {
  const auto both = [](const Arrays& a) -> Arrays {
    const Array s = sort(a[0], 0, true);
    return {cumsum(s)};
  };
  CHECK(to_text(*trace(both, {Type{float32, {3}}}).program) ==
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = jit[\n"
        "      name=sort\n"
        "      jaxpr={ lambda ; a:f32[3]. let\n"
        "          c:f32[3] = sort[dimension=0 is_stable=True num_keys=1] a\n"
        "          b:f32[3] = rev[dimensions=(0,)] c\n"
        "        in (b,) }\n"
        "    ] a\n"
        "    d:f32[3] = jit[\n"
        "      name=cumsum\n"
        "      jaxpr={ lambda ; b:f32[3]. let\n"
        "          d:f32[3] = cumsum[axis=0 reverse=False] b\n"
        "        in (d,) }\n"
        "    ] b\n"
        "  in (d,) }");
}

TEST_CASE("sorting: derivatives agree with finite differences") {
  const Array v = some_direction(Type{float64, {3, 4}}, 8);
  check_derivatives([](const Arrays& a) -> Arrays { return {sort(a[0], 0, true)}; }, {v});
  check_derivatives([](const Arrays& a) -> Arrays { return {cumsum(a[0])}; }, {v});
  check_derivatives([](const Arrays& a) -> Arrays { return {cumprod(a[0], 1)}; }, {v});
}

TEST_CASE("the axis must exist") {
  CHECK_THROWS_WITH_AS(cumsum(x, 2), doctest::Contains("cumsum: axis out of range, got axis 2"),
                       TypeError);
  CHECK_THROWS_AS(cummax(x, 2), TypeError);
  CHECK_THROWS_AS(sort(x, -3), TypeError);
  CHECK_THROWS_AS(sort(array(1.0)), TypeError);
  CHECK_THROWS_AS(argsort(array(1.0)), TypeError);
  CHECK_THROWS_AS(top_k(x, 9), TypeError);
}

}  // namespace
}  // namespace reprise
