#include "ops/lax.h"
#include "ops/records.h"
#include "ops/rules_check.h"
#include "program/print.h"

#include <cmath>

namespace reprise {
namespace {

std::string text_of(const FlatFunction& f) { return to_text(*trace(f, {}).program); }

TEST_CASE("iota counts along one dimension") {
  check_numbers(lax::iota(int32, {2, 3}, 1), {0, 1, 2, 0, 1, 2});
  check_numbers(lax::iota(float32, {2, 3}, 0), {0, 0, 0, 1, 1, 1});
  check_numbers(lax::iota(bfloat16, {2}, -1), {0, 1});
  check_numbers(lax::iota(uint8, {0, 3}, 1), {});
  CHECK_THROWS_AS(lax::iota(int32, {2}, 1), TypeError);
  CHECK_THROWS_AS(lax::iota(int32, {}, 0), TypeError);
  CHECK_THROWS_AS(lax::iota(bool_, {2}, 0), TypeError);
  CHECK_THROWS_AS(lax::iota(int32, {-1}, 0), TypeError);
}

TEST_CASE("full repeats a scalar of any dtype") {
  check_numbers(lax::full({2, 2}, 3, float32), {3, 3, 3, 3});
  check_numbers(lax::full({2}, array(1.5), int32), {1, 1});
  check_numbers(lax::full({}, 2.5, bfloat16), {2.5});
  CHECK(lax::full({0}, 1, bool_).size() == 0);
  CHECK_THROWS_AS(lax::full({2}, array({1.0}), float32), TypeError);
  CHECK_THROWS_AS(lax::full({-2}, 1, float32), TypeError);
}

TEST_CASE("filled arrays are concrete when computing, broadcasts and literals when tracing") {
  CHECK(content(lax::zeros(Type{float32, {}})).number() == nullptr);
  CHECK(text_of([](const Arrays&) {
          return Arrays{lax::zeros(Type{float32, {}})};
        }) == "{ lambda ; . let  in (0.0:f32[],) }");
  CHECK(text_of([](const Arrays&) { return Arrays{lax::full({2}, 7, int32)}; }) ==
        "{ lambda ; . let a:i32[2] = broadcast_in_dim 7:i32[] in (a,) }");
  CHECK(lax::zeros(Type{float32, {2}, true}).weak_type());
}

TEST_CASE("zeros of float0 are made without arithmetic") {
  const Array zero = lax::zeros(Type{float0, {2, 3}});
  CHECK(zero.dtype() == float0);
  CHECK(zero.shape() == Shape{2, 3});
}

TEST_CASE("const_like is a literal of the dtype that is never a residual") {
  const Array third = lax::const_like(array({1.0}), 1.0 / 3);
  REQUIRE(content(third).number() != nullptr);
  CHECK_FALSE(content(third).number()->promoted);
  CHECK(content(third).number()->real == static_cast<double>(1.0f / 3.0f));
  CHECK_FALSE(third.weak_type());
}

TEST_CASE("empty2 is a scalar that is broadcast to the shape") {
  CHECK(lax::empty2(float32, {2, 3}).shape() == Shape{2, 3});
  CHECK(text_of([](const Arrays&) { return Arrays{lax::empty2(float32, {})}; }) ==
        "{ lambda ; . let\n    a:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] \n"
        "  in (a,) }");
}

TEST_CASE("every basic primitive has a name, a type rule and an evaluation") {
  for (const Primitive* p : basic_primitives()) {
    CAPTURE(p->name);
    const bool complete = p->type != nullptr && p->eval != nullptr;
    CHECK(complete);
  }
}

}  // namespace
}  // namespace reprise
