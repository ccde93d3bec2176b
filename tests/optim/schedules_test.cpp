#include "flax_golden.h"
#include "reprise/optim.h"

#include <string>

namespace reprise {
namespace {

namespace opt = optim;
using flax_golden::Json;

void check_schedule(const std::string& name, const opt::Schedule& schedule, const Json& all) {
  INFO(name);
  REQUIRE(all.contains(name));
  Arrays plain, compiled;
  const auto jitted = jit([&](Array count) { return schedule(count); });
  for (int i = 0; i < 18; ++i) {
    const Array count = array({i}).reshape({});
    plain.push_back(schedule(count).astype(float32));
    compiled.push_back(jitted(count).astype(float32));
  }
  flax_golden::near(stack(plain), all[name]);
  flax_golden::near(stack(compiled), all[name]);
}

TEST_CASE("schedules follow optax") {
  const Json& all = flax_golden::section("schedules");
  check_schedule("cosine_decay(1.0,10)", opt::cosine_decay_schedule(1.0, 10), all);
  check_schedule("cosine_decay(1.0,10,alpha=0.1)", opt::cosine_decay_schedule(1.0, 10, 0.1), all);
  check_schedule("linear(1.0,0.0,10)", opt::linear_schedule(1.0, 0.0, 10), all);
  check_schedule("warmup_cosine(0,1,5,15,0.1)", opt::warmup_cosine_decay_schedule(0, 1, 5, 15, 0.1),
                 all);
  check_schedule("exponential(1.0,5,0.5)", opt::exponential_decay(1.0, 5, 0.5), all);
  check_schedule("exponential(1.0,5,0.5,staircase)",
                 opt::exponential_decay(1.0, 5, 0.5, {.staircase = true}), all);
}

TEST_CASE("schedules follow optax in all their options") {
  const Json& all = flax_golden::file("optim_cases.json")["schedules"];
  check_schedule("constant", opt::constant_schedule(0.3), all);
  check_schedule("polynomial", opt::polynomial_schedule(1.0, 0.1, 2.5, 8, 3), all);
  check_schedule("linear_begin", opt::linear_schedule(0.2, 1.0, 5, 2), all);
  check_schedule("piecewise",
                 opt::piecewise_constant_schedule(1.0, {{3, 0.5}, {7, 0.1}, {12, 2.0}}), all);
  check_schedule("exp_options",
                 opt::exponential_decay(
                     1.0, 4, 0.6, {.transition_begin = 3, .staircase = true, .end_value = 0.3}),
                 all);
  check_schedule("exp_grow", opt::exponential_decay(1.0, 4, 1.6, {.end_value = 4.0}), all);
  check_schedule("cosine_exp", opt::cosine_decay_schedule(0.7, 9, 0.2, 1.7), all);
  check_schedule("warmup_constant", opt::warmup_constant_schedule(0.1, 0.9, 6), all);
  check_schedule("warmup_exp", opt::warmup_exponential_decay_schedule(0.0, 1.0, 4, 3, 0.5), all);
  check_schedule(
      "join",
      opt::join_schedules({opt::constant_schedule(1.0), opt::linear_schedule(0.5, 0.0, 4),
                           opt::constant_schedule(0.25)},
                          {3, 9}),
      all);
}

TEST_CASE("schedules without steps are constant, and wrong ones are errors") {
  CHECK(opt::linear_schedule(0.5, 0.1, 0)(3).item<float>() == 0.5f);
  CHECK(opt::exponential_decay(0.5, 0, 0.1)(3).item<float>() == 0.5f);
  CHECK(opt::exponential_decay(0.5, 3, 0)(3).item<float>() == 0.5f);
  CHECK_THROWS_WITH_AS(
      opt::cosine_decay_schedule(1.0, 0),
      doctest::Contains("cosine_decay_schedule: needs a positive number of decay_steps, got 0\n"
                        "  at schedules_test.cpp:"),
      TypeError);
  CHECK_THROWS_WITH_AS(opt::warmup_cosine_decay_schedule(0, 1, 5, 5),
                       doctest::Contains("needs a positive number of decay_steps, got 0"),
                       TypeError);
  CHECK_THROWS_WITH_AS(
      opt::join_schedules({opt::constant_schedule(1)}, {2}),
      doctest::Contains("join_schedules: needs one boundary less than schedules, got 1 and 1"),
      TypeError);
}

}  // namespace
}  // namespace reprise
