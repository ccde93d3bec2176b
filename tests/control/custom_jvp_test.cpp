// custom_jvp: the user's rule is the derivative, everywhere.
#include "derivatives.h"

namespace {

using namespace check;
using One = std::tuple<Array>;
using Two = std::tuple<Array, Array>;
using std::pair;

// The rule says twice cos(x), which no correct derivative of the function would be.
Array wrong_sine(Array x);
auto make_wrong_sine() {
  auto f = [](Array x) {
    Array s = rp::sin(x);
    return s * x;
  };
  auto rule = [](One x, One dx) {
    Array y = wrong_sine(std::get<0>(x));
    Array c = rp::cos(std::get<0>(x));
    Array d = std::get<0>(dx) * c;
    d = d * 2.;
    return pair{y, d};
  };
  return rp::custom_jvp(f, rule, {.name = "cj", .jvp = "cj_jvp"});
}
Array wrong_sine(Array x) {
  static const auto f = make_wrong_sine();
  return f(x);
}

const Array yes = rp::full({}, true, rp::bool_);

}  // namespace

TEST_CASE("a function with a rule, its derivatives and its mapped form print as JAX prints them") {
  CHECK(text(wrong_sine, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = custom_jvp_call[
      name=cj
      call_jaxpr={ lambda ; c:f32[3]. let
          d:f32[3] = sin c
          e:f32[3] = mul d c
        in (e,) }
      jvp=cj_jvp
      symbolic_zeros=False
    ] a
  in (b,) })");
  CHECK(jvp_text(wrong_sine, rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = custom_jvp_call[
      name=cj
      call_jaxpr={ lambda ; d:f32[3]. let
          e:f32[3] = sin d
          f:f32[3] = mul e d
        in (f,) }
      jvp=cj_jvp
      symbolic_zeros=False
    ] a
    g:f32[3] = cos a
    h:f32[3] = mul b g
    i:f32[3] = mul h 2.0:f32[]
  in (c, i) })");
  CHECK(forward_text(wrong_sine, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = custom_jvp_call[
      name=cj
      call_jaxpr={ lambda ; c:f32[3]. let
          d:f32[3] = sin c
          e:f32[3] = mul d c
        in (e,) }
      jvp=cj_jvp
      symbolic_zeros=False
    ] a
    f:f32[3] = cos a
  in (b, f, 2.0:f32[]) })");
  CHECK(text(rp::vmap(wrong_sine), rp::ones({2, 3})) == R"({ lambda ; a:f32[2,3]. let
    b:f32[2,3] = custom_jvp_call[
      name=cj
      call_jaxpr={ lambda ; c:f32[2,3]. let
          d:f32[2,3] = sin c
          e:f32[2,3] = mul d c
        in (e,) }
      jvp=cj_jvp
      symbolic_zeros=False
    ] a
  in (b,) })");
}

TEST_CASE("rules inside scan and jit print as JAX prints them") {
  auto looped = [](Array c, Array xs) {
    auto body = [](Array k, Array x) {
      Array y = wrong_sine(k);
      Array next = y * x;
      return pair{next, k};
    };
    return rp::scan(body, c, xs);
  };
  CHECK(forward_text(looped, rp::full({}, 1.0, rp::float32), rp::ones({3})) ==
        R"({ lambda ; a:f32[] b:f32[3]. let
    c:f32[] d:f32[3] e:f32[3] f:f32[3] = scan[
      jaxpr={ lambda ; g:f32[] h:f32[]. let
          i:f32[] = sin g
          j:f32[] = mul i g
          k:f32[] = cos g
          l:f32[] = mul j h
        in (l, g, k, j) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a b
  in (c, d, b, e, f) })");
  auto called = [](Array x) {
    auto twice = [](Array v) {
      Array y = wrong_sine(v);
      return y * 2.;
    };
    return rp::jit(twice)(x);
  };
  CHECK(forward_text(called, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] c:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          d:f32[3] = custom_jvp_call[
            name=cj
            call_jaxpr={ lambda ; e:f32[3]. let
                f:f32[3] = sin e
                g:f32[3] = mul f e
              in (g,) }
            jvp=cj_jvp
            symbolic_zeros=False
          ] a
          c:f32[3] = cos a
          b:f32[3] = mul d 2.0:f32[]
        in (b, c) }
    ] a
  in (b, c) })");
}

