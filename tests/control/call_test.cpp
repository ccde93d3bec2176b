// jit equations: sharing, forwarding, differentiation and mapping as JAX prints them.
#include "derivatives.h"

namespace {

using namespace check;
using Two = std::tuple<Array, Array>;

Array two_sines(Array x) {
  Array s = rp::sin(x);
  return rp::sin(s);
}
const auto sines = rp::jit(two_sines);
const auto product = rp::jit([](Array a, Array b) { return a * b; }, {.name = "inner"});
const auto outer = rp::jit(
    [](Array x) {
      Array y = sines(x);
      return y * 2.;
    },
    {.name = "outer"});

Array shared(Array x) {
  Array y = outer(x);
  Array z = sines(x);
  return y + z;
}

}  // namespace

TEST_CASE("a call of jit, its jvp and its forward pass print as JAX prints them") {
  auto f = [](Array x) {
    Array y = sines(x);
    return rp::cos(y);
  };
  CHECK(text(f, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          c:f32[3] = sin a
          b:f32[3] = sin c
        in (b,) }
    ] a
    d:f32[3] = cos b
  in (d,) })");
  CHECK(jvp_text(f, rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] d:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let
          e:f32[3] = sin a
          f:f32[3] = cos a
          g:f32[3] = mul b f
          c:f32[3] = sin e
          h:f32[3] = cos e
          d:f32[3] = mul g h
        in (c, d) }
    ] a b
    i:f32[3] = cos c
    j:f32[3] = sin c
    k:f32[3] = mul d j
    l:f32[3] = neg k
  in (i, l) })");
  CHECK(forward_text(f, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] c:f32[3] d:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          e:f32[3] = sin a
          c:f32[3] = cos a
          b:f32[3] = sin e
          d:f32[3] = cos e
        in (b, c, d) }
    ] a
    f:f32[3] = cos b
    g:f32[3] = sin b
  in (f, c, d, g) })");
}

TEST_CASE("one function called twice is printed once") {
  auto f = [](Array x) {
    Array y = sines(x);
    return sines(y);
  };
  CHECK(text(f, rp::ones({3})) == R"(let lambda = { lambda ; a:f32[3]. let
    b:f32[3] = sin a
    c:f32[3] = sin b
  in (c,) } in
{ lambda ; d:f32[3]. let
    e:f32[3] = jit[name=<lambda> jaxpr=lambda] d
    f:f32[3] = jit[name=<lambda> jaxpr=lambda] e
  in (f,) })");
  CHECK(jvp_text(f, rp::ones({3})) == R"(let lambda = { lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = sin a
    d:f32[3] = cos a
    e:f32[3] = mul b d
    f:f32[3] = sin c
    g:f32[3] = cos c
    h:f32[3] = mul e g
  in (f, h) } in
{ lambda ; i:f32[3] j:f32[3]. let
    k:f32[3] l:f32[3] = jit[name=<lambda> jaxpr=lambda] i j
    m:f32[3] n:f32[3] = jit[name=<lambda> jaxpr=lambda] k l
  in (m, n) })");
}

TEST_CASE("derived programs are shared within one level, not across levels") {
  CHECK(text(shared, rp::ones({3})) == R"(let lambda = { lambda ; a:f32[3]. let
    b:f32[3] = sin a
    c:f32[3] = sin b
  in (c,) } in
{ lambda ; d:f32[3]. let
    e:f32[3] = jit[
      name=outer
      jaxpr={ lambda ; d:f32[3]. let
          f:f32[3] = jit[name=<lambda> jaxpr=lambda] d
          e:f32[3] = mul f 2.0:f32[]
        in (e,) }
    ] d
    g:f32[3] = jit[name=<lambda> jaxpr=lambda] d
    h:f32[3] = add e g
  in (h,) })");
  CHECK(jvp_text(shared, rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] d:f32[3] = jit[
      name=outer
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let
          e:f32[3] f:f32[3] = jit[
            name=<lambda>
            jaxpr={ lambda ; a:f32[3] b:f32[3]. let
                g:f32[3] = sin a
                h:f32[3] = cos a
                i:f32[3] = mul b h
                e:f32[3] = sin g
                j:f32[3] = cos g
                f:f32[3] = mul i j
              in (e, f) }
          ] a b
          c:f32[3] = mul e 2.0:f32[]
          d:f32[3] = mul f 2.0:f32[]
        in (c, d) }
    ] a b
    k:f32[3] l:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let
          m:f32[3] = sin a
          n:f32[3] = cos a
          o:f32[3] = mul b n
          k:f32[3] = sin m
          p:f32[3] = cos m
          l:f32[3] = mul o p
        in (k, l) }
    ] a b
    q:f32[3] = add c k
    r:f32[3] = add d l
  in (q, r) })");
}

