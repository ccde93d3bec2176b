// scan and fori_loop: programs as JAX prints them, values and gradients against plain loops.
#include "derivatives.h"
#include "program/program.h"

namespace {

using namespace check;
using rp::None;
using rp::none;
using std::pair;
using Two = std::tuple<Array, Array>;

const Array one = rp::full({}, 1.0, rp::float32);

auto sine_scan(Array w, Array c, Array xs) {
  auto body = [=](Array k, Array x) {
    Array m = w * k;
    Array s = rp::sin(m);
    Array next = s * x;
    Array y = rp::cos(k);
    return pair{next, y};
  };
  return rp::scan(body, c, xs);
}

}  // namespace

TEST_CASE("a scan, its jvp and its forward pass print as JAX prints them") {
  CHECK(text(sine_scan, one, one, rp::ones({3})) == R"({ lambda ; a:f32[] b:f32[] c:f32[3]. let
    d:f32[] e:f32[3] = scan[
      jaxpr={ lambda ; f:f32[] g:f32[] h:f32[]. let
          i:f32[] = mul f g
          j:f32[] = sin i
          k:f32[] = mul j h
          l:f32[] = cos g
        in (k, l) }
      length=3
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] a b c
  in (d, e) })");
  CHECK(jvp_text(sine_scan, one, one, rp::ones({3})) ==
        R"(let jaxpr = { lambda ; a:f32[] b:f32[] c:f32[] d:f32[] e:f32[] f:f32[]. let
    g:f32[] = mul a c
    h:f32[] = mul b c
    i:f32[] = mul a d
    j:f32[] = add_any h i
    k:f32[] = sin g
    l:f32[] = cos g
    m:f32[] = mul j l
    n:f32[] = mul k e
    o:f32[] = mul m e
    p:f32[] = mul k f
    q:f32[] = add_any o p
    r:f32[] = cos c
    s:f32[] = sin c
    t:f32[] = mul d s
    u:f32[] = neg t
  in (n, q, r, u) } in
{ lambda ; v:f32[] w:f32[] x:f32[3] y:f32[] z:f32[] ba:f32[3]. let
    bb:f32[] bc:f32[] bd:f32[3] be:f32[3] = scan[
      jaxpr=jaxpr
      length=3
      num_carry=2
      num_consts=2
      reverse=False
      unroll=1
    ] v y w z x ba
  in (bb, bd, bc, be) })");
  CHECK(forward_text(sine_scan, one, one, rp::ones({3})) ==
        R"({ lambda ; a:f32[] b:f32[] c:f32[3]. let
    d:f32[] e:f32[3] f:f32[3] g:f32[3] h:f32[3] i:f32[3] = scan[
      jaxpr={ lambda ; j:f32[] k:f32[] l:f32[]. let
          m:f32[] = mul j k
          n:f32[] = sin m
          o:f32[] = cos m
          p:f32[] = mul n l
          q:f32[] = cos k
          r:f32[] = sin k
        in (p, q, k, o, n, r) }
      length=3
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] a b c
  in (d, e, a, c, f, g, h, i) })");
}

TEST_CASE("values that do not change in the loop are computed once, outside") {
  auto f = [](Array W, Array c, Array xs) {
    auto body = [=](Array k, Array x) {
      Array m = rp::matmul(W, k);
      Array s = rp::sin(m);
      Array t = s * x;
      Array total = rp::cos(W);
      total = rp::sum(total);
      Array next = t + total;
      Array y = rp::sum(k);
      return pair{next, y};
    };
    return rp::scan(body, c, xs);
  };
  CHECK(forward_text(f, rp::ones({3, 3}), rp::ones({3}), rp::ones({4})) ==
        R"({ lambda ; a:f32[3,3] b:f32[3] c:f32[4]. let
    d:f32[3,3] = cos a
    e:f32[3,3] = sin a
    f:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] d
    g:f32[3] h:f32[4] i:f32[4,3] j:f32[4,3] k:f32[4,3] = scan[
      jaxpr={ lambda ; l:f32[3,3] m:f32[] n:f32[3] o:f32[]. let
          p:f32[3] = dot_general[
            dimension_numbers=(([1], [0]), ([], []))
            preferred_element_type=float32
          ] l n
          q:f32[3] = sin p
          r:f32[3] = cos p
          s:f32[3] = mul q o
          t:f32[3] = add s m
          u:f32[] = reduce_sum[axes=(0,) out_sharding=None] n
        in (t, u, n, r, q) }
      length=4
      num_carry=1
      num_consts=2
      reverse=False
      unroll=1
    ] a f b c
  in (g, h, a, c, e, i, j, k) })");
}

