// custom_vjp: the user's backward pass is the gradient, everywhere.
#include "derivatives.h"

namespace {

using namespace check;
using Two = std::tuple<Array, Array>;
using Three = std::tuple<Array, Array, Array>;
using std::pair;

Array weighted_sine(Array x, Array y);
auto make_weighted_sine() {
  auto f = [](Array x, Array y) {
    Array s = rp::sin(x);
    return s * y;
  };
  auto fwd = [](Array x, Array y) {
    Array c = rp::cos(x);
    Array out = weighted_sine(x, y);
    return pair{out, Three{c, x, y}};
  };
  auto bwd = [](Three residuals, Array ct) {
    auto [c, x, y] = residuals;
    Array m = c * y;
    Array gx = m * ct;
    Array s = rp::sin(x);
    Array gy = s * ct;
    return Two{gx, gy};
  };
  return rp::custom_vjp(f, fwd, bwd, {.name = "g", .fwd = "g_fwd", .bwd = "g_bwd"});
}
Array weighted_sine(Array x, Array y) {
  static const auto f = make_weighted_sine();
  return f(x, y);
}
Array of_exp(Array x, Array y) {
  Array e = rp::exp(x);
  return weighted_sine(e, y);
}

// x with a gradient that is clipped to [-1, 1], the classic use.
Array clip_gradient(Array x) {
  static const auto f =
      rp::custom_vjp([](Array v) { return v; },
                     [](Array v) {
                       return pair{v, rp::none};
                     },
                     [](rp::None, Array ct) { return std::tuple{rp::clip(ct, -1.0, 1.0)}; });
  return f(x);
}

const Array yes = rp::full({}, true, rp::bool_);

}  // namespace

TEST_CASE("a function with a backward pass prints as JAX prints it, plain, forward and mapped") {
  const Array x = rp::ones({3});
  CHECK(text(of_exp, x, x) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = exp a
    d:f32[3] = custom_vjp_call[
      name=g
      bwd=g_bwd
      call_jaxpr={ lambda ; e:f32[3] f:f32[3]. let
          g:f32[3] = sin e
          h:f32[3] = mul g f
        in (h,) }
      fwd=g_fwd
      symbolic_zeros=False
    ] c b
  in (d,) })");
  CHECK(forward_text(of_exp, x, x) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = exp a
    d:f32[3] = cos c
    e:f32[3] = custom_vjp_call[
      name=g
      bwd=g_bwd
      call_jaxpr={ lambda ; f:f32[3] g:f32[3]. let
          h:f32[3] = sin f
          i:f32[3] = mul h g
        in (i,) }
      fwd=g_fwd
      symbolic_zeros=False
    ] c b
  in (e, b, c, d) })");
  CHECK(text(rp::vmap(of_exp, {.in_axes = {{0, std::nullopt}}}), rp::ones({2, 3}), x) ==
        R"({ lambda ; a:f32[2,3] b:f32[3]. let
    c:f32[2,3] = exp a
    d:f32[2,3] = custom_vjp_call[
      name=g
      bwd=g_bwd
      call_jaxpr={ lambda ; e:f32[2,3] f:f32[3]. let
          g:f32[2,3] = sin e
          h:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] f
          i:f32[2,3] = mul g h
        in (i,) }
      fwd=g_fwd
      symbolic_zeros=False
    ] c b
  in (d,) })");
}

TEST_CASE("the gradient of a mapped function keeps shared residuals unmapped") {
  auto f = [](Array x, Array y) {
    auto loss = [](Array v, Array w) {
      Array z = rp::vmap(weighted_sine, {.in_axes = {{0, std::nullopt}}})(v, w);
      return rp::sum(z);
    };
    return rp::grad<0, 1>(loss)(x, y);
  };
  CHECK(text(f, rp::ones({4}), rp::full({}, 1.0, rp::float32)) ==
        R"({ lambda ; a:f32[4] b:f32[]. let
    c:f32[4] = cos a
    d:f32[4] = custom_vjp_call[
      name=g
      bwd=g_bwd
      call_jaxpr={ lambda ; e:f32[4] f:f32[]. let
          g:f32[4] = sin e
          h:f32[4] = mul g f
        in (h,) }
      fwd=g_fwd
      symbolic_zeros=False
    ] a b
    _:f32[] = reduce_sum[axes=(0,) out_sharding=None] d
    i:f32[4] = broadcast_in_dim 1.0:f32[]
    j:f32[4] = mul c b
    k:f32[4] = mul j i
    l:f32[4] = sin a
    m:f32[4] = mul l i
    n:f32[] = reduce_sum[axes=(0,) out_sharding=None] m
  in (k, n) })");
}

