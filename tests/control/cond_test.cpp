// cond and switch_: programs as JAX prints them, both branches, mapped and differentiated.
#include "derivatives.h"

namespace {

using namespace check;
using Two = std::tuple<Array, Array>;
using Unary = std::function<Array(Array)>;

const Array yes = rp::full({}, true, rp::bool_), no = rp::full({}, false, rp::bool_);
const Array one = rp::full({}, 1.0, rp::float32);

Array sines_or_cos(Array p, Array x) {
  auto sines = [](Array v) {
    Array s = rp::sin(v);
    return rp::sin(s);
  };
  return rp::cond(
      p, sines, [](Array v) { return rp::cos(v); }, x);
}
std::vector<Unary> three_branches() {
  return {[](Array x) { return rp::sin(x); }, [](Array x) { return rp::cos(x); },
          [](Array x) { return x * x; }};
}
Array choose(Array i, Array x) { return rp::switch_(i, three_branches(), x); }

}  // namespace

TEST_CASE("a cond, its forward pass and its mapped form print as JAX prints them") {
  CHECK(text(sines_or_cos, yes, one) == R"({ lambda ; a:bool[] b:f32[]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[] = cond[
      branches=(
        { lambda ; e:f32[]. let f:f32[] = cos e in (f,) }
        { lambda ; g:f32[]. let h:f32[] = sin g; i:f32[] = sin h in (i,) }
      )
    ] c b
  in (d,) })");
  CHECK(forward_text(sines_or_cos, yes, one) == R"({ lambda ; a:bool[] b:f32[]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[] e:f32[] f:f32[] = cond[
      branches=(
        { lambda ; g:f32[]. let
            h:f32[] = cos g
            i:f32[] = sin g
            j:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            k:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
          in (h, i, k) }
        { lambda ; l:f32[]. let
            m:f32[] = sin l
            n:f32[] = cos l
            o:f32[] = sin m
            p:f32[] = cos m
            q:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            r:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
          in (o, n, p) }
      )
    ] c b
  in (d, c, e, f) })");
  CHECK(text(rp::vmap(sines_or_cos), rp::full({2}, true, rp::bool_), rp::ones({2})) ==
        R"({ lambda ; a:bool[2] b:f32[2]. let
    c:i32[2] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:bool[2] = eq c 0:i32[]
    e:f32[2] = stop_gradient b
    f:f32[2] = select_n d e b
    g:f32[2] = cos f
    h:bool[2] = eq c 1:i32[]
    i:f32[2] = stop_gradient b
    j:f32[2] = select_n h i b
    k:f32[2] = sin j
    l:f32[2] = sin k
    m:f32[2] = select_n c g l
  in (m,) })");
  CHECK(text(rp::vmap(sines_or_cos, {.in_axes = {{std::nullopt, 0}}}), yes, rp::ones({2, 3})) ==
        R"({ lambda ; a:bool[] b:f32[2,3]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[2,3] = cond[
      branches=(
        { lambda ; e:f32[2,3]. let f:f32[2,3] = cos e in (f,) }
        { lambda ; g:f32[2,3]. let
            h:f32[2,3] = sin g
            i:f32[2,3] = sin h
          in (i,) }
      )
    ] c b
  in (d,) })");
  CHECK(text(rp::vmap(sines_or_cos, {.in_axes = {{0, std::nullopt}}}),
             rp::full({2}, true, rp::bool_), rp::ones({3})) == R"({ lambda ; a:bool[2] b:f32[3]. let
    c:i32[2] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[2,3] = broadcast_in_dim[broadcast_dimensions=(1,)] b
    e:bool[2] = eq c 0:i32[]
    f:f32[2,3] = stop_gradient d
    g:bool[2,3] = broadcast_in_dim[broadcast_dimensions=(0,)] e
    h:f32[2,3] = select_n g f d
    i:f32[2,3] = cos h
    j:bool[2] = eq c 1:i32[]
    k:f32[2,3] = stop_gradient d
    l:bool[2,3] = broadcast_in_dim[broadcast_dimensions=(0,)] j
    m:f32[2,3] = select_n l k d
    n:f32[2,3] = sin m
    o:f32[2,3] = sin n
    p:i32[2,3] = broadcast_in_dim[broadcast_dimensions=(0,)] c
    q:f32[2,3] = select_n p i o
  in (q,) })");
}

