// Kernels that grow: loops that fit, values that are read, nodes that are dropped.
#include "plan/group.h"

#include "ops/records.h"

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::plan::Group;
using rp::plan::Node;
using rp::plan::Operand;

namespace {

Operand stored(rp::Var root, const rp::Shape& shape) {
  Operand x;
  x.view = rp::plan::dense_view(root, shape);
  return x;
}
Operand number(double value) {
  Operand x;
  x.source = rp::plan::Source::number;
  x.number = rp::make_literal(rp::Dtype::f32, value);
  return x;
}
rp::Equation neg() {
  rp::Equation e;
  e.prim = &rp::neg_p;
  return e;
}
Node node_of(const rp::Equation& e, std::size_t operand, const rp::Shape& shape) {
  Node n;
  n.eqn = &e;
  n.in = {operand};
  n.type = rp::Type{rp::Dtype::f32, shape};
  n.in_types = {n.type};
  return n;
}

}  // namespace

TEST_CASE("a group accepts shapes whose loops refine its own") {
  Group g({24});
  CHECK(g.accept({4, 6}));
  CHECK(g.kernel().domain == rp::Ints{4, 6});
  CHECK(g.accept({24}));
  CHECK_FALSE(g.accept({6, 4}));
  CHECK_FALSE(g.accept({25}));
}

TEST_CASE("a stored operand is loaded once") {
  Group g({24});
  REQUIRE(g.can_read(stored(0, {24}), {24}));
  const std::size_t first = g.operand(stored(0, {24}), {24});
  CHECK(g.operand(stored(0, {24}), {24}) == first);
  CHECK(g.operand(stored(1, {24}), {24}) != first);
  CHECK(g.kernel().loads.size() == 2);
  CHECK(g.can_read(number(2), {24}));
}

TEST_CASE("a finished kernel has what its stores need, and nothing else") {
  const rp::Equation e = neg();
  const rp::Shape shape{24};
  Group g({24});
  const std::size_t x = g.operand(stored(0, shape), shape);
  const std::size_t y = g.operand(stored(1, shape), shape);
  g.add(node_of(e, x, shape), 2);
  g.add(node_of(e, y, shape), 3);
  CHECK(g.values().size() == 2);
  const rp::plan::Kernel k = std::move(g).finish({{2, rp::Type{rp::Dtype::f32, shape}}});
  CHECK(k.loads.size() == 1);
  CHECK(k.loads[0].root == 0);
  REQUIRE(k.stores.size() == 1);
  CHECK(k.stores[0].root == 2);
}

TEST_CASE("groups of the same loops merge, those of others do not") {
  const rp::Equation e = neg();
  const rp::Shape shape{24};
  Group a({24}), b({24}), c({25});
  const std::size_t x = a.operand(stored(0, shape), shape);
  a.add(node_of(e, x, shape), 2);
  const std::size_t y = b.operand(stored(1, shape), shape);
  b.add(node_of(e, y, shape), 3);
  CHECK(a.has_loops_of(b));
  CHECK(a.merge(b));
  CHECK(a.values().count(3) == 1);
  CHECK_FALSE(a.merge(c));
}
