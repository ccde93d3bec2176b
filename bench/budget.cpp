// Budgets of whole programs: ten from the least to the plain peak, and those of the standard
// policies.
//
//   build/release/bench/budget [--no-run] [workload ...]
//
// One JSON line per plan: planned peak, predicted and measured time against the plain plan, seconds
// that planning took.
#include "workloads.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

namespace {

using namespace bench;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// ---------------------------------------------------------------------------- two more workloads
Array conv(const Array& x, const Array& w, std::int64_t stride) {
  const std::int64_t around = w.shape()[2] / 2;
  return rp::lax::conv_general_dilated(
      x, w, {.window_strides = {stride, stride}, .padding = {{around, around}, {around, around}}});
}
struct ConvWeights {
  rp::Arrays kernels;
  REPRISE_FIELDS(kernels)
};
// Four stages of two residual blocks each, batch 8, 32 x 32 pixels.
template <class Visit>
void resnet(Visit& visit) {
  ConvWeights weights;
  const std::int64_t widths[] = {16, 16, 32, 64, 128};
  unsigned seed = 0;
  weights.kernels.push_back(normal({16, 3, 3, 3}, 0.2f, seed++));
  for (int s = 1; s <= 4; ++s) {
    for (int b = 0; b < 2; ++b) {
      const std::int64_t in = b == 0 ? widths[s - 1] : widths[s], out = widths[s];
      weights.kernels.push_back(normal({out, in, 3, 3}, 0.1f, seed++));
      weights.kernels.push_back(normal({out, out, 3, 3}, 0.1f, seed++));
      weights.kernels.push_back(normal({out, in, 1, 1}, 0.1f, seed++));
    }
  }
  const auto loss = [](ConvWeights w, Array x) {
    std::size_t k = 0;
    Array h = rp::maximum(conv(x, w.kernels[k++], 1), 0.f);
    for (int s = 1; s <= 4; ++s) {
      for (int b = 0; b < 2; ++b) {
        const std::int64_t stride = b == 0 && s > 1 ? 2 : 1;
        const Array first = rp::maximum(conv(h, w.kernels[k], stride), 0.f);
        const Array second = conv(first, w.kernels[k + 1], 1);
        const Array around = conv(h, w.kernels[k + 2], stride);
        h = rp::maximum(second + around, 0.f);
        k += 3;
      }
    }
    return rp::mean(h * h);
  };
  visit("resnet", "none", rp::value_and_grad(loss), loss, weights, normal({8, 3, 32, 32}, 1.f, 77));
}
// Three levels down and up with connections across, batch 4, 64 x 64 pixels.
template <class Visit>
void unet(Visit& visit) {
  ConvWeights weights;
  const std::int64_t widths[] = {16, 32, 64};
  unsigned seed = 0;
  for (int s = 0; s < 3; ++s)
    weights.kernels.push_back(normal({widths[s], s == 0 ? 3 : widths[s - 1], 3, 3}, 0.1f, seed++));
  for (int s = 2; s > 0; --s)
    weights.kernels.push_back(
        normal({widths[s - 1], widths[s] + widths[s - 1], 3, 3}, 0.1f, seed++));
  weights.kernels.push_back(normal({3, widths[0], 1, 1}, 0.1f, seed++));
  const auto loss = [](ConvWeights w, Array x) {
    rp::Arrays across;
    Array h = x;
    for (std::size_t s = 0; s < 3; ++s) {
      h = rp::maximum(conv(h, w.kernels[s], s == 0 ? 1 : 2), 0.f);
      across.push_back(h);
    }
    for (std::size_t s = 2; s > 0; --s) {
      const Array wide = rp::repeat(rp::repeat(h, 2, 2), 2, 3);
      const Array both = rp::concatenate({wide, across[s - 1]}, 1);
      h = rp::maximum(conv(both, w.kernels[5 - s], 1), 0.f);
    }
    const Array y = conv(h, w.kernels[5], 1);
    return rp::mean((y - x) * (y - x));
  };
  visit("unet", "none", rp::value_and_grad(loss), loss, weights, normal({4, 3, 64, 64}, 1.f, 78));
}

// --------------------------------------------------------------------------------------- measuring
struct Point {
  std::size_t peak = 0;
  double seconds = 0;
};
struct Measure {
  bool runs = true;
  std::vector<Point> curve;  // of the program without policies
  std::function<Point(std::size_t)> within;