TEST_CASE("branches with different residuals share slots by type") {
  auto f = [](Array p, Array x, Array M) {
    auto dense = [](Array v, Array W) {
      Array s = rp::sin(v);
      Array m = rp::matmul(W, s);
      return rp::sin(m);
    };
    auto plain = [](Array v, Array) {
      Array e = rp::exp(v);
      Array c = rp::cos(e);
      return c * v;
    };
    return rp::cond(p, dense, plain, x, M);
  };
  CHECK(forward_text(f, yes, rp::ones({3}), rp::ones({3, 3})) ==
        R"(let jaxpr = { lambda ; a:f32[3] b:f32[3,3]. let
    c:f32[3] = exp a
    d:f32[3] = cos c
    e:f32[3] = sin c
    f:f32[3] = mul d a
    g:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    h:f32[3] = broadcast_in_dim g
    i:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    j:f32[3] = broadcast_in_dim i
    k:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    l:f32[3] = broadcast_in_dim k
    m:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    n:f32[3] = broadcast_in_dim m
    o:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    p:f32[3,3] = broadcast_in_dim o
  in (f, c, e, a, d, p) } in
let jaxpr1 = { lambda ; q:f32[3] r:f32[3,3]. let
    s:f32[3] = sin q
    t:f32[3] = cos q
    u:f32[3] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] r s
    v:f32[3] = sin u
    w:f32[3] = cos u
    x:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    y:f32[3] = broadcast_in_dim x
    z:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    ba:f32[3] = broadcast_in_dim z
    bb:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    bc:f32[3] = broadcast_in_dim bb
    bd:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    be:f32[3] = broadcast_in_dim bd
    bf:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
    bg:f32[3,3] = broadcast_in_dim bf
  in (v, t, s, w, be, r) } in
{ lambda ; bh:bool[] bi:f32[3] bj:f32[3,3]. let
    bk:i32[] = convert_element_type[new_dtype=int32 weak_type=False] bh
    bl:f32[3] bm:f32[3] bn:f32[3] bo:f32[3] bp:f32[3] bq:f32[3,3] = cond[
      branches=(jaxpr jaxpr1)
    ] bk bi bj
  in (bl, bk, bm, bn, bo, bp, bq) })");
}

TEST_CASE("closed-over values become operands of every branch") {
  auto f = [](Array p, Array x, Array y) {
    auto product = [=]() {
      Array s = rp::sin(x);
      return s * y;
    };
    return rp::cond(p, product, [=]() { return rp::cos(y); });
  };
  CHECK(text(f, yes, rp::ones({3}), rp::ones({3})) == R"({ lambda ; a:bool[] b:f32[3] c:f32[3]. let
    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    e:f32[3] = cond[
      branches=(
        { lambda ; f:f32[3] g:f32[3]. let h:f32[3] = cos g in (h,) }
        { lambda ; i:f32[3] j:f32[3]. let
            k:f32[3] = sin i
            l:f32[3] = mul k j
          in (l,) }
      )
    ] d b c
  in (e,) })");
  const Array x = doubles({0.5}), y = doubles({2.0});
  auto loss = [&](Array p, Array a, Array b) { return rp::sum(f(p, a, b)); };
  const auto [gx, gy] = rp::grad<1, 2>(loss)(yes, x, y);
  CHECK(gx.item<double>() == doctest::Approx(2 * std::cos(0.5)));
  CHECK(gy.item<double>() == doctest::Approx(std::sin(0.5)));
  const auto [hx, hy] = rp::grad<1, 2>(loss)(no, x, y);
  CHECK(hx.item<double>() == 0.0);
  CHECK(hy.item<double>() == doctest::Approx(-std::sin(2.0)));
}

TEST_CASE("a switch prints as JAX prints it; one branch is no switch") {
  const Array i = rp::full({}, 1, rp::int32);
  CHECK(text(choose, i, one) == R"({ lambda ; a:i32[] b:f32[]. let
    c:i32[] = clamp 0:i32[] a 2:i32[]
    d:f32[] = cond[
      branches=(
        { lambda ; e:f32[]. let f:f32[] = sin e in (f,) }
        { lambda ; g:f32[]. let h:f32[] = cos g in (h,) }
        { lambda ; i:f32[]. let j:f32[] = mul i i in (j,) }
      )
    ] c b
  in (d,) })");
  CHECK(forward_text(choose, i, one) == R"({ lambda ; a:i32[] b:f32[]. let
    c:i32[] = clamp 0:i32[] a 2:i32[]
    d:f32[] e:f32[] = cond[
      branches=(
        { lambda ; f:f32[]. let
            g:f32[] = sin f
            h:f32[] = cos f
            i:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
          in (g, h) }
        { lambda ; j:f32[]. let
            k:f32[] = cos j
            l:f32[] = sin j
            m:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
          in (k, l) }
        { lambda ; n:f32[]. let
            o:f32[] = mul n n
            p:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
          in (o, n) }
      )
    ] c b
  in (d, c, e) })");
  auto only = [](Array k, Array x) {
    return rp::switch_(k, std::vector<Unary>{[](Array v) { return rp::sin(v); }}, x);
  };
  CHECK(text(only, i, rp::ones({3})) ==
        R"({ lambda ; a:i32[] b:f32[3]. let c:f32[3] = sin b in (c,) })");
}

