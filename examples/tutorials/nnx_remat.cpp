// The NNX remat tutorial: a stack of linear layers whose forward pass is rematerialised. The output
// is the same with and without remat, and the same as Flax's for the same seed; the whole text
// printed is examples/tutorials/nnx_remat.expected.
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <iomanip>
#include <iostream>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

struct MLP : nnx::Module {
  nnx::List<nnx::Linear> layers;

  MLP(int num_layers, int features, nnx::Rngs& rngs) {
    for (int i = 0; i < num_layers; ++i) layers.append(nnx::Linear(features, features, rngs));
  }
  Array operator()(Array x) {
    for (auto& layer : layers) x = rp::nn::relu(layer(x));
    return x;
  }
  REPRISE_FIELDS(layers)
};

Array forward(MLP& model, Array x) { return model(x); }

// The tutorial's problem; the numbers arrive as floats.
Array checkpoint_forward(double seed, Array x, double features, double num_layers) {
  nnx::Rngs rngs(static_cast<long>(seed));
  MLP model(static_cast<int>(num_layers), static_cast<int>(features), rngs);
  const auto fwd = nnx::remat(forward);
  return fwd(model, x).reshape({-1});
}

void print(const char* name, const Array& x) {
  std::cout << name << ':';
  for (const float value : x.to_vector<float>()) std::cout << ' ' << std::setprecision(9) << value;
  std::cout << '\n';
}

int main() {
  print("seed 0, 2 layers", checkpoint_forward(0, rp::array({0.25, 0.5, 0.75, 1.0}), 4, 2));
  print("seed 1, 3 layers", checkpoint_forward(1, rp::array({0.25, -0.5, 0.75, -1.0}), 4, 3));
  print("seed 7, 1 layer", checkpoint_forward(7, rp::ones({5}), 5, 1));
  print("no layers", checkpoint_forward(3, rp::array({1.0, -2.0}), 2, 0));

  nnx::Rngs rngs(0);
  MLP model(2, 4, rngs);
  const Array x = rp::array({0.25, 0.5, 0.75, 1.0});
  const auto loss = [](MLP& m, Array in) { return rp::sum(nnx::remat(forward)(m, in)); };
  const nnx::State grads = nnx::grad(loss)(model, x);
  print("gradient of the last bias", grads["layers"][1]["bias"]);
  std::cout << model << '\n';
}