TEST_CASE("residuals that are arguments are not returned by the call") {
  auto f = [](Array x, Array y) {
    Array s = rp::sin(x);
    return product(s, y);
  };
  CHECK(forward_text(f, rp::ones({3}), rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = sin a
    d:f32[3] = cos a
    e:f32[3] = jit[
      name=inner
      jaxpr={ lambda ; c:f32[3] b:f32[3]. let e:f32[3] = mul c b in (e,) }
    ] c b
  in (e, b, d, c) })");
}

TEST_CASE(
    "results that are arguments stay results of the traced call, but not of its forward pass") {
  auto f = [](Array x, Array y) {
    auto both = [](Array a, Array b) {
      Array m = a * b;
      return std::tuple{a, m, b};
    };
    return rp::jit(both)(x, y);
  };
  CHECK(text(f, rp::ones({3}), rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    d:f32[3] c:f32[3] e:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b in (a, c, b) }
    ] a b
  in (d, c, e) })");
  CHECK(forward_text(f, rp::ones({3}), rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b in (c,) }
    ] a b
  in (a, c, b, a, b) })");
}

TEST_CASE("grad of jit and jit of grad print as JAX prints them") {
  auto of_grad = [](Array x) {
    auto loss = [](Array v) {
      Array s = rp::sin(v);
      return rp::sum(s);
    };
    return rp::jit(rp::grad(loss))(x);
  };
  CHECK(text(of_grad, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          c:f32[3] = sin a
          d:f32[3] = cos a
          e:f32[] = reduce_sum[axes=(0,) out_sharding=None] c
          f:f32[3] = broadcast_in_dim 1.0:f32[]
          b:f32[3] = mul f d
        in (b,) }
    ] a
  in (b,) })");
  auto of_jit = [](Array x) {
    auto loss = [](Array v) {
      Array y = sines(v);
      return rp::sum(y);
    };
    return rp::grad(loss)(x);
  };
  CHECK(text(of_jit, rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] c:f32[3] d:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; a:f32[3]. let
          e:f32[3] = sin a
          c:f32[3] = cos a
          b:f32[3] = sin e
          d:f32[3] = cos e
        in (b, c, d) }
    ] a
    _:f32[] = reduce_sum[axes=(0,) out_sharding=None] b
    f:f32[3] = broadcast_in_dim 1.0:f32[]
    g:f32[3] = jit[
      name=<lambda>
      jaxpr={ lambda ; c:f32[3] d:f32[3] f:f32[3]. let
          h:f32[3] = mul f d
          g:f32[3] = mul h c
        in (g,) }
    ] c d f
  in (g,) })");
}

TEST_CASE("a mapped call prints as JAX prints it") {
  auto f = [](Array x, Array y) {
    auto times = [](Array a, Array b) { return product(a, b); };
    return rp::vmap(times, {.in_axes = {{0, std::nullopt}}})(x, y);
  };
  CHECK(text(f, rp::ones({4, 3}), rp::ones({3})) == R"({ lambda ; a:f32[4,3] b:f32[3]. let
    c:f32[4,3] = jit[
      name=inner
      jaxpr={ lambda ; a:f32[4,3] b:f32[3]. let
          d:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] b
          c:f32[4,3] = mul a d
        in (c,) }
    ] a b
  in (c,) })");
}

TEST_CASE("calls compute what their functions compute, to second order") {
  auto plain = [](Array x) { return two_sines(x) * 2.0 + two_sines(x); };
  const Array x = rp::full({}, 0.8, rp::float64);
  check_close(shared(x), plain(x), 1e-14);
  check_close(rp::grad(shared)(x), rp::grad(plain)(x), 1e-14);
  check_close(rp::grad(rp::grad(shared))(x), rp::grad(rp::grad(plain))(x), 1e-14);
}

namespace {
const auto sine_times = rp::jit(
    [](Array a, Array b) {
      Array s = rp::sin(a);
      return s * b;
    },
    {.name = "inner"});
}  // namespace