TEST_CASE("only the chosen branch runs") {
  int runs = 0;
  // Without a traced value around it, a branch is evaluated; the function itself is traced once.
  auto f = [&](Array p) {
    return rp::cond(
        p, [&](Array x) { return ++runs, x + 1.0; }, [](Array x) { return x / 0.0; }, one);
  };
  CHECK(f(yes).item<double>() == 2.0);
  CHECK(runs == 1);
  CHECK(std::isinf(f(no).item<double>()));
  CHECK(rp::cond(
            Array(3), [](Array x) { return x; }, [](Array x) { return -x; }, one)
            .item<double>() == 1.0);
}

TEST_CASE("switch_ clamps its index and differentiates the chosen branch") {
  const Array x = rp::full({}, 0.5, rp::float64);
  const double values[] = {std::sin(0.5), std::cos(0.5), 0.25};
  const double slopes[] = {std::cos(0.5), -std::sin(0.5), 1.0};
  for (int i : {-7, 0, 1, 2, 3, 100}) {
    const std::size_t k = static_cast<std::size_t>(std::clamp(i, 0, 2));
    const Array index = rp::full({}, i, rp::int32);
    CHECK(choose(index, x).item<double>() == doctest::Approx(values[k]));
    CHECK(rp::grad<1>(choose)(index, x).item<double>() == doctest::Approx(slopes[k]));
  }
}

TEST_CASE("a mapped index chooses per element, values and gradients") {
  const Array i = rp::array({0, 1, 2, 5}), x = doubles({0.5, 1.0, 1.5, 2.0});
  const Array got = rp::vmap(choose)(i, x);
  const Array slopes = rp::vmap(rp::grad<1>(choose))(i, x);
  for (std::int64_t k = 0; k < 4; ++k) {
    CHECK(numbers(got)[static_cast<std::size_t>(k)] ==
          doctest::Approx(choose(i[k], x[k]).item<double>()));
    CHECK(numbers(slopes)[static_cast<std::size_t>(k)] ==
          doctest::Approx(rp::grad<1>(choose)(i[k], x[k]).item<double>()));
  }
}

TEST_CASE("a branch that is not taken does not spoil the gradient of a mapped cond") {
  auto safe_log = [](Array x) {
    return rp::cond(
        x > 0.0, [](Array v) { return rp::log(v); }, [](Array v) { return v * 0.0; }, x);
  };
  const Array g = rp::vmap(rp::grad(safe_log))(doubles({2.0, 0.0, -1.0}));
  CHECK(numbers(g) == std::vector<double>{0.5, 0.0, 0.0});
}

TEST_CASE("second derivatives go through cond") {
  auto f = [](Array p, Array x) {
    return rp::cond(
        p, [](Array v) { return rp::sin(v) * v; }, [](Array v) { return v * v * v; }, x);
  };
  const Array x = rp::full({}, 0.7, rp::float64);
  const auto second = [&](Array p) { return rp::grad<1>(rp::grad<1>(f))(p, x).item<double>(); };
  CHECK(second(yes) == doctest::Approx(2 * std::cos(0.7) - 0.7 * std::sin(0.7)));
  CHECK(second(no) == doctest::Approx(6 * 0.7));
}

TEST_CASE("branches must agree, an index must be an integer scalar") {
  auto wide = [](Array x) { return rp::stack({x, x}); };
  CHECK_THROWS_AS(rp::cond(
                      yes, wide, [](Array x) { return x; }, one),
                  rp::TypeError);
  CHECK_THROWS_AS(rp::cond(rp::ones({2}), wide, wide, one), rp::TypeError);
  CHECK_THROWS_AS(rp::switch_(one, three_branches(), one), rp::TypeError);
  CHECK_THROWS_AS(rp::switch_(Array(0), std::vector<Unary>{}, one), rp::TypeError);
}

TEST_CASE("a branch in a checkpoint may return a number") {
  auto f = [](Array x) {
    const auto [s, k] = rp::cond(
        x > 0.0,
        [](Array v) {
          return std::pair{rp::sin(v), Array(2.0)};
        },
        [](Array v) {
          return std::pair{rp::cos(v), rp::sin(v)};
        },
        x);
    return s * k;
  };
  CHECK(rp::grad(rp::checkpoint(f))(0.5).item<float>() == rp::grad(f)(0.5).item<float>());
  CHECK(rp::grad(rp::checkpoint(f))(-0.5).item<float>() == rp::grad(f)(-0.5).item<float>());
}
