// 4. Policies: a checkpoint may keep some values. A policy is asked about each, and can be
// composed.
#include <reprise/reprise.h>

#include <iomanip>
#include <iostream>
#include <vector>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;

Array attention(Array q, Array k, Array v) {
  Array scores = rp::matmul(q, rp::swapaxes(k, -1, -2));
  Array weights = rp::nn::softmax(scores);
  return rp::matmul(weights, v);
}

Array block(Array x, Array W_qkv, Array W_up, Array W_down) {
  rp::Arrays parts = rp::split(rp::matmul(x, W_qkv), 3, -1);
  x = x + attention(parts[0], parts[1], parts[2]);
  Array h = rp::nn::gelu(rp::matmul(x, W_up));
  return x + rp::matmul(h, W_down);
}

int main() {
  Array x = rp::ones({8, 16, 32}), W_qkv = rp::ones({32, 96}), W_up = rp::ones({32, 128}),
        W_down = rp::ones({128, 32});

  // The built-in policies have JAX's names. A batched product, such as scores, has batch
  // dimensions; a product with a weight has none. |, & and ! put policies together.
  const rp::Policy no_batch = policies::dots_with_no_batch_dims_saveable;
  const std::vector<rp::Policy> all = {
      policies::everything_saveable,
      policies::dots_saveable,
      no_batch,
      no_batch & policies::bytes_at_most(50000),
      policies::nothing_saveable,
      // Your own: any function of what is known about an operation.
      rp::Policy([](const rp::EquationInfo& e) { return e.primitive == "tanh"; }, "save_tanh"),
  };
  // The arguments live anyway; what counts is what the forward pass computes and has to keep.
  auto kept = [&](auto f) {
    return rp::residual_report(f, RP_ARGS(x, W_qkv, W_up, W_down)).computed_bytes();
  };
  std::cout << std::setw(8) << kept(block) << " bytes  without checkpoint\n";
  for (const rp::Policy& policy : all) {
    auto f = rp::checkpoint(block, {.policy = policy});
    std::cout << std::setw(8) << kept(f) << " bytes  " << policy << "\n";
  }

  // Value by value, with the reason and the readers.
  std::cout << "\nproducts with weights only:\n"
            << rp::residual_report(rp::checkpoint(block, {.policy = no_batch}),
                                   RP_ARGS(x, W_qkv, W_up, W_down));
}
