// Memory budgets: the plan fits or nothing is compiled, and what is computed again has the bits
// that it had before.
#include "../../bench/workloads.h"
#include "api/jit_entry.h"
#include "error_text.h"
#include "plan/check_memory.h"
#include "program/trace.h"
#include "random_program.h"
#include "runtime/compile.h"
#include "same_bits.h"
#include "sanitized.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <sstream>

namespace {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

// Wide enough for its values to matter beside the gradients.
Array deep(Arrays W, Array x) {
  for (const Array& w : W) x = rp::tanh(rp::matmul(x, w));
  return rp::sum(x * x);
}
Arrays weights(int layers, std::int64_t width) {
  Arrays W;
  for (int i = 0; i < layers; ++i)
    W.push_back(bench::normal({width, width}, 0.1f, static_cast<unsigned>(i)));
  return W;
}
rp::JitOptions within(std::size_t bytes) {
  rp::JitOptions options;
  options.memory_budget = static_cast<std::int64_t>(bytes);
  return options;
}
template <class F, class... A>
std::size_t peak_of(const F& f, const A&... args) {
  return rp::jit(f).lower(args...).compile().memory_analysis().peak_bytes;
}

// The function within budgets between its least and its plain peak: it fits, has the same bits, and
// a larger budget costs no more.
template <class F, class... A>
void check_budgets(const F& f, const A&... args) {
  const rp::Arrays plain = rp::tree_leaves(rp::jit(f)(args...));
  const auto curve = rp::memory_curve(f, args...);
  REQUIRE(!curve.points.empty());
  const std::size_t least = curve.points.front().peak_bytes, most = peak_of(f, args...);
  CHECK(curve.points.back().peak_bytes == most);
  double before = 0;
  for (int k = 3; k >= 0; --k) {
    const std::size_t budget = least + (most - least) / 4 * static_cast<std::size_t>(k);
    const auto g = rp::jit(f, within(budget));
    const auto compiled = g.lower(args...).compile();
    const rp::BudgetAnalysis a = compiled.budget_analysis();
    INFO("budget ", budget, " of ", least, " to ", most, ": ", a.peak_bytes);
    CHECK(a.peak_bytes <= budget);
    CHECK(a.peak_bytes == compiled.memory_analysis().peak_bytes);
    CHECK(a.seconds >= before);
    CHECK(a.lower_seconds <= a.seconds * (1 + 1e-9));
    before = a.seconds;
    const rp::Arrays got = rp::tree_leaves(compiled(args...));
    REQUIRE(got.size() == plain.size());
    for (std::size_t i = 0; i < got.size(); ++i) check_same_elements(got[i], plain[i]);
  }
}

struct CheckPlain {
  template <class D, class F, class... A>
  void operator()(const std::string&, const std::string& mode, const D& differentiated, const F&,
                  const A&... args) const {
    if (mode == "none") check_budgets(differentiated, args...);
  }
};

}  // namespace

TEST_CASE("sizes are written with their units") {
  using namespace reprise::literals;
  static_assert(512_MiB == 512 * 1024 * 1024);
  static_assert(2_GB == 2000000000);
  static_assert(1.5_KiB == 1536);
}

TEST_CASE("a budget decides what a chain of layers computes again") {
  const Arrays W = weights(8, 64);
  const Array x = bench::normal({2048, 64}, 1.f, 99);
  const auto f = rp::value_and_grad(deep);
  const std::size_t plain = peak_of(f, W, x);
  check_budgets(f, W, x);
  const rp::BudgetAnalysis a =
      rp::jit(f, within(plain / 10 * 7)).lower(W, x).compile().budget_analysis();
  CHECK(a.budget == static_cast<std::int64_t>(plain / 10 * 7));
  CHECK(a.plain_peak_bytes == plain);
  REQUIRE(!a.repeated.empty());
  CHECK(a.repeated[0].times >= 1);
  CHECK(a.repeated[0].bytes_freed == 2048 * 64 * 4);
  CHECK(std::string(a.repeated[0].at.file).find("budget_test.cpp") != std::string::npos);
  CHECK(a.extra_seconds() > 0);
  CHECK(a.extra_flops() > 0);
  std::ostringstream table;
  table << a;
  CHECK_MENTIONS(table.str(), "budget");
  CHECK_MENTIONS(table.str(), "f32[2048,64]");
  CHECK_MENTIONS(rp::to_json(a), "\"repeated\":[{\"value\":");
}

TEST_CASE("a budget that is met anyway changes nothing") {
  const Arrays W = weights(4, 32);
  const Array x = bench::normal({512, 32}, 1.f, 99);
  const auto f = rp::value_and_grad(deep);
  const auto plain = rp::jit(f).lower(W, x).compile();
  const auto same = rp::jit(f, within(plain.memory_analysis().peak_bytes)).lower(W, x).compile();
  CHECK(same.as_text() == plain.as_text());
  CHECK(same.budget_analysis().repeated.empty());
  CHECK(same.budget_analysis().extra_seconds() == 0);
}

