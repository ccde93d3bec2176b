// What is wrong in a program on many ranks is said before anything is sent, on every rank.
#include "error_text.h"
#include <reprise/dist.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

using namespace reprise;
using P = PartitionSpec;

namespace {

template <class E, class F>
void check_error(const F& f, const std::string& part) {
  CHECK_MENTIONS(message<E>(f), part);
}

Mesh all_ranks() { return Mesh({{"x", dist::size()}}); }
template <class F>
auto mapped(F f, InSpecs in, Specs out) {
  return shard_map(f, all_ranks(), std::move(in), std::move(out));
}

}  // namespace

TEST_CASE("names of axes") {
  const Array x = ones({8, 2});
  check_error<TypeError>(
      [&] { mapped([](Array a) { return lax::psum(a, "y"); }, P("x"), P("x"))(x); },
      "psum: no axis has this name, got y in Mesh('x'");
  check_error<TypeError>([&] { mapped([](Array a) { return a; }, P("z"), P("x"))(x); },
                         "PartitionSpec: no axis has this name, got z");
  check_error<TypeError>([&] { mapped([](Array a) { return a; }, P("x", "x"), P("x"))(x); },
                         "PartitionSpec: an axis must divide one dimension, got P('x', 'x')");
  check_error<TypeError>(
      [&] {
        Mesh({{"x", dist::size()}, {"x", 1}});
      },
      "Mesh: each axis needs a name of its own, got 'x'");
  check_error<TypeError>([&] { Mesh(Mesh::Axes{}); }, "Mesh: from 1 to 63 axes are needed, got 0");
  check_error<TypeError>([&] { Mesh({{"x", 0}}); }, "Mesh: the size of an axis");
  check_error<TypeError>([&] { all_ranks().axis_size("q"); }, "Mesh: no axis has this name, got q");
}

TEST_CASE("collectives outside of shard_map") {
  const Array x = ones({4});
  const std::string rule = "axes of a mesh have names inside of shard_map only, got x";
  check_error<TypeError>([&] { lax::psum(x, "x"); }, "psum: " + rule);
  check_error<TypeError>([&] { lax::pmean(x, "x"); }, "pmean: " + rule);
  check_error<TypeError>([&] { lax::pmax(x, "x"); }, "pmax: " + rule);
  check_error<TypeError>([&] { lax::pmin(x, "x"); }, "pmin: " + rule);
  check_error<TypeError>([&] { lax::all_gather(x, "x"); }, "all_gather: " + rule);
  check_error<TypeError>([&] { lax::psum_scatter(x, "x"); }, "psum_scatter: " + rule);
  check_error<TypeError>([&] { lax::ppermute(x, "x", {{0, 0}}); }, "ppermute: " + rule);
  check_error<TypeError>([&] { lax::all_to_all(x, "x", 0, 0); }, "all_to_all: " + rule);
  check_error<TypeError>([&] { lax::axis_index("x"); }, "axis_index: " + rule);
  check_error<TypeError>([&] { lax::axis_size("x"); }, "axis_size: " + rule);
  check_error<TypeError>([&] { lax::pvary(x, "x"); }, "pvary: " + rule);
}

TEST_CASE("specs that do not fit") {
  const Array x = ones({8, 2});
  const auto same = [](Array a) { return a; };
  check_error<TypeError>(
      [&] {
        mapped(same, {P("x"), P()}, P("x"))(x);
      },
      "shard_map: in_specs needs one entry for each argument, got 2 for 1");
  check_error<TypeError>([&] { mapped(same, P("x", none, none), P("x"))(x); },
                         "shard_map: a spec must have at most one entry per dimension");
  check_error<TypeError>([&] { mapped(same, P("x"), P("x", none, none))(x); },
                         "shard_map: a spec must have at most one entry per dimension");
  check_error<TypeError>(
      [&] {
        mapped(same, P("x"), std::vector<P>{P("x"), P("x")})(x);
      },
      "shard_map: the result needs one spec, or one for each of its arrays, got 2 for 1");
  check_error<TypeError>([&] { mapped(same, P("x"), P())(x); },
                         "shard_map: a result that varies over an axis must name it in its spec, "
                         "got P() for f32[");
  const Array part = shard(x, all_ranks(), P("x"));
  check_error<TypeError>([&] { mapped(same, P(), P())(part); },
                         "must name the axes over which it varies, got P() for f32[");
  check_error<TypeError>(
      [&] { mapped([&](Array a) { return mapped(same, P("x"), P("x"))(a); }, P("x"), P("x"))(x); },
      "shard_map: it must not stand inside of another one");
}

