// Loops with a checkpoint budget, on a 2-D wave equation (with a cubic term, so that reversing a
// step needs its state): memory seen from outside beside the plan, time beside plain scan and
// beside what the count of evaluations predicts, compile time and long loops.
// bench/peers/loops_bench.py runs it beside JAX.
//   bench/loops memory [n] [steps] [checkpoints] [on disk]   512 x 512, 10000 steps, 32, 0 by default
//   bench/loops ratios [n]                                   1024 steps on n x n (128)
//   bench/loops long                                         10^5 and 10^6 small steps with 100 checkpoints
//   bench/loops compile                                      10^2 and 10^7 steps
//   bench/loops once n steps checkpoints scan|while [cell]         milliseconds of one gradient, of the clock and of the processor, for comparisons
#include "reprise/reprise.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace rp = reprise;
using rp::Array;
using Wave = std::tuple<Array, Array>;  // height and velocity

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double peak_mib() {  // the most this process ever had resident
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM", 0) == 0)
      return std::stod(line.substr(line.find_first_of("0123456789"))) / 1024;
  }
  return 0;
}

Array laplace(const Array& u) {
  Array x = rp::roll(u, 1, 0) + rp::roll(u, -1, 0);
  Array y = rp::roll(u, 1, 1) + rp::roll(u, -1, 1);
  return x + y - 4.0 * u;
}
Wave wave_step(const Wave& w) {
  auto [u, v] = w;
  Array pull = 0.05 * u * u * u;
  Array faster = v + 0.1 * laplace(u) - pull;
  Array moved = u + 0.5 * faster;
  return Wave{moved, faster};
}
Array energy(const Wave& w) { return rp::sum(std::get<0>(w) * std::get<0>(w)); }

// The last state of a scan; is_checkpointed: the body is, which is what the budget does to each
// step.
Array scanned(const Array& u0, const rp::ScanOptions& options, bool is_checkpointed = false) {
  auto body = [](Wave w, rp::None) { return std::pair{wave_step(w), rp::none}; };
  const Wave start{u0, rp::zeros_like(u0)};
  return energy(is_checkpointed ? rp::scan(rp::checkpoint(body), start, rp::none, options).first
                                : rp::scan(body, start, rp::none, options).first);
}
Array counted(const Array& u0, std::int64_t steps, std::int64_t checkpoints) {
  using State = std::tuple<Array, Wave>;
  auto more = [=](State s) { return std::get<0>(s) < steps; };
  auto body = [](State s) {
    Array next = std::get<0>(s) + 1;
    return State{next, wave_step(std::get<1>(s))};
  };
  const State start{Array(0), Wave{u0, rp::zeros_like(u0)}};
  return energy(std::get<1>(rp::while_loop(more, body, start, {.checkpoints = checkpoints})));
}
Array bump(std::int64_t n) {
  Array i = rp::arange(n).astype(rp::float32) / static_cast<double>(n);
  Array hill = rp::exp(-40.0 * (i - 0.4) * (i - 0.4));
  return rp::outer(hill, hill);
}

// The best of several turns of each, taken one after the other so that all meet the same machine.
std::vector<double> best_of(int turns, const std::vector<std::function<void()>>& all) {
  std::vector<double> best(all.size(), 1e30);
  for (int t = 0; t <= turns; ++t) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto begin = Clock::now();
      all[i]();
      if (t > 0) best[i] = std::min(best[i], seconds_since(begin));
    }
  }
  return best;
}

void memory(std::int64_t n, std::int64_t steps, std::int64_t checkpoints, std::int64_t on_disk) {
  const Array u0 = bump(n);
  auto loss = [=](Array u) {
    return scanned(u, {.length = steps, .checkpoints = checkpoints, .disk_checkpoints = on_disk});
  };
  const std::string directory =
      on_disk > 0 ? std::filesystem::temp_directory_path().string() : std::string();
  const auto step = rp::jit(rp::grad(loss), {.spill_directory = directory}).lower(u0).compile();
  const auto plan = step.memory_analysis();
  const double state = static_cast<double>(2 * u0.nbytes()), before = peak_mib();
  const auto begin = Clock::now();
  const Array g = step(u0);
  const double seconds = seconds_since(begin), measured = (peak_mib() - before) * (1 << 20);
  const rp::LoopSchedule s = rp::loop_schedule(steps, checkpoints, on_disk);
  std::printf(
      "wave %lld x %lld, %lld steps, %lld checkpoints and %lld on disk: %lld advances (%.2f a "
      "step), at most %lld of a step\n",
      static_cast<long long>(n), static_cast<long long>(n), static_cast<long long>(steps),
      static_cast<long long>(checkpoints), static_cast<long long>(on_disk),
      static_cast<long long>(s.advances),
      static_cast<double>(s.advances) / static_cast<double>(steps),
      static_cast<long long>(s.repetitions));
  std::printf(
      "  planned %.1f MiB (%.1f states), measured %.1f MiB (%.1f states), every state would be "
      "%.1f MiB; %.1f s, sum of the gradient %g\n",
      static_cast<double>(plan.peak_bytes) / (1 << 20),
      static_cast<double>(plan.peak_bytes) / state, measured / (1 << 20), measured / state,
      static_cast<double>(steps) * state / (1 << 20), seconds,
      static_cast<double>(rp::sum(g).item<float>()));
}

