// check_recompute: counts what is computed again, and names what differs.
#include "array/access.h"
#include "program/primitive.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <sstream>

namespace rp = reprise;
using rp::Array;

namespace {

template <class T>
std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

Array layer(Array x) { return rp::sin(rp::exp(x)); }

// An operation that is not a function: each evaluation adds a little more.
int evaluations = 0;
rp::Types drifting_type(const rp::Types& in, const rp::Params&) { return in; }
rp::Arrays drifting_eval(const rp::Arrays& x, const rp::Params&, const rp::Types& out) {
  rp::NewArray y(out[0]);
  for (std::int64_t i = 0; i < y.size(); ++i) y.data<float>()[i] = rp::elements<float>(x[0])[i];
  y.data<float>()[y.size() - 1] += static_cast<float>(evaluations++);
  return {std::move(y).finish()};
}
rp::Tangents drifting_tangent(const rp::Arrays&, const rp::Tangents& dx, const rp::Arrays& y,
                              const rp::Params&) {
  return {*dx[0] * y[0]};
}
constinit const rp::Primitive drifting_p{.name = "drifting",
                                         .kind = rp::Kind::elementwise,
                                         .type = drifting_type,
                                         .eval = drifting_eval,
                                         .tangent = drifting_tangent};
Array drifting(rp::Operand x) {
  const rp::AtUser at(x.at);
  return drifting_p.bind1({x.array});
}

}  // namespace

TEST_CASE("check_recompute compares what a checkpoint computes again") {
  const Array x = rp::array({0.1, 0.2, 0.3});
  CHECK(rp::check_recompute(layer, x).compared == 0);  // the backward pass only reads
  const rp::RecomputeCheck check = rp::check_recompute(rp::checkpoint(layer), x);
  CHECK(check.ok);
  CHECK(check.compared == 1);  // exp; sin is not needed
  CHECK(text(check) == "recompute: 1 value computed again, all equal bit for bit");
}

TEST_CASE("check_recompute looks into loops, branches and calls") {
  const Array x = rp::array({0.1, 0.2, 0.3});
  const auto scanned = [](Array c, Array row) { return std::pair{layer(c * row), rp::none}; };
  const auto looped = [&](Array xs) {
    return rp::scan(rp::checkpoint(scanned), Array(0.5f), xs).first;
  };
  const rp::RecomputeCheck in_loop = rp::check_recompute(looped, x);
  CHECK(in_loop.ok);
  CHECK(in_loop.compared == 6);  // mul and exp, in three steps
  const auto branched = [](Array v) {
    return rp::cond(
        rp::sum(v) > 0, rp::checkpoint(layer), [](Array u) { return -u; }, v);
  };
  CHECK(rp::check_recompute(branched, x).compared == 1);
  CHECK(rp::check_recompute(branched, -x).compared == 0);
  const auto jitted = rp::jit(rp::checkpoint(rp::jit(layer)));
  CHECK(rp::check_recompute(jitted, x).compared == 1);
  const auto repeated = rp::checkpoint([](Array v) {
    const Array n = rp::while_loop([](Array i) { return i < 3.0; }, [](Array i) { return i + 1.0; },
                                   Array(0.0));
    return rp::sin(v * n);
  });
  CHECK(rp::check_recompute(repeated, x).ok);
  CHECK(rp::check_recompute(repeated, x).compared >= 8);  // four conditions, three steps, mul
}

TEST_CASE("check_recompute sees through names, saved values and the host's memory") {
  namespace P = rp::checkpoint_policies;
  const Array x = rp::array({0.1, 0.2, 0.3});
  const auto named = [](Array v) { return layer(rp::checkpoint_name(layer(v), "h")); };
  const std::size_t all = rp::check_recompute(rp::checkpoint(named), x).compared;
  CHECK(all == 3);  // exp, sin, exp
  const rp::Policy saved = P::save_only_these_names("h");
  CHECK(rp::check_recompute(rp::checkpoint(named, {.policy = saved}), x).compared == 2);
  const rp::Policy moved =
      P::save_and_offload_only_these_names({{}, {"h"}, "device", "pinned_host"});
  CHECK(rp::check_recompute(rp::checkpoint(named, {.policy = moved}), x).compared == 2);
}

TEST_CASE("check_recompute names the first equation whose value changes") {
  const auto f = rp::checkpoint([](Array v) {
    const Array y = drifting(rp::sin(v));
    return rp::exp(y);
  });
  evaluations = 0;
  const rp::RecomputeCheck check = rp::check_recompute(f, rp::array({0.0, 0.0}));
  CHECK_FALSE(check.ok);
  CHECK(check.first_difference.find("drifting f32[2] from ") == 0);
  CHECK(check.first_difference.find("check_test.cpp:") != std::string::npos);
  CHECK(check.first_difference.find(": was 0.0, computed again as 1.0 (element 1 of 2)") !=
        std::string::npos);
  CHECK(text(check).find(
            "recompute: 3 values computed again, first difference: drifting f32[2] from ") == 0);
}

TEST_CASE("check_recompute needs numbers") {
  const auto f = [](Array v) {
    rp::check_recompute(layer, v);
    return v;
  };
  CHECK_THROWS_WITH_AS(rp::make_jaxpr(f)(1.0),
                       doctest::Contains("check_recompute: numbers are needed"), rp::TraceError);
}

TEST_CASE("what the compiled program computes again is compared too") {
  const rp::Array W = rp::full({24, 24}, 0.1f), x = rp::ones({8, 24});
  auto block = [](rp::Array w, rp::Array v) {
    return rp::tanh(rp::matmul(rp::tanh(rp::matmul(v, w)), w));
  };
  auto f = [block](rp::Array w, rp::Array v) {
    return rp::sum(rp::checkpoint(block)(w, rp::checkpoint(block)(w, v)));
  };
  const rp::RecomputeCheck check = rp::check_recompute(f, W, x);
  CHECK(check.ok);
  CHECK(check.compared_compiled >= 4);
}