TEST_CASE("a budget that no plan meets is an error that says what is in the way") {
  const Arrays W = weights(4, 32);
  const Array x = bench::normal({512, 32}, 1.f, 99);
  const auto f = rp::jit(rp::value_and_grad(deep), within(20000));
  const std::string text = message<rp::RuntimeError>([&] { return f(W, x); });
  CHECK_MENTIONS(text, "jit: no plan was found within the memory budget, got 20000 bytes");
  CHECK_MENTIONS(text, "the least peak found is");
  CHECK_MENTIONS(text, "none can be below 16388 bytes");
  CHECK_MENTIONS(text, "the fullest step:");
  CHECK_MENTIONS(text, "f32[512,32] at ");
  CHECK_MENTIONS(text, "budget_test.cpp:");
}

TEST_CASE("budgets that are no sizes are type errors") {
  for (const std::int64_t bytes :
       {std::int64_t{0}, std::int64_t{-5}, std::numeric_limits<std::int64_t>::max()}) {
    rp::JitOptions options;
    options.memory_budget = bytes;
    const auto f = rp::jit([](Array x) { return rp::sin(x); }, options);
    CHECK_MENTIONS(message<rp::TypeError>([&] { return f(rp::ones({3})); }),
                   reprise::str("jit: a memory budget is from 1 to 2^57 bytes, got ", bytes));
  }
  CHECK_MENTIONS(message<rp::TypeError>([] {
                   return rp::largest_fitting(
                       [](std::int64_t n) {
                         return rp::jit([](Array x) { return rp::sin(x); }).lower(rp::ones({n}));
                       },
                       0);
                 }),
                 "largest_fitting: a budget is at least 1 byte, got 0");
}

TEST_CASE("what a policy saved is computed once, unless policies are hints") {
  const Arrays W = weights(6, 64);
  const Array x = bench::normal({2048, 64}, 1.f, 99);
  const auto saving = [](Arrays w, Array v) {
    const auto layer = rp::checkpoint([](Array m, Array y) { return rp::tanh(rp::matmul(y, m)); },
                                      {.policy = rp::checkpoint_policies::dots_saveable});
    for (const Array& m : w) v = layer(m, v);
    return rp::sum(v * v);
  };
  const auto f = rp::value_and_grad(saving);
  const std::size_t plain = peak_of(f, W, x), budget = plain / 10 * 6;
  CHECK_MENTIONS(message<rp::RuntimeError>([&] { return rp::jit(f, within(budget))(W, x); }),
                 "jit: no plan was found");
  rp::JitOptions free = within(budget);
  free.budget_may_override_policies = true;
  const auto compiled = rp::jit(f, free).lower(W, x).compile();
  CHECK(compiled.memory_analysis().peak_bytes <= budget);
  const rp::Arrays got = rp::tree_leaves(compiled(W, x)),
                   plain_values = rp::tree_leaves(rp::jit(f)(W, x));
  for (std::size_t i = 0; i < got.size(); ++i) check_same_elements(got[i], plain_values[i]);
}

TEST_CASE("random bits that are drawn again are the same") {
  const Arrays W = weights(6, 64);
  const Array x = bench::normal({1024, 64}, 1.f, 99);
  const auto dropout = [](Arrays w, Array v) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const Array key = rp::random::fold_in(rp::random::key(3), static_cast<int>(i));
      const Array kept = rp::random::bernoulli(key, 0.5f, rp::Shape{1024, 64});
      const Array y = rp::tanh(rp::matmul(v, w[i]));
      v = rp::where(kept, y, 0.f);
    }
    return rp::sum(v * v);
  };
  check_budgets(rp::value_and_grad(dropout), W, x);
}

TEST_CASE("a budget reaches into loops") {
  const Array W = bench::normal({16, 48, 48}, 0.1f, 7), x = bench::normal({512, 48}, 1.f, 99);
  const auto loop = [](Array w, Array v) {
    const auto step = [](Array c, Array m) {
      const Array h = rp::tanh(rp::matmul(c, m));
      const Array g = rp::sin(rp::matmul(h, m));
      return std::tuple(c + g, Array(0.f));
    };
    const auto [last, ys] = rp::scan(step, v, w);
    return rp::sum(last * last);
  };
  const auto f = rp::value_and_grad(loop);
  const std::size_t plain = peak_of(f, W, x);
  const auto curve = rp::memory_curve(f, W, x);
  CHECK(curve.points.front().peak_bytes < plain / 10 * 6);
  check_budgets(f, W, x);
}

