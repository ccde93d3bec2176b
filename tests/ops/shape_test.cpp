#include "ops/shape.h"

#include "ops/mapped_axes.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise {
namespace {

using X = const Array&;

TEST_CASE("broadcast_in_dim repeats along new dimensions and those of size 1") {
  const Array x = counting({3, 1});
  const Array y = lax::broadcast_in_dim(x, {2, 3, 4}, {1, 2});
  CHECK(y.shape() == Shape{2, 3, 4});
  std::vector<double> expected;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) expected.push_back(j);
    }
  }
  check_numbers(y, expected);
  check_numbers(lax::broadcast_in_dim(array(7.5), {2, 2}, {}), {7.5, 7.5, 7.5, 7.5});
  check_numbers(lax::broadcast_in_dim(counting({2, 3}), {3, 2}, {1, 0}), {0, 3, 1, 4, 2, 5});
  CHECK(lax::broadcast_in_dim(counting({0}), {2, 0}, {1}).shape() == Shape{2, 0});
  CHECK(lax::broadcast_in_dim(counting({1}), {0}, {0}).shape() == Shape{0});
}

TEST_CASE("transpose permutes dimensions") {
  const Array x = counting({2, 3, 4});
  Ints permutation{0, 1, 2};
  do {
    const Array y = lax::transpose(x, permutation);
    std::vector<double> expected;
    Shape from(3);
    const auto size = [&](std::size_t d) {
      return x.shape()[static_cast<std::size_t>(permutation[d])];
    };
    for (std::int64_t i = 0; i < size(0); ++i) {
      for (std::int64_t j = 0; j < size(1); ++j) {
        for (std::int64_t k = 0; k < size(2); ++k) {
          from[static_cast<std::size_t>(permutation[0])] = i;
          from[static_cast<std::size_t>(permutation[1])] = j;
          from[static_cast<std::size_t>(permutation[2])] = k;
          expected.push_back(static_cast<double>(from[0] * 12 + from[1] * 4 + from[2]));
        }
      }
    }
    check_numbers(y, expected);
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST_CASE("reshape and squeeze keep the elements in row-major order and share them") {
  const Array x = counting({2, 3, 1});
  const Array y = lax::reshape(x, {3, 2});
  check_numbers(y, {0, 1, 2, 3, 4, 5});
  CHECK(content(y).elements == content(x).elements);
  CHECK(lax::squeeze(x, {-1}).shape() == Shape{2, 3});
  CHECK(lax::squeeze(lax::reshape(x, {1, 6, 1}), {0, 2}).shape() == Shape{6});
  CHECK(lax::reshape(array(3.0), {1, 1}).shape() == Shape{1, 1});
  CHECK(lax::reshape(lax::reshape(array(3.0), {1}), {}).item<double>() == 3.0);
  CHECK(lax::reshape(counting({0, 3}), {2, 0}).shape() == Shape{2, 0});
}

TEST_CASE("rev turns the given dimensions around") {
  check_numbers(lax::rev(counting({2, 3}), {1}), {2, 1, 0, 5, 4, 3});
  check_numbers(lax::rev(counting({2, 3}), {0, 1}), {5, 4, 3, 2, 1, 0});
  check_numbers(lax::rev(counting({2, 3}), {}), {0, 1, 2, 3, 4, 5});
  CHECK(lax::rev(counting({0, 2}), {0}).shape() == Shape{0, 2});
}

TEST_CASE("shape operations move elements of every width") {
  for (Dtype d : {bool_, int8, uint16, float16, bfloat16, int32, float32, int64, float64}) {
    CAPTURE(d);
    const Array x = array({{0, 1, 1}, {1, 0, 1}}, d);
    CHECK(lax::transpose(x, {1, 0}).dtype() == d);
    check_numbers(lax::transpose(x, {1, 0}), {0, 1, 1, 0, 1, 1});
    check_numbers(lax::rev(x, {1}), {1, 1, 0, 1, 0, 1});
    check_numbers(lax::broadcast_in_dim(x, {2, 2, 3}, {1, 2}),
                  {0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1});
  }
}

TEST_CASE("expand_dims adds dimensions of size 1 where the result has them") {
  CHECK(lax::expand_dims(counting({2, 3}), {0, -1}).shape() == Shape{1, 2, 3, 1});
  CHECK(lax::expand_dims(counting({2}), {}).shape() == Shape{2});
  CHECK_THROWS_AS(lax::expand_dims(counting({2}), {0, -3}), TypeError);
  CHECK_THROWS_AS(lax::expand_dims(counting({2}), {2}), TypeError);
}

TEST_CASE("operations that change nothing are not recorded") {
  const Types row{Type{float32, {3}}}, scalar{Type{}};
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::reshape(a[0], {3})}; }, row) == 0);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::transpose(a[0], {0})}; }, row) == 0);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::squeeze(a[0], {})}; }, row) == 0);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::broadcast_in_dim(a[0], {3}, {0})}; },
                 row) == 0);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::broadcast_in_dim(a[0], {}, {})}; },
                 scalar) == 0);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::reshape(a[0], {})}; }, scalar) == 1);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::rev(a[0], {})}; }, row) == 1);
}