void ratios(std::int64_t n) {
  static constexpr std::int64_t steps = 1024, few = 32;
  const Array u0 = bump(n);
  const auto forward = rp::jit([](Array u) { return scanned(u, {.length = steps}); });
  const auto plain = rp::jit(rp::grad([](Array u) { return scanned(u, {.length = steps}, true); }));
  const auto all = rp::jit(
      rp::grad([](Array u) { return scanned(u, {.length = steps, .checkpoints = steps}); }));
  const auto budget =
      rp::jit(rp::grad([](Array u) { return scanned(u, {.length = steps, .checkpoints = few}); }));
  const auto unknown = rp::jit(rp::grad([](Array u) { return counted(u, steps, few); }));
  const std::vector<double> t =
      best_of(7, {[&] { forward(u0); }, [&] { plain(u0); }, [&] { all(u0); }, [&] { budget(u0); },
                  [&] { unknown(u0); }});
  const auto again = static_cast<double>(rp::loop_schedule(steps, few).advances - (steps - 1));
  const double predicted = t[2] + again * t[0] / steps;
  std::printf(
      "wave %lld x %lld, 1024 steps: forward %.2f ms; gradient with a checkpointed body %.2f ms, "
      "with 1024 checkpoints %.2f ms (%.3f x)\n",
      static_cast<long long>(n), static_cast<long long>(n), 1e3 * t[0], 1e3 * t[1], 1e3 * t[2],
      t[2] / t[1]);
  std::printf(
      "  with 32 checkpoints %.2f ms, predicted %.2f ms (%.3f x); as a while loop %.2f ms\n",
      1e3 * t[3], 1e3 * predicted, t[3] / predicted, 1e3 * t[4]);
}

void long_loops() {
  const Array x = rp::full({64}, 0.3);
  for (const std::int64_t steps : {100'000, 1'000'000}) {
    const auto step = rp::jit(rp::grad([=](Array v) {
      return rp::sum(rp::fori_loop(std::int64_t{0}, steps,
                                   [](Array, Array u) { return rp::sin(u) * 1.01; }, v,
                                   {.checkpoints = 100}));
    }));
    const double t = best_of(2, {[&] { step(x); }})[0];
    std::printf("%lld steps of f32[64], 100 checkpoints: %.3f s, %.0f ns a step\n",
                static_cast<long long>(steps), t, 1e9 * t / static_cast<double>(steps));
  }
}

void compile() {
  const Array u0 = bump(64);
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::int64_t steps : {100, 10'000'000}) {
      // Another number each time: nothing is found in a cache.
      const auto f = rp::jit(rp::grad([=](Array u) {
        return scanned(u * (1.0 + 0.001 * turn), {.length = steps, .checkpoints = 50});
      }));
      const auto begin = Clock::now();
      const auto compiled = f.lower(u0).compile();
      std::printf("%lld steps: traced, differentiated and compiled in %.1f ms, %zu bytes planned\n",
                  static_cast<long long>(steps), 1e3 * seconds_since(begin),
                  compiled.memory_analysis().peak_bytes);
    }
  }
}

// h -> tanh(h W) + h, with the gradient of W: a recurrent cell.
Array cells(const Array& w, std::int64_t steps, std::int64_t checkpoints, bool is_while) {
  const auto cell = [=](Array, Array h) { return rp::tanh(rp::matmul(h, w)) + h; };
  const Array start = w * 0.1;
  Array h = is_while
                ? rp::fori_loop(Array(0), Array(steps), cell, start, {.checkpoints = checkpoints})
                : rp::fori_loop(std::int64_t{0}, steps, cell, start, {.checkpoints = checkpoints});
  return rp::sum(h * h) * 1e-6;
}

void once(std::int64_t n, std::int64_t steps, std::int64_t checkpoints, bool is_while,
          bool is_cell) {
  const Array u0 = bump(n);
  const auto f = rp::jit(rp::grad([=](Array u) {
    if (is_cell) return cells(u, steps, checkpoints, is_while);
    return is_while ? counted(u, steps, checkpoints)
                    : scanned(u, {.length = steps, .checkpoints = checkpoints});
  }));
  const double t = best_of(3, {[&] { f(u0); }})[0];
  double processor = 1e30;  // says something beside other programs, too
  for (int turn = 0; turn < 5; ++turn) {
    const std::clock_t begin = std::clock();
    f(u0);
    processor = std::min(processor, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::printf("%.3f %.3f %.9g\n", 1e3 * t, 1e3 * processor,
              static_cast<double>(rp::sum(rp::abs(f(u0))).item<float>()));
}

}  // namespace

int main(int count, char** given) {
  const std::string what = count > 1 ? given[1] : "ratios";
  const auto number = [&](int i, std::int64_t otherwise) {
    return count > i ? std::atoll(given[i]) : otherwise;
  };
  if (what == "memory") memory(number(2, 512), number(3, 10'000), number(4, 32), number(5, 0));
  if (what == "ratios") ratios(number(2, 128));
  if (what == "long") long_loops();
  if (what == "compile") compile();
  if (what == "once")
    once(number(2, 128), number(3, 1024), number(4, 32),
         count > 5 && std::string(given[5]) == "while", count > 6);
}
