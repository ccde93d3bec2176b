// while_loop: programs as JAX prints them, values against plain loops.
#include "derivatives.h"

namespace {

using namespace check;
using Two = std::tuple<Array, Array>;

const Array one = rp::full({}, 1.0, rp::float32);

Two count_to_3(Array x) {
  auto more = [](Two c) { return std::get<0>(c) < 3; };
  auto step = [](Two c) {
    auto [i, v] = c;
    Array next = i + 1;
    Array s = rp::sin(v);
    return Two{next, s};
  };
  return rp::while_loop(more, step, Two{Array(0), x});
}
Array grow(Array w, Array top, Array x) {
  return rp::while_loop([=](Array c) { return c < top; }, [=](Array c) { return c * w; }, x);
}

}  // namespace

TEST_CASE("a while_loop, its jvp and its forward pass print as JAX prints them") {
  CHECK(text(count_to_3, one) == R"({ lambda ; a:f32[]. let
    b:i32[] c:f32[] = while[
      body_jaxpr={ lambda ; d:i32[] e:f32[]. let
          f:i32[] = add d 1:i32[]
          g:f32[] = sin e
        in (f, g) }
      body_nconsts=0
      cond_jaxpr={ lambda ; h:i32[] i:f32[]. let
          j:bool[] = lt h 3:i32[]
        in (j,) }
      cond_nconsts=0
    ] 0:i32[] a
  in (b, c) })");
  CHECK(jvp_text(count_to_3, one) == R"({ lambda ; a:f32[] b:f32[]. let
    c:i32[] d:f32[] e:f32[] = while[
      body_jaxpr={ lambda ; f:i32[] g:f32[] h:f32[]. let
          i:i32[] = add f 1:i32[]
          j:f32[] = sin g
          k:f32[] = cos g
          l:f32[] = mul h k
        in (i, j, l) }
      body_nconsts=0
      cond_jaxpr={ lambda ; m:i32[] n:f32[] o:f32[]. let
          p:bool[] = lt m 3:i32[]
        in (p,) }
      cond_nconsts=0
    ] 0:i32[] a b
  in (c, d, (b'',):float0[], e) })");
  CHECK(forward_text(count_to_3, one) == R"({ lambda ; a:f32[]. let
    b:i32[] c:f32[] = while[
      body_jaxpr={ lambda ; d:i32[] e:f32[]. let
          f:i32[] = add d 1:i32[]
          g:f32[] = sin e
          h:f32[] = cos e
        in (f, g) }
      body_nconsts=0
      cond_jaxpr={ lambda ; i:i32[] j:f32[]. let
          k:bool[] = lt i 3:i32[]
        in (k,) }
      cond_nconsts=0
    ] 0:i32[] a
  in (b, c, a) })");
}

TEST_CASE("a mapped while_loop prints as JAX prints it, with one or many predicates") {
  const Array w = rp::full({2}, 2.0, rp::float32), top = rp::full({2}, 10.0, rp::float32);
  CHECK(text(rp::vmap(count_to_3), rp::ones({2})) == R"({ lambda ; a:f32[2]. let
    b:i32[] c:f32[2] = while[
      body_jaxpr={ lambda ; d:i32[] e:f32[2]. let
          f:i32[] = add d 1:i32[]
          g:f32[2] = sin e
        in (f, g) }
      body_nconsts=0
      cond_jaxpr={ lambda ; h:i32[] i:f32[2]. let
          j:bool[] = lt h 3:i32[]
        in (j,) }
      cond_nconsts=0
    ] 0:i32[] a
    k:i32[2] = broadcast_in_dim b
  in (k, c) })");
  CHECK(text(rp::vmap(grow), w, top, rp::ones({2})) == R"({ lambda ; a:f32[2] b:f32[2] c:f32[2]. let
    d:f32[2] = while[
      body_jaxpr={ lambda ; e:f32[2] f:f32[2]. let g:f32[2] = mul f e in (g,) }
      body_nconsts=1
      cond_jaxpr={ lambda ; h:f32[2] i:f32[2]. let j:bool[2] = lt i h in (j,) }
      cond_nconsts=1
    ] b a c
  in (d,) })");
  CHECK(text(rp::vmap(grow, {.in_axes = {{0, std::nullopt, std::nullopt}}}), w, top[0], one) ==
        R"({ lambda ; a:f32[2] b:f32[] c:f32[]. let
    d:f32[2] = broadcast_in_dim c
    e:f32[2] = while[
      body_jaxpr={ lambda ; f:f32[2] g:f32[2]. let h:f32[2] = mul g f in (h,) }
      body_nconsts=1
      cond_jaxpr={ lambda ; i:f32[] j:f32[2]. let k:bool[2] = lt j i in (k,) }
      cond_nconsts=1
    ] b a d
  in (e,) })");
}

