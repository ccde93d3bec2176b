// grad, value_and_grad, vjp, jvp, linearize, jacobians: arguments of every kind, all against
// numbers.
#include "derivatives.h"

namespace {

using namespace check;

struct Layer {  // a plain aggregate
  Array w, b;
};
struct Model {
  Layer in, out;
  int depth = 1;
  bool bias = true;
  REPRISE_FIELDS(in, out, depth, bias)
};
enum class Activation { sine, square };

Array scalar(double v) { return rp::full({}, v, rp::float64); }

}  // namespace

TEST_CASE("grad differentiates the first argument, or those that are named") {
  auto f = [](Array x, Array y, Array z) { return rp::sum(x * x * y) + rp::sum(z); };
  const Array x = doubles({1.0, 2.0}), y = doubles({3.0, 4.0}), z = scalar(5.0);
  CHECK(numbers(rp::grad(f)(x, y, z)) == std::vector<double>{6, 16});
  CHECK(numbers(rp::grad<1>(f)(x, y, z)) == std::vector<double>{1, 4});
  const auto [gz, gx] = rp::grad<2, 0>(f)(x, y, z);
  CHECK(gz.item<double>() == 1.0);
  CHECK(numbers(gx) == std::vector<double>{6, 16});
  const auto [value, grads] = rp::value_and_grad<0, 1>(f)(x, y, z);
  CHECK(value.item<double>() == 3 + 16 + 5);
  CHECK(numbers(std::get<1>(grads)) == std::vector<double>{1, 4});
}

TEST_CASE("arguments that the function does not use have a zero gradient") {
  const auto [gx, gy] =
      rp::grad<0, 1>([](Array x, Array) { return rp::sum(x); })(rp::ones({2}), rp::ones({3}));
  CHECK(numbers(gx) == std::vector<double>{1, 1});
  CHECK(numbers(gy) == std::vector<double>{0, 0, 0});
  CHECK(gy.dtype() == rp::float32);
}

TEST_CASE("gradients have the structure of their argument") {
  const Array x = scalar(3.0);
  SUBCASE("tuple, pair and array") {
    auto f = [](std::tuple<Array, Array> t) { return std::get<0>(t) * std::get<1>(t); };
    const auto [a, b] = rp::grad(f)({x, scalar(5.0)});
    CHECK(a.item<double>() == 5.0);
    CHECK(b.item<double>() == 3.0);
    auto g = [](std::array<Array, 2> t) { return t[0] * t[0] * t[1]; };
    CHECK(rp::grad(g)({x, scalar(2.0)})[0].item<double>() == 12.0);
  }
  SUBCASE("vector and map") {
    auto f = [](std::vector<Array> v) { return v[0] * v[1] * v[2]; };
    CHECK(rp::grad(f)({x, x, scalar(2.0)})[2].item<double>() == 9.0);
    auto g = [](std::map<std::string, Array> m) { return m.at("w") * m.at("b"); };
    const auto grads = rp::grad(g)({{"w", x}, {"b", scalar(7.0)}});
    CHECK(grads.at("w").item<double>() == 7.0);
    CHECK(grads.at("b").item<double>() == 3.0);
  }
  SUBCASE("optional") {
    auto f = [](Array v, std::optional<Array> bias) { return bias ? v * *bias : v; };
    const auto with = rp::grad<1>(f)(x, scalar(4.0));
    REQUIRE(with.has_value());
    CHECK(with->item<double>() == 3.0);
    CHECK(!rp::grad<1>(f)(x, std::nullopt).has_value());
  }
  SUBCASE("Dict") {
    rp::Dict params;
    params["dense"]["kernel"] = x;
    params["scale"] = scalar(2.0);
    auto f = [](rp::Dict p) {
      const Array kernel = p["dense"]["kernel"];
      return kernel * kernel * p["scale"].array();
    };
    const rp::Dict grads = rp::grad(f)(params);
    CHECK(grads.dict("dense")["kernel"].item<double>() == 12.0);
    CHECK(grads["scale"].item<double>() == 9.0);
  }
  SUBCASE("structs, with static members kept") {
    auto f = [](Model m) {
      Array y = m.in.w * m.out.w;
      for (int i = 1; i < m.depth; ++i) y = y * m.in.w;
      return m.bias ? y + m.in.b : y;
    };
    const Model g = rp::grad(f)(Model{{x, scalar(0.0)}, {scalar(2.0), scalar(0.0)}, 2, true});
    CHECK(g.in.w.item<double>() == 12.0);
    CHECK(g.out.w.item<double>() == 9.0);
    CHECK(g.in.b.item<double>() == 1.0);
    CHECK(g.out.b.item<double>() == 0.0);
    CHECK(g.depth == 2);
  }
}

