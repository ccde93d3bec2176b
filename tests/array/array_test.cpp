#include "reprise/array.h"

#include "array/access.h"
#include "base/memory.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace reprise;

TEST_CASE("a C++ number is a weakly typed scalar") {
  CHECK(Array(1.5).type() == Type{float32, {}, true});
  CHECK(Array(2).type() == Type{int32, {}, true});
  CHECK(Array(2u).type() == Type{int32, {}, true});
  CHECK(Array(true).type() == Type{bool_, {}, false});
  CHECK(Array(1.5).item<double>() == 1.5);
  CHECK(Array(true).item<int>() == 1);
}

TEST_CASE("an integer that does not fit i32 is an error") {
  CHECK(Array(std::numeric_limits<std::int32_t>::min()).item<int>() ==
        std::numeric_limits<std::int32_t>::min());
  CHECK_THROWS_AS(Array(std::int64_t{1} << 31), TypeError);
  CHECK_THROWS_AS(Array(~std::uint64_t{0}), TypeError);
}

TEST_CASE("nested braces make an array of any rank") {
  const Array x = array({{1, 2, 3}, {4, 5, 6}});
  CHECK(x.type() == Type{int32, {2, 3}});
  CHECK(x.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(array({1, 2.5}).dtype() == float32);
  CHECK(array({true, false}).dtype() == bool_);
  CHECK(array({{{1.0}}}).shape() == Shape{1, 1, 1});
  CHECK(array({1, 2}, float64).dtype() == float64);
  CHECK(array({}).type() == Type{float32, {0}});
}

TEST_CASE("nested braces must be rectangular") {
  CHECK_THROWS_AS(array({{1, 2}, {3}}), TypeError);
  CHECK_THROWS_AS(array({{1, 2}, 3}), TypeError);
  CHECK_THROWS_AS(array({1, {2, 3}}), TypeError);
}

TEST_CASE("vectors and spans are copied with their dtype") {
  const std::vector<double> values{1, 2, 3, 4};
  CHECK(array(values).type() == Type{float64, {4}});
  CHECK(array(values, Shape{2, 2}).shape() == Shape{2, 2});
  CHECK(array(std::vector<bool>{true, false}).dtype() == bool_);
  CHECK(array(std::span<const double>(values)).to_vector<double>() == values);
  CHECK(array(values.data(), {2}).to_vector<double>() == std::vector<double>{1, 2});
}

TEST_CASE("the number of values must match the shape") {
  const std::vector<float> values(5);
  CHECK_THROWS_AS(array(values, Shape{2, 2}), TypeError);
  CHECK_THROWS_AS(array(values, Shape{-1, -5}), TypeError);
}

TEST_CASE("elements are read with conversion") {
  const Array x = array({1.75, -2.5});
  CHECK(x.to_vector<int>() == std::vector<int>{1, -2});
  CHECK(x.to_vector<double>() == std::vector<double>{1.75, -2.5});
  CHECK(x.to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(array({0.1}, bfloat16).item<float>() == 0.10009765625f);
  CHECK(array({300}).item<std::uint8_t>() == 44);     // integers wrap
  CHECK(array({300.0}).item<std::uint8_t>() == 255);  // floats saturate
}

TEST_CASE("data is the elements in place and needs their type") {
  const Array x = array({1.0, 2.0});
  CHECK(x.data<float>().size() == 2);
  CHECK(x.data<float>()[1] == 2.0f);
  CHECK_THROWS_AS(x.data<int>(), TypeError);
}

TEST_CASE("item needs exactly one element") {
  CHECK(array({{{7}}}).item<int>() == 7);
  CHECK_THROWS_AS(array({1, 2}).item<int>(), TypeError);
  CHECK_THROWS_AS(array({}).item<int>(), TypeError);
}

TEST_CASE("shape, sizes and axes") {
  const Array x = array({{1.0, 2.0, 3.0}});
  CHECK(x.ndim() == 2);
  CHECK(x.size() == 3);
  CHECK(x.nbytes() == 12);
  CHECK(x.shape(0) == 1);
  CHECK(x.shape(-1) == 3);
  CHECK_THROWS_AS(x.shape(2), TypeError);
}

TEST_CASE("an array holds a value or says so") {
  const Array nothing;
  CHECK_FALSE(nothing.defined());
  CHECK(Array(1).defined());
  CHECK_THROWS_AS(nothing.type(), TypeError);
  CHECK_THROWS_AS(nothing.to_vector<float>(), TypeError);
}

TEST_CASE("copies share their elements") {
  const Array x = array({1.0, 2.0, 3.0});
  const Array y = x;  // NOLINT: the copy is what is tested
  CHECK(x.data<float>().data() == y.data<float>().data());
}

TEST_CASE("a view uses aligned memory in place and copies other memory") {
  auto owner = allocate_buffer(64);
  auto* values = reinterpret_cast<float*>(owner.get());
  values[0] = 1;
  values[1] = 2;
  CHECK(view(values, {float32, {2}}, owner).data<float>().data() == values);
  const Array copy = view(values + 1, {float32, {1}}, owner);
  CHECK(copy.data<float>().data() != values + 1);
  CHECK(copy.item<float>() == 2);
}

TEST_CASE("dimensions must not be negative") {
  CHECK_THROWS_AS(NewArray({float32, {2, -1}}), TypeError);
}

TEST_CASE("a number stays a literal, other scalars do not") {
  CHECK(content(Array(2.0)).number() != nullptr);
  CHECK(content(array(std::vector<float>{2.0f})).number() == nullptr);
}

TEST_CASE("elements are reinterpreted under a type of equal size") {
  const Array x = array({{1, 2}, {3, 4}});
  CHECK(with_type(x, {int32, {4}}).to_vector<int>() == std::vector<int>{1, 2, 3, 4});
  const Array small = array({1, 2});
  CHECK(with_type(small, {int32, {2, 1}}).to_vector<int>() == std::vector<int>{1, 2});
}

TEST_CASE("a full array repeats one number") {
  const Array x = full_array({int8, {2, 2}}, make_literal(int8, -3));
  CHECK(x.to_vector<int>() == std::vector<int>(4, -3));
  CHECK(full_array({float32, {0}}, make_literal(float32, 1)).size() == 0);
}

TEST_CASE("the elements of a traced array cannot be read in place") {
  const Array x = make_traced({float32, {3}}, {nullptr, 1, 0, 0, {}});
  CHECK(is_traced(x));
  CHECK_THROWS_AS(x.data<float>(), TraceError);
}

TEST_CASE("live bytes count the buffers that are alive") {
  const std::size_t before = live_bytes();
  reset_peak_live_bytes();
  {
    const Array x = full_array({float32, {1000}}, make_literal(float32, 1));
    CHECK(live_bytes() >= before + 4000);
  }
  CHECK(live_bytes() == before);
  CHECK(peak_live_bytes() >= before + 4000);
}

TEST_CASE("integers in braces keep all their bits") {
  CHECK(array({(1l << 60) + 1}, int64).item<std::int64_t>() == (1l << 60) + 1);
  CHECK(array({~0ul}, uint64).item<std::uint64_t>() == ~0ul);
  CHECK(array({-128, 127}, int8).to_vector<int>() == std::vector<int>{-128, 127});
  CHECK(array({0.5, 2}, int32).to_vector<int>() == std::vector<int>{0, 2});
  CHECK(array({2, 0}, bool_).to_vector<int>() == std::vector<int>{1, 0});
}
