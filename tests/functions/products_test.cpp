#include "ops/mapped_axes.h"
#include "ops/reduce.h"
#include "ops/window.h"
#include "program/print.h"
#include "reprise/ops_reduce.h"

#include <algorithm>

namespace reprise {
namespace {

std::string text_of(Array (*f)(Operand, Operand, std::optional<Dtype>), const Shape& a,
                    const Shape& b) {
  const auto call = [&](const Arrays& x) -> Arrays { return {f(x[0], x[1], std::nullopt)}; };
  return to_text(*trace(call, {Type{float32, a}, Type{float32, b}}).program);
}

// numpy's rule for matmul, an element at a time; integers keep it exact.
void check_matmul(const Shape& a_shape, const Shape& b_shape, const Shape& expected_shape) {
  const Array a = counting(a_shape), b = counting(b_shape);
  const Array y = matmul(a, b);
  CHECK(y.shape() == expected_shape);
  const std::vector<double> u = a.to_vector<double>(), v = b.to_vector<double>();
  const bool a_matrix = a_shape.size() > 1, b_matrix = b_shape.size() > 1;
  const std::int64_t k = a_shape.back(), n = b_matrix ? b_shape.back() : 1;
  const std::size_t lead = expected_shape.size() - (a_matrix ? 1 : 0) - (b_matrix ? 1 : 0);
  // The matrix of an operand that belongs to a batch index.
  const auto matrix = [&](const Shape& shape, const Shape& index) {
    const std::size_t own = shape.size() < 2 ? 0 : shape.size() - 2;
    const Shape strides = row_major_strides(shape);
    std::int64_t at = 0;
    for (std::size_t d = 0; d < own; ++d) {
      if (shape[d] != 1) at += strides[d] * index[lead - own + d];
    }
    return at;
  };
  std::vector<double> expected;
  for_each_index(expected_shape, [&](const Shape& index) {
    const std::int64_t i = a_matrix ? index[lead] : 0;
    const std::int64_t j = b_matrix ? index.back() : 0;
    double sum_of = 0;
    for (std::int64_t m = 0; m < k; ++m) {
      sum_of += u[static_cast<std::size_t>(matrix(a_shape, index) + i * k + m)] *
                v[static_cast<std::size_t>(matrix(b_shape, index) + m * n + j)];
    }
    expected.push_back(sum_of);
  });
  check_numbers(y, expected);
}

TEST_CASE("matmul multiplies matrices and vectors, and broadcasts leading axes") {
  check_matmul({3}, {3}, {});
  check_matmul({2, 3}, {3}, {2});
  check_matmul({3}, {3, 2}, {2});
  check_matmul({2, 3}, {3, 4}, {2, 4});
  check_matmul({5, 2, 3}, {3, 4}, {5, 2, 4});
  check_matmul({2, 3}, {5, 3, 4}, {5, 2, 4});
  check_matmul({5, 2, 3}, {5, 3, 4}, {5, 2, 4});
  check_matmul({5, 2, 3}, {1, 3, 4}, {5, 2, 4});
  check_matmul({1, 2, 3}, {5, 3, 4}, {5, 2, 4});
  check_matmul({1, 2, 3}, {1, 3, 4}, {1, 2, 4});
  check_matmul({2, 5, 2, 3}, {5, 3, 4}, {2, 5, 2, 4});
  check_matmul({2, 1, 2, 3}, {1, 5, 3, 4}, {2, 5, 2, 4});
  check_matmul({2, 1, 2, 3}, {2, 5, 3, 4}, {2, 5, 2, 4});
  check_matmul({5, 2, 3}, {3}, {5, 2});
  check_matmul({3}, {5, 3, 4}, {5, 4});
  check_matmul({2, 0}, {0, 3}, {2, 3});
}

TEST_CASE("dot contracts the last axis of a and the last but one of b") {
  const Array a = counting({2, 5, 3}), b = counting({4, 3, 6});
  const Array y = dot(a, b);
  CHECK(y.shape() == Shape{2, 5, 4, 6});
  check_numbers(y, tensordot(a, b, {2}, {1}).to_vector<double>());
  check_numbers(dot(array({1, 2, 3}), array({4, 5, 6})), {32});
  check_numbers(dot(array({1, 2}), 3), {3, 6});
  CHECK(dot(2.0, 3.0).weak_type());
}

TEST_CASE("tensordot, inner, vdot and outer") {
  const Array a = counting({2, 3}), b = counting({3, 2});
  check_numbers(tensordot(a, b, 1), {10, 13, 28, 40});
  check_numbers(tensordot(a, a), {55});
  check_numbers(tensordot(a, b, {0, 1}, {-1, -2}), {50});
  CHECK(tensordot(a, b, 0).shape() == Shape{2, 3, 3, 2});
  check_numbers(inner(a, array({{1, 0, 1}})), {2, 8});
  check_numbers(inner(2, array({1, 2})), {2, 4});
  check_numbers(vdot(a, b), {55});
  check_numbers(outer(array({1, 2}), array({3.0, 4.0})), {3, 4, 6, 8});
  CHECK(outer(a, b).shape() == Shape{6, 6});
}

TEST_CASE("products have the promoted dtype or the preferred one") {
  const Array i = array({1, 2}), f = array({1.0, 2.0}), h = f.astype(bfloat16);
  CHECK(matmul(i, f).dtype() == float32);
  CHECK(matmul(h, h).dtype() == bfloat16);
  CHECK(matmul(h, h, float32).dtype() == float32);
  CHECK(dot(h, f.astype(float16)).dtype() == float32);
  CHECK(inner(i, i.astype(int8)).dtype() == int32);
}

TEST_CASE("products print as in JAX") {
  CHECK(text_of(dot, {5, 4}, {4}) ==
        "{ lambda ; a:f32[5,4] b:f32[4]. let\n"
        "    c:f32[5] = dot_general[\n"
        "      dimension_numbers=(([1], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] a b\n"
        "  in (c,) }");
  CHECK(text_of(matmul, {1, 2, 3}, {5, 3, 4}) ==
        "{ lambda ; a:f32[1,2,3] b:f32[5,3,4]. let\n"
        "    c:f32[2,3] = squeeze[dimensions=(0,)] a\n"
        "    d:f32[2,5,4] = dot_general[\n"
        "      dimension_numbers=(([1], [1]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c b\n"
        "    e:f32[5,2,4] = transpose[permutation=(1, 0, 2)] d\n"
        "  in (e,) }");
}

TEST_CASE("products: derivatives agree with finite differences") {
  const auto v = [](Shape s, unsigned seed) {
    return some_direction(Type{float64, std::move(s)}, seed);
  };
  const auto product = [](const Arrays& x) -> Arrays { return {matmul(x[0], x[1])}; };
  check_derivatives(product, {v({2, 1, 2, 3}, 1), v({5, 3, 4}, 2)});
  check_derivatives(product, {v({3}, 1), v({5, 3, 4}, 2)});
  check_derivatives([](const Arrays& x) -> Arrays { return {outer(x[0], x[1])}; },
                    {v({2, 3}, 1), v({4}, 2)});
}

TEST_CASE("products name what does not fit") {
  const Array a = counting({2, 3});
  CHECK_THROWS_WITH_AS(
      matmul(a, a), doctest::Contains("contracting sizes differ, got 3 (lhs axis 1)"), TypeError);
  CHECK_THROWS_WITH_AS(matmul(a, 2.0), doctest::Contains("matmul: operands need at least one axis"),
                       TypeError);
  CHECK_THROWS_WITH_AS(matmul(counting({2, 2, 3}), counting({3, 3, 4})),
                       doctest::Contains("matmul: batch axes do not broadcast"), TypeError);
  CHECK_THROWS_WITH_AS(tensordot(a, a, 3), doctest::Contains("tensordot: axes must be between 0"),
                       TypeError);
  CHECK_THROWS_AS(tensordot(a, a, {5}, {0}), TypeError);
  CHECK_THROWS_AS(vdot(array({1, 2}), array({1, 2, 3})), TypeError);
}

}  // namespace
}  // namespace reprise
