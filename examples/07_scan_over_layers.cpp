// 7. Scan over layers: one program for any depth, its parameters stacked, its body checkpointed.
#include <reprise/reprise.h>

#include <iomanip>
#include <iostream>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;

struct Layer {
  Array W, b;
};

// What scan calls for each layer: (carry, one slice of the parameters) -> (carry, output of the
// layer).
std::pair<Array, rp::None> layer(Array x, Layer p) {
  Array y = rp::matmul(x, p.W) + p.b;
  return {rp::tanh(y), rp::none};
}

// The backward pass of a loop is a loop of its own, so what the first keeps for the second is
// stacked up: depth times what one layer keeps. Inside scan prevent_cse is not needed.
const auto checkpointed = rp::checkpoint(layer, {.prevent_cse = false});
const auto keeps_products = rp::checkpoint(
    layer, {.policy = policies::dots_with_no_batch_dims_saveable, .prevent_cse = false});

template <class Body>
auto net(Body body) {
  return [body](Layer stacked, Array x) {
    auto [y, nothing] = rp::scan(body, x, stacked);
    return rp::sum(y);
  };
}

int main() {
  auto stacked = [](std::int64_t depth) {
    return Layer{rp::ones({depth, 16, 16}) * 0.1, rp::zeros({depth, 16})};
  };
  Array x = rp::ones({64, 16});

  std::cout << "the program, for 100 layers:\n"
            << rp::make_jaxpr(net(layer))(stacked(100), x) << "\n\n";

  std::cout << "bytes kept for the backward pass\n"
            << "  layers      plain   products  checkpoint\n";
  for (std::int64_t depth : {10, 100, 1000}) {
    auto kept = [&](const auto& body) {
      return rp::residual_report(net(body), stacked(depth), x).computed_bytes();
    };
    std::cout << std::setw(8) << depth << std::setw(11) << kept(layer) << std::setw(11)
              << kept(keeps_products) << std::setw(12) << kept(checkpointed) << "\n";
  }

  // One gradient, three ways to get it.
  auto bias_gradient = [&](const auto& body) {
    Layer grads = rp::jit(rp::grad(net(body)))(stacked(4), x);
    return rp::sum(grads.b);
  };
  auto agrees = [&](const auto& body) {
    Array plain = bias_gradient(layer), other = bias_gradient(body);
    return (rp::abs(plain - other) < 1e-4 * rp::abs(plain)).item<bool>();
  };
  std::cout << "\ngradients agree: " << std::boolalpha << agrees(keeps_products) << " "
            << agrees(checkpointed) << "\n";
}
