// Sorting in compiled programs, against the plain evaluator.
#include "same_bits.h"

namespace rp = reprise;
namespace lax = reprise::lax;
using rp::Array;

namespace {

// All results of a sort, compiled and evaluated.
void check_sort(const rp::Arrays& xs, std::int64_t axis, std::int64_t keys) {
  const auto f = [&](const std::vector<Array>& v) { return lax::sort(v, axis, keys); };
  const rp::Arrays got = rp::jit(f)(xs), expected = f(xs);
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) check_same_elements(got[k], expected[k]);
}

Array random_numbers(const rp::Shape& shape) {
  return 1000.f * rp::random::normal(rp::random::PRNGKey(3), shape);
}

const rp::Dtype all_dtypes[] = {rp::float32, rp::float64, rp::float16, rp::bfloat16, rp::int8,
                                rp::int16,   rp::int32,   rp::int64,   rp::uint8,    rp::uint16,
                                rp::uint32,  rp::uint64,  rp::bool_};

// Networks and digits, along rows and columns; lengths that fill no vector; fewer runs than lanes.
const std::vector<rp::Shape> shapes = {{1024},      {1031},    {40000},     {64, 17},   {37, 64},
                                       {1000, 2},   {2, 1000}, {33, 130},   {20, 1025}, {3, 3000},
                                       {7, 33, 19}, {5000, 3}, {3, 700, 2}, {40, 1, 40}};

}  // namespace

TEST_CASE("compiled sorts are the evaluator's, along any axis") {
  for (const rp::Shape& shape : shapes) {
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
      INFO(shape.size(), " dimensions, axis ", axis, " of ", shape[static_cast<std::size_t>(axis)]);
      check_sort({random_numbers(shape)}, axis, 1);
      check_sort({numbers_with_ties(shape)}, axis, 1);
      check_sort({numbers_with_ties(shape), lax::iota(rp::int32, shape, axis)}, axis, 1);
      check_sort({random_numbers(shape), numbers_with_ties(shape)}, axis, 2);
    }
  }
}

TEST_CASE("compiled sorts are the evaluator's in every dtype") {
  for (const rp::Shape& shape : {rp::Shape{1500}, rp::Shape{33, 50}, rp::Shape{50, 33}}) {
    for (rp::Dtype d : all_dtypes) {
      INFO(rp::to_string(rp::Type{d, shape}));
      const bool has_nan = rp::is_floating(d);
      const Array ties =
          has_nan ? numbers_with_ties(shape)
                  : rp::clip(numbers_with_ties(shape, false), d == rp::bool_ ? 0.f : -6.f, 6.f);
      const Array x = ties.astype(d),
                  many = rp::clip(random_numbers(shape), -100.f, 100.f).astype(d);
      check_sort({x}, 0, 1);
      check_sort({many}, 0, 1);
      check_sort({x, lax::iota(rp::int32, shape, 0)}, 0, 1);
      check_sort({many, x, lax::iota(rp::uint16, shape, 0)}, 0, 2);
      check_sort({random_numbers(shape), x}, 0, 1);
      check_sort({x, many, random_numbers(shape), lax::iota(rp::float64, shape, 0)}, 0, 3);
    }
  }
}

TEST_CASE("sorted, reversed and equal elements, and the extremes of integers") {
  for (const rp::Shape& shape : {rp::Shape{4096}, rp::Shape{32, 128}}) {
    const std::int64_t axis = static_cast<std::int64_t>(shape.size()) - 1;
    const Array up = lax::iota(rp::float32, shape, axis);
    check_sort({up}, axis, 1);
    check_sort({-up, up}, axis, 1);
    check_sort({0.f * up, up}, axis, 1);
    check_sort({-0.f * up}, axis, 1);
    const Array wide =
        lax::bitcast_convert_type(rp::random::bits(rp::random::PRNGKey(1), shape), rp::int32);
    check_sort({wide}, axis, 1);
    check_sort({lax::bitcast_convert_type(wide, rp::uint32), up}, axis, 1);
    check_sort({lax::bitcast_convert_type(wide, rp::float32)}, axis, 1);
    check_sort({wide.astype(rp::int64) * rp::full({}, std::int64_t{1} << 31, rp::int64)}, axis, 1);
  }
}

TEST_CASE("NaNs keep their signs and payloads when sorted") {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t i = 0; i < 2048; ++i)
    bits.push_back(i % 3 == 0 ? 0x7fc00000u + i : i % 3 == 1 ? 0xffc00000u + i : i << 20);
  for (const rp::Shape& shape : {rp::Shape{2048}, rp::Shape{64, 32}}) {
    const Array x = rp::array(bits).reshape(shape);
    const auto f = [](Array v) {
      return lax::bitcast_convert_type(rp::sort(lax::bitcast_convert_type(v, rp::float32)),
                                       rp::uint32);
    };
    check_same_bits(f, x);
  }
}

TEST_CASE("large sorts are not evaluated") {
  const auto plan = [](const Array& x) {
    return rp::jit([](Array v) { return rp::sort(v); }).lower(x).compile().as_text();
  };
  CHECK(plan(rp::ones({2000})).find("evaluate") == std::string::npos);
  CHECK(plan(rp::ones({100})).find("evaluate") != std::string::npos);
}
