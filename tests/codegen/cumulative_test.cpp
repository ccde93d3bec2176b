// Cumulative operations in compiled programs, against the plain evaluator.
#include "same_bits.h"

namespace rp = reprise;
namespace lax = reprise::lax;
using rp::Array;

namespace {

using Cumulative = Array (*)(rp::Operand, std::int64_t, bool);
constexpr Cumulative all[] = {lax::cumsum, lax::cumprod, lax::cummax, lax::cummin};

// Factors near 1, so that products neither vanish nor overflow, and sums whose order shows in their
// digits.
Array numbers_near_one(const rp::Shape& shape) {
  return 1.f + 0.01f * rp::random::normal(rp::random::PRNGKey(5), shape);
}

const std::vector<rp::Shape> shapes = {
    {2048},    {1025},    {5000},     {17, 64}, {33, 63},  {100, 11}, {1030, 1},   {3, 1024},
    {2, 1111}, {5, 2113}, {9, 70, 3}, {70, 33}, {130, 64}, {65, 97},  {4, 5, 100}, {2, 129, 5, 2}};

}  // namespace

TEST_CASE(
    "cumulative operations of compiled programs are the evaluator's, along any axis, either way") {
  for (const rp::Shape& shape : shapes) {
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
      for (Cumulative f : all) {
        for (const bool reverse : {false, true}) {
          INFO(shape.size(), " dimensions, axis ", axis, " of ",
               shape[static_cast<std::size_t>(axis)], ", reverse ", reverse);
          check_same_bits([&](Array v) { return f(v, axis, reverse); }, numbers_near_one(shape));
          check_same_bits([&](Array v) { return f(v, axis, reverse); }, numbers_with_ties(shape));
        }
      }
    }
  }
}

TEST_CASE("cumulative operations of compiled programs are the evaluator's in every dtype") {
  for (const rp::Shape& shape : {rp::Shape{3, 1200}, rp::Shape{40, 37}, rp::Shape{140, 9}}) {
    for (rp::Dtype d : {rp::float16, rp::bfloat16, rp::float64, rp::int8, rp::int16, rp::int32,
                        rp::int64, rp::uint8, rp::uint16, rp::uint32, rp::uint64}) {
      for (Cumulative f : all) {
        for (std::int64_t axis = 0; axis < 2; ++axis) {
          INFO(rp::to_string(rp::Type{d, shape}), ", axis ", axis);
          const Array x = rp::clip(numbers_with_ties(shape, false), -6.f, 6.f).astype(d);
          check_same_bits([&](Array v) { return f(v, axis, false); }, x);
          check_same_bits([&](Array v) { return f(v, axis, true); }, x);
        }
      }
    }
  }
}

TEST_CASE("large cumulative operations are not evaluated") {
  const auto plan = [](const Array& x) {
    return rp::jit([](Array v) { return lax::cumsum(v, 0); }).lower(x).compile().as_text();
  };
  CHECK(plan(rp::ones({2000})).find("evaluate") == std::string::npos);
  CHECK(plan(rp::ones({100})).find("evaluate") != std::string::npos);
}