TEST_CASE("a carry that starts without a tangent may get one") {
  auto f = [](Array x, Array xs) {
    Array zero = rp::zeros({});
    auto body = [](Two c, Array y) {
      auto [a, b] = c;
      Array next = b * y;
      return pair{Two{b, next}, a};
    };
    return rp::scan(body, Two{zero, x}, xs);
  };
  CHECK(forward_text(f, one, rp::ones({3})) == R"({ lambda ; a:f32[] b:f32[3]. let
    c:f32[] d:f32[] e:f32[3] f:f32[3] = scan[
      jaxpr={ lambda ; g:f32[] h:f32[] i:f32[]. let
          j:f32[] = mul h i
        in (h, j, g, h) }
      length=3
      num_carry=2
      num_consts=0
      reverse=False
      unroll=1
    ] 0.0:f32[] a b
  in (c, d, e, b, f) })");
  auto loss = [&](Array x) {
    auto [carry, ys] = f(x, rp::array({1.0, 2.0, 3.0}));
    return rp::sum(ys) + std::get<1>(carry);
  };
  CHECK(rp::grad(loss)(one).item<double>() == doctest::Approx(1 + 1 + 6));  // ys: 0, x, x; carry 6x
}

TEST_CASE("a carry that the body hands on unchanged becomes a constant") {
  auto f = [](Array xs, Array w) {
    auto body = [=](Array c, Array x) {
      Array s = rp::sin(x);
      Array y = s * w;
      return pair{c, y};
    };
    return rp::scan(body, Array(0), xs).second;
  };
  CHECK(text(f, rp::ones({3}), one) == R"({ lambda ; a:f32[3] b:f32[]. let
    c:f32[3] = scan[
      jaxpr={ lambda ; d:i32[] e:f32[] f:f32[]. let
          g:f32[] = sin f
          h:f32[] = mul g e
        in (h,) }
      length=3
      num_carry=0
      num_consts=2
      reverse=False
      unroll=1
    ] 0:i32[] b a
  in (c,) })");
}

TEST_CASE("a scanned input that is an output is not copied by the loop") {
  auto f = [](Array xs) {
    return rp::scan([](Array c, Array x) { return pair{c + x, Two{x, c}}; }, Array(0.0), xs).second;
  };
  const Array xs = rp::array({1.0, 2.0, 4.0});
  const auto [same, before] = f(xs);
  CHECK(numbers(same) == std::vector<double>{1, 2, 4});
  CHECK(numbers(before) == std::vector<double>{0, 1, 3});
  const rp::Jaxpr program = rp::make_jaxpr(f)(xs);
  CHECK(program.program()->eqns[0].out.size() == 2);  // the carry and one stacked output
}

TEST_CASE("a mapped scan prints as JAX prints it") {
  auto f = [](Array W, Array x) {
    auto body = [=](Array c, None) {
      Array m = rp::matmul(W, c);
      return pair{rp::sin(m), none};
    };
    return rp::scan(body, x, none, {.length = 4}).first;
  };
  const Array W = rp::ones({3, 3}), x = rp::ones({2, 3});
  CHECK(text(rp::vmap(f, {.in_axes = {{std::nullopt, 0}}}), W, x) ==
        R"({ lambda ; a:f32[3,3] b:f32[2,3]. let
    c:f32[2,3] = scan[
      jaxpr={ lambda ; d:f32[3,3] e:f32[2,3]. let
          f:f32[3,2] = dot_general[
            dimension_numbers=(([1], [1]), ([], []))
            preferred_element_type=float32
          ] d e
          g:f32[3,2] = sin f
          h:f32[2,3] = transpose[permutation=(1, 0)] g
        in (h,) }
      length=4
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] a b
  in (c,) })");
}

