#include "ops/slice.h"

#include "ops/mapped_axes.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise {
namespace {

Array index(std::int64_t i, Dtype d = int32) { return array(static_cast<double>(i), d); }

TEST_CASE("slice takes a box with steps") {
  const Array x = counting({4, 5});
  std::vector<double> expected;
  for (int i = 1; i < 4; i += 2) {
    for (int j = 0; j < 5; j += 3) expected.push_back(5 * i + j);
  }
  check_numbers(lax::slice(x, {1, 0}, {4, 5}, lax::Ints{2, 3}), expected);
  check_numbers(lax::slice(x, {0, 1}, {1, 3}), {1, 2});
  CHECK(lax::slice(x, {2, 2}, {2, 5}).shape() == Shape{0, 3});
  CHECK(lax::slice(counting({}), {}, {}).item<double>() == 0);
  check_numbers(lax::slice(counting({3}), {1}, {3}, lax::Ints{INT64_MAX}), {1});
}

TEST_CASE("dynamic_slice moves a box that reaches outside back inside") {
  const Array x = counting({5});
  for (int start = -4; start <= 7; ++start) {
    // Negative starts count from the end; what still is outside is clamped.
    const int from = std::clamp(start < 0 ? start + 5 : start, 0, 3);
    check_numbers(lax::dynamic_slice(x, {index(start)}, {2}), {from + 0.0, from + 1.0});
    check_numbers(lax::dynamic_slice(x, {start}, {2}), {from + 0.0, from + 1.0});
  }
  check_numbers(lax::dynamic_slice(x, {index(250, uint8)}, {2}), {3, 4});
  check_numbers(
      lax::dynamic_slice(x, {array(std::vector<std::uint64_t>{UINT64_MAX}, Shape{})}, {2}), {3, 4});
  check_numbers(lax::dynamic_slice(counting({3, 4}), {1, 2}, {2, 2}), {6, 7, 10, 11});
  CHECK(lax::dynamic_slice(counting({}), {}, {}).item<double>() == 0);
  CHECK(lax::dynamic_slice(x, {1}, {0}).shape() == Shape{0});
}

TEST_CASE("dynamic_update_slice replaces a box") {
  const Array x = counting({5}), update = array({10.0, 11.0}, float64);
  check_numbers(lax::dynamic_update_slice(x, update, {1}), {0, 10, 11, 3, 4});
  check_numbers(lax::dynamic_update_slice(x, update, {index(9)}), {0, 1, 2, 10, 11});
  check_numbers(lax::dynamic_update_slice(x, update, {index(-5)}), {10, 11, 2, 3, 4});
  check_numbers(lax::dynamic_update_slice(counting({2, 2}), array({{9.0}}, float64), {1, 0}),
                {0, 1, 9, 3});
  check_numbers(x, {0, 1, 2, 3, 4});
}

TEST_CASE("an index that is a number is answered while tracing") {
  const Types types{Type{float32, {5}}, Type{int32, {}}};
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::dynamic_slice(a[0], {-1}, {1})}; },
                 types) == 1);
  CHECK(recorded([](const Arrays& a) { return Arrays{lax::dynamic_slice(a[0], {a[1]}, {1})}; },
                 types) == 4);
}

TEST_CASE("the tangent of dynamic_slice is recorded before the value, as in JAX") {
  const Traced t = trace([](const Arrays& a) { return Arrays{lax::dynamic_slice(a[0], {1}, {2})}; },
                         {Type{float32, {5}}});
  const auto j = jvp_program(*t.program, {true});
  REQUIRE(j->program->eqns.size() == 2);
  CHECK(j->program->eqns[0].in[0] == Atom::of(j->program->in[1]));
  CHECK(j->program->eqns[1].in[0] == Atom::of(j->program->in[0]));
}

TEST_CASE("slices are linear: tangents and transposes agree") {
  const Array x = counting({4, 5}), u = counting({2, 3});
  const auto strided = [](lax::Ints start, lax::Ints limit, lax::Ints strides) {
    return [=](const Arrays& a) { return Arrays{lax::slice(a[0], start, limit, strides)}; };
  };
  check_derivatives([](const Arrays& a) { return Arrays{lax::slice(a[0], {1, 0}, {3, 4})}; }, {x});
  check_derivatives(strided({0, 1}, {4, 5}, {3, 2}), {x});
  check_derivatives(strided({1, 1}, {4, 4}, {2, 5}), {x});
  check_derivatives(strided({2, 0}, {2, 5}, {2, 1}), {x});
  const Array i = index(1), j = index(4);
  check_derivatives(
      [](const Arrays& a) {
        return Arrays{lax::dynamic_slice(a[0], {a[1], a[2]}, {2, 3})};
      },
      {x, i, j});
  check_derivatives(
      [](const Arrays& a) {
        return Arrays{lax::dynamic_update_slice(a[0], a[1], {a[2], a[3]})};
      },
      {x, u, i, j});
  check_derivatives(
      [](const Arrays& a) {
        const Array zeros = lax::full({4, 5}, 0.0, float64);
        return Arrays{lax::dynamic_update_slice(zeros, a[0], {a[1], a[2]})};
      },
      {u, i, j});
}

