#include "base/dtype.h"

#include <doctest/doctest.h>

#include <string>

using namespace reprise;

namespace {

std::string promoted(Dtype a, Dtype b, bool a_weak = false, bool b_weak = false) {
  const Promoted p = promote_types(a, a_weak, b, b_weak);
  return std::string(short_name(p.dtype)) + (p.weak_type ? "*" : "");
}

}  // namespace

TEST_CASE("every dtype has a short and a long name that read back") {
  for (int i = 0; i <= static_cast<int>(Dtype::key); ++i) {
    const auto d = static_cast<Dtype>(i);
    CHECK(dtype_from_short_name(short_name(d)) == d);
    CHECK(dtype_from_long_name(long_name(d)) == d);
  }
  CHECK(short_name(bfloat16) == "bf16");
  CHECK(long_name(uint8) == "uint8");
  CHECK(short_name(Dtype::key) == "key<fry>");
  CHECK_FALSE(dtype_from_short_name("c64"));
  CHECK_FALSE(dtype_from_long_name("f32"));
}

TEST_CASE("dtypes know their size and category") {
  CHECK(itemsize(bool_) == 1);
  CHECK(itemsize(float16) == 2);
  CHECK(itemsize(int64) == 8);
  CHECK(itemsize(float0) == 1);
  CHECK(is_floating(bfloat16));
  CHECK_FALSE(is_floating(float0));
  CHECK(is_integer(uint8));
  CHECK_FALSE(is_integer(bool_));
}

TEST_CASE("strong dtypes promote as in JAX") {
  CHECK(promoted(float32, float32) == "f32");
  CHECK(promoted(bool_, int8) == "i8");
  CHECK(promoted(bool_, bfloat16) == "bf16");
  CHECK(promoted(uint8, int8) == "i16");
  CHECK(promoted(uint16, int8) == "i32");
  CHECK(promoted(uint8, int32) == "i32");
  CHECK(promoted(uint64, int8) == "f32*");
  CHECK(promoted(int64, float16) == "f16");
  CHECK(promoted(float16, bfloat16) == "f32");
  CHECK(promoted(float32, float64) == "f64");
}

TEST_CASE("a weak operand gives way unless its category is higher") {
  CHECK(promoted(int8, int32, false, true) == "i8");
  CHECK(promoted(float16, float32, false, true) == "f16");
  CHECK(promoted(float16, int32, false, true) == "f16");
  CHECK(promoted(int8, float32, false, true) == "f32*");
  CHECK(promoted(bool_, float32, false, true) == "f32*");
  CHECK(promoted(bool_, int32, false, true) == "i32*");
  CHECK(promoted(int32, float32, true, true) == "f32*");
  CHECK(promoted(float32, float32, true, true) == "f32*");
  CHECK(promoted(float32, float32, true, false) == "f32");
}

TEST_CASE("promotion does not depend on the order of the operands") {
  for (int a = 0; a <= static_cast<int>(Dtype::f64); ++a) {
    for (int b = 0; b <= static_cast<int>(Dtype::f64); ++b) {
      for (int weak = 0; weak < 4; ++weak) {
        const auto x = static_cast<Dtype>(a), y = static_cast<Dtype>(b);
        const bool x_weak = weak & 1, y_weak = weak & 2;
        CHECK(promoted(x, y, x_weak, y_weak) == promoted(y, x, y_weak, x_weak));
      }
    }
  }
}

TEST_CASE("float0 and keys have no common dtype with others") {
  CHECK_THROWS_WITH_AS(promote_types(float0, false, float32, false),
                       "promote_types: no common dtype, got float0 and f32", TypeError);
  CHECK_THROWS_AS(promote_types(int32, false, Dtype::key, false), TypeError);
}

TEST_CASE("types print as in programs") {
  CHECK(to_string(Type{float32, {5, 4}}) == "f32[5,4]");
  CHECK(to_string(Type{float32, {}}) == "f32[]");
  CHECK(to_string(Type{bool_, {3}}) == "bool[3]");
  CHECK(to_string(Type{float32, {3}, false, MemorySpace::host}) == "f32<host>[3]");
  CHECK(to_string(Type{Dtype::key, {}}) == "key<fry>[]");
  CHECK(to_string(Type{float32, {}, true}) == "f32[]");
}

TEST_CASE("shapes print as Python tuples") {
  CHECK(to_string(Shape{}) == "()");
  CHECK(to_string(Shape{3}) == "(3,)");
  CHECK(to_string(Shape{5, 4}) == "(5, 4)");
}

TEST_CASE("sizes and strides follow from the shape") {
  const Type t{float64, {2, 3, 4}};
  CHECK(t.ndim() == 3);
  CHECK(t.size() == 24);
  CHECK(t.nbytes() == 192);
  CHECK(element_count({}) == 1);
  CHECK(element_count({4, 0, 5}) == 0);
  CHECK(row_major_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(row_major_strides({}).empty());
}

TEST_CASE("a shape with more elements than can be counted is an error") {
  const std::int64_t big = std::int64_t{1} << 40;
  CHECK_THROWS_AS(element_count({big, big}), RuntimeError);
}

TEST_CASE("an axis counts from the front or from the end") {
  CHECK(canonical_axis("sum", 1, 3) == 1);
  CHECK(canonical_axis("sum", -1, 3) == 2);
  CHECK(canonical_axis("sum", -3, 3) == 0);
  CHECK_THROWS_WITH_AS(canonical_axis("sum", 3, 3),
                       "sum: axis out of range, got axis 3 for 3 dimensions", TypeError);
  CHECK_THROWS_AS(canonical_axis("sum", -4, 3), TypeError);
  CHECK_THROWS_AS(canonical_axis("sum", 0, 0), TypeError);
}

TEST_CASE("visiting a dtype gives the C++ type of its elements") {
  const auto size = [](auto tag) { return sizeof(tag); };
  for (int i = 0; i <= static_cast<int>(Dtype::f64); ++i) {
    const auto d = static_cast<Dtype>(i);
    CHECK(visit_dtype(d, size) == itemsize(d));
  }
  CHECK(visit_floating(bfloat16, size) == 2);
  CHECK_THROWS_AS(visit_dtype(float0, size), TypeError);
  CHECK_THROWS_WITH_AS(visit_floating(int32, size), "dtype: a floating dtype is needed, got i32",
                       TypeError);
}
