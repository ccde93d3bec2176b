#include "ops/mapped_axes.h"
#include "ops/records.h"
#include "ops/shape.h"

#include <algorithm>

namespace reprise {
namespace {

using X = const Array&;
using lax::PadDimension;
using Padding = std::vector<PadDimension>;

TEST_CASE("concatenate puts arrays one after the other along a dimension") {
  const Array a = counting({2, 1}), b = array({{10.0, 11.0}, {12.0, 13.0}}, float64);
  check_numbers(lax::concatenate({a, b}, 1), {0, 10, 11, 1, 12, 13});
  check_numbers(lax::concatenate({b, b}, 0), {10, 11, 12, 13, 10, 11, 12, 13});
  check_numbers(lax::concatenate({b, counting({2, 0})}, 1), {10, 11, 12, 13});
  CHECK(lax::concatenate({counting({0}), counting({0})}, 0).shape() == Shape{0});
}

TEST_CASE("stack makes a new dimension and unstack takes it apart") {
  const Array a = array({1, 2, 3}), b = array({4, 5, 6});
  check_numbers(lax::stack({a, b}, 0), {1, 2, 3, 4, 5, 6});
  check_numbers(lax::stack({a, b}, -1), {1, 4, 2, 5, 3, 6});
  CHECK(lax::stack({array(1.0), array(2.0)}, 0).shape() == Shape{2});
  const Arrays columns = lax::unstack(lax::stack({a, b}, 1), 1);
  REQUIRE(columns.size() == 2);
  check_numbers(columns[0], {1, 2, 3});
  check_numbers(columns[1], {4, 5, 6});
  CHECK(lax::unstack(counting({0, 3}), 0).empty());
}

TEST_CASE("split cuts along an axis") {
  const Arrays parts = lax::split(counting({2, 4}), {1, 0, 3}, 1);
  REQUIRE(parts.size() == 3);
  check_numbers(parts[0], {0, 4});
  CHECK(parts[1].shape() == Shape{2, 0});
  check_numbers(parts[2], {1, 2, 3, 5, 6, 7});
}

TEST_CASE("tile puts copies side by side") {
  check_numbers(lax::tile(counting({2, 2}), {1, 2}), {0, 1, 0, 1, 2, 3, 2, 3});
  check_numbers(lax::tile(counting({2, 2}), {2, 1}), {0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(lax::tile(counting({2, 2}), {0, 3}).shape() == Shape{0, 6});
  CHECK(lax::tile(counting({}), {}).item<double>() == 0);
}

// The definition: element i stands at low + i * (interior + 1) if that is inside.
std::vector<double> padded_row(const std::vector<double>& x, double value, const PadDimension& p) {
  const auto n = static_cast<std::int64_t>(x.size());
  const std::int64_t size = p.low + p.high + n + std::max<std::int64_t>(n - 1, 0) * p.interior;
  std::vector<double> out(static_cast<std::size_t>(size), value);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t to = p.low + i * (p.interior + 1);
    if (to >= 0 && to < size) out[static_cast<std::size_t>(to)] = x[static_cast<std::size_t>(i)];
  }
  return out;
}

TEST_CASE("pad surrounds, spreads and cuts") {
  const Array x = counting({4});
  const std::vector<double> row = x.to_vector<double>();
  for (std::int64_t low = -5; low <= 3; ++low) {
    for (std::int64_t high = -5; high <= 3; ++high) {
      for (std::int64_t interior = 0; interior <= 3; ++interior) {
        const PadDimension p{low, high, interior};
        if (low + high + 4 + 3 * interior < 0) continue;
        check_numbers(lax::pad(x, -1.0, {p}), padded_row(row, -1, p));
      }
    }
  }
  check_numbers(lax::pad(counting({2, 2}), 9.0, {{1, 0, 0}, {0, 1, 1}}),
                {9, 9, 9, 9, 0, 9, 1, 9, 2, 9, 3, 9});
  check_numbers(lax::pad(counting({0}), 5.0, {{1, 2, 7}}), {5, 5, 5});
  CHECK(lax::pad(array({1, 2}), 7, {{1, 0, 0}}).dtype() == int32);
  CHECK(lax::pad(array(2.0), 7.0, {}).item<float>() == 2);
}

TEST_CASE("joining operations are linear: tangents and transposes agree") {
  const auto derivatives = [](const FlatFunction& f, const Arrays& x) { check_derivatives(f, x); };
  const Array a = counting({2, 3}), b = counting({2, 3}), scalar = counting({});
  derivatives([](const Arrays& x) { return Arrays{lax::concatenate(x, 1)}; },
              {a, counting({2, 1})});
  derivatives([](const Arrays& x) { return Arrays{lax::stack(x, 1)}; }, {a, b});
  derivatives([](const Arrays& x) { return Arrays{lax::unstack(x[0], 1)[2]}; }, {a});
  derivatives([](const Arrays& x) { return Arrays{lax::split(x[0], {1, 2}, 1)[1]}; }, {a});
  derivatives([](const Arrays& x) { return Arrays{lax::tile(x[0], {2, 3})}; }, {a});
  for (const Padding& p : {Padding{{1, 2, 0}, {0, 1, 2}}, Padding{{-1, 0, 1}, {2, -1, 0}},
                           Padding{{0, -2, 2}, {-1, -1, 3}}}) {
    derivatives([p](const Arrays& x) { return Arrays{lax::pad(x[0], x[1], p)}; }, {a, scalar});
    derivatives([p](const Arrays& x) { return Arrays{lax::pad(x[0], 2.0, p)}; }, {a});
  }
}

TEST_CASE("pad has a cotangent for its value alone") {
  const Types types{Type{float64, {}}};
  const Traced traced = trace(
      [](const Arrays& x) {
        const Array ones = lax::full({2}, 1.0, float64);
        return Arrays{lax::pad(ones, x[0], {{1, 2, 0}})};
      },
      types);
  const Linearized linear = linearize(*traced.program, {counting({})}, {true});
  Primals args(linear.residuals.begin(), linear.residuals.end());
  args.push_back(std::nullopt);
  const Tangents ct = backward(*linear.linear, args, {counting({5})});
  CHECK(ct[0]->item<double>() == 0 + 3 + 4);
}

TEST_CASE("joining operations map over axes in any position") {
  const auto pair = [](auto f) { return [f](const Arrays& a) { return Arrays{f(a[0], a[1])}; }; };
  const Array x = counting({3, 2, 4}), y = counting({3, 2, 4}), plain = counting({2, 4});
  const auto concatenated = pair([](X a, X b) { return lax::concatenate({a, b}, 1); });
  const auto stacked = pair([](X a, X b) { return lax::stack({a, b}, 1); });
  for (const auto& f : {FlatFunction(concatenated), FlatFunction(stacked)}) {
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      check_mapped(f, {x, y}, {axis, axis});
      check_mapped(f, {x, y}, {axis, 2 - axis});
      check_mapped(f, {x, plain}, {axis, std::nullopt});
      check_mapped(f, {plain, x}, {std::nullopt, axis});
    }
  }
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    check_mapped([](const Arrays& a) { return Arrays{lax::unstack(a[0], 1)[3]}; }, {x}, {axis});
    check_mapped(
        [](const Arrays& a) {
          return Arrays{lax::split(a[0], {1, 3}, 1)[1]};
        },
        {x}, {axis});
    check_mapped([](const Arrays& a) { return Arrays{lax::tile(a[0], {2, 3})}; }, {x}, {axis});
  }
  const auto padded = pair([](X a, X v) { return lax::pad(a, v, {{1, 0, 0}, {-1, 2, 1}}); });
  const Array value = counting({}), values = array({5.0, 6.0, 7.0}, float64);
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    check_mapped(padded, {x, value}, {axis, std::nullopt});
    check_mapped(padded, {x, values}, {axis, 0});
  }
  check_mapped(padded, {plain, values}, {std::nullopt, 0});
}