TEST_CASE(
    "a call in a loop or branch of a checkpoint passes on what its second half reads, not its "
    "operands") {
  auto loop = [](Array c, Array xs) {
    auto step = [](Array carry, Array x) {
      Array a = rp::cos(x);
      return std::pair{sine_times(a, carry), rp::none};
    };
    return rp::scan(step, c, xs).first;
  };
  CHECK(text(rp::grad(rp::checkpoint(loop)), rp::ones({}), rp::ones({3})) ==
        R"({ lambda ; a:f32[] b:f32[3]. let
    _:f32[] = closed_call[
      call_jaxpr={ lambda ; c:f32[] d:f32[3]. let
          e:f32[] = scan[
            jaxpr={ lambda ; f:f32[] g:f32[]. let
                h:f32[] = cos g
                i:f32[] = jit[
                  name=inner
                  jaxpr={ lambda ; h:f32[] f:f32[]. let
                      j:f32[] = sin h
                      i:f32[] = mul j f
                    in (i,) }
                ] h f
              in (i,) }
            length=3
            num_carry=1
            num_consts=0
            reverse=False
            unroll=1
          ] c d
        in (e,) }
    ] a b
    k:f32[] = remat2[
      differentiated=True
      jaxpr={ lambda ; l:f32[3] m:f32[]. let
          jit[name=inner jaxpr={ lambda ; . let  in () }] 
          n:f32[3] = scan[
            jaxpr={ lambda ; o:f32[]. let
                p:f32[] = cos o
                q:f32[] = jit[
                  name=inner
                  jaxpr={ lambda ; p:f32[]. let q:f32[] = sin p in (q,) }
                ] p
              in (q,) }
            length=3
            num_carry=0
            num_consts=0
            reverse=False
            unroll=1
          ] l
          r:f32[] = scan[
            jaxpr={ lambda ; s:f32[] t:f32[]. let
                u:f32[] = jit[
                  name=inner
                  jaxpr={ lambda ; t:f32[] s:f32[]. let
                      u:f32[] = mul t s
                    in (u,) }
                ] t s
              in (u,) }
            length=3
            num_carry=1
            num_consts=0
            reverse=True
            unroll=1
          ] m n
        in (r,) }
      policy=None
      prevent_cse=True
    ] b 1.0:f32[]
  in (k,) })");
  auto branch = [](Array p, Array c, Array x) {
    return rp::cond(
        p,
        [&](Array v) {
          Array a = rp::cos(x);
          return sine_times(a, v);
        },
        [](Array v) { return v; }, c);
  };
  CHECK(text(rp::grad<1>(rp::checkpoint(branch)), rp::array(true), rp::ones({}), rp::ones({})) ==
        R"({ lambda ; a:bool[] b:f32[] c:f32[]. let
    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    _:f32[] = cond[
      branches=(
        { lambda ; e:f32[] f:f32[]. let  in (f,) }
        { lambda ; g:f32[] h:f32[]. let
            i:f32[] = cos g
            j:f32[] = jit[
              name=inner
              jaxpr={ lambda ; i:f32[] h:f32[]. let
                  k:f32[] = sin i
                  j:f32[] = mul k h
                in (j,) }
            ] i h
          in (j,) }
      )
    ] d c b
    l:f32[] = remat2[
      differentiated=True
      jaxpr={ lambda ; m:bool[] n:f32[] o:f32[]. let
          p:i32[] = convert_element_type[new_dtype=int32 weak_type=False] m
          q:f32[] = cond[
            branches=(
              { lambda ; r:f32[]. let
                  s:f32[] = empty2[
                    dtype=float32
                    memory_space=MemorySpace.Device
                  ] 
                in (s,) }
              { lambda ; t:f32[]. let
                  u:f32[] = cos t
                  v:f32[] = jit[
                    name=inner
                    jaxpr={ lambda ; u:f32[]. let v:f32[] = sin u in (v,) }
                  ] u
                  w:f32[] = empty2[
                    dtype=float32
                    memory_space=MemorySpace.Device
                  ] 
                in (v,) }
            )
          ] p n
          x:f32[] = cond[
            branches=(
              { lambda ; y:f32[] z:f32[]. let  in (z,) }
              { lambda ; ba:f32[] bb:f32[]. let
                  bc:f32[] = jit[
                    name=inner
                    jaxpr={ lambda ; ba:f32[] bb:f32[]. let
                        bc:f32[] = mul ba bb
                      in (bc,) }
                  ] ba bb
                in (bc,) }
            )
          ] p q o
        in (x,) }
      policy=None
      prevent_cse=True
    ] a c 1.0:f32[]
  in (l,) })");
}
