// Views and loop domains.
#include "plan/view.h"

#include "program/trace.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::plan::View;

namespace {

// The view of the result of one equation on a dense operand.
std::optional<View> view_after(const rp::Shape& shape, rp::Array (*f)(rp::Array)) {
  const rp::Type type{rp::Dtype::f32, shape};
  const auto traced = rp::trace([&](const rp::Arrays& x) { return rp::Arrays{f(x[0])}; }, {type});
  const rp::Program& p = *traced.program;
  REQUIRE(p.eqns.size() == 1);
  return rp::plan::view_of(p.eqns[0], 0, rp::plan::dense_view(p.in[0], shape),
                           p.type(p.eqns[0].out[0]));
}

}  // namespace

TEST_CASE("a dense view walks by rows") {
  const View v = rp::plan::dense_view(3, {2, 3, 4});
  CHECK(v.strides == rp::Ints{12, 4, 1});
  CHECK(rp::plan::is_dense(v));
  View shifted = v;
  shifted.offset = 1;
  CHECK_FALSE(rp::plan::is_dense(shifted));
}

TEST_CASE("transposes, slices and reversals are views") {
  const auto turned = view_after({2, 3}, [](rp::Array x) { return rp::transpose(x); });
  REQUIRE(turned);
  CHECK(turned->shape == rp::Shape{3, 2});
  CHECK(turned->strides == rp::Ints{1, 3});
  const auto cut = view_after({4, 6}, [](rp::Array x) {
    return rp::lax::slice(x, {1, 2}, {3, 6}, rp::Ints{1, 2});
  });
  REQUIRE(cut);
  CHECK(cut->shape == rp::Shape{2, 2});
  CHECK(cut->offset == 8);
  CHECK(cut->strides == rp::Ints{6, 2});
  const auto back = view_after({5}, [](rp::Array x) { return rp::lax::rev(x, {0}); });
  REQUIRE(back);
  CHECK(back->offset == 4);
  CHECK(back->strides == rp::Ints{-1});
  CHECK_FALSE(view_after({5}, [](rp::Array x) { return rp::lax::sin(x); }));
}

TEST_CASE("a reshape is a view where elements stand at regular distances") {
  const View dense = rp::plan::dense_view(0, {4, 6});
  const auto flat = rp::plan::reshaped(dense, {24});
  REQUIRE(flat);
  CHECK(flat->strides == rp::Ints{1});
  View turned = dense;
  turned.shape = {6, 4};
  turned.strides = {1, 6};
  CHECK_FALSE(rp::plan::reshaped(turned, {24}));
  const auto split = rp::plan::reshaped(turned, {3, 2, 4});
  REQUIRE(split);
  CHECK(split->strides == rp::Ints{2, 1, 6});
}

TEST_CASE("broadcasting stretches with strides of zero") {
  const View v = rp::plan::broadcast(rp::plan::dense_view(0, {3, 1}), {2, 3, 4});
  CHECK(v.shape == rp::Shape{2, 3, 4});
  CHECK(v.strides == rp::Ints{0, 1, 0});
}

TEST_CASE("domains: loops of one are no loops, and common ones refine both") {
  CHECK(rp::plan::domain_of({1, 4, 1, 6}) == rp::Ints{4, 6});
  CHECK(rp::plan::common_domain({24}, {4, 6}) == rp::Ints{4, 6});
  CHECK(rp::plan::common_domain({4, 6}, {2, 12}) == rp::Ints{2, 2, 6});
  CHECK_FALSE(rp::plan::common_domain({4, 6}, {6, 4}));
  CHECK(rp::plan::refined_strides({1}, {24}, {4, 6}) == rp::Ints{6, 1});
}