TEST_CASE("numbers, enums and text are static arguments; numbers convert to Array parameters") {
  auto f = [](Array x, int n, Activation kind, std::string name) {
    for (int i = 0; i < n; ++i) x = kind == Activation::sine ? rp::sin(x) : x * x;
    return name == "double" ? x * 2.0 : x;
  };
  CHECK(rp::grad(f)(3.0, 2, Activation::square, "plain").item<double>() == 4 * 27.0);
  CHECK(rp::grad(f)(3.0f, 1, Activation::square, "double").item<double>() == 12.0);
  CHECK(rp::grad(f)(0.5, 1, Activation::sine, "plain").item<double>() ==
        doctest::Approx(std::cos(0.5)));
  CHECK(rp::grad([](Array x) { return x * x; })(2.0).item<double>() == 4.0);
}

TEST_CASE("has_aux returns values that are not differentiated") {
  auto f = [](Array x) { return std::pair{rp::sum(x * x), std::tuple{x * 2.0, Array(7)}}; };
  const Array x = doubles({1.0, 2.0});
  const auto [grads, aux] = rp::grad(f, rp::has_aux)(x);
  CHECK(numbers(grads) == std::vector<double>{2, 4});
  CHECK(numbers(std::get<0>(aux)) == std::vector<double>{2, 4});
  CHECK(std::get<1>(aux).item<int>() == 7);
  const auto [out, again] = rp::value_and_grad(f, rp::has_aux)(x);
  CHECK(out.first.item<double>() == 5.0);
  CHECK(numbers(again) == std::vector<double>{2, 4});
}

TEST_CASE("aux is not differentiated: nothing is saved or computed again for it") {
  auto f = [](Array x) {
    Array y = rp::sin(x);
    Array c = rp::cos(x);
    Array aux = rp::exp(c);
    Array loss = rp::sum(y);
    return std::pair{loss, aux};
  };
  CHECK(text(rp::grad(rp::checkpoint(f), rp::has_aux), rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = sin a
    c:f32[3] = cos a
    d:f32[3] = exp c
    _:f32[] = reduce_sum[axes=(0,) out_sharding=None] b
    e:f32[3] = remat2[
      differentiated=True
      jaxpr={ lambda ; f:f32[3] g:f32[]. let
          h:f32[3] = cos f
          i:f32[3] = broadcast_in_dim g
          j:f32[3] = mul i h
        in (j,) }
      policy=None
      prevent_cse=True
    ] a 1.0:f32[]
  in (e, d) })");
  auto saving = rp::checkpoint(f, {.policy = rp::checkpoint_policies::everything_saveable});
  const std::string saved = text(rp::grad(saving, rp::has_aux), rp::ones({3}));
  CHECK(saved.find("jaxpr={ lambda ; g:f32[3] h:f32[]. let") !=
        std::string::npos);  // cos x, and the cotangent
}

TEST_CASE("what vjp and linearize return holds what the linear program reads, and no more") {
  constexpr std::int64_t n = 1 << 16;
  constexpr std::size_t bytes = n * sizeof(float);
  const std::size_t before = rp::live_bytes();
  const auto held_by = [&](const auto& made) {  // result dropped, arguments too
    const auto map = made().second;
    return rp::live_bytes() - before;
  };
  const auto doubled = [](Array x) { return x * 2.f; };
  const auto two = [](Array x) { return rp::exp(rp::sin(x)); };
  CHECK(held_by([&] { return rp::vjp(doubled, rp::ones({n})); }) < bytes);
  CHECK(held_by([&] { return rp::linearize(doubled, rp::ones({n})); }) < bytes);
  CHECK(held_by([&] { return rp::vjp(two, rp::ones({n})); }) / bytes == 2);
  CHECK(held_by([&] { return rp::linearize(two, rp::ones({n})); }) / bytes == 2);
  const auto tree = [](std::map<std::string, Array> p, std::optional<Array> q) {
    return std::tuple{p.at("a") * 2.f, *q + p.at("b")};
  };
  const auto of_tree = [&] {
    return rp::vjp(tree, std::map<std::string, Array>{{"a", rp::ones({n})}, {"b", rp::ones({n})}},
                   std::optional(rp::ones({n})));
  };
  CHECK(held_by(of_tree) < bytes);
  const auto rule = rp::custom_vjp([](Array x) { return rp::sin(x); },
                                   [](Array x) {
                                     return std::pair{rp::sin(x), rp::cos(x)};
                                   },
                                   [](Array c, Array ct) { return std::tuple{c * ct}; });
  CHECK(held_by([&] { return rp::vjp(rule, rp::ones({n})); }) / bytes == 1);
  const auto [y, pull] = of_tree();
  const auto [p, q] = pull(std::tuple{rp::ones({n}), rp::full({n}, 3.f)});
  CHECK(p.at("a")[0].item<float>() == 2.f);
  CHECK(p.at("b")[0].item<float>() == 3.f);
  REQUIRE(q.has_value());
  CHECK((*q)[0].item<float>() == 3.f);
}

