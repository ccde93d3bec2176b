// What leaves a loop because all its steps would compute it alike, and what that costs in memory:
// nothing.
#include "plan/hoist.h"

#include "program/primitive.h"
#include "random_program.h"
#include "runtime/compile.h"
#include "same_bits.h"
#include "without_pass.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <string>

namespace rp = reprise;
using rp::Array;

namespace {

// How often equations of one primitive run.
std::int64_t runs_of(const rp::Program& p, const std::string& name) {
  std::int64_t n = 0;
  for (const rp::Equation& e : p.eqns) {
    if (e.prim->name == name) ++n;
    const auto* length = e.params.find("length");
    const std::int64_t steps = length == nullptr ? 1 : std::get<std::int64_t>(*length);
    rp::for_each_program(e.params,
                         [&](const rp::ProgramPtr& body) { n += steps * runs_of(*body, name); });
  }
  return n;
}
template <class F, class... A>
rp::Program hoisted(const F& f, const A&... args) {
  return rp::plan::hoist(*rp::lowered(*rp::make_jaxpr(f)(args...).program()));
}
template <class F, class... A>
std::size_t peak_of(const F& f, const A&... args) {
  return rp::jit(f).lower(args...).compile().memory_analysis().peak_bytes;
}

// The same bits and no more memory than without the pass.
template <class F, class... A>
void check_pays(const F& f, const A&... args) {
  std::size_t without = 0;
  Array expected;
  {
    const WithoutPass pass("hoist");
    without = peak_of(f, args...);
    expected = rp::jit(f)(args...);
  }
  CHECK(peak_of(f, args...) <= without);
  check_same_elements(rp::jit(f)(args...), expected);
}

constexpr std::int64_t steps = 12, width = 64;

Array dense_step(Array w, Array h, Array row) {
  Array square = rp::matmul(w, w);
  Array sum = rp::matmul(h, square) + row;
  return rp::tanh(sum);
}

// A recurrent network whose checkpointed step squares its weights first: the loop's constant, and
// nothing else.
template <std::size_t argument>
auto gradient() {
  return rp::grad<argument>([](Array w, Array x) {
    const auto checkpointed = rp::checkpoint(dense_step);
    auto [h, ys] = rp::scan(
        [&](Array c, Array row) {
          return std::pair{checkpointed(w, c, row), rp::none};
        },
        rp::zeros({width, width}), x);
    return rp::sum(h);
  });
}

}  // namespace

TEST_CASE(
    "what a nested checkpoint computes from the loop's constants alone is computed once per loop") {
  const Array w = rp::full({width, width}, 0.01f), x = rp::ones({steps, width, width});
  const auto f = gradient<1>();
  const std::int64_t before =
      runs_of(*rp::lowered(*rp::make_jaxpr(f)(w, x).program()), "dot_general");
  const std::int64_t after = runs_of(hoisted(f, w, x), "dot_general");
  CHECK(before - after >= steps - 1);  // the square, in the backward loop
  check_pays(f, w, x);
  check_pays(gradient<0>(), w,
             x);  // its steps are fullest when the square is done with: there it may stay
}

TEST_CASE("a value that the steps do not store stays inside: outside it would take memory") {
  const auto f = [](Array w, Array x) {
    return rp::scan(
               [&](Array c, Array row) {
                 return std::pair{c + rp::sin(w) * row, rp::none};
               },
               rp::zeros({width}), x)
        .first;
  };
  CHECK(runs_of(hoisted(f, rp::ones({width}), rp::ones({steps, width})), "sin") == steps);
}

TEST_CASE("what leaves an inner loop may leave the outer one too") {
  const auto f = [](Array w, Array x) {
    const auto row_of = [&](Array c, rp::None) {
      const auto inner = [&](Array d, rp::None) {
        return std::pair{rp::matmul(rp::matmul(w, w), d), rp::none};
      };
      return std::pair{rp::scan(inner, c, rp::none, {.length = 3}).first, rp::none};
    };
    return rp::scan(row_of, x, rp::none, {.length = 5}).first;
  };
  const Array w = rp::full({width, width}, 0.1f);
  CHECK(runs_of(hoisted(f, w, w), "dot_general") == 16);
  check_pays(f, w, w);
}

TEST_CASE("a loop of one step, and values that differ from step to step, are left alone") {
  const auto one = [](Array w, Array x) {
    return rp::scan(
               [&](Array c, Array row) {
                 return std::pair{rp::matmul(rp::matmul(w, w), c) + row, rp::none};
               },
               w, x)
        .first;
  };
  const Array w = rp::ones({4, 4});
  CHECK(runs_of(hoisted(one, w, rp::ones({1, 4, 4})), "dot_general") == 2);
  const auto moving = [](Array w_, Array x) {
    return rp::scan(
               [&](Array c, Array row) {
                 return std::pair{rp::matmul(rp::matmul(w_, row), c), rp::none};
               },
               w_, x)
        .first;
  };
  CHECK(runs_of(hoisted(moving, w, rp::ones({6, 4, 4})), "dot_general") == 12);
}

TEST_CASE("hoisting never raises the planned peak") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto program = random_program::make(seed, {.dtype = rp::float32});
    const auto f = rp::grad(program.loss);
    std::size_t without = 0;
    {
      const WithoutPass pass("hoist");
      without = peak_of(f, program.args);
    }
    INFO("seed ", seed);
    CHECK(peak_of(f, program.args) <= without);
  }
}