TEST_CASE("slices map over axes in any position") {
  const Array x = counting({3, 4, 5}), plain = counting({4, 5}), u = counting({3, 2, 3});
  const Array is = array({0, 2, 9}), js = array({-1, 1, 0}), i = index(1),
              plain_u = counting({2, 3});
  const auto no = std::nullopt;
  const FlatFunction dynamic = [](const Arrays& a) {
    return Arrays{lax::dynamic_slice(a[0], {a[1], a[2]}, {2, 3})};
  };
  const FlatFunction update = [](const Arrays& a) {
    return Arrays{lax::dynamic_update_slice(a[0], a[1], {a[2], a[3]})};
  };
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    check_mapped(
        [](const Arrays& a) {
          return Arrays{lax::slice(a[0], {1, 0}, {3, 4})};
        },
        {x}, {axis});
    check_mapped(
        [](const Arrays& a) {
          return Arrays{lax::slice(a[0], {0, 1}, {4, 5}, lax::Ints{3, 2})};
        },
        {x}, {axis});
    check_mapped(dynamic, {x, i, i}, {axis, no, no});
    check_mapped(dynamic, {x, is, i}, {axis, 0, no});
    check_mapped(dynamic, {x, is, js}, {axis, 0, 0});
    check_mapped(update, {x, u, i, i}, {axis, 2 - axis, no, no});
    check_mapped(update, {x, plain_u, is, js}, {axis, no, 0, 0});
    check_mapped(update, {plain, u, i, js}, {no, axis, no, 0});
  }
  check_mapped(dynamic, {plain, is, js}, {no, 0, 0});
  check_mapped(update, {plain, plain_u, is, i}, {no, no, 0, no});
  const Array scalars = counting({3});
  check_mapped([](const Arrays& a) { return Arrays{lax::dynamic_slice(a[0], {}, {})}; }, {scalars},
               {0});
  check_mapped([](const Arrays& a) { return Arrays{lax::dynamic_update_slice(a[0], a[1], {})}; },
               {scalars, counting({})}, {0, no});
}

TEST_CASE("slices refuse what does not fit") {
  const Array x = counting({4, 5}), u = counting({2, 3});
  CHECK(
      error_of<TypeError>([&] {
        lax::slice(x, {1, 0}, {5, 5});
      })
          .starts_with("slice: 0 <= start <= limit <= size is needed, got start 1 and limit 5 for "
                       "dimension 0 of f64[4,5]\n  at "));
  CHECK_THROWS_AS(lax::slice(x, {0}, {4}), TypeError);
  CHECK_THROWS_AS(lax::slice(x, {-1, 0}, {4, 5}), TypeError);
  CHECK_THROWS_AS(lax::slice(x, {3, 0}, {2, 5}), TypeError);
  CHECK_THROWS_AS(lax::slice(x, {0, 0}, {4, 5}, lax::Ints{1, 0}), TypeError);
  CHECK_THROWS_AS(lax::slice(x, {0, 0}, {4, 5}, lax::Ints{1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {0}, {1, 1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {0, 0}, {5, 1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {0, 0}, {-1, 1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {0, 0}, {1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {0, 0.5}, {1, 1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {0, array({1, 2})}, {1, 1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_slice(x, {index(0), index(0, uint8)}, {1, 1}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_update_slice(x, counting({5, 1}), {0, 0}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_update_slice(x, counting({2}), {0, 0}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_update_slice(x, array({{1}}), {0, 0}), TypeError);
  CHECK_THROWS_AS(lax::dynamic_update_slice(x, u, {0}), TypeError);
  CHECK_THROWS_AS(dynamic_slice_p.bind({}, {{"slice_sizes", Ints{}}}), TypeError);
  CHECK_THROWS_AS(dynamic_update_slice_p.bind({x}), TypeError);
}

}  // namespace
}  // namespace reprise
