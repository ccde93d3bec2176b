#include "ops/rules_check.h"
#include "program/print.h"
#include "reprise/lax.h"
#include "reprise/ops_math.h"

#include <cmath>
#include <limits>

namespace reprise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST_CASE("filled arrays have the shape and dtype asked for") {
  check_numbers(zeros({2, 2}), {0.0, 0.0, 0.0, 0.0});
  CHECK(zeros({2}).dtype() == float32);
  check_numbers(ones({2}, int32), {1, 1});
  check_numbers(ones({}, bool_), {1});
  CHECK(empty({2, 0}, bfloat16).shape() == Shape{2, 0});
  CHECK_THROWS_AS(zeros({-1}), TypeError);
}

TEST_CASE("full takes its dtype from the value and stays weak for a number") {
  CHECK(full({2}, 3).dtype() == int32);
  CHECK(full({2}, 3.5).weak_type());
  CHECK_FALSE(full({2}, 3.5, float32).weak_type());
  CHECK(full({2}, true).dtype() == bool_);
  check_numbers(full({2, 3}, array({1, 2, 3})), {1, 2, 3, 1, 2, 3});
  check_numbers(full({2}, 1.9, int32), {1, 1});
  CHECK_THROWS_AS(full({2}, array({1, 2, 3})), TypeError);
  CHECK_THROWS_AS(full({}, array({1})), TypeError);
}

TEST_CASE("full takes integers of 64 bits, which must fit") {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  CHECK(full({2}, large, int64).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{large, large});
  CHECK(full({}, UINT64_MAX, uint64).item<std::uint64_t>() == UINT64_MAX);
  CHECK(full({}, std::int64_t{-5}, int8).item<int>() == -5);
  CHECK(full({}, std::int64_t{3}, float32).item<float>() == 3);
  CHECK_THROWS_AS(full({}, large, int32), TypeError);
  CHECK_THROWS_AS(full({}, std::int64_t{-1}, uint64), TypeError);
  CHECK_THROWS_AS(full({}, UINT64_MAX, int64), TypeError);
}

TEST_CASE("the like functions copy shape, dtype and weakness") {
  const Array x = array({{1, 2}}).astype(bfloat16);
  CHECK(zeros_like(x).type() == x.type());
  check_numbers(ones_like(x, int32), {1, 1});
  check_numbers(full_like(x, 2.5), {2.5, 2.5});
  check_numbers(full_like(x, array({7, 8})), {7, 8});
  CHECK(zeros_like(2.0).weak_type());
}

TEST_CASE("arange counts integers and floats, up and down") {
  check_numbers(arange(3), {0, 1, 2});
  CHECK(arange(3).dtype() == int32);
  check_numbers(arange(2, 5), {2, 3, 4});
  check_numbers(arange(5, 2, -1), {5, 4, 3});
  check_numbers(arange(1, 7, 2), {1, 3, 5});
  check_numbers(arange(1, 8, 2), {1, 3, 5, 7});
  check_numbers(arange(2.5), {0.0, 1, 2});
  check_numbers(arange(1, 3, 0.5), {1, 1.5, 2, 2.5});
  CHECK(arange(1, 3, 0.5).dtype() == float32);
  CHECK(arange(3, float32).dtype() == float32);
  check_numbers(arange(array(1), array(3)), {1, 2});
}

TEST_CASE("arange can be empty and refuses what has no end") {
  CHECK(arange(0).shape() == Shape{0});
  CHECK(arange(3, 1).shape() == Shape{0});
  CHECK(arange(-4).shape() == Shape{0});
  CHECK(arange(0, 5, -1).shape() == Shape{0});
  CHECK_THROWS_AS(arange(0, 5, 0), TypeError);
  CHECK_THROWS_AS(arange(inf), TypeError);
  CHECK_THROWS_AS(arange(0.0, std::nan(""), 1.0), TypeError);
  CHECK_THROWS_AS(arange(array({1, 2})), TypeError);
  CHECK_THROWS_AS(arange(3, bool_), TypeError);
  const Type scalar{int32, {}};
  CHECK_THROWS_AS(trace([](const Arrays& a) { return Arrays{arange(a[0])}; }, {scalar}),
                  TraceError);
}

TEST_CASE("linspace includes the end unless told") {
  check_numbers(linspace(0.0, 1.0, 5), {0.0, 0.25, 0.5, 0.75, 1});
  check_numbers(linspace(0, 8, 4, false), {0.0, 2, 4, 6});
  check_numbers(linspace(3.0, 9.0, 1), {3});
  check_numbers(linspace(3.0, 9.0, 2), {3, 9});
  CHECK(linspace(3.0, 9.0, 0).shape() == Shape{0});
  CHECK(linspace(0, 1).shape() == Shape{50});
  check_numbers(linspace(0.0, 10.0, 5, true, int32), {0, 2, 5, 7, 10});
  CHECK_THROWS_AS(linspace(0.0, 1.0, -1), TypeError);
  CHECK_THROWS_AS(linspace(array({0.0}), 1.0), TypeError);
}

TEST_CASE("diagonals and triangles") {
  check_numbers(eye(2, 3), {1, 0, 0, 0, 1, 0});
  check_numbers(eye(2, 3, 1), {0, 1, 0, 0, 0, 1});
  check_numbers(eye(2, 2, -1, int32), {0, 0, 1, 0});
  check_numbers(identity(2, bool_), {1, 0, 0, 1});
  check_numbers(tri(2, 3), {1, 0, 0, 1, 1, 0});
  check_numbers(tri(2, 3, 1), {1, 1, 0, 1, 1, 1});
  const Array x = array({{1, 2, 3}, {4, 5, 6}});
  check_numbers(tril(x), {1, 0, 0, 4, 5, 0});
  check_numbers(triu(x), {1, 2, 3, 0, 5, 6});
  check_numbers(tril(x, -1), {0, 0, 0, 4, 0, 0});
  check_numbers(triu(x, 1), {0, 2, 3, 0, 0, 6});
  check_numbers(triu(array({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})), {1, 2, 0, 4, 5, 6, 0, 8});
  CHECK_THROWS_AS(tril(array({1, 2})), TypeError);
  CHECK_THROWS_AS(eye(-1), TypeError);
}

TEST_CASE("a diagonal far outside the matrix keeps all or nothing") {
  const Array x = array({{1, 2}, {3, 4}});
  check_numbers(tril(x, INT64_MAX), {1, 2, 3, 4});
  check_numbers(tril(x, INT64_MIN), {0, 0, 0, 0});
  check_numbers(triu(x, INT64_MIN), {1, 2, 3, 4});
  check_numbers(triu(x, INT64_MAX), {0, 0, 0, 0});
  check_numbers(eye(2, 2, INT64_MAX), {0, 0, 0, 0});
}

TEST_CASE("while tracing new arrays are equations") {
  const auto text = [](const FlatFunction& f) { return to_text(*trace(f, {}).program); };
  CHECK(text([](const Arrays&) { return Arrays{ones({3}, bfloat16)}; }) ==
        "{ lambda ; . let a:bf16[3] = broadcast_in_dim 1.0:bf16[] in (a,) }");
  CHECK(text([](const Arrays&) { return Arrays{zeros({})}; }) ==
        "{ lambda ; . let  in (0.0:f32[],) }");
  CHECK(text([](const Arrays&) { return Arrays{arange(2, 5)}; }) ==
        "{ lambda ; . let\n"
        "    a:i32[3] = iota[dimension=0 dtype=int32 shape=(3,) sharding=None] \n"
        "    b:i32[3] = add 2:i32[] a\n  in (b,) }");
}

}  // namespace
}  // namespace reprise
