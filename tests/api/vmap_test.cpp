// vmap against loops: every axis, trees, unmapped arguments, nesting.
#include "derivatives.h"

namespace {

using namespace check;

Array counting(rp::Shape shape, double start = 0) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i);
  return rp::array(values, shape);
}
Array element(const Array& x, std::int64_t axis, std::int64_t i) {
  return rp::take(x, Array(i), axis);
}

Array weighted(Array x, Array w) { return rp::sin(x) * rp::sum(w) + rp::cumsum(w); }

}  // namespace

TEST_CASE("vmap equals a loop for every combination of in_axes and out_axes") {
  const std::int64_t n = 4;
  for (std::int64_t in : {0, 1, 2, -1, -2, -3}) {
    for (std::optional<std::int64_t> in2 :
         {std::optional<std::int64_t>(0), {1}, {-1}, {std::nullopt}}) {
      for (std::int64_t out : {0, 1, 2, -1, -2, -3}) {
        rp::Shape sx{2, 3}, sw{3};
        sx.insert(in < 0 ? sx.end() + (in + 1) : sx.begin() + in, n);
        if (in2) sw.insert(*in2 < 0 ? sw.end() + (*in2 + 1) : sw.begin() + *in2, n);
        const Array x = counting(sx), w = counting(sw, 0.5);
        const Array got = rp::vmap(weighted, {.in_axes = {{in, in2}}, .out_axes = {out}})(x, w);
        Arrays rows;
        for (std::int64_t i = 0; i < n; ++i) {
          rows.push_back(weighted(element(x, in, i), in2 ? element(w, *in2, i) : w));
        }
        check_close(got, rp::stack(rows, out), 1e-12);
      }
    }
  }
}

TEST_CASE("results have an axis each; an unmapped result may stay unmapped") {
  auto f = [](Array x, Array w) { return std::tuple{x * w, rp::sum(x), w * 2.0}; };
  const Array x = counting({3, 4}), w = counting({4});
  const auto [product, total, twice] =
      rp::vmap(f, {.in_axes = {{0, std::nullopt}}, .out_axes = {1, 0, std::nullopt}})(x, w);
  CHECK(product.shape() == rp::Shape{4, 3});
  CHECK(total.shape() == rp::Shape{3});
  CHECK(numbers(twice) == std::vector<double>{0, 2, 4, 6});
  CHECK_THROWS_AS(rp::vmap(f, {.out_axes = {0, std::nullopt, 0}})(x, x), rp::TypeError);
  CHECK_THROWS_AS(rp::vmap(f, {.out_axes = {0, 0}})(x, x), rp::TypeError);
}

TEST_CASE("the leaves of a tree share the axis of their argument") {
  struct Pair {
    Array a, b;
  };
  auto f = [](Pair p, std::vector<Array> v, std::map<std::string, Array> m) {
    return Pair{p.a + v[0] * m.at("k"), p.b * v[1]};
  };
  const Pair p{counting({3, 2}), counting({3})};
  const std::vector<Array> v{counting({2, 3}), counting({5, 3})};
  const std::map<std::string, Array> m{{"k", rp::full({}, 2.0, rp::float64)}};
  auto mapped = rp::vmap(f, {.in_axes = {{0, 1, std::nullopt}}});
  const Pair got = mapped(p, v, m);
  CHECK(got.a.shape() == rp::Shape{3, 2});
  CHECK(got.b.shape() == rp::Shape{3, 5});
  for (std::int64_t i = 0; i < 3; ++i) {
    const Pair one = f({p.a[i], p.b[i]}, {element(v[0], 1, i), element(v[1], 1, i)}, m);
    check_close(got.a[i], one.a, 1e-12);
    check_close(got.b[i], one.b, 1e-12);
  }
}

TEST_CASE("axis_size maps a function that maps nothing, or states the size") {
  auto f = [](Array x) { return x * 2.0; };
  const Array x = counting({2});
  const Array got = rp::vmap(f, {.in_axes = {{std::nullopt}}, .axis_size = 3})(x);
  CHECK(got.shape() == rp::Shape{3, 2});
  CHECK(numbers(got) == std::vector<double>{0, 2, 0, 2, 0, 2});
  CHECK_THROWS_AS(rp::vmap(f, {.in_axes = {{std::nullopt}}})(x), rp::TypeError);
  CHECK_THROWS_AS(rp::vmap(f, {.axis_size = 5})(x), rp::TypeError);
}