TEST_CASE("a carry that the body hands on and the condition ignores becomes a constant") {
  auto f = [](Array x) {
    using Three = std::tuple<Array, Array, Array>;
    auto step = [](Three c) {
      auto [i, v, y] = c;
      Array next = i + 1;
      Array s = rp::sin(v);
      s = s * y;
      return Three{next, s, y};
    };
    Array ones = rp::ones({3});
    return rp::while_loop([](Three c) { return std::get<0>(c) < 3; }, step,
                          Three{Array(0), x, ones});
  };
  CHECK(text(f, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = broadcast_in_dim 1.0:f32[]
    c:i32[] d:f32[3] = while[
      body_jaxpr={ lambda ; e:f32[3] f:i32[] g:f32[3]. let
          h:i32[] = add f 1:i32[]
          i:f32[3] = sin g
          j:f32[3] = mul i e
        in (h, j) }
      body_nconsts=1
      cond_jaxpr={ lambda ; k:i32[] l:f32[3]. let
          m:bool[] = lt k 3:i32[]
        in (m,) }
      cond_nconsts=0
    ] b 0:i32[] a
  in (c, d, b) })");
}

TEST_CASE("while_loop computes what a loop computes") {
  double plain = 1.25;
  while (plain < 100) plain *= 1.75;
  const Array got = grow(rp::full({}, 1.75, rp::float64), rp::full({}, 100.0, rp::float64),
                         rp::full({}, 1.25, rp::float64));
  CHECK(got.item<double>() == plain);
  CHECK(grow(one, one, one).item<double>() == 1.0);  // no step at all
}

TEST_CASE("every element of a mapped while_loop stops on its own") {
  const std::vector<double> w{1.5, 2.0, 3.0}, top{10.0, 50.0, 0.5}, x{1.0, 1.0, 1.0};
  const Array got = rp::vmap(grow)(rp::array(w), rp::array(top), rp::array(x));
  for (std::size_t i = 0; i < w.size(); ++i) {
    double v = x[i];
    while (v < top[i]) v *= w[i];
    CHECK(numbers(got)[i] == v);
  }
  auto twice = rp::vmap(rp::vmap(grow, {.in_axes = {{std::nullopt, 0, std::nullopt}}}),
                        {.in_axes = {{0, std::nullopt, 0}}});
  const Array table = twice(rp::array(w), rp::array(top), rp::array(x));
  REQUIRE(table.shape() == rp::Shape{3, 3});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      double v = x[i];
      while (v < top[j]) v *= w[i];
      CHECK(numbers(table)[3 * i + j] == v);
    }
  }
}

