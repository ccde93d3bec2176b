// Gradient checkpointing of a Linen module: lift the class, then use it as before.
#include <reprise/nn.h>
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
using rp::Array;

struct MLP : rp::nn::Module<MLP> {
  std::int64_t features;
  explicit MLP(std::int64_t features) : features(features) {}
  Array call(Array x) {
    x = rp::nn::Dense(features)(x);
    x = rp::nn::relu(x);
    return rp::nn::Dense(features)(x);
  }
};

// The output of the model with the parameters of this seed: what Flax computes.
Array nn_checkpoint_forward(std::int64_t seed, Array x, std::int64_t features) {
  auto CkptMLP = rp::nn::checkpoint<MLP>();
  auto model = CkptMLP(features);
  rp::Dict params = model.init(rp::random::PRNGKey(seed), x);
  return rp::ravel(model.apply(params, x));
}

int main() {
  const Array x = rp::array({0.25, 0.5, 0.75, 1.0});
  std::cout << "seed 0: " << nn_checkpoint_forward(0, x, 4) << "\n";
  std::cout << "seed 1: " << nn_checkpoint_forward(1, rp::array({0.25, -0.5, 0.75}), 5) << "\n\n";

  const auto model = rp::nn::checkpoint<MLP>()(4);
  const rp::Dict variables = model.init(rp::random::PRNGKey(0), x);
  const auto loss = [&model](rp::Dict v, Array at) { return rp::sum(model.apply(v, at)); };
  std::cout << "What the backward pass reads:\n" << std::flush;
  rp::print_saved_residuals(loss, RP_ARGS(variables, x));

  std::cout << "\n" << model.tabulate(rp::random::PRNGKey(0), x);
}
