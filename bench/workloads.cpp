// Reprise on the workloads of bench/README.md; one JSON line per measurement.
//   bench/workloads [workload[:mode] ...]
#include "workloads.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace {

using namespace bench;
using Clock = std::chrono::steady_clock;
namespace policies = rp::checkpoint_policies;

std::string wanted_mode;  // empty: all

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
bool skip(const std::string& mode) { return !wanted_mode.empty() && wanted_mode != mode; }

template <class F, class... A>
void measure(const std::string& workload, const std::string& mode, const F& f, int n, const A&... args) {
  if (skip(mode)) return;
  const auto jitted = rp::jit(f);
  const auto begin = Clock::now();
  const auto lowered = jitted.lower(args...);
  const double trace_s = ms_since(begin) / 1e3;
  const auto compiling = Clock::now();
  const auto compiled = lowered.compile();
  const double compile_s = ms_since(compiling) / 1e3;
  rp::reset_peak_live_bytes();
  const std::size_t before = rp::live_bytes();
  { const auto out = jitted(args...); }
  const double measured = static_cast<double>(rp::peak_live_bytes() - before);
  std::vector<double> taken;
  for (int i = 0; i < n; ++i) {
    const auto start = Clock::now();
    const auto out = jitted(args...);
    taken.push_back(ms_since(start));
  }
  std::sort(taken.begin(), taken.end());
  const auto memory = compiled.memory_analysis();
  const auto mib = [](double bytes) { return rounded(bytes / (1 << 20)); };
  emit(workload, mode,
       {{"ms", rounded(taken[0])}, {"ms_median", rounded(taken[taken.size() / 2])}, {"trace_s", rounded(trace_s)},
        {"compile_s", rounded(compile_s)}, {"temp_mib", mib(static_cast<double>(memory.temp_bytes))},
        {"peak_mib", mib(static_cast<double>(memory.peak_bytes))}, {"measured_mib", mib(measured)},
        {"matmul_gflop", rounded(compiled.cost_analysis().matmul_flops / 1e9)}});
}

Array toy_layer(Array W, Array x) { return rp::sin(rp::matmul(W, x)); }
Array toy_loss(Array W1, Array W2, Array W3, Array x) {
  return rp::sum(toy_layer(W3, toy_layer(W2, toy_layer(W1, x))));
}
void toy() {
  const Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), W3 = rp::ones({7, 6}), x = rp::ones({4});
  const auto gradient = rp::grad<0, 1, 2, 3>(rp::checkpoint(toy_loss));
  const auto compiled = rp::jit(gradient);
  auto best = [&](const auto& f, int n) {
    f(W1, W2, W3, x);
    double least = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto begin = Clock::now();
      for (int i = 0; i < n; ++i) f(W1, W2, W3, x);
      least = std::min(least, ms_since(begin) / n);
    }
    return least;
  };
  if (!skip("jit")) emit("toy", "jit", {{"ms", best(compiled, 5000)}});
  if (!skip("eager")) emit("toy", "eager", {{"ms", best(gradient, 200)}});
}

using Layer = std::function<Array(const Array&, const Array&, const Array&)>;
void mlp() {
  const std::int64_t L = 16, D = 1024, B = 256;
  struct Weights {
    rp::Arrays W, b;
    REPRISE_FIELDS(W, b)
  } weights;
  for (unsigned i = 0; i < L; ++i) {
    weights.W.push_back(normal({D, D}, std::sqrt(2.f / D), i));
    weights.b.push_back(rp::zeros({D}));
  }
  const Array x = normal({B, D}, 1.f, 99);
  auto layer = [](Array W, Array b, Array v) { return rp::maximum(rp::matmul(v, W) + b, 0.f); };
  auto step = [](Layer f) {
    return rp::value_and_grad([f](Weights w, Array v) {
      for (std::size_t i = 0; i < w.W.size(); ++i) v = f(w.W[i], w.b[i], v);
      return rp::mean(v * v);
    });
  };
  measure("mlp", "none", step(layer), 7, weights, x);
  measure("mlp", "nothing", step(rp::checkpoint(layer)), 7, weights, x);
  measure("mlp", "dots", step(rp::checkpoint(layer, {.policy = policies::dots_saveable})), 7, weights, x);
}

const std::map<std::string, rp::Policy>& block_policies() {
  static const std::map<std::string, rp::Policy> all{
      {"nothing", {}},
      {"dots", policies::dots_saveable},
      {"dots_no_batch", policies::dots_with_no_batch_dims_saveable},
      {"names", policies::save_only_these_names("attn_out", "ffn_in")}};
  return all;
}