TEST_CASE("calls of jit in a loop leave an empty call outside, as in JAX") {
  auto f = [](Array c, Array xs) {
    auto body = [](Array k, Array x) {
      Array r = rp::nn::relu(k);
      Array next = r * x;
      return pair{next, k};
    };
    return rp::scan(body, c, xs);
  };
  CHECK(forward_text(f, one, rp::ones({3})) == R"({ lambda ; a:f32[] b:f32[3]. let
    jit[name=relu jaxpr={ lambda ; . let  in () }] 
    c:f32[] d:f32[3] e:bool[3] f:f32[3] = scan[
      jaxpr={ lambda ; g:f32[] h:f32[]. let
          i:f32[] = jit[
            name=relu
            jaxpr={ lambda ; g:f32[]. let i:f32[] = max g 0.0:f32[] in (i,) }
          ] g
          j:bool[] = gt g 0.0:f32[]
          k:f32[] = mul i h
        in (k, g, j, i) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a b
  in (c, d, b, e, f) })");
}

namespace {

// The same as sine_scan, as a C++ loop over rows.
Two sine_loop(Array w, Array c, Array xs, bool reverse) {
  const std::int64_t n = xs.shape(0);
  Arrays ys(static_cast<std::size_t>(n));
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = reverse ? n - 1 - step : step;
    ys[static_cast<std::size_t>(i)] = rp::cos(c);
    c = rp::sin(w * c) * xs[i];
  }
  return {c, rp::stack(ys)};
}

}  // namespace

TEST_CASE("scan computes what a loop computes, in both directions and unrolled") {
  const Array w = rp::full({}, 0.7, rp::float64), c = rp::full({}, 0.3, rp::float64);
  const Array xs = doubles({1.5, -2.0, 0.5, 3.0});
  for (bool reverse : {false, true}) {
    for (std::int64_t unroll : {1, 2, 3}) {
      auto looped = [&](Array a, Array b, Array x) {
        auto body = [=](Array k, Array y) {
          Array next = rp::sin(a * k) * y;
          return pair{next, rp::cos(k)};
        };
        auto [carry, ys] = rp::scan(body, b, x, {.reverse = reverse, .unroll = unroll});
        return Two{carry, ys};
      };
      auto plain = [&](Array a, Array b, Array x) { return sine_loop(a, b, x, reverse); };
      const auto [carry, ys] = looped(w, c, xs);
      const auto [plain_carry, plain_ys] = plain(w, c, xs);
      check_close(carry, plain_carry, 1e-12);
      check_close(ys, plain_ys, 1e-12);
      auto loss_of = [](auto f) {
        return [f](Array a, Array b, Array x) {
          const auto [end, all] = f(a, b, x);
          return end * end + rp::sum(all * all);
        };
      };
      const auto grads = rp::grad<0, 1, 2>(loss_of(looped))(w, c, xs);
      const auto wanted = rp::grad<0, 1, 2>(loss_of(plain))(w, c, xs);
      check_close(std::get<0>(grads), std::get<0>(wanted), 1e-12);
      check_close(std::get<1>(grads), std::get<1>(wanted), 1e-12);
      check_close(std::get<2>(grads), std::get<2>(wanted), 1e-12);
    }
  }
}

TEST_CASE("scan carries trees, counts in integers, and may have no steps") {
  struct State {
    Array count, value;
  };
  auto body = [](State s, std::vector<Array> x) {
    State next{s.count + 1, s.value * x[0] + x[1]};
    return pair{next, std::map<std::string, Array>{{"value", s.value}}};
  };
  const std::vector<Array> xs{rp::array({2.0, 3.0}), rp::array({1.0, 1.0})};
  const auto [end, ys] = rp::scan(body, State{Array(0), Array(1.0)}, xs);
  CHECK(end.count.item<int>() == 2);
  CHECK(end.count.dtype() == rp::int32);
  CHECK(end.value.item<double>() == 10.0);
  CHECK(numbers(ys.at("value")) == std::vector<double>{1, 3});

  const auto [same, none_made] = rp::scan(
      [](Array c, Array x) {
        return pair{c + x, c * 2.0};
      },
      Array(1.5), rp::zeros({0}));
  CHECK(same.item<double>() == 1.5);
  CHECK(none_made.shape() == rp::Shape{0});
}