TEST_CASE("functions of every kind can be differentiated") {
  CHECK(rp::grad(+[](Array x) { return x * x; })(3.0).item<double>() == 6.0);  // pointer
  std::function<Array(Array)> held = [](Array x) { return x * x * x; };
  CHECK(rp::grad(held)(2.0).item<double>() == 12.0);
  CHECK(rp::grad([](auto x) { return x * x; })(Array(3.0)).item<double>() == 6.0);  // generic
  int calls = 0;
  auto counting = [calls](Array x) mutable { return x * static_cast<double>(++calls); };
  CHECK(rp::grad(counting)(3.0).item<double>() == 1.0);
  struct Scaled {
    double by;
    Array operator()(Array x) const { return x * by; }
  };
  CHECK(rp::grad(Scaled{4.0})(1.0).item<double>() == 4.0);
  auto by_reference = [](const Array& x, const std::vector<Array>& rest) { return x * rest[0]; };
  CHECK(rp::grad(by_reference)(2.0, {scalar(5.0)}).item<double>() == 5.0);
}

TEST_CASE("a closed-over traced value gets its gradient, a concrete one is a constant") {
  const Array concrete = scalar(10.0);
  auto outer = [&](Array w) {
    auto inner = [&](Array x) { return x * x * w * concrete; };
    return rp::grad(inner)(scalar(3.0)) + inner(w);
  };
  // d/dw (2*3*w*10 + 10 w^3) at 2
  CHECK(rp::grad(outer)(scalar(2.0)).item<double>() == 60 + 30 * 4.0);
}

TEST_CASE("vjp returns a function with its residuals") {
  auto f = [](Array x, Array y) {
    Array s = rp::sin(x);
    return std::tuple{s * y, x + y};
  };
  const auto [out, backward] = rp::vjp(f, scalar(0.5), scalar(2.0));
  CHECK(std::get<1>(out).item<double>() == 2.5);
  const auto [gx, gy] = backward({scalar(1.0), scalar(10.0)});
  CHECK(gx.item<double>() == doctest::Approx(2 * std::cos(0.5) + 10));
  CHECK(gy.item<double>() == doctest::Approx(std::sin(0.5) + 10));
  const std::vector<rp::Residual> saved = backward.residuals();
  REQUIRE(saved.size() == 3);  // y (an argument), cos x, sin x
  CHECK(saved[0].value.item<double>() == 2.0);
  CHECK(saved[1].value.item<double>() == doctest::Approx(std::cos(0.5)));
  CHECK(saved[2].value.item<double>() == doctest::Approx(std::sin(0.5)));
  CHECK(rp::to_string(saved[0].type) == "f64[]");
  CHECK_THROWS_AS(backward({rp::ones({2}), scalar(1.0)}), rp::TypeError);
}

TEST_CASE("integer arguments and results of vjp carry float0") {
  auto f = [](Array x, Array i) { return std::tuple{x * 2.0, i + 1}; };
  const auto [out, backward] = rp::vjp(f, scalar(1.0), Array(4));
  const auto [gx, gi] = backward({scalar(3.0), Array(0)});
  CHECK(gx.item<double>() == 6.0);
  CHECK(gi.dtype() == rp::float0);
  CHECK_THROWS_AS(rp::grad([](Array n) { return n * 2.0; })(Array(3)), rp::TypeError);
}

