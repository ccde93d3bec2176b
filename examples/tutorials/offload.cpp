// Offloading: values that the backward pass needs leave memory for the time in between.
//
//   offload [directory]
//
// The same training step in four ways. Each runs in a process of its own, so that the high-water
// mark that the system keeps (VmHWM) shows what the step really took. In memory an offloaded value
// is only moved; a file takes it out of memory. Offloading costs no recomputation of what is
// offloaded.
#include <reprise/reprise.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;

constexpr int layers = 8;
constexpr std::int64_t batch = 4096, features = 256, hidden = 1024;

struct Layer {
  Array up, down;
};

Array block(Layer p, Array x) {
  x = rp::checkpoint_name(x, "block input");
  const Array h = rp::checkpoint_name(rp::matmul(x, p.up), "hidden");
  return x + rp::matmul(rp::nn::gelu(h), p.down);
}

Array loss(std::vector<Layer> net, Array x, const rp::Policy& policy) {
  for (const Layer& p : net) {
    x = policy.defined() ? rp::checkpoint(block, {.policy = policy})(p, x) : block(p, x);
  }
  return rp::mean(x * x);
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// A line of /proc/self/status, in bytes.
std::size_t status(const std::string& name) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name))
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

void measure(const char* what, const rp::Policy& policy, const std::string& directory) {
  std::vector<Layer> net;
  rp::Array key = rp::random::key(0);
  for (int i = 0; i < layers; ++i) {
    const auto keys = rp::random::split(key, 3);
    key = keys[0];
    net.push_back({rp::random::normal(keys[1], {features, hidden}) * 0.02f,
                   rp::random::normal(keys[2], {hidden, features}) * 0.02f});
  }
  const Array x = rp::random::normal(key, {batch, features});
  const auto step = rp::jit(
      rp::value_and_grad([policy](std::vector<Layer> p, Array v) { return loss(p, v, policy); }),
      {.name = "step", .spill_directory = directory});
  const auto memory = step.lower(net, x).compile().memory_analysis();
  const std::size_t before = status("VmRSS");
  double least = 1e9, value = 0;
  for (int i = 0; i < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    value = step(net, x).first.item<float>();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count());
  }
  std::printf("%-28s %8.1f %10.1f %10.1f %10.0f   %.6f\n", what, mebibytes(memory.peak_bytes),
              mebibytes(memory.host_temp_bytes), mebibytes(status("VmHWM") - before), least, value);
  std::fflush(stdout);
}

template <class F>
int in_own_process(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      f();
      std::_Exit(0);
    } catch (const rp::Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::_Exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char** argv) {
  const std::string directory =
      argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  const auto offload = policies::save_and_offload_only_these_names(
      {.names_which_can_be_saved = {},
       .names_which_can_be_offloaded = {"block input", "hidden"},
       .offload_src = "device",
       .offload_dst = "pinned_host"});
  std::printf("%-28s %8s %10s %10s %10s   %s\n", "MiB beyond the arguments", "planned", "offloaded",
              "measured", "ms", "loss");
  std::fflush(stdout);
  int failed = 0;
  failed += in_own_process([&] { measure("no policy", {}, ""); });
  failed += in_own_process([&] { measure("nothing saved", policies::nothing_saveable, ""); });
  failed += in_own_process([&] { measure("offloaded, in memory", offload, ""); });
  failed += in_own_process([&] { measure("offloaded, on disk", offload, directory); });
  return failed;
}