TEST_CASE("sizes and axes that do not fit are a TypeError") {
  auto f = [](Array x, Array y) { return x + y; };
  CHECK_THROWS_AS(rp::vmap(f)(rp::ones({2}), rp::ones({3})), rp::TypeError);
  CHECK_THROWS_AS(rp::vmap(f)(rp::ones({2}), Array(1.0)), rp::TypeError);
  CHECK_THROWS_AS(rp::vmap(f, {.in_axes = {{0}}})(rp::ones({2}), rp::ones({2})), rp::TypeError);
  CHECK_THROWS_AS(rp::vmap(f, {.in_axes = {{0, 1}}})(rp::ones({2}), rp::ones({2})), rp::TypeError);
  CHECK_THROWS_AS(rp::vmap(f, {.out_axes = {1}})(rp::ones({2}), rp::ones({2})), rp::TypeError);
}

TEST_CASE("empty axes, numbers and closed-over traced values are ordinary") {
  CHECK(rp::vmap([](Array x) { return rp::sum(x); })(rp::ones({0, 3})).shape() == rp::Shape{0});
  auto shifted = [](Array x, int by) { return x + by; };
  CHECK(numbers(rp::vmap(shifted, {.in_axes = {{0, std::nullopt}}})(counting({2}), 10)) ==
        std::vector<double>{10, 11});
  auto f = [](Array w) { return rp::sum(rp::vmap([&](Array x) { return x * w; })(counting({3}))); };
  CHECK(rp::grad(f)(rp::full({}, 2.0, rp::float64)).item<double>() == 3.0);
}

TEST_CASE("vmap nests and commutes with grad") {
  const Array x = counting({2}), y = counting({3});
  auto times = [](Array a, Array b) { return a * b + a; };
  auto table =
      rp::vmap(rp::vmap(times, {.in_axes = {{std::nullopt, 0}}}), {.in_axes = {{0, std::nullopt}}});
  const Array got = table(x, y);
  REQUIRE(got.shape() == rp::Shape{2, 3});
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      CHECK(got(i, j).item<double>() == times(x[i], y[j]).item<double>());
    }
  }
  auto f = [](Array v) { return rp::sum(rp::sin(v) * v); };
  const Array batch = counting({4, 3});
  auto total = [&](Array b) { return rp::sum(rp::vmap(f)(b)); };
  check_close(rp::vmap(rp::grad(f))(batch), rp::grad(total)(batch), 1e-12);
}

TEST_CASE("mapped programs print as JAX prints them") {
  auto table = [](Array x, Array y) {
    auto inner = rp::vmap([](Array a, Array b) { return a * b; }, {.in_axes = {{0, std::nullopt}}});
    return rp::vmap(inner, {.in_axes = {{std::nullopt, 0}}})(x, y);
  };
  CHECK(text(table, rp::ones({3}), rp::ones({4})) == R"({ lambda ; a:f32[3] b:f32[4]. let
    c:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] a
    d:f32[4,1] = broadcast_in_dim[broadcast_dimensions=(0,)] b
    e:f32[4,3] = mul c d
  in (e,) })");
  auto axes = [](Array x) {
    auto both = [](Array v) {
      Array y = v * 2.;
      Array z = rp::sum(v);
      return std::tuple{y, z};
    };
    return rp::vmap(both, {.in_axes = {{1}}, .out_axes = {1, 0}})(x);
  };
  CHECK(text(axes, rp::ones({3, 4})) == R"({ lambda ; a:f32[3,4]. let
    b:f32[3,4] = mul a 2.0:f32[]
    c:f32[4] = reduce_sum[axes=(0,) out_sharding=None] a
  in (b, c) })");
}

TEST_CASE("axes are written with one or two pairs of braces, or as a vector") {
  auto f = [](Array x, Array y) { return x + y; };
  const Array x = counting({2}), y = counting({2, 2});
  const std::vector<rp::InAxes::Axis> axes{std::nullopt, 0};
  const Array got = rp::vmap(f, {.in_axes = {std::nullopt, 0}})(x, y);
  CHECK(numbers(got) == std::vector<double>{0, 2, 2, 4});
  CHECK(numbers(rp::vmap(f, {.in_axes = {{std::nullopt, 0}}})(x, y)) == numbers(got));
  CHECK(numbers(rp::vmap(f, {.in_axes = axes})(x, y)) == numbers(got));
  const auto same =
      rp::vmap([](Array v) { return v; }, {.in_axes = {std::nullopt}, .axis_size = 2})(x);
  CHECK(same.shape() == rp::Shape{2, 2});
}
