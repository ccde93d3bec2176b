// 10. Offload: named values leave memory between the passes, for a file, and need no recomputation.
#include <reprise/reprise.h>

#include <filesystem>
#include <iostream>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;

struct Layer {
  Array up, down;
};

Array block(Layer p, Array x) {
  Array h = rp::matmul(x, p.up);
  h = rp::checkpoint_name(h, "hidden");
  return x + rp::matmul(rp::nn::gelu(h), p.down);
}

// A loss whose blocks are checkpointed by a policy.
auto loss_with(const rp::Policy& policy) {
  return [policy](std::vector<Layer> layers, Array x) {
    for (const Layer& p : layers) x = rp::checkpoint(block, {.policy = policy})(p, x);
    return rp::mean(x * x);
  };
}

int main() {
  std::vector<Layer> layers(8, Layer{rp::ones({64, 512}) * 0.01, rp::ones({512, 64}) * 0.01});
  Array x = rp::ones({512, 64});

  // As in JAX: what may be saved, what is offloaded, from where to where.
  const rp::Policy offload =
      policies::save_and_offload_only_these_names({.names_which_can_be_saved = {},
                                                   .names_which_can_be_offloaded = {"hidden"},
                                                   .offload_src = "device",
                                                   .offload_dst = "pinned_host"});
  const rp::Policy save = policies::save_only_these_names("hidden");

  // With a directory the offloaded values go to a file there, which has no name and leaves nothing
  // behind. Without, they go to a second block of memory: written as in JAX, but nothing is gained.
  const std::string directory = std::filesystem::temp_directory_path();
  auto saving = rp::jit(rp::value_and_grad(loss_with(save)));
  auto offloading = rp::jit(rp::value_and_grad(loss_with(offload)), {.spill_directory = directory});

  // All is planned before anything runs.
  auto saved = saving.lower(layers, x).compile();
  auto offloaded = offloading.lower(layers, x).compile();
  const rp::MemoryAnalysis plan = offloaded.memory_analysis();
  std::cout << std::boolalpha << "offloaded: " << plan.host_temp_bytes
            << " bytes, to a file: " << plan.host_on_disk << "\n";
  std::cout << "the peak is lower by more than half of them: "
            << (saved.memory_analysis().peak_bytes - plan.peak_bytes > plan.host_temp_bytes / 2)
            << "\n";
  std::cout << "work on products, saved and offloaded: " << saved.cost_analysis().matmul_flops
            << " " << offloaded.cost_analysis().matmul_flops << "\n";

  // The numbers do not depend on any of this.
  const float a = saving(layers, x).first.item<float>();
  const float b = offloading(layers, x).first.item<float>();
  std::cout << "the same loss: " << (a == b) << "\n";
}