TEST_CASE("a backward pass inside scan and cond prints as JAX prints it") {
  auto looped = [](Array c, Array xs) {
    auto body = [](Array k, Array x) {
      Array next = weighted_sine(k, x);
      return pair{next, k};
    };
    return rp::scan(body, c, xs);
  };
  CHECK(forward_text(looped, rp::full({}, 1.0, rp::float32), rp::ones({3})) ==
        R"({ lambda ; a:f32[] b:f32[3]. let
    custom_vjp_call[
      name=g
      bwd=g_bwd
      call_jaxpr={ lambda ; . let  in () }
      fwd=g_fwd
      symbolic_zeros=False
    ] 
    c:f32[] d:f32[3] e:f32[3] f:f32[3] = scan[
      jaxpr={ lambda ; g:f32[] h:f32[]. let
          i:f32[] = cos g
          j:f32[] = custom_vjp_call[
            name=g
            bwd=g_bwd
            call_jaxpr={ lambda ; k:f32[] l:f32[]. let
                m:f32[] = sin k
                n:f32[] = mul m l
              in (n,) }
            fwd=g_fwd
            symbolic_zeros=False
          ] g h
        in (j, g, i, g) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a b
  in (c, d, b, e, f) })");
  auto branched = [](Array p, Array x, Array y) {
    return rp::cond(
        p, weighted_sine, [](Array a, Array b) { return a * b; }, x, y);
  };
  CHECK(forward_text(branched, yes, rp::ones({3}), rp::ones({3})) ==
        R"({ lambda ; a:bool[] b:f32[3] c:f32[3]. let
    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    e:f32[3] f:f32[3] g:f32[3] h:f32[3] = cond[
      branches=(
        { lambda ; i:f32[3] j:f32[3]. let
            k:f32[3] = mul i j
            l:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            m:f32[3] = broadcast_in_dim l
            n:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            o:f32[3] = broadcast_in_dim n
            p:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            q:f32[3] = broadcast_in_dim p
          in (k, j, i, q) }
        { lambda ; r:f32[3] s:f32[3]. let
            t:f32[3] = cos r
            u:f32[3] = custom_vjp_call[
              name=g
              bwd=g_bwd
              call_jaxpr={ lambda ; v:f32[3] w:f32[3]. let
                  x:f32[3] = sin v
                  y:f32[3] = mul x w
                in (y,) }
              fwd=g_fwd
              symbolic_zeros=False
            ] r s
            z:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            ba:f32[3] = broadcast_in_dim z
            bb:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            bc:f32[3] = broadcast_in_dim bb
            bd:f32[] = empty2[dtype=float32 memory_space=MemorySpace.Device] 
            be:f32[3] = broadcast_in_dim bd
          in (u, t, r, s) }
      )
    ] d b c
  in (e, d, f, g, h) })");
}

TEST_CASE("the backward pass is used alone and inside jit, vmap, scan and cond") {
  auto steep = [](Array x) { return clip_gradient(x) * 5.0; };
  const Array x = rp::full({}, 2.0, rp::float64);
  CHECK(steep(x).item<double>() == 10.0);
  CHECK(rp::grad(steep)(x).item<double>() == 1.0);
  CHECK(rp::grad(rp::jit(steep))(x).item<double>() == 1.0);
  auto branched = [&](Array v) {
    return rp::cond(
        yes, steep, [](Array u) { return u; }, v);
  };
  CHECK(rp::grad(branched)(x).item<double>() == 1.0);
  auto looped = [&](Array v) {
    return rp::fori_loop(
        0, 3, [&](Array, Array c) { return steep(c); }, v);
  };
  CHECK(looped(x).item<double>() == 250.0);
  CHECK(rp::grad(looped)(x).item<double>() == 1.0);
  CHECK(numbers(rp::vmap(rp::grad(steep))(doubles({1.0, 2.0}))) == std::vector<double>{1, 1});
  auto total = [&](Array v) { return rp::sum(rp::vmap(steep)(v)); };
  CHECK(numbers(rp::grad(total)(doubles({1.0, 2.0}))) == std::vector<double>{1, 1});
}

TEST_CASE("gradients of gradients go through the functions of the rule") {
  const Array x = rp::full({}, 0.4, rp::float64), y = rp::full({}, 3.0, rp::float64);
  CHECK(rp::grad(weighted_sine)(x, y).item<double>() == doctest::Approx(3 * std::cos(0.4)));
  CHECK(rp::grad(rp::grad(weighted_sine))(x, y).item<double>() ==
        doctest::Approx(-3 * std::sin(0.4)));
}

TEST_CASE("forward-mode differentiation and wrong cotangents are errors") {
  CHECK_THROWS_AS(rp::jvp(clip_gradient, std::tuple{Array(1.0)}, std::tuple{Array(1.0)}),
                  rp::TypeError);
  auto bad = rp::custom_vjp([](Array v) { return rp::sum(v); },
                            [](Array v) {
                              return pair{rp::sum(v), rp::none};
                            },
                            [](rp::None, Array ct) { return std::tuple{ct}; });
  CHECK_THROWS_AS(rp::grad(bad)(rp::ones({3})), rp::TypeError);
}