  template <class D, class F, class... A>
  void operator()(const std::string& workload, const std::string& mode, const D& differentiated,
                  const F&, const A&... args) {
    if (mode == "none") return budgets(workload, differentiated, args...);
    if (curve.empty()) return;
    const auto plain = rp::jit(differentiated).lower(args...).compile();
    const Point policy{plain.memory_analysis().peak_bytes, plain.budget_analysis().seconds};
    const Point same_memory = within(policy.peak);
    std::size_t same_time = same_memory.peak > 0 && same_memory.seconds <= policy.seconds
                                ? same_memory.peak
                                : curve.back().peak;
    for (const Point& p : curve) {
      if (p.seconds <= policy.seconds) same_time = std::min(same_time, p.peak);
    }
    std::printf(
        "{\"workload\": \"%s\", \"policy\": \"%s\", \"peak_mib\": %.1f, \"time\": %.4f, "
        "\"budget_time\": %.4f, "
        "\"budget_mib_at_its_time\": %.1f}\n",
        workload.c_str(), mode.c_str(), mib(policy.peak), policy.seconds / curve.back().seconds,
        same_memory.seconds / curve.back().seconds, mib(same_time));
    std::fflush(stdout);
  }

 private:
  template <class D, class... A>
  void budgets(const std::string& workload, const D& differentiated, const A&... args) {
    const auto begin = Clock::now();
    const auto found = rp::memory_curve(differentiated, rp::types_of(args)...);
    const double taken = seconds_since(begin);
    curve.clear();
    for (const auto& p : found.points) curve.push_back({p.peak_bytes, p.seconds});
    std::printf(
        "{\"workload\": \"%s\", \"curve\": %zu, \"least_mib\": %.1f, \"plain_mib\": %.1f, "
        "\"planning_s\": %.2f}\n",
        workload.c_str(), curve.size(), mib(curve.front().peak), mib(curve.back().peak), taken);
    within = [=](std::size_t budget) {
      rp::JitOptions options;
      options.memory_budget = static_cast<std::int64_t>(budget);
      try {
        const auto a = rp::jit(differentiated, options)
                           .lower(rp::types_of(args)...)
                           .compile()
                           .budget_analysis();
        return Point{a.peak_bytes, a.seconds};
      } catch (const rp::RuntimeError&) {
        return Point{0, 0};  // no plan: the row has zeros
      }
    };
    double plain_ms = 0;
    for (int k = 10; k > 0; --k) {
      const std::size_t least = curve.front().peak, most = curve.back().peak;
      const std::size_t budget =
          k == 10 ? most : least + (most - least) / 9 * static_cast<std::size_t>(k - 1);
      row(workload, budget, plain_ms, differentiated, args...);
    }
  }
  template <class D, class... A>
  void row(const std::string& workload, std::size_t budget, double& plain_ms,
           const D& differentiated, const A&... args) const {
    rp::JitOptions options;
    options.memory_budget = static_cast<std::int64_t>(budget);
    const auto begin = Clock::now();
    const auto planned = rp::jit(differentiated, options).lower(rp::types_of(args)...).compile();
    const double planning = seconds_since(begin);
    const auto a = planned.budget_analysis();
    double best_ms = 0;
    for (int i = 0; runs && i < 4; ++i) {
      const auto start = Clock::now();
      planned(args...);
      const double ms = 1000 * seconds_since(start);
      best_ms = i <= 1 ? ms : std::min(ms, best_ms);  // the first one compiles
    }
    if (plain_ms == 0) plain_ms = best_ms;
    std::printf(
        "{\"workload\": \"%s\", \"budget_mib\": %.1f, \"peak_mib\": %.1f, \"predicted\": %.4f, "
        "\"measured\": %.4f, "
        "\"flops\": %.4f, \"gap\": %.4f, \"planning_s\": %.2f}\n",
        workload.c_str(), mib(budget), mib(a.peak_bytes), a.seconds / a.plain_seconds,
        runs ? best_ms / plain_ms : 0, a.flops / a.plain_flops, a.gap(), planning);
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Measure measure;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-run") == 0)
      measure.runs = false;
    else
      names.emplace_back(argv[i]);
  }
  if (names.empty()) names = {"gpt", "gpt_scan", "mlp", "unet", "resnet"};
  for (const std::string& name : names) {
    measure.curve.clear();
    if (name == "unet")
      unet(measure);
    else if (name == "resnet")
      resnet(measure);
    else if (!visit_workload(name, measure, Sizes{}))
      return std::fprintf(stderr, "there is no workload %s\n", name.c_str()), 1;
  }
  return 0;
}
