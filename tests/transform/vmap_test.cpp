// vmap on programs: where axes go, what stays unmapped.
#include "transform/vmap.h"

#include "api/flat.h"
#include "derivatives.h"

namespace {

using namespace check;
using rp::Axes;
using rp::Axis;

rp::ProgramPtr traced(const rp::FlatFunction& f, const Arrays& args) {
  return rp::trace(f, rp::leaf_types(args), {.body = true}).program;
}
Arrays sums(const Arrays& x) { return {rp::sum(x[0]) * x[1], rp::sin(x[1])}; }

}  // namespace

TEST_CASE("outputs that depend on nothing mapped stay unmapped") {
  const auto p = traced(sums, {rp::ones({3}), rp::ones({2})});
  const rp::Batched b = rp::vmap(*p, {rp::ones({3, 5}), rp::ones({2})}, {Axis(1), std::nullopt}, 5);
  REQUIRE(b.axes[0].has_value());
  CHECK(!b.axes[1].has_value());
  CHECK(rp::axis_at(b.out[0], b.axes[0], 0, 5).shape() == rp::Shape{5, 2});
  CHECK(b.out[1].shape() == rp::Shape{2});
}

TEST_CASE("axis_at moves a mapped axis and repeats an unmapped value") {
  const Array x = rp::array({{1.0, 2.0}, {3.0, 4.0}});
  CHECK(numbers(rp::axis_at(x, Axis(1), 0, 2)) == std::vector<double>{1, 3, 2, 4});
  const Array repeated = rp::axis_at(x, std::nullopt, 1, 3);
  CHECK(repeated.shape() == rp::Shape{2, 3, 2});
  CHECK(numbers(repeated) == std::vector<double>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
}

TEST_CASE("a mapped body is made once per axes, with outputs in front when asked") {
  const auto p = traced(sums, {rp::ones({3}), rp::ones({2})});
  const Axes axes{Axis(0), std::nullopt};
  const auto b = rp::batched_program(*p, axes, 4, rp::OutAxes::front);
  CHECK(b->out_axes[0] == Axis(0));
  CHECK(!b->out_axes[1].has_value());
  CHECK(rp::batched_program(*p, axes, 4, rp::OutAxes::front) == b);
  CHECK(rp::batched_program(*p, axes, 5, rp::OutAxes::front) != b);
  const auto forced = rp::batched_program(*p, axes, 4, rp::OutAxes::front, {true, true});
  CHECK(forced->out_axes[1] == Axis(0));
  CHECK(forced->program->out_types()[1].shape == rp::Shape{4, 2});
}

TEST_CASE("mapped gradients and gradients of mapped functions print as JAX prints them") {
  auto f = [](Array x) {
    Array s = rp::sin(x);
    Array m = s * x;
    return rp::sum(m);
  };
  auto mapped_grad = [&](Array x) { return rp::vmap(rp::grad(f))(x); };
  CHECK(text(mapped_grad, rp::ones({4, 3})) == R"({ lambda ; a:f32[4,3]. let
    b:f32[4,3] = sin a
    c:f32[4,3] = cos a
    d:f32[4,3] = mul b a
    _:f32[4] = reduce_sum[axes=(1,) out_sharding=None] d
    e:f32[3] = broadcast_in_dim 1.0:f32[]
    f:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] e
    g:f32[4,3] = mul b f
    h:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] e
    i:f32[4,3] = mul h a
    j:f32[4,3] = mul i c
    k:f32[4,3] = add_any g j
  in (k,) })");
  auto grad_mapped = [&](Array x) {
    auto total = [&](Array v) {
      Array y = rp::vmap(f)(v);
      return rp::sum(y);
    };
    return rp::grad(total)(x);
  };
  CHECK(text(grad_mapped, rp::ones({4, 3})) == R"({ lambda ; a:f32[4,3]. let
    b:f32[4,3] = sin a
    c:f32[4,3] = cos a
    d:f32[4,3] = mul b a
    e:f32[4] = reduce_sum[axes=(1,) out_sharding=None] d
    _:f32[] = reduce_sum[axes=(0,) out_sharding=None] e
    f:f32[4] = broadcast_in_dim 1.0:f32[]
    g:f32[4,3] = broadcast_in_dim[broadcast_dimensions=(0,)] f
    h:f32[4,3] = mul b g
    i:f32[4,3] = mul g a
    j:f32[4,3] = mul i c
    k:f32[4,3] = add_any h j
  in (k,) })");
}