TEST_CASE("every element of a mapped while_loop stops on its own when compiled, too") {
  auto f = [](Array v) {
    return rp::while_loop([](Array c) { return rp::sum(c) < 10.0; },
                          [](Array c) { return c * 1.5; }, v);
  };
  const Array x = rp::array(std::vector<double>{1, 2, 0.1}, rp::Shape{3, 1});
  const std::vector<double> wanted = {11.390625, 10.125, 0.1 * std::pow(1.5, 12)};
  for (const Array& y : {rp::vmap(f)(x), rp::jit(rp::vmap(f))(x), rp::vmap(rp::jit(f))(x)}) {
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(numbers(y)[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
  }
  // More elements than fit beside the loop's other scratch memory, each with a number of steps of
  // its own.
  const Array many = rp::arange(1000) % 17;
  auto count = [](Array n) {
    return rp::fori_loop(
        0, n, [](Array i, Array c) { return c + i; }, Array(0));
  };
  const std::vector<int> sums = rp::jit(rp::vmap(count))(many).to_vector<int>();
  for (int i = 0; i < 1000; ++i)
    CHECK(sums[static_cast<std::size_t>(i)] == (i % 17) * (i % 17 - 1) / 2);
  CHECK(rp::jit(rp::vmap(count))(rp::zeros({0}, rp::int32)).shape() == rp::Shape{0});
}

TEST_CASE("a mapped while_loop may carry keys") {
  using State = std::tuple<Array, Array>;
  auto f = [](Array key, Array n) {
    auto more = [n](State s) { return std::get<1>(s) < n; };
    auto step = [](State s) {
      Array next = rp::random::fold_in(std::get<0>(s), std::get<1>(s));
      return State{next, std::get<1>(s) + 1};
    };
    return rp::random::key_data(std::get<0>(rp::while_loop(more, step, State{key, Array(0)})));
  };
  const Array keys = rp::random::split(rp::random::key(7), 3), n = rp::array({2, 0, 5});
  const auto bits = [](const Array& a) { return a.to_vector<std::uint32_t>(); };
  Arrays rows;
  for (std::int64_t i = 0; i < 3; ++i) rows.push_back(f(keys[i], n[i]));
  const std::vector<std::uint32_t> wanted = bits(rp::stack(rows));
  CHECK(bits(rp::vmap(f)(keys, n)) == wanted);
  CHECK(bits(rp::jit(rp::vmap(f))(keys, n)) == wanted);
}

TEST_CASE("a while_loop has a forward derivative and no reverse one") {
  auto f = [](Array x) {
    return grow(rp::full({}, 2.0, rp::float64), rp::full({}, 9.0, rp::float64), x);
  };
  const Array x = rp::full({}, 1.0, rp::float64);
  const auto [y, dy] = rp::jvp(f, std::tuple{x}, std::tuple{x});
  CHECK(y.item<double>() == 16.0);
  CHECK(dy.item<double>() == 16.0);
  const auto [same, linear] = rp::linearize(f, x);
  CHECK(linear(x).item<double>() == 16.0);
  CHECK_THROWS_AS(rp::grad(f)(x), rp::RuleError);
}

TEST_CASE("fori_loop with traced bounds is a while_loop") {
  auto f = [](Array n, Array x) {
    return rp::fori_loop(
        0, n,
        [](Array i, Array c) {
          Array s = rp::sin(c);
          return s * i;
        },
        x);
  };
  CHECK(text(f, rp::full({}, 3, rp::int32), one) == R"({ lambda ; a:i32[] b:f32[]. let
    _:i32[] _:i32[] c:f32[] = while[
      body_jaxpr={ lambda ; d:i32[] e:i32[] f:f32[]. let
          g:i32[] = add d 1:i32[]
          h:f32[] = sin f
          i:f32[] = convert_element_type[new_dtype=float32 weak_type=False] d
          j:f32[] = mul h i
        in (g, e, j) }
      body_nconsts=0
      cond_jaxpr={ lambda ; k:i32[] l:i32[] m:f32[]. let
          n:bool[] = lt k l
        in (n,) }
      cond_nconsts=0
    ] 0:i32[] a b
  in (c,) })");
  auto sum_to = [](Array n) {
    return rp::fori_loop(
        0, n, [](Array i, Array c) { return c + i; }, Array(0));
  };
  CHECK(sum_to(Array(5)).item<int>() == 10);
}

TEST_CASE("a condition that is not one bool is a TypeError") {
  auto step = [](Array c) { return c * 2.0; };
  CHECK_THROWS_AS(rp::while_loop([](Array c) { return c; }, step, one), rp::TypeError);
  CHECK_THROWS_AS(rp::while_loop([](Array c) { return c < 3.0; }, step, rp::ones({2})),
                  rp::TypeError);
}