TEST_CASE("shape operations are linear: tangents and transposes agree") {
  const auto derivatives = [](auto f, Array x) {
    check_derivatives([f](const Arrays& a) { return Arrays{f(a[0])}; }, {x});
  };
  derivatives([](X x) { return lax::broadcast_in_dim(x, {2, 3, 4}, {1, 2}); }, counting({3, 1}));
  derivatives([](X x) { return lax::broadcast_in_dim(x, {4, 5, 3}, {2, 0}); }, counting({3, 4}));
  derivatives([](X x) { return lax::broadcast_in_dim(x, {2, 2}, {}); }, counting({}));
  derivatives([](X x) { return lax::reshape(x, {6}); }, counting({2, 3}));
  derivatives([](X x) { return lax::transpose(x, {2, 0, 1}); }, counting({2, 3, 4}));
  derivatives([](X x) { return lax::squeeze(x, {0, 2}); }, counting({1, 3, 1}));
  derivatives([](X x) { return lax::rev(x, {1}); }, counting({2, 3}));
  derivatives([](X x) { return lax::expand_dims(x, {1}); }, counting({2, 3}));
}

TEST_CASE("shape operations map over an axis in any position") {
  const auto mapped = [](auto f, Shape shape) {
    shape.insert(shape.begin(), 3);
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
      check_mapped([f](const Arrays& a) { return Arrays{f(a[0])}; }, {counting(shape)}, {axis});
    }
  };
  mapped([](X x) { return lax::broadcast_in_dim(x, {2, 4, 5}, {1, 2}); }, {4, 1});
  mapped([](X x) { return lax::broadcast_in_dim(x, {2, 2}, {}); }, {});
  mapped([](X x) { return lax::reshape(x, {4, 2}); }, {2, 4});
  mapped([](X x) { return lax::transpose(x, {2, 0, 1}); }, {2, 4, 5});
  mapped([](X x) { return lax::squeeze(x, {1}); }, {2, 1, 4});
  mapped([](X x) { return lax::rev(x, {0, 1}); }, {2, 4});
}

TEST_CASE("unbroadcast sums what broadcasting stretched") {
  const Array ct = counting({2, 3});
  CHECK(lax::unbroadcast(Type{float64, {}}, ct).item<double>() == 15);
  check_numbers(lax::unbroadcast(Type{float64, {2, 1}}, ct), {3, 12});
  check_numbers(lax::unbroadcast(Type{float64, {1, 3}}, ct), {3, 5, 7});
  CHECK(lax::unbroadcast(Type{float64, {1, 3}}, ct).shape() == Shape{1, 3});
  check_numbers(lax::unbroadcast(ct.type(), ct), {0, 1, 2, 3, 4, 5});
}

TEST_CASE("moveaxis and iota_ints") {
  CHECK(lax::moveaxis(counting({2, 3, 4}), 0, 2).shape() == Shape{3, 4, 2});
  CHECK(lax::moveaxis(counting({2, 3, 4}), 2, 0).shape() == Shape{4, 2, 3});
  CHECK(lax::iota_ints(3) == Ints{0, 1, 2});
  CHECK(lax::iota_ints(0).empty());
}

TEST_CASE("shape operations refuse what does not fit and say what they got") {
  const Array x = counting({2, 3});
  CHECK(error_of<TypeError>([&] { lax::reshape(x, {4}); })
            .starts_with("reshape: the number of elements must stay the same, got f64[2,3] for the "
                         "shape (4,)\n  at "));
  CHECK_THROWS_AS(lax::reshape(x, {-6}), TypeError);
  CHECK_THROWS_AS(lax::reshape(x, {-2, -3}), TypeError);
  CHECK_THROWS_AS(lax::reshape(x, {std::int64_t{1} << 40, std::int64_t{1} << 40}), RuntimeError);
  CHECK_THROWS_AS(lax::transpose(x, {0}), TypeError);
  CHECK_THROWS_AS(lax::transpose(x, {0, 0}), TypeError);
  CHECK_THROWS_AS(lax::transpose(x, {1, 2}), TypeError);
  CHECK_THROWS_AS(lax::squeeze(x, {0}), TypeError);
  CHECK_THROWS_AS(lax::squeeze(x, {5}), TypeError);
  CHECK_THROWS_AS(lax::squeeze(counting({1, 2}), {0, 0}), TypeError);
  CHECK_THROWS_AS(lax::rev(x, {2}), TypeError);
  CHECK_THROWS_AS(lax::rev(x, {1, 1}), TypeError);
  CHECK_THROWS_AS(lax::rev(x, {-1}), TypeError);
  CHECK_THROWS_AS(lax::broadcast_in_dim(x, {2, 3}, {0}), TypeError);
  CHECK_THROWS_AS(lax::broadcast_in_dim(x, {2, 4}, {0, 1}), TypeError);
  CHECK_THROWS_AS(lax::broadcast_in_dim(x, {2, 3}, {0, 2}), TypeError);
  CHECK_THROWS_AS(lax::broadcast_in_dim(x, {3, 3}, {1, 1}), TypeError);
  CHECK_THROWS_AS(lax::broadcast_in_dim(counting({}), {-1}, {}), TypeError);
  CHECK_THROWS_AS(reshape_p.bind({}, {{"new_sizes", Ints{}}}), TypeError);
}

TEST_CASE("broadcast_in_dim hides its shape, which the type of the result tells") {
  const Params params{{"broadcast_dimensions", Ints{1}}, {"shape", Ints{2, 3}}};
  const std::vector<Param> printed = broadcast_in_dim_p.printed_params(params);
  REQUIRE(printed.size() == 1);
  const Types in{Type{float32, {3}}}, out{Type{float32, {2, 3}}};
  CHECK(broadcast_in_dim_p.parsed_params({printed[0]}, in, out) == params);
  const Params scalar{{"broadcast_dimensions", Ints{}}, {"shape", Ints{2, 3}}};
  CHECK(broadcast_in_dim_p.printed_params(scalar).empty());
  CHECK(broadcast_in_dim_p.parsed_params({}, {Type{}}, out) == scalar);
}

}  // namespace
}  // namespace reprise