TEST_CASE("joining operations refuse what does not fit") {
  const Array a = counting({2, 3}), b = counting({3, 2}), c = array({1, 2});
  CHECK(
      error_of<TypeError>([&] {
        lax::concatenate({a, b}, 0);
      })
          .starts_with("concatenate: shapes must be equal except in dimension 0, got f64[2,3] and "
                       "f64[3,2]\n  at "));
  CHECK_THROWS_AS(lax::concatenate({}, 0), TypeError);
  CHECK_THROWS_AS(lax::concatenate({a}, 2), TypeError);
  CHECK_THROWS_AS(lax::concatenate({a, c}, 0), TypeError);
  CHECK_THROWS_AS(lax::concatenate({a, counting({2})}, 0), TypeError);
  CHECK_THROWS_AS(lax::stack({}, 0), TypeError);
  CHECK_THROWS_AS(lax::stack({a, b}, 0), TypeError);
  CHECK_THROWS_AS(lax::stack({a, a}, 3), TypeError);
  CHECK_THROWS_AS(lax::unstack(counting({}), 0), TypeError);
  CHECK_THROWS_AS(lax::split(a, {1, 1}, 1), TypeError);
  CHECK_THROWS_AS(lax::split(a, {4, -1}, 1), TypeError);
  CHECK_THROWS_AS(lax::split(a, {3}, 2), TypeError);
  CHECK_THROWS_AS(lax::tile(a, {2}), TypeError);
  CHECK_THROWS_AS(lax::tile(a, {2, -1}), TypeError);
  CHECK_THROWS_AS(lax::tile(a, {std::int64_t{1} << 62, 8}), TypeError);
  CHECK_THROWS_AS(lax::pad(a, 0.0, {{1, 1, 0}}), TypeError);
  CHECK_THROWS_AS(lax::pad(c, 0, {{0, 0, -1}}), TypeError);
  CHECK_THROWS_AS(lax::pad(c, 0, {{-2, -1, 0}}), TypeError);
  CHECK_THROWS_AS(lax::pad(c, array({0, 0}), {{1, 1, 0}}), TypeError);
  CHECK_THROWS_AS(lax::pad(c, array(0.5), {{1, 1, 0}}), TypeError);
  CHECK_THROWS_AS(lax::pad(c, 0, {{INT64_MIN, INT64_MAX, 0}}), TypeError);
  CHECK_THROWS_AS(lax::pad(c, 0, {{0, 0, INT64_MAX}}), TypeError);
}

}  // namespace
}  // namespace reprise