TEST_CASE("transformers fit into half of their memory, unrolled and scanned") {
  bench::Sizes small;
  small.gpt = {.layers = is_sanitized ? 1 : 2,
               .width = 32,
               .heads = 2,
               .length = 64,
               .batch = 4,
               .vocabulary = 96};
  const CheckPlain check;
  CHECK(bench::visit_workload("gpt", check, small));
  if (is_sanitized) {  // the search takes minutes there; "a budget reaches into loops" has a scan
    MESSAGE("left out under sanitizers: gpt_scan");
    return;
  }
  CHECK(bench::visit_workload("gpt_scan", check, small));
}

TEST_CASE("types are enough for plans") {
  const Arrays W = weights(4, 32);
  const rp::Type x{rp::float32, {512, 32}};
  const auto f = rp::value_and_grad(deep);
  const auto planned = rp::jit(f).lower(rp::types_of(W), x).compile();
  const Array numbers = bench::normal({512, 32}, 1.f, 99);
  CHECK(planned.memory_analysis().peak_bytes == peak_of(f, W, numbers));
  CHECK(planned.as_text() == rp::jit(f).lower(W, numbers).compile().as_text());
  const rp::Arrays got = rp::tree_leaves(planned(W, numbers)),
                   expected = rp::tree_leaves(rp::jit(f)(W, numbers));
  for (std::size_t i = 0; i < got.size(); ++i) check_same_elements(got[i], expected[i]);
  CHECK(rp::saved_residuals(deep, rp::types_of(W), x).size() ==
        rp::saved_residuals(deep, W, numbers).size());
  CHECK(rp::residual_report(deep, W, x).bytes() == rp::residual_report(deep, W, numbers).bytes());
  CHECK(rp::eval_shape(deep, rp::types_of(W), x).type() == rp::Type{rp::float32, {}});
  const rp::Type huge{rp::float32, {1 << 20, 1 << 14}};  // 64 GiB
  CHECK(rp::jit([](Array v) { return rp::sin(v); })
            .lower(huge)
            .compile()
            .memory_analysis()
            .peak_bytes >= std::size_t{1} << 36);
  CHECK(rp::memory_curve(f, rp::types_of(W), x).points.size() > 2);
}

TEST_CASE("the largest problem that fits is found") {
  const Arrays W = weights(4, 32);
  const auto f = rp::value_and_grad(deep);
  const auto make = [&](std::int64_t n) {
    return rp::jit(f).lower(rp::types_of(W), rp::Type{rp::float32, {n, 32}});
  };
  const std::int64_t budget = 300000, n = rp::largest_fitting(make, budget);
  CHECK(n > 100);
  const auto peak_at = [&](std::int64_t rows) {
    return rp::jit(f, within(static_cast<std::size_t>(budget)))
        .lower(W, rp::ones({rows, 32}))
        .compile()
        .memory_analysis()
        .peak_bytes;
  };
  CHECK(peak_at(n) <= static_cast<std::size_t>(budget));
  CHECK_THROWS_AS(peak_at(n + 1), rp::RuntimeError);
  CHECK(rp::largest_fitting(make, 1000) == 0);
  CHECK(rp::largest_fitting(make, std::int64_t{1} << 30, 100) == 100);
}

// Evaluated, not compiled: each plan's program has the values of the plain one. Every tenth runs as
// machine code.
TEST_CASE("random programs keep to their budgets and their bits") {
  std::size_t planned = 0, repeating = 0;
  const std::uint64_t programs = std::getenv("REPRISE_LONG_TESTS") != nullptr ? 500
                                 : is_sanitized                               ? 4
                                                                              : 30;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    INFO("seed ", seed);
    const auto [loss, args] = random_program::make(seed, {.dtype = rp::float32});
    const auto differentiated = rp::value_and_grad(loss);
    const auto entry = rp::jit(differentiated).lower(args).entry();
    rp::Arrays inputs = entry->consts;
    inputs.insert(inputs.end(), args.begin(), args.end());
    const rp::Arrays expected = rp::eval(*rp::lowered(*entry->program), inputs);
    const auto points = rp::curve_of(*entry->program, {}, 4);
    for (const rp::BudgetPoint& point : points) {
      ++planned;
      repeating += point.repeated.empty() ? 0 : 1;
      const auto overlap =
          rp::plan::overlap_in(*point.planned.code->schedule, point.planned.code->memory);
      CHECK_MESSAGE(!overlap, *overlap);
      const rp::Arrays got = rp::eval(*point.planned.program, inputs);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) check_same_elements(got[i], expected[i]);
    }
    if (seed % 10 != 0 || points.empty()) continue;
    const std::size_t budget = points.front().planned.peak();
    const auto compiled = rp::jit(differentiated, within(budget)).lower(args).compile();
    CHECK(compiled.memory_analysis().peak_bytes <= budget);
    const rp::Arrays got = rp::tree_leaves(compiled(args)),
                     plain = rp::tree_leaves(rp::jit(differentiated)(args));
    for (std::size_t i = 0; i < got.size(); ++i) check_same_elements(got[i], plain[i]);
  }
  MESSAGE(planned, " plans, of which ", repeating, " repeat something");
  CHECK(planned >= programs);
}
