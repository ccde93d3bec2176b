// A policy decides what a checkpointed Linen module keeps: here the results of matrix products.
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
    x = rp::nn::Dense(features)(x);
    x = rp::nn::relu(x);
    return rp::nn::Dense(features)(x);
  }
};

// The output of the model with the parameters of this seed: what Flax computes.
Array nn_remat_policy(std::int64_t seed, Array x, std::int64_t features) {
  auto RematMLP =
      rp::nn::remat<MLP>({.policy = rp::checkpoint_policies::dots_with_no_batch_dims_saveable});
  auto model = RematMLP(features);
  rp::Dict params = model.init(rp::random::PRNGKey(seed), x);
  return rp::ravel(model.apply(params, x));
}

// How many arrays the backward pass reads, and how many of them the forward pass had to compute.
void print_kept(const char* what, const rp::Policy& policy) {
  const Array x = rp::array({0.25, 0.5, 0.75, 1.0});
  const auto model = rp::nn::remat<MLP>({.policy = policy})(4);
  const rp::Dict variables = model.init(rp::random::PRNGKey(0), x);
  const auto loss = [&model](rp::Dict v, Array at) { return rp::sum(model.apply(v, at)); };
  const rp::ResidualReport report = rp::residual_report(loss, RP_ARGS(variables, x));
  std::size_t computed = 0;
  for (const rp::ResidualDetail& r : report.residuals) computed += r.computed ? 1 : 0;
  std::cout << what << ": " << report.residuals.size() << " arrays read, " << computed
            << " of them computed, " << report.computed_bytes() << " bytes\n";
}

int main() {
  std::cout << "seed 0: " << nn_remat_policy(0, rp::array({0.25, 0.5, 0.75, 1.0}), 4) << "\n";
  std::cout << "seed 1: " << nn_remat_policy(1, rp::array({0.25, -0.5, 0.75}), 5) << "\n\n";

  print_kept("nothing_saveable", rp::checkpoint_policies::nothing_saveable);
  print_kept("dots_with_no_batch_dims_saveable",
             rp::checkpoint_policies::dots_with_no_batch_dims_saveable);
  print_kept("everything_saveable", rp::checkpoint_policies::everything_saveable);
}