TEST_CASE("the gradient of a scan inside a scan reaches every constant") {
  auto f = [](Array p) {
    Array w = p[0], start = p[1], scale = p[2];
    auto outer = [=](Array c, Array x) {
      auto inner = [=](Array d, None) { return pair{rp::sin(w * d) * x + scale, none}; };
      return pair{rp::scan(inner, c, none, {.length = 2}).first, c * scale};
    };
    auto [carry, ys] = rp::scan(outer, start, doubles({0.5, -1.0, 2.0}));
    return carry + rp::sum(ys);
  };
  const Array p = doubles({0.7, 0.2, 1.3});
  check_close(rp::grad(f)(p), numeric_grad(f, p), 1e-7);
  auto slope = [&](Array q) { return rp::sum(rp::grad(f)(q)); };
  check_close(rp::grad(slope)(p), numeric_grad(slope, p), 1e-6);
}

TEST_CASE("fori_loop with numbers as bounds is a scan and has a gradient") {
  auto f = [](Array x) {
    return rp::fori_loop(
        1, 4, [](Array i, Array c) { return c * i; }, x);
  };
  CHECK(f(one).item<double>() == 6.0);
  CHECK(rp::grad(f)(one).item<double>() == 6.0);
  CHECK(rp::fori_loop(
            3, 1, [](Array, Array c) { return c * 2.0; }, one)
            .item<double>() == 1.0);
  auto sines = [](Array x) {
    return rp::fori_loop(
        0, 3,
        [](Array i, Array c) {
          Array s = rp::sin(c);
          return s * i;
        },
        x);
  };
  CHECK(text(sines, one) == R"({ lambda ; a:f32[]. let
    _:i32[] b:f32[] = scan[
      jaxpr={ lambda ; c:i32[] d:f32[]. let
          e:i32[] = add c 1:i32[]
          f:f32[] = sin d
          g:f32[] = convert_element_type[new_dtype=float32 weak_type=False] c
          h:f32[] = mul f g
        in (e, h) }
      length=3
      num_carry=2
      num_consts=0
      reverse=False
      unroll=1
    ] 0:i32[] a
  in (b,) })");
}

TEST_CASE("a loop whose carry changes its type, or with unknown length, is a TypeError") {
  auto widen = [](Array c, None) { return pair{rp::stack({c, c}), none}; };
  CHECK_THROWS_AS(rp::scan(widen, one, none, {.length = 2}), rp::TypeError);
  auto keep = [](Array c, None) { return pair{c, none}; };
  CHECK_THROWS_AS(rp::scan(keep, one, none), rp::TypeError);
  auto add = [](Array c, Two x) { return pair{c + std::get<0>(x), none}; };
  CHECK_THROWS_AS(rp::scan(add, one, Two{rp::ones({2}), rp::ones({3})}), rp::TypeError);
  // A number for a start takes the common dtype: an integer may become floating, not the reverse.
  auto constant = [](rp::Dtype d) {
    return [d](Array, rp::None) { return std::pair{rp::zeros({}, d), rp::none}; };
  };
  CHECK(rp::scan(constant(rp::float32), Array(1), rp::none, {.length = 0}).first.dtype() ==
        rp::float32);
  CHECK_THROWS_AS(rp::scan(constant(rp::int32), Array(1.5), rp::none, {.length = 2}),
                  rp::TypeError);
}

TEST_CASE("a step in a checkpoint may return a number") {
  auto f = [](Array x) {
    auto step = [](Two c, Array v) {
      const auto [s, k] = c;
      return pair{Two(rp::sin(s) * k * v, Array(2.0)), Array(3.0)};
    };
    const auto [c, ys] = rp::scan(step, Two(x, one), rp::array({1.0, 2.0, 3.0}));
    return std::get<0>(c) * std::get<1>(c) * rp::sum(ys);
  };
  CHECK(rp::grad(rp::checkpoint(f))(0.5).item<float>() ==
        doctest::Approx(rp::grad(f)(0.5).item<float>()));
}