TEST_CASE("a mesh of other ranks than there are") {
  check_error<RuntimeError>(
      [&] {
        Mesh({{"x", dist::size() + 1}});
      },
      "Mesh: the mesh must have all ranks, got Mesh('x'");
  const AbstractMesh paper({{"x", 64}});
  const auto f = shard_map([](Array a) { return lax::psum(a, "x"); }, paper, P("x"), P());
  CHECK(eval_shape(f, ones({128})).shape() == Shape{2});
  check_error<RuntimeError>([&] { f(ones({128})); }, "nothing runs on an abstract mesh");
}

TEST_CASE("a predicate of each rank's own does not decide about a collective") {
  const Array x = ones({8});
  const auto summed = [](Array a) { return lax::psum(a, "x"); };
  const auto doubled = [](Array a) { return 2 * a; };
  const auto choose = [&](Array a) {
    const Array first = lax::axis_index("x") < 1;
    return cond(
        first, [&](Array b) { return lax::pvary(summed(b), "x"); }, doubled, a);
  };
  check_error<TypeError>([&] { mapped(choose, P("x"), P("x"))(x); },
                         "cond: a predicate that varies over the mesh must not decide about a "
                         "collective, got i32[]{V:x}");
  const auto again = [&](Array a) {
    return while_loop([](Array b) { return sum(b) < 3.0; },
                      [&](Array b) { return b + lax::psum(b, "x"); }, a);
  };
  check_error<TypeError>([&] { mapped(again, P("x"), P("x"))(x); },
                         "while_loop: a predicate that varies over the mesh");
}

TEST_CASE("sizes that do not divide") {
  if (dist::size() != 4) return;
  const auto same = [](Array a) { return a; };
  check_error<TypeError>(
      [&] {
        mapped(same, P("x"), P("x"))(ones({6, 2}));
      },
      "shard_map: the axes of a spec must divide the dimension, got P('x',) for "
      "args[0] of type f32[6,2]: dimension 0 of size 6 in 4 parts");
  check_error<TypeError>(
      [&] {
        mapped([](Array a) { return lax::psum_scatter(a, "x", {.tiled = true}); }, P("x"),
               P("x"))(ones({8}));
      },
      "psum_scatter: the size of the dimension must be a multiple of the axis size 4");
  check_error<TypeError>(
      [&] {
        mapped(
            [](Array a) {
              return lax::ppermute(a, "x", {{0, 1}, {2, 1}});
            },
            P("x"), P("x"))(ones({8}));
      },
      "ppermute: sources and destinations must be ranks from 0 to 3, each at most once, got "
      "((0, 1), (2, 1))");
}

TEST_CASE("ranks with different programs learn it") {
  if (dist::size() != 4) return;
  const bool is_odd = dist::rank() == 2;
  const auto f = [is_odd](Array a) {
    const Array b = is_odd ? cos(a) : sin(a);
    return lax::psum(b, "x");
  };
  check_error<RuntimeError>([&] { mapped(f, P("x"), P())(ones({8})); },
                            "shard_map: all ranks must run the same program, got a difference "
                            "between rank 0 and rank 2 in line");
  check_error<RuntimeError>([&] { jit(mapped(f, P("x"), P()))(ones({8})); },
                            "shard_map: all ranks must run the same program");
}
