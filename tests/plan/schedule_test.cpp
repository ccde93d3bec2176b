// Programs as lists of steps: what is fused, and what each step reads and writes.
#include "plan/schedule.h"

#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>

namespace rp = reprise;
using rp::Array;
using rp::plan::Schedule;

namespace {

template <class F, class... A>
Schedule schedule_of(const rp::plan::ScheduleOptions& options, const F& f, const A&... args) {
  return rp::plan::make_schedule(rp::lowered(*rp::make_jaxpr(f)(args...).program()), options);
}
template <class What>
std::ptrdiff_t count(const Schedule& s) {
  return std::count_if(s.steps.begin(), s.steps.end(), [](const rp::plan::Step& step) {
    return std::holds_alternative<What>(step.what);
  });
}

// Every step reads what an argument or an earlier step wrote.
void check_order(const Schedule& s) {
  std::vector<bool> is_there(s.types.size(), false);
  for (rp::Var v : s.program->in) is_there[static_cast<std::size_t>(v)] = true;
  for (const rp::plan::Step& step : s.steps) {
    for (rp::Var v : step.reads) CHECK(is_there[static_cast<std::size_t>(v)]);
    for (rp::Var v : step.writes) is_there[static_cast<std::size_t>(v)] = true;
  }
  for (const rp::plan::View& v : s.outputs) {
    if (v.root >= 0) CHECK(is_there[static_cast<std::size_t>(v.root)]);
  }
}

Array wave(Array x) {
  const Array a = rp::sin(x);
  const Array b = rp::exp(a);
  return a * b;
}
bool knows_no_exp(const rp::Primitive& p) { return std::string(p.name) != "exp"; }

}  // namespace

TEST_CASE("elementwise equations share one kernel, or have one each") {
  const Array x = rp::ones({1000});
  const Schedule fused = schedule_of({}, wave, x);
  CHECK(count<rp::plan::Kernel>(fused) == 1);
  check_order(fused);
  const Schedule single = schedule_of({.fuse = false}, wave, x);
  CHECK(count<rp::plan::Kernel>(single) == 3);
  check_order(single);
}

TEST_CASE("a shape equation is no step: readers walk with other strides") {
  const auto f = [](Array x) { return rp::transpose(x) + 1.0f; };
  const Schedule s = schedule_of({}, f, rp::ones({30, 50}));
  REQUIRE(s.steps.size() == 1);
  CHECK(std::get<rp::plan::Kernel>(s.steps[0].what).loads.size() >= 1);
}

TEST_CASE("products and loops are steps of their own") {
  const auto product = [](Array a, Array b) { return rp::sin(rp::matmul(a, b)); };
  const Schedule s = schedule_of({}, product, rp::ones({8, 16}), rp::ones({16, 8}));
  CHECK(count<rp::plan::DotStep>(s) == 1);
  check_order(s);
  const auto loop = [](Array x) {
    return rp::fori_loop(
        0, 5, [](Array, Array c) { return rp::sin(c) * 2.0f; }, x);
  };
  const Schedule l = schedule_of({}, loop, rp::ones({100}));
  CHECK(count<rp::plan::LoopStep>(l) == 1);
  check_order(l);
}

TEST_CASE("what the engine has no code for is evaluated, between kernels") {
  const Schedule s =
      schedule_of({.capabilities = {.has_vector_code = knows_no_exp}}, wave, rp::ones({1000}));
  CHECK(count<rp::plan::EvalStep>(s) == 1);
  CHECK(count<rp::plan::Kernel>(s) == 2);
  check_order(s);
}

TEST_CASE("in the body of a loop every output is a value of its own") {
  const auto f = [](Array x) { return std::pair{x, x}; };
  const Schedule s = schedule_of({.is_body = true}, f, rp::ones({10}));
  REQUIRE(s.outputs.size() == 2);
  CHECK(s.outputs[0].root != s.outputs[1].root);
  CHECK(s.outputs[0].root != s.program->in[0]);
}
