#include "ops/mapped_axes.h"
#include "reprise/ops.h"
#include "reprise/program.h"

#include <doctest/doctest.h>

namespace reprise {
namespace {

const Array x = counting({4, 5});
// Elements by row and column of x.
std::vector<double> at(const std::vector<std::pair<int, int>>& positions) {
  std::vector<double> v;
  for (auto [i, j] : positions) v.push_back(5 * i + j);
  return v;
}
std::string program_of(const FlatFunction& f, const Arrays& args) {
  return make_jaxpr([&](Arrays a) { return f(a); })(args).str();
}

// ----------------------------------------------------------------------------------------- reading
TEST_CASE("integers pick, counting from the end when negative") {
  check_numbers(x[1], at({{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}));
  check_numbers(x[-1], at({{3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 4}}));
  CHECK(x(1, 2).item<double>() == 7);
  CHECK(x(-4, -5).item<double>() == 0);
  CHECK(x(ellipsis, 2).shape() == Shape{4});
  CHECK(x[std::size_t{3}].shape() == Shape{5});
  CHECK(x[Array(2)].shape() == Shape{5});
}

TEST_CASE("an integer out of range is an error that names the line") {
  const std::string message = error_of<TypeError>([] { x(1, 5); });
  CHECK(message.starts_with("index: out of range, got 5 for axis 1 of f64[4,5]\n  at "));
  CHECK(message.find("indexing_test.cpp") != std::string::npos);
  CHECK_THROWS_AS(x[-5], TypeError);
  CHECK_THROWS_AS(x[4], TypeError);
  CHECK_THROWS_AS(counting({0})[0], TypeError);
  CHECK_THROWS_AS(x.at(4).set(0), TypeError);
  CHECK_THROWS_AS(x[Array(4)], TypeError);
  CHECK_THROWS_AS(x[INT64_MIN], TypeError);
}

TEST_CASE("slices follow Python for all ends and steps") {
  const Array row = counting({5});
  for (int start = -7; start <= 7; ++start) {
    for (int stop = -7; stop <= 7; ++stop) {
      for (int step : {-7, -3, -2, -1, 1, 2, 3, 7}) {
        CAPTURE(start);
        CAPTURE(stop);
        CAPTURE(step);
        const auto end = [&](int i) {
          if (i < 0) i += 5;
          return step > 0 ? std::min(std::max(i, 0), 5) : std::min(std::max(i, -1), 4);
        };
        std::vector<double> expected;
        for (int i = end(start); step > 0 ? i < end(stop) : i > end(stop); i += step) {
          expected.push_back(i);
        }
        check_numbers(row[slice(start, stop, step)], expected);
      }
    }
  }
  check_numbers(row[slice(2)], {0, 1});
  check_numbers(row[slice(3, {})], {3, 4});
  check_numbers(row[slice({}, {}, -2)], {4, 2, 0});
  check_numbers(row[slice(INT64_MIN, INT64_MAX, INT64_MAX)], {0});
  check_numbers(row[slice({}, {}, INT64_MIN)], {4});
  CHECK_THROWS_AS(row[slice({}, {}, 0)], TypeError);
}

TEST_CASE("all, newaxis and ellipsis shape the result") {
  CHECK(x(all, 1).shape() == Shape{4});
  CHECK(x(all, slice(1, 3)).shape() == Shape{4, 2});
  CHECK(x(newaxis, 1, newaxis).shape() == Shape{1, 1, 5});
  CHECK(x(all, newaxis, slice(1, 3)).shape() == Shape{4, 1, 2});
  const Array y = counting({2, 3, 4, 5});
  CHECK(y(0, ellipsis, 1).shape() == Shape{3, 4});
  CHECK(y(ellipsis, newaxis).shape() == Shape{2, 3, 4, 5, 1});
  CHECK(y[ellipsis].shape() == y.shape());
  CHECK_THROWS_AS(y(ellipsis, 0, ellipsis), TypeError);
  CHECK_THROWS_AS(x(0, 0, 0), TypeError);
}

TEST_CASE("a scalar index may be traced; outside it is clamped") {
  const Array i = array(2), m = array(-1), far = array(9);
  check_numbers(x[i], x[2].to_vector<double>());
  check_numbers(x[m], x[-1].to_vector<double>());
  check_numbers(x[far], x[3].to_vector<double>());
  CHECK(x(i, 3).item<double>() == 13);
  check_numbers(x(i, slice(1, 3)), at({{2, 1}, {2, 2}}));
  check_numbers(x(i, slice({}, {}, -1)), at({{2, 4}, {2, 3}, {2, 2}, {2, 1}, {2, 0}}));
  check_numbers(x(i, slice({}, {}, 2)), at({{2, 0}, {2, 2}, {2, 4}}));
  check_numbers(x(array(1, uint8), array(2, int8)), {7});
  CHECK_THROWS_AS(counting({0, 3})[i], TypeError);
  CHECK_THROWS_AS(x[array(1.0)], TypeError);
  CHECK_THROWS_AS(x[array(true)], TypeError);
}

TEST_CASE("index arrays pick several elements and broadcast") {
  const Array i = array({3, 0, -1}), j = array({1, 1, 4});
  check_numbers(x(i, j), at({{3, 1}, {0, 1}, {3, 4}}));
  check_numbers(x(all, j), at({{0, 1},
                               {0, 1},
                               {0, 4},
                               {1, 1},
                               {1, 1},
                               {1, 4},
                               {2, 1},
                               {2, 1},
                               {2, 4},
                               {3, 1},
                               {3, 1},
                               {3, 4}}));
  check_numbers(x(i, 2), at({{3, 2}, {0, 2}, {3, 2}}));
  check_numbers(x(i, array(2)), at({{3, 2}, {0, 2}, {3, 2}}));
  check_numbers(x(i.reshape({3, 1}), array({0, 4})),
                at({{3, 0}, {3, 4}, {0, 0}, {0, 4}, {3, 0}, {3, 4}}));
  CHECK(x[array({{0, 1}, {2, 3}, {0, 0}})].shape() == Shape{3, 2, 5});
  check_numbers(x(i, slice(4, 1, -2)), at({{3, 4}, {3, 2}, {0, 4}, {0, 2}, {3, 4}, {3, 2}}));
  CHECK(x(i, newaxis).shape() == Shape{3, 1, 5});
  CHECK(x[array(std::vector<int>{})].shape() == Shape{0, 5});
  CHECK_THROWS_AS(x(i, array({0, 1})), TypeError);
  CHECK_THROWS_AS(x[array({0.5})], TypeError);
  CHECK_THROWS_AS(x[array({true, false, true, false})], TypeError);
}

TEST_CASE("separated index arrays put their dimensions first, adjacent ones stay") {
  const Array y = counting({2, 3, 4});
  const Array i = array({0, 1, 1, 0, 1}), k = array({3, 0, 2, 2, 1});
  CHECK(y(i, all, k).shape() == Shape{5, 3});
  CHECK(y(all, array({0, 2}), k[slice(2)]).shape() == Shape{2, 2});
  CHECK(y(all, array({0, 2})).shape() == Shape{2, 2, 4});
  CHECK(y(0, all, k).shape() == Shape{5, 3});
  const Array separated = y(i, all, k);
  for (int n = 0; n < 5; ++n) {
    const int a = i.to_vector<int>()[static_cast<std::size_t>(n)];
    const int c = k.to_vector<int>()[static_cast<std::size_t>(n)];
    for (int b = 0; b < 3; ++b) CHECK(separated(n, b).item<double>() == a * 12 + b * 4 + c);
  }
}

// ----------------------------------------------------------------------------------------- updates
TEST_CASE("updates change a copy") {
  const Array row = counting({5});
  check_numbers(row.at(1).set(9), {0, 9, 2, 3, 4});
  check_numbers(row.at(-1).add(0.5), {0, 1, 2, 3, 4.5});
  check_numbers(row.at(slice(1, 4)).multiply(2), {0, 2, 4, 6, 4});
  check_numbers(row.at(slice({}, {}, -2)).set(array({10.0, 20.0, 30.0}, float64)),
                {30, 1, 20, 3, 10});
  check_numbers(row.at(array({0, 0, 3})).add(array({1.0, 2.0, 3.0}, float64)), {3, 1, 2, 6, 4});
  check_numbers(row.at(array({4, -4})).min(2), {0, 1, 2, 3, 2});
  check_numbers(row.at(array({4, 0})).max(3), {3, 1, 2, 3, 4});
  check_numbers(row.at(all).set(1), {1, 1, 1, 1, 1});
  check_numbers(row.at(slice(3, 1)).set(1), {0, 1, 2, 3, 4});
  check_numbers(row.at(array(7)).set(1), {0, 1, 2, 3, 4});
  check_numbers(row.at(array(7)).set(1, {.mode = IndexMode::clip}), {0, 1, 2, 3, 1});
  check_numbers(row, {0, 1, 2, 3, 4});
  check_numbers(x.at(1, slice(0, 2)).set(0)(1, slice(0, 3)), {0, 0, 7});
  check_numbers(x.at(newaxis, 1).set(counting({1, 5}))[1], {0, 1, 2, 3, 4});
  CHECK_THROWS_AS(row.at(slice(0, 2)).set(counting({3})), TypeError);
  CHECK_THROWS_AS(row.at(0).set(counting({1, 1})), TypeError);
}

TEST_CASE("updates keep the dtype of the array") {
  const Array integers = array({1, 2, 3});
  CHECK(integers.at(0).set(2.9).dtype() == int32);
  check_numbers(integers.at(0).set(2.9), {2, 2, 3});
  CHECK(array({1.0, 2.0}, float16).at(0).add(array(1.0)).dtype() == float16);
  CHECK(array({1.0, 2.0}).at(0).set(array(3)).dtype() == float32);
}

TEST_CASE("get reads with a choice for indices outside") {
  const Array i = array({0, 9});
  const Array row = counting({3});
  check_numbers(row.at(i).get(), {0, 2});
  check_numbers(row.at(i).get({.mode = IndexMode::fill_or_drop, .fill_value = -1}), {0, -1});
  CHECK(row.at(1).get().item<double>() == 1);
  check_numbers(x.at(1, all).get({.mode = IndexMode::fill_or_drop}), x[1].to_vector<double>());
}

// -------------------------------------------------------------------------------------------- take
TEST_CASE("take picks along an axis") {
  const Array i = array({{0, 3}, {-1, 1}});
  CHECK(take(x, i, 0).shape() == Shape{2, 2, 5});
  CHECK(take(x, i, 1).shape() == Shape{4, 2, 2});
  check_numbers(take(x, i), {0, 3, 19, 1});
  check_numbers(take(counting({3}), array({5, -7}), 0, {.fill_value = 8}), {8, 8});
  CHECK(std::isnan(take(counting({3}), array({5}), 0).item<double>()));
  check_numbers(take(counting({3}), array({5, -7}), 0, {.mode = IndexMode::clip}), {2, 0});
  CHECK(take(x, 2, 0).shape() == Shape{5});
  CHECK(take(counting({300}), array({-1}, int8)).item<double>() == 299);
  CHECK(take(x, array(std::vector<int>{}), 1).shape() == Shape{4, 0});
  CHECK_THROWS_AS(take(x, array({0.5})), TypeError);
  CHECK_THROWS_AS(take(x, array({1}), 2), TypeError);
  CHECK_THROWS_AS(take(counting({0}), array({0})), TypeError);
  CHECK(take(counting({0}), array(std::vector<int>{})).shape() == Shape{0});
}

TEST_CASE("take_along_axis picks one element for each index") {
  check_numbers(take_along_axis(x, array({{4}, {0}, {-1}, {1}}), 1), {4, 5, 14, 16});
  check_numbers(take_along_axis(x, array({{3, 0, 1, 2, 3}}), 0), {15, 1, 7, 13, 19});
  check_numbers(take_along_axis(x, array({{2}, {0}}), 0), {10, 11, 12, 13, 14, 0, 1, 2, 3, 4});
  check_numbers(take_along_axis(counting({3, 1}), array({{2, 0}, {1, 1}}), 0), {2, 0, 1, 1});
  check_numbers(take_along_axis(x, array({7, -1}), std::nullopt), {7, 19});
  CHECK(take_along_axis(counting({2, 0}), array({{0}, {0}}), 1).shape() == Shape{2, 1});
  CHECK_THROWS_AS(take_along_axis(x, array({1, 2}), 0), TypeError);
  CHECK_THROWS_AS(take_along_axis(x, array({{1, 2}}), 0), TypeError);
  CHECK_THROWS_AS(take_along_axis(x, array({{0.5}}), 0), TypeError);
}

// ----------------------------------------------------------------------------------- transforms
TEST_CASE("indexing differentiates and maps") {
  const Array i = array({3, 0, 3});
  const auto derivatives = [&](auto f) {
    check_derivatives([f](const Arrays& a) { return Arrays{f(a[0], a[1])}; }, {x, i});
  };
  derivatives([](const Array& a, const Array&) { return a(slice(3, 0, -2), 1); });
  derivatives([](const Array& a, const Array& k) { return a[k]; });
  derivatives([](const Array& a, const Array& k) { return a(k[1], slice(1, 3)); });
  derivatives([](const Array& a, const Array& k) { return take(a, k, 1); });
  derivatives([](const Array& a, const Array& k) { return a.at(k).add(a[slice(3)]); });
  derivatives([](const Array& a, const Array& k) { return a.at(k, 1).set(a(0, slice(3))); });
  const FlatFunction pick = [](const Arrays& a) { return Arrays{a[0](a[1], slice(1, 3))}; };
  check_mapped(pick, {counting({2, 4, 5}), i}, {2, std::nullopt});
  check_mapped(pick, {x, array({{0, 1}, {2, 3}})}, {std::nullopt, 1});
  check_mapped(pick, {counting({2, 4, 5}), array({2, 0})}, {1, 0});
}

TEST_CASE("indexing records what jax.numpy records") {
  const Array row = ones({3}), matrix = ones({4, 5}), i = zeros({2}, int32);
  CHECK(program_of([](const Arrays& a) { return Arrays{a[0][a[1]]}; }, {row, array(1)}) ==
        "{ lambda ; a:f32[3] b:i32[]. let\n"
        "    c:bool[] = lt b 0:i32[]\n"
        "    d:i32[] = add b 3:i32[]\n"
        "    e:i32[] = select_n c b d\n"
        "    f:f32[1] = dynamic_slice[slice_sizes=(1,)] a e\n"
        "    g:f32[] = squeeze[dimensions=(0,)] f\n"
        "  in (g,) }");
  CHECK(program_of([](const Arrays& a) { return Arrays{a[0](slice({}, {}, -2), newaxis, 1)}; },
                   {matrix}) ==
        "{ lambda ; a:f32[4,5]. let\n"
        "    b:f32[2,1] = slice[limit_indices=(4, 2) start_indices=(1, 1) strides=(2, 1)] a\n"
        "    c:f32[2,1] = rev[dimensions=(0,)] b\n"
        "    d:f32[2] = squeeze[dimensions=(1,)] c\n"
        "    e:f32[2,1] = broadcast_in_dim[broadcast_dimensions=(0,)] d\n"
        "  in (e,) }");
  CHECK(program_of([](const Arrays& a) { return Arrays{a[0](all, a[1])}; }, {matrix, i}) ==
        "{ lambda ; a:f32[4,5] b:i32[2]. let\n"
        "    c:bool[2] = lt b 0:i32[]\n"
        "    d:i32[2] = add b 5:i32[]\n"
        "    e:i32[2] = select_n c b d\n"
        "    f:i32[2,1] = broadcast_in_dim[broadcast_dimensions=(0,)] e\n"
        "    g:f32[4,2] = gather[\n"
        "      dimension_numbers=GatherDimensionNumbers(offset_dims=(0,), "
        "collapsed_slice_dims=(1,), start_index_map=(1,), operand_batching_dims=(), "
        "start_indices_batching_dims=())\n"
        "      fill_value=None\n"
        "      indices_are_sorted=False\n"
        "      mode=GatherScatterMode.PROMISE_IN_BOUNDS\n"
        "      slice_sizes=(4, 1)\n"
        "      unique_indices=False\n"
        "    ] a f\n"
        "  in (g,) }");
  CHECK(program_of([](const Arrays& a) { return Arrays{a[0].at(1).add(2.0)}; }, {row}) ==
        "{ lambda ; a:f32[3]. let\n"
        "    b:i32[1] = broadcast_in_dim 1:i32[]\n"
        "    c:f32[3] = scatter-add[\n"
        "      dimension_numbers=ScatterDimensionNumbers(update_window_dims=(), "
        "inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), "
        "scatter_indices_batching_dims=())\n"
        "      indices_are_sorted=True\n"
        "      mode=GatherScatterMode.FILL_OR_DROP\n"
        "      unique_indices=True\n"
        "      update_consts=()\n"
        "      update_jaxpr={ lambda ; d:f32[] e:f32[]. let f:f32[] = add d e in (f,) }\n"
        "    ] a b 2.0:f32[]\n"
        "  in (c,) }");
}

}  // namespace
}  // namespace reprise