void gpt(bool scanned) {
  const GptSize size;
  const GptData data = gpt_data(size);
  const Gpt params = init_gpt(size);
  using BlockFunction = std::function<Array(const Block&, const Array&)>;
  auto plain = [size, mask = data.mask](Block p, Array x) { return block(size, mask, p, x); };
  auto run = [&](const std::string& mode, const BlockFunction& f) {
    if (!scanned) {
      const auto loss = [f, data](Gpt p) {
        Array x = embed(p, data);
        for (const Block& b : p.blocks) x = f(b, x);
        return cross_entropy(p, data, x);
      };
      return measure("gpt", mode, rp::value_and_grad(loss), 5, params);
    }
    const auto loss = [f, data](StackedGpt p) {
      const Array x = rp::scan([f](Array c, Block b) { return std::pair{f(b, c), rp::none}; }, embed(p, data), p.blocks).first;
      return cross_entropy(p, data, x);
    };
    measure("gpt_scan", mode, rp::value_and_grad(loss), 5, stacked(params));
  };
  run("none", plain);
  for (const char* mode : {"nothing", "dots", "dots_no_batch", "names"}) {
    run(mode, rp::checkpoint(plain, {.policy = block_policies().at(mode)}));
  }
}

using Function = std::function<Array(Array)>;
Function recursive_checkpoint(const std::vector<Function>& fs) {
  if (fs.size() == 1) return fs[0];
  if (fs.size() == 2) return [fs](Array x) { return fs[0](fs[1](x)); };
  const auto middle = fs.begin() + static_cast<std::ptrdiff_t>(fs.size() / 2);
  const Function first = recursive_checkpoint({fs.begin(), middle}), second = recursive_checkpoint({middle, fs.end()});
  return [first, second](Array x) { return first(rp::checkpoint(second)(x)); };
}
void chain() {
  const Array x = rp::ones({512, 512});
  const Function sine = [](Array v) { return rp::sin(v); };
  const Function recursive = recursive_checkpoint(std::vector<Function>(64, sine));
  measure("chain", "none", rp::grad([sine](Array v) {
            for (int i = 0; i < 64; ++i) v = sine(v);
            return rp::sum(v);
          }), 7, x);
  measure("chain", "recursive", rp::grad([recursive](Array v) { return rp::sum(recursive(v)); }), 7, x);
}

void scan1024() {
  const Array W = rp::eye(64) * 0.99f, c0 = rp::ones({64, 64});
  const Function body = [W](Array c) { return rp::tanh(rp::matmul(c, W)) + c; };
  auto step = [](Function f) {
    return rp::grad([f](Array c) {
      return rp::sum(rp::scan([f](Array v, rp::None) { return std::pair{f(v), rp::none}; }, c, rp::none, {.length = 1024}).first);
    });
  };
  measure("scan1024", "none", step(body), 7, c0);
  measure("scan1024", "remat", step(rp::checkpoint(body)), 7, c0);
}

void deep(int layers) {
  const rp::Arrays Ws(static_cast<std::size_t>(layers), rp::full({16, 16}, 0.01f));
  const Array x = rp::ones({4, 16});
  using Two = std::function<Array(Array, Array)>;
  const Two layer = [](Array W, Array v) { return rp::tanh(rp::matmul(v, W)); };
  auto step = [](Two f) {
    return rp::grad([f](rp::Arrays all, Array v) {
      for (const Array& W : all) v = f(W, v);
      return rp::sum(v);
    });
  };
  measure("deep" + std::to_string(layers), "none", step(layer), 20, Ws, x);
  measure("deep" + std::to_string(layers), "remat", step(rp::checkpoint(layer)), 20, Ws, x);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<std::string, std::function<void()>>> all{
      {"toy", toy}, {"mlp", mlp}, {"gpt", [] { gpt(false); }}, {"gpt_scan", [] { gpt(true); }}, {"chain", chain},
      {"scan1024", scan1024}, {"deep", [] { deep(128); deep(512); deep(2048); }}};
  std::vector<std::string> wanted(argv + 1, argv + argc);
  if (wanted.empty()) {
    for (const auto& [name, run] : all) wanted.push_back(name);
  }
  for (const std::string& item : wanted) {
    const std::string name = item.substr(0, item.find(':'));
    wanted_mode = item.size() > name.size() ? item.substr(name.size() + 1) : "";
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& w) { return w.first == name; });
    if (found == all.end()) {
      std::fprintf(stderr, "no workload %s; there are: toy mlp gpt gpt_scan chain scan1024 deep\n", name.c_str());
      return 2;
    }
    found->second();
  }
}
