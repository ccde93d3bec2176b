// backward: the transpose of linear programs.
#include "transform/transpose.h"

#include "api/flat.h"
#include "derivatives.h"
#include "program/print.h"

namespace {

using namespace check;

const Array one = rp::full({}, 1.0, rp::float32);
Array scalar(double v) { return rp::full({}, v, rp::float64); }

// (r, t, u) -> (r t + u, t), linear in t and u
rp::ProgramPtr example(const Array& like) {
  auto f = [](const Arrays& x) -> Arrays {
    Array m = x[0] * x[1];
    return {m + x[2], x[1]};
  };
  return rp::trace(f, rp::leaf_types({like, like, like}), {.body = true}).program;
}

}  // namespace

TEST_CASE("backward returns one cotangent per linear input, accumulated") {
  const auto p = example(scalar(0.0));
  const rp::Tangents back =
      rp::backward(*p, {scalar(5.0), std::nullopt, std::nullopt}, {scalar(1.0), scalar(10.0)});
  REQUIRE(back.size() == 2);
  CHECK(back[0]->item<double>() == 15.0);
  CHECK(back[1]->item<double>() == 1.0);
}

TEST_CASE("cotangents that are symbolic zeros stay symbolic") {
  const auto p = example(scalar(0.0));
  const rp::Tangents back =
      rp::backward(*p, {scalar(5.0), std::nullopt, std::nullopt}, {std::nullopt, scalar(10.0)});
  CHECK(back[0]->item<double>() == 10.0);
  CHECK(!back[1].has_value());
}

TEST_CASE("initial cotangents come first in the sum") {
  const auto p = example(scalar(0.0));
  const rp::Tangents back =
      rp::backward(*p, {scalar(5.0), std::nullopt, std::nullopt}, {scalar(1.0), std::nullopt},
                   {scalar(100.0), scalar(200.0)});
  CHECK(back[0]->item<double>() == 105.0);
  CHECK(back[1]->item<double>() == 201.0);
}

TEST_CASE("the transposed program prints the equations in reverse") {
  const auto p = example(one);
  const auto t = rp::transposed_program(*p, {false, true, true}, {true, true});
  CHECK(t->nonzero == std::vector<bool>{true, true});
  CHECK(rp::to_text(*t->program, {}) == R"({ lambda ; a:f32[] b:f32[] c:f32[]. let
    d:f32[] = mul a b
    e:f32[] = add_any c d
  in (e, b) })");
  CHECK(rp::transposed_program(*p, {false, true, true}, {true, true}) == t);
  const auto partial = rp::transposed_program(*p, {false, true, true}, {false, true});
  CHECK(partial->nonzero == std::vector<bool>{true, false});
  const auto filled = rp::transposed_program(*p, {false, true, true}, {false, true}, {true, true});
  CHECK(filled->nonzero == std::vector<bool>{true, true});
}

TEST_CASE("a function that is not linear is a RuleError") {
  auto f = [](const Arrays& x) -> Arrays { return {rp::sin(x[0])}; };
  const auto p = rp::trace(f, rp::leaf_types({one}), {.body = true}).program;
  CHECK_THROWS_AS(rp::backward(*p, {std::nullopt}, {one}), rp::RuleError);
}

TEST_CASE("a value used many times collects all its cotangents") {
  auto f = [](Array x) {
    Array y = x * 2.0;
    return y + y * y + rp::sin(y) + y;
  };
  CHECK(rp::grad(f)(scalar(0.25)).item<double>() == doctest::Approx(2 * (2 + 1 + std::cos(0.5))));
}

TEST_CASE("the transpose of a transpose is the map again") {
  auto product = [](Array v) {
    Array s = rp::sin(v);
    return s * v;
  };
  auto f = [&](Array x, Array ct) {
    auto once = [&](Array v) {
      auto [y, backward] = rp::vjp(product, v);
      return std::get<0>(backward(ct));
    };
    auto [y, backward] = rp::vjp(once, x);
    return backward(ct);
  };
  CHECK(text(f, rp::ones({3}), rp::ones({3})) == R"({ lambda ; a:f32[3] b:f32[3]. let
    c:f32[3] = sin a
    d:f32[3] = cos a
    e:f32[3] = cos a
    f:f32[3] = sin a
    _:f32[3] = mul c a
    g:f32[3] = mul c b
    h:f32[3] = mul b a
    i:f32[3] = mul h e
    _:f32[3] = add_any g i
    j:f32[3] = mul h b
    k:f32[3] = mul b e
    l:f32[3] = mul b k
    m:f32[3] = mul b b
    n:f32[3] = neg j
    o:f32[3] = mul n f
    p:f32[3] = add_any l o
    q:f32[3] = mul m d
    r:f32[3] = add_any p q
  in (r,) })");
}

TEST_CASE("jacobians by rows and columns print as JAX prints them") {
  auto f = [](Array x) {
    Array s = rp::sin(x);
    Array t = rp::sum(x);
    return s * t;
  };
  CHECK(text(rp::jacfwd(f), rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:i32[3,3] = iota[dimension=0 dtype=int32 shape=(3, 3) sharding=None] 
    c:i32[3,3] = iota[dimension=1 dtype=int32 shape=(3, 3) sharding=None] 
    d:i32[3,3] = add b 0:i32[]
    e:bool[3,3] = eq d c
    f:f32[3,3] = convert_element_type[new_dtype=float32 weak_type=False] e
    g:f32[3,3] = split[axis=1 sizes=(3,)] f
    h:f32[3,3] = convert_element_type[new_dtype=float32 weak_type=False] g
    i:f32[3] = sin a
    j:f32[3] = cos a
    k:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] j
    l:f32[3,3] = mul h k
    m:f32[] = reduce_sum[axes=(0,) out_sharding=None] a
    n:f32[3] = reduce_sum[axes=(1,) out_sharding=None] h
    _:f32[3] = mul i m
    o:f32[3,3] = mul l m
    p:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] i
    q:f32[3,1] = broadcast_in_dim[broadcast_dimensions=(0,)] n
    r:f32[3,3] = mul p q
    s:f32[3,3] = add_any o r
    t:f32[3,3] = transpose[permutation=(1, 0)] s
    u:f32[3,3] = split[axis=1 sizes=(3,)] t
  in (u,) })");
  CHECK(text(rp::jacrev(f), rp::ones({3})) == R"({ lambda ; a:f32[3]. let
    b:f32[3] = sin a
    c:f32[3] = cos a
    d:f32[] = reduce_sum[axes=(0,) out_sharding=None] a
    _:f32[3] = mul b d
    e:i32[3,3] = iota[dimension=0 dtype=int32 shape=(3, 3) sharding=None] 
    f:i32[3,3] = iota[dimension=1 dtype=int32 shape=(3, 3) sharding=None] 
    g:i32[3,3] = add e 0:i32[]
    h:bool[3,3] = eq g f
    i:f32[3,3] = convert_element_type[new_dtype=float32 weak_type=False] h
    j:f32[3,3] = split[axis=1 sizes=(3,)] i
    k:f32[3,3] = convert_element_type[new_dtype=float32 weak_type=False] j
    l:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] b
    m:f32[3,3] = mul l k
    n:f32[3] = reduce_sum[axes=(1,) out_sharding=None] m
    o:f32[3,3] = mul k d
    p:f32[3,3] = broadcast_in_dim[broadcast_dimensions=(0,)] n
    q:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] c
    r:f32[3,3] = mul o q
    s:f32[3,3] = add_any p r
    t:f32[3,3] = split[axis=0 sizes=(3,)] s
  in (t,) })");
}
