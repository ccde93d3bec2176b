#include "ops/mapped_axes.h"
#include "program/print.h"
#include "reprise/ops_reduce.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

const Array x = array({{1.0, 5.0, 3.0}, {4.0, 2.0, 9.0}});
Array waves(Shape shape) { return some_direction(Type{float64, std::move(shape)}, 21); }

using Reduction = Array (*)(Operand, ReduceAxes, bool);
std::string text_of(const FlatFunction& f, const Type& in) {
  return to_text(*trace(f, {in}).program);
}
std::string text_of(Reduction r, const Type& in, const ReduceAxes& axis = {},
                    bool keepdims = false) {
  return text_of([&](const Arrays& a) -> Arrays { return {r(a[0], axis, keepdims)}; }, in);
}

TEST_CASE("reductions take all axes, one, or several, and may keep them") {
  check_numbers(sum(x), {24});
  check_numbers(sum(x, 0), {5, 7, 12});
  check_numbers(sum(x, -1), {9, 15});
  check_numbers(sum(x, {0, 1}), {24});
  check_numbers(sum(x, std::vector<std::int64_t>{}), {1, 5, 3, 4, 2, 9});
  CHECK(sum(x, 1, true).shape() == Shape{2, 1});
  CHECK(sum(x, std::nullopt, true).shape() == Shape{1, 1});
  check_numbers(prod(x, 1), {15, 72});
  check_numbers(max(x), {9});
  check_numbers(min(x, 0), {1, 2, 3});
  check_numbers(amax(x, 0), {4, 5, 9});
  check_numbers(amin(x, 1, true), {1, 2});
  check_numbers(mean(x, 1), {3, 5});
  check_numbers(any(array({{0, 2}, {0, 0}}), 1), {1, 0});
  check_numbers(all(array({{1, 2}, {0, 3}}), 1), {1, 0});
}

TEST_CASE("var and std_ divide by the count minus ddof") {
  check_numbers(var(array({1.0, 2.0, 3.0, 4.0})), {1.25});
  check_numbers(var(array({1.0, 3.0}), 0, false, 1), {2});
  check_numbers(std_(array({{1.0, 3.0}, {2.0, 6.0}}), 1, true), {1, 2});
  check_numbers(var(array({1.0}), 0, false, 1), {nan});
  CHECK(var(array({1, 2})).dtype() == float32);
}

TEST_CASE("argmax and argmin search one axis, or x as one row") {
  CHECK(argmax(x).item<int>() == 5);
  check_numbers(argmin(x, 1), {0, 1});
  CHECK(argmax(x, -1, true).shape() == Shape{2, 1});
  CHECK(argmin(x, std::nullopt, true).shape() == Shape{1, 1});
}

TEST_CASE("sums of small integers are i32 or u32, half precision stays, weak types get strong") {
  CHECK(sum(array({true, true})).dtype() == int32);
  CHECK(sum(array({1, 2}).astype(int8)).dtype() == int32);
  CHECK(prod(array({1, 2}).astype(uint16)).dtype() == uint32);
  CHECK(sum(array({1, 2}).astype(int64)).dtype() == int64);
  CHECK(sum(x.astype(bfloat16)).dtype() == bfloat16);
  CHECK(mean(array({true, false})).item<float>() == 0.5f);
  CHECK(mean(array({1, 2})).dtype() == float32);
  CHECK(max(array({1, 2}).astype(int8)).dtype() == int8);
  CHECK_FALSE(sum(2.5).weak_type());
  CHECK(sum(2.5).item<float>() == 2.5f);
}

TEST_CASE("an empty sum is 0, an empty product 1, an empty mean NaN, an empty maximum an error") {
  const Array empty = array(std::vector<float>{}, Shape{0, 3});
  check_numbers(sum(empty), {0});
  check_numbers(prod(empty, 0), {1, 1, 1});
  check_numbers(mean(empty), {nan});
  CHECK(sum(empty, 1).shape() == Shape{0});
  CHECK(max(empty, 1).shape() == Shape{0});
  CHECK_THROWS_WITH_AS(
      max(empty), doctest::Contains("max: a reduced axis is empty and there is no neutral element"),
      TypeError);
  CHECK_THROWS_AS(min(empty, 0), TypeError);
  CHECK_THROWS_AS(argmax(empty), TypeError);
  CHECK_THROWS_AS(argmin(empty, 0), TypeError);
}

TEST_CASE("logsumexp neither overflows nor loses infinities") {
  CHECK(logsumexp(array({1000.0, 1000.0})).item<double>() == doctest::Approx(1000 + std::log(2.0)));
  check_numbers(logsumexp(array({-inf, -inf})), {-inf});
  check_numbers(logsumexp(array({inf, 1.0})), {inf});
  CHECK(logsumexp(x, 1, true).shape() == Shape{2, 1});
  CHECK(logsumexp(array({1, 2})).dtype() == float32);
  CHECK(logsumexp(array(std::vector<float>{})).item<double>() == -inf);
}

TEST_CASE("reductions: derivatives agree with finite differences") {
  const auto of = [](auto f) { return [f](const Arrays& a) -> Arrays { return {f(a[0])}; }; };
  const Array v = waves({3, 4});
  check_derivatives(of([](const Array& a) { return mean(a, 0, true); }), {v});
  check_derivatives(of([](const Array& a) { return var(a, 1); }), {v});
  check_derivatives(of([](const Array& a) { return std_(a); }), {v}, 1e-5);
  check_derivatives(of([](const Array& a) { return logsumexp(a, 1); }), {v});
}

TEST_CASE("reductions print as in JAX") {
  const Type f23{float32, {2, 3}};
  CHECK(text_of(mean, f23, 1, true) ==
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:f32[2] = reduce_sum[axes=(1,) out_sharding=None] a\n"
        "    c:f32[2,1] = broadcast_in_dim[broadcast_dimensions=(0,)] b\n"
        "    d:f32[2,1] = div c 3.0:f32[]\n"
        "  in (d,) }");
  CHECK(text_of(sum, Type{bfloat16, {3}}) ==
        "{ lambda ; a:bf16[3]. let\n"
        "    b:f32[3] = convert_element_type[new_dtype=float32 weak_type=False] a\n"
        "    c:f32[] = reduce_sum[axes=(0,) out_sharding=None] b\n"
        "    d:bf16[] = convert_element_type[new_dtype=bfloat16 weak_type=False] c\n"
        "  in (d,) }");
  CHECK(text_of(any, f23, 0) ==
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:bool[2,3] = convert_element_type[new_dtype=bool weak_type=False] a\n"
        "    c:bool[3] = reduce_or[axes=(0,)] b\n"
        "  in (c,) }");
  CHECK(text_of([](const Arrays& a) -> Arrays { return {argmax(a[0])}; }, f23) ==
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:f32[6] = reshape[dimensions=None new_sizes=(6,) sharding=None] a\n"
        "    c:i32[] = argmax[axes=(0,) index_dtype=int32] b\n"
        "  in (c,) }");
}

TEST_CASE("the axes of a reduction must exist and differ") {
  CHECK_THROWS_WITH_AS(sum(x, 2), doctest::Contains("sum: axis out of range, got axis 2"),
                       TypeError);
  CHECK_THROWS_AS(var(x, -3), TypeError);
  CHECK_THROWS_AS(argmax(x, 2), TypeError);
  CHECK_THROWS_WITH_AS(max(x, {1, -1}), doctest::Contains("max: reduced axes repeat"), TypeError);
}

}  // namespace
}  // namespace reprise
