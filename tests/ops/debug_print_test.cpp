// debug::print through every transform: what is printed, how often and in which order.
#include "api/primitives.h"
#include "error_text.h"
#include "program/effects.h"
#include "program/parse.h"
#include "program/print.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <iostream>
#include <sstream>

namespace {

namespace rp = reprise;
using rp::Array;

// What a function writes to std::cout.
template <class F>
std::string printed(const F& f) {
  std::ostringstream text;
  std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
  try {
    f();
  } catch (...) {
    std::cout.rdbuf(before);
    throw;
  }
  std::cout.rdbuf(before);
  return text.str();
}

Array watched(Array x) {
  Array y = x * 2.0;
  rp::debug::print("y={}", y);
  return y * y;
}

TEST_CASE("fields take arguments by position and name, and say how a scalar is written") {
  const Array x = rp::array({1.0, 2.5}), n = rp::array(7);
  CHECK(printed([&] { rp::debug::print("nothing"); }) == "nothing\n");
  CHECK(printed([&] { rp::debug::print("{} and {}", x, n); }) == "[1.  2.5] and 7\n");
  CHECK(printed([&] { rp::debug::print("{1} {0} {1}", 1, 2); }) == "2 1 2\n");
  CHECK(printed([&] { rp::debug::print("{{}} {z} {a}", rp::arg("z", n), rp::arg("a", true)); }) ==
        "{} 7 True\n");
  CHECK(printed([&] { rp::debug::print("{:.2f} {:4d}|{:8.1e}|{:5}", 3.14159, n, 12345.0, n); }) ==
        "3.14    7| 1.2e+04|    7\n");
}

TEST_CASE("a format that does not fit its arguments is an error where it is written") {
  using rp::debug::print;
  CHECK(error_of([] {
          print("{} {}", 1);
        }).find("debug::print: there is no argument number 1, got \"{} {}\"") == 0);
  CHECK(error_of([] {
          print("{z}", 1);
        }).find("debug::print: there is no argument `z` (name it with rp::arg), got \"{z}\"") == 0);
  CHECK(error_of([] {
          print("x", 1);
        }).find("debug::print: an argument is not printed, got \"x\"") == 0);
  CHECK(error_of([] {
          print("x", rp::arg("z", 1));
        }).find("debug::print: the argument `z` is not printed, got \"x\"") == 0);
  CHECK(error_of([] {
          print("a } b");
        }).find("debug::print: a brace stands alone (write {{ or }}), got \"a } b\"") == 0);
  CHECK(error_of([] { print("a {", 1); }).find("debug::print: a brace stands alone") == 0);
  const char* spec =
      "debug::print: behind a colon stands [width][.precision][d, e, f or g], for a scalar, got {:";
  CHECK(error_of([] {
          print("{:.2f}", rp::ones({2}));
        }).find(std::string(spec) + ".2f} for f32[2]") == 0);
  for (const char* wrong : {"{:.d}", "{:s}", "{:d}", "{:1.}", "{:.2ff}", "{:n}", "{:123456789}"}) {
    CAPTURE(wrong);
    CHECK(error_of([&] { print(wrong, 1.5); }).find(spec) == 0);
  }
  CHECK(error_of([] { print("{} {}", 1); }).find("debug_print_test.cpp:") != std::string::npos);
}

TEST_CASE("it prints once for each evaluation") {
  const Array x = rp::array(3.0);
  CHECK(printed([&] { watched(x); }) == "y=6.0\n");
  CHECK(printed([&] { rp::jit(watched)(x); }) == "y=6.0\n");
  CHECK(printed([&] { rp::grad(watched)(x); }) == "y=6.0\n");
  CHECK(printed([&] { rp::jit(rp::grad(watched))(x); }) == "y=6.0\n");
  CHECK(printed([&] { rp::grad(rp::jit(watched))(x); }) == "y=6.0\n");
  CHECK(printed([&] { rp::jvp(watched, std::tuple{x}, std::tuple{x}); }) == "y=6.0\n");
  CHECK(printed([&] { rp::make_jaxpr(watched)(x); }).empty());
  auto compiled = rp::jit(watched);
  compiled(x);
  CHECK(printed([&] { compiled(x); }) == "y=6.0\n");
}

TEST_CASE("a checkpoint that is played again prints again, unless what it prints was saved") {
  const Array x = rp::array(3.0);
  const auto f = [](Array a) {
    Array y = rp::sin(a);
    rp::debug::print("y={:.2f}", y);
    return rp::sin(y);
  };
  CHECK(printed([&] { rp::checkpoint(f)(x); }) == "y=0.14\n");
  CHECK(printed([&] { rp::grad(rp::checkpoint(f))(x); }) == "y=0.14\ny=0.14\n");
  CHECK(printed([&] { rp::jit(rp::grad(rp::checkpoint(f)))(x); }) == "y=0.14\ny=0.14\n");
  const rp::CheckpointOptions all{.policy = rp::checkpoint_policies::everything_saveable};
  CHECK(printed([&] { rp::grad(rp::checkpoint(f, all))(x); }) == "y=0.14\n");
  CHECK(printed([&] { rp::jit(rp::grad(rp::checkpoint(f, all)))(x); }) == "y=0.14\n");
}

TEST_CASE("a loop with checkpoints prints whenever a step is evaluated") {
  constexpr std::int64_t n = 9;
  for (const std::int64_t c : {1, 2, 9}) {
    const auto loop = [=](Array x) {
      auto step = [](Array, Array v) {
        rp::debug::print("v={}", v);
        return rp::sin(v);
      };
      return rp::fori_loop(std::int64_t{0}, n, step, x, {.checkpoints = c});
    };
    const auto lines = [&](const auto& run) {
      const std::string text = printed(run);
      return static_cast<std::int64_t>(std::count(text.begin(), text.end(), '\n'));
    };
    CHECK(lines([&] { loop(1.0); }) == n);
    // Forward, again from the checkpoints, and once more to reverse each step.
    const std::int64_t all = n + (rp::loop_schedule(n, c).advances - (n - 1)) + n;
    CHECK(lines([&] { rp::grad(loop)(1.0); }) == all);
    CHECK(lines([&] { rp::jit(rp::grad(loop))(1.0); }) == all);
  }
}

TEST_CASE("loops print at every step and branches when they are taken") {
  const auto loop = [](Array x) {
    auto step = [](Array c, Array row) {
      rp::debug::print("c={} row={}", c, row);
      return std::pair{c + row, rp::none};
    };
    return rp::scan(step, x, rp::arange(3.0)).first;
  };
  const std::string steps = "c=1.0 row=0.0\nc=1.0 row=1.0\nc=2.0 row=2.0\n";
  CHECK(printed([&] { loop(1.0); }) == steps);
  CHECK(printed([&] { rp::jit(loop)(1.0); }) == steps);
  CHECK(printed([&] { rp::jit(rp::grad(loop))(1.0); }) == steps);

  // The same at every step, and nobody reads the loop's result.
  const auto constant = [](Array x) {
    rp::fori_loop(
        0, 3,
        [=](Array, Array c) {
          rp::debug::print("x={}", x);
          return c;
        },
        x);
    return x;
  };
  CHECK(printed([&] { rp::jit(constant)(5.0); }) == "x=5.0\nx=5.0\nx=5.0\n");

  const auto branch = [](Array x) {
    return rp::cond(
        x > 0.0,
        [](Array a) {
          rp::debug::print("positive");
          return a;
        },
        [](Array a) {
          rp::debug::print("negative");
          return -a;
        },
        x);
  };
  CHECK(printed([&] { branch(1.0); }) == "positive\n");
  CHECK(printed([&] { rp::jit(branch)(-1.0); }) == "negative\n");
  CHECK(printed([&] { rp::jit(rp::grad(branch))(1.0); }) == "positive\n");

  const auto until = [](Array x) {
    return rp::while_loop([](Array a) { return a < 4.0; },
                          [](Array a) {
                            rp::debug::print("a={}", a);
                            return a * 2.0;
                          },
                          x);
  };
  CHECK(printed([&] { until(1.0); }) == "a=1.0\na=2.0\n");
  CHECK(printed([&] { rp::jit(until)(1.0); }) == "a=1.0\na=2.0\n");
}

TEST_CASE("vmap prints each element") {
  const Array x = rp::arange(3.0);
  CHECK(printed([&] { rp::vmap(watched)(x); }) == "y=0.0\ny=2.0\ny=4.0\n");
  CHECK(printed([&] { rp::jit(rp::vmap(watched))(x); }) == "y=0.0\ny=2.0\ny=4.0\n");
  const auto both = [](Array a, Array b) {
    rp::debug::print("{} {}", a, b);
    return a;
  };
  const rp::VmapOptions second{.in_axes = {std::nullopt, 1}};
  CHECK(printed([&] {
          rp::vmap(both, second)(Array(9.0), rp::array({{1.0, 2.0}}));
        }) == "9.0 [1.]\n9.0 [2.]\n");
}

TEST_CASE("equal prints are not merged, unread ones not dropped, and all stay in order") {
  const auto twice = [](Array x) {
    rp::debug::print("x={}", x);
    rp::debug::print("x={}", x);
    Array big = rp::sum(rp::sin(rp::broadcast_to(x, {100000})));
    rp::debug::print("later {:.1f}", big);
    rp::debug::print("last");
    return x;
  };
  CHECK(printed([&] { rp::jit(twice)(0.0); }) == "x=0.0\nx=0.0\nlater 0.0\nlast\n");
  const auto inside = [&](Array x) { return rp::jit(twice)(x) * 0.0 + rp::jit(twice)(x); };
  CHECK(printed([&] { rp::jit(inside)(0.0); }).size() ==
        2 * std::string("x=0.0\nx=0.0\nlater 0.0\nlast\n").size());
}

TEST_CASE("a memory budget repeats what lies between, and prints no line twice") {
  const Array x = rp::ones({64, 64}), w = rp::full({64, 64}, 0.01);
  const auto loss = [=](Array weight) {
    Array h = x;
    for (int layer = 0; layer < 8; ++layer) {
      h = rp::tanh(rp::matmul(h, weight));
      rp::debug::print("layer {}", layer);
      rp::debug::print("{:.3f}", rp::sum(h));
    }
    return rp::sum(h * h);
  };
  auto plain = rp::jit(rp::grad(loss));
  const std::size_t peak = plain.lower(w).compile().memory_analysis().peak_bytes;
  auto squeezed = rp::jit(rp::grad(loss), {.memory_budget = peak * 7 / 10});
  REQUIRE(squeezed.lower(w).compile().memory_analysis().peak_bytes <= peak * 7 / 10);
  const std::string lines = printed([&] { plain(w); });
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 16);
  CHECK(printed([&] { squeezed(w); }) == lines);
}

TEST_CASE("its text is JAX's, and is read again") {
  const std::string text = rp::make_jaxpr(watched)(1.0).str();
  CHECK(text.find("    debug_print[\n      fmt=y={}\n      has_placeholders=True\n      "
                  "in_tree=PyTreeDef(((*,), {}))\n") != std::string::npos);
  const reprise::Program back = reprise::parse_program(text, reprise::all_primitives());
  CHECK(reprise::to_text(back) == text);
  CHECK(reprise::effects_of(back).is_kept);
  CHECK(!reprise::effects_of(back).is_once);
}

}  // namespace
