// The engine for the processor, through the interface that every engine has.
#include "runtime/cpu_engine.h"

#include "api/engine.h"
#include "ops/records.h"
#include "program/primitive.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace rp = reprise;
using rp::Array;

namespace {

rp::ProgramPtr traced(std::int64_t size) {
  const auto f = [](Array x) {
    const Array s = rp::sin(x);
    return rp::sum(s * x);
  };
  return rp::make_jaxpr(rp::value_and_grad(f))(rp::ones({size})).program();
}

}  // namespace

TEST_CASE("the engine that is chosen is that for the processor") {
  CHECK(&rp::engine() == &rp::cpu_engine());
  CHECK(std::string(rp::engine().name()) == "cpu");
  CHECK_FALSE(rp::engine().is_gone());
}

TEST_CASE("it says what plans may count on") {
  const rp::plan::Capabilities can = rp::engine().capabilities();
  CHECK(can.knows(rp::sin_p));
  CHECK(can.knows(rp::add_p));
  CHECK(can.knows(rp::reshape_p));  // only elementwise ones are asked for
  rp::plan::MatmulSpec spec;
  spec.m = spec.n = spec.k = 8;
  spec.a_strides = spec.b_strides = spec.c_strides = {8, 1};
  CHECK_FALSE(can.share_threads(spec));  // far too small
}

TEST_CASE("a compiled program runs and knows its memory") {
  const auto p = traced(1000);
  const auto compiled = rp::engine().compile(*p, {});
  const rp::Arrays out = compiled->run({rp::ones({1000})});
  REQUIRE(out.size() == 2);
  CHECK(out[0].item<float>() == doctest::Approx(1000 * std::sin(1.0)).epsilon(1e-5));
  const rp::MemoryAnalysis memory = compiled->memory();
  CHECK(memory.argument_bytes == 4000);
  CHECK(memory.peak_bytes >= memory.output_bytes);
  CHECK_FALSE(compiled->lowered().eqns.empty());
  CHECK_FALSE(compiled->text().empty());
  const rp::Timeline timeline = compiled->timeline({"x"});
  std::vector<std::size_t> held(timeline.steps.size(), timeline.gap);
  for (const rp::TimelineValue& v : timeline.values) {
    for (std::size_t i = v.first; i <= v.last && i < held.size(); ++i) held[i] += rp::held_bytes(v);
  }
  CHECK(*std::max_element(held.begin(), held.end()) == memory.peak_bytes);
}

TEST_CASE("values are shown when they are complete") {
  const auto p = traced(64);
  const auto compiled = rp::engine().compile(*p, {.relays = false});
  std::size_t shown = 0;
  compiled->run_shown(
      {rp::ones({64})}, [](rp::Var) { return true; },
      [&](rp::Var v, const Array& value) {
        CHECK(value.type() == compiled->lowered().type(v));
        ++shown;
      });
  CHECK(shown > 0);
}

TEST_CASE("budgets and curves are asked of the engine") {
  const auto p = traced(4096);
  rp::CompileOptions options;
  options.memory_budget = std::size_t{1} << 30;
  CHECK(rp::engine().fits(*p, options));
  CHECK_FALSE(rp::engine().curve(*p, {}, 3).empty());
  CHECK(rp::engine().compile(*p, options)->budget_analysis().budget == std::int64_t{1} << 30);
}

TEST_CASE("single operations are evaluated by it") {
  const Array x = rp::full({3}, 2.0, rp::float32);
  const rp::Arrays y = rp::engine().evaluate(rp::neg_p, {x}, {}, {x.type()});
  CHECK(y[0].to_vector<float>() == std::vector<float>{-2, -2, -2});
}
