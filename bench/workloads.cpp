// Reprise on the workloads of bench/README.md; one JSON line per measurement.
//   bench/workloads [workload[:mode] ...]
#include "workloads.h"

#include "runtime/compile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

using namespace bench;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}
double rounded(double v) { return std::round(v * 1000) / 1000; }

void emit(const std::string& workload, const std::string& mode, nlohmann::ordered_json figures) {
  nlohmann::ordered_json line{{"peer", "reprise"}, {"workload", workload}, {"mode", mode}};
  line.update(figures);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

// The matrix products alone, as they stand in the compiled program: for each the least time of
// several runs.
template <class F, class... A>
double matmul_ms(const F& f, const A&... args) {
  const rp::Jaxpr traced = rp::make_jaxpr(f)(args...);
  const auto executable = rp::compile(*traced.program(), {.relays = false});
  rp::Arrays inputs = traced.consts();
  const rp::Arrays leaves = rp::tree_leaves(std::tuple(args...));
  inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  const auto& instructions = executable->code().instructions;
  std::vector<double> least(instructions.size(), 1e9);
  for (int round = 0; round < 4; ++round) {
    Clock::time_point last = Clock::now();
    const rp::Observer observer = [&](std::size_t i, std::byte* const*) {
      least[i] = std::min(least[i], ms_since(last));
      last = Clock::now();
    };
    executable->run(inputs, &observer);
  }
  double sum = 0;
  for (std::size_t i = 0; i < instructions.size(); ++i)
    sum += std::holds_alternative<rp::RunMatmul>(instructions[i]) ? least[i] : 0;
  return sum;
}

struct Measure {
  std::string wanted_mode;  // empty: all
  bool wants(const std::string& mode) const { return wanted_mode.empty() || wanted_mode == mode; }

  template <class F, class L, class... A>
  void operator()(const std::string& workload, const std::string& mode, const F& f, const L&,
                  const A&... args) const {
    if (workload == "toy") return small_calls(f, args...);
    if (!wants(mode)) return;
    const auto jitted = rp::jit(f);
    const auto begin = Clock::now();
    const auto lowered = jitted.lower(args...);
    const double trace_s = ms_since(begin) / 1e3;
    const auto compiling = Clock::now();
    const auto compiled = lowered.compile();
    const double compile_s = ms_since(compiling) / 1e3;
    rp::reset_peak_live_bytes();
    const std::size_t before = rp::live_bytes();
    const auto first = Clock::now();
    { const auto out = jitted(args...); }
    const double first_ms = ms_since(first),
                 measured = static_cast<double>(rp::peak_live_bytes() - before);
    std::vector<double> taken;
    for (int i = 0; i < (first_ms > 300 ? 5 : first_ms > 5 ? 9 : 25); ++i) {
      const auto start = Clock::now();
      const auto out = jitted(args...);
      taken.push_back(ms_since(start));
    }
    std::sort(taken.begin(), taken.end());
    const auto memory = compiled.memory_analysis();
    const auto mib = [](double bytes) { return rounded(bytes / (1 << 20)); };
    nlohmann::ordered_json figures{
        {"ms", rounded(taken[0])},
        {"ms_median", rounded(taken[taken.size() / 2])},
        {"trace_s", rounded(trace_s)},
        {"compile_s", rounded(compile_s)},
        {"temp_mib", mib(static_cast<double>(memory.temp_bytes))},
        {"peak_mib", mib(static_cast<double>(memory.peak_bytes))},
        {"measured_mib", mib(measured)},
        {"matmul_gflop", rounded(compiled.cost_analysis().matmul_flops / 1e9)}};
    if (workload == "gpt") figures["matmul_ms"] = rounded(matmul_ms(f, args...));
    emit(workload, mode, std::move(figures));
  }

 private:
  template <class F, class... A>
  void small_calls(const F& gradient, const A&... args) const {
    const auto best = [&](const auto& f, int n) {
      f(args...);
      double least = 1e9;
      for (int round = 0; round < 5; ++round) {
        const auto begin = Clock::now();
        for (int i = 0; i < n; ++i) f(args...);
        least = std::min(least, ms_since(begin) / n);
      }
      return least;
    };
    if (wants("jit")) emit("toy", "jit", {{"ms", best(rp::jit(gradient), 5000)}});
    if (wants("eager")) emit("toy", "eager", {{"ms", best(gradient, 200)}});
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted(argv + 1, argv + argc);
  if (wanted.empty()) wanted.assign(std::begin(workload_names), std::end(workload_names));
  for (const std::string& item : wanted) {
    const std::string name = item.substr(0, item.find(':'));
    const Measure measure{item.size() > name.size() ? item.substr(name.size() + 1) : ""};
    if (visit_workload(name, measure)) continue;
    std::fprintf(stderr, "no workload %s; there are:", name.c_str());
    for (const char* known : workload_names) std::fprintf(stderr, " %s", known);
    std::fprintf(stderr, "\n");
    return 2;
  }
}