TEST_CASE("the rule is used by every way to differentiate, alone and inside control flow") {
  const Array x = rp::full({}, 0.6, rp::float64);
  const double slope = 2 * std::cos(0.6);
  CHECK(wrong_sine(x).item<double>() == doctest::Approx(std::sin(0.6) * 0.6));
  CHECK(rp::grad(wrong_sine)(x).item<double>() == doctest::Approx(slope));
  CHECK(rp::jvp(wrong_sine, One{x}, One{x}).second.item<double>() == doctest::Approx(slope * 0.6));
  CHECK(rp::grad(rp::grad(wrong_sine))(x).item<double>() == doctest::Approx(-2 * std::sin(0.6)));
  auto jitted = rp::jit(wrong_sine);
  CHECK(rp::grad(jitted)(x).item<double>() == doctest::Approx(slope));
  auto branched = [&](Array v) {
    return rp::cond(
        yes, wrong_sine, [](Array u) { return u; }, v);
  };
  CHECK(rp::grad(branched)(x).item<double>() == doctest::Approx(slope));
  auto looped = [](Array v) {
    return rp::fori_loop(
        0, 1, [](Array, Array c) { return wrong_sine(c); }, v);
  };
  CHECK(rp::grad(looped)(x).item<double>() == doctest::Approx(slope));
  const Array mapped = rp::vmap(rp::grad(wrong_sine))(doubles({0.1, 0.2}));
  CHECK(numbers(mapped)[1] == doctest::Approx(2 * std::cos(0.2)));
  auto sum_mapped = [](Array v) { return rp::sum(rp::vmap(wrong_sine)(v)); };
  CHECK(numbers(rp::grad(sum_mapped)(doubles({0.1, 0.2})))[0] ==
        doctest::Approx(2 * std::cos(0.1)));
}

TEST_CASE("a rule of two arguments gets zeros for arguments without a tangent") {
  auto f = rp::custom_jvp([](Array x, Array y) { return x * y; },
                          [](Two p, Two t) {
                            auto [x, y] = p;
                            auto [dx, dy] = t;
                            return pair{x * y, 10.0 * (x * dy) + 100.0 * (y * dx)};
                          });
  const Array x = rp::full({}, 2.0, rp::float64), y = rp::full({}, 3.0, rp::float64);
  CHECK(rp::grad<0>(f)(x, y).item<double>() == 300.0);
  CHECK(rp::grad<1>(f)(x, y).item<double>() == 20.0);
  const auto [gx, gy] =
      rp::vmap(rp::grad<0, 1>(f), {.in_axes = {{0, std::nullopt}}})(doubles({1.0, 2.0}), y);
  CHECK(numbers(gx) == std::vector<double>{300, 300});
  CHECK(numbers(gy) == std::vector<double>{10, 20});
}

TEST_CASE("a rule of the wrong shape or over a closed-over traced value is an error") {
  auto bad = rp::custom_jvp([](Array x) { return rp::sum(x); },
                            [](One x, One dx) {
                              return pair{rp::sum(std::get<0>(x)), std::get<0>(dx)};
                            });
  CHECK_THROWS_AS(rp::grad(bad)(rp::ones({3})), rp::TypeError);
  auto closes = [](Array w) {
    auto g = rp::custom_jvp([=](Array x) { return x * w; },
                            [=](One x, One dx) {
                              return pair{std::get<0>(x) * w, std::get<0>(dx)};
                            });
    return g(Array(2.0));
  };
  CHECK_THROWS_AS(rp::grad(closes)(rp::full({}, 1.0, rp::float32)), rp::TraceError);
}