TEST_CASE("jvp and linearize give the derivative along tangents") {
  auto f = [](Array x, std::vector<Array> rest) { return rp::sin(x) * rest[0]; };
  const Array x = scalar(0.3), y = scalar(2.0);
  const auto [out, tangent] =
      rp::jvp(f, std::tuple{x, std::vector{y}}, std::tuple{scalar(1.0), std::vector{scalar(10.0)}});
  CHECK(out.item<double>() == doctest::Approx(2 * std::sin(0.3)));
  CHECK(tangent.item<double>() == doctest::Approx(2 * std::cos(0.3) + 10 * std::sin(0.3)));
  const auto [same, linear] = rp::linearize(f, x, std::vector{y});
  CHECK(linear(scalar(1.0), std::vector{scalar(10.0)}).item<double>() == tangent.item<double>());
  CHECK(linear(scalar(2.0), std::vector{scalar(20.0)}).item<double>() ==
        doctest::Approx(2 * tangent.item<double>()));
  CHECK_THROWS_AS(
      rp::jvp(f, std::tuple{x, std::vector{y}}, std::tuple{x, std::vector{rp::ones({2})}}),
      rp::TypeError);
}

TEST_CASE("jacfwd, jacrev and finite differences agree; the hessian is symmetric") {
  auto f = [](Array x) { return rp::sin(x) * rp::sum(x * x); };
  const Array x = doubles({0.3, -0.7, 1.1});
  const Array forward = rp::jacfwd(f)(x), reverse = rp::jacrev(f)(x);
  check_close(forward, reverse, 1e-12);
  for (std::int64_t i = 0; i < 3; ++i) {
    auto component = [&](Array v) { return f(v)[i]; };
    check_close(forward[i], numeric_grad(component, x), 1e-8);
  }
  auto g = [](Array v) { return rp::sum(rp::exp(v) * rp::sin(v)) * rp::sum(v); };
  const Array h = rp::hessian(g)(x);
  check_close(h, rp::transpose(h), 1e-12);
  auto slope = [&](Array v) { return rp::grad(g)(v)[1]; };
  check_close(h[1], numeric_grad(slope, x), 1e-7);
  auto matrix = [](Array m) { return rp::matmul(m, m); };
  const Array m = rp::array(std::vector<double>{1, 2, 3, 4, 5, 6}, rp::Shape{2, 3});
  auto gram = [&](Array v) { return rp::matmul(v, rp::transpose(v)); };
  CHECK(rp::jacfwd(gram)(m).shape() == rp::Shape{2, 2, 2, 3});
  check_close(rp::jacfwd(gram)(m), rp::jacrev(gram)(m), 1e-12);
  CHECK(rp::jacrev(matrix)(scalar(1.0).reshape({1, 1})).shape() == rp::Shape{1, 1, 1, 1});
}

TEST_CASE("the number of a traced value decides C++ control flow under grad, also nested") {
  int runs = 0;
  auto f = [&](Array x) {
    ++runs;
    Array y = x * x;
    if (y.item<double>() > 4.0) return y * 10.0;
    return y * x;
  };
  CHECK(rp::grad(f)(scalar(3.0)).item<double>() == 60.0);
  CHECK(rp::grad(f)(scalar(1.0)).item<double>() == 3.0);
  CHECK(runs == 2);
  auto newton = [](Array a) {
    Array x = a;
    while (std::abs((x * x - a).item<double>()) > 1e-12) x = (x + a / x) * 0.5;
    return x;
  };
  CHECK(newton(scalar(2.0)).item<double>() == doctest::Approx(std::sqrt(2.0)));
  CHECK(rp::grad(newton)(scalar(2.0)).item<double>() == doctest::Approx(0.5 / std::sqrt(2.0)));
  auto slope = [&](Array x) { return rp::grad(f)(x); };
  CHECK(rp::grad(slope)(scalar(3.0)).item<double>() == 20.0);
  CHECK(rp::grad(slope)(scalar(1.0)).item<double>() == 6.0);
  CHECK_THROWS_AS(rp::jit(f)(scalar(3.0)), rp::TraceError);
  CHECK_THROWS_AS(rp::vmap(f)(doubles({3.0})), rp::TraceError);
  CHECK_THROWS_AS(rp::make_jaxpr(f)(scalar(3.0)), rp::TraceError);
}

TEST_CASE("grad needs one floating scalar") {
  CHECK_THROWS_AS(rp::grad([](Array x) { return x; })(rp::ones({2})), rp::TypeError);
  CHECK_THROWS_AS(rp::grad([](Array x) { return std::tuple{x, x}; })(1.0), rp::TypeError);
  CHECK_THROWS_AS(rp::grad([](Array x) { return x > 0.0; })(1.0), rp::TypeError);
}
