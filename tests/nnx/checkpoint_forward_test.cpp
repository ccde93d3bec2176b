// The NNX tutorial's problem against Flax: parameters and 1-D results bit for bit.
#include "nnx/golden.h"
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

namespace {

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

}  // namespace

TEST_CASE("checkpoint_forward gives Flax's parameters, outputs and gradients") {
  long worst_out = 0, worst_grad = 0;
  for (const auto& c : golden::flax().at("nnx_checkpoint_forward")) {
    nnx::Rngs rngs(c.at("seed").get<long>());
    MLP model(c.at("num_layers"), c.at("features"), rngs);
    const Array x = golden::array(c.at("x"));
    CAPTURE(c.at("seed").get<long>());
    CAPTURE(c.at("features").get<int>());
    CAPTURE(c.at("num_layers").get<int>());
    const nnx::State state = nnx::state(model);
    if (c.contains("params")) {
      for (const auto& [name, value] : c.at("params").items()) {
        const auto dot = name.find('.', 7);
        const nnx::Path path{"layers", std::stoi(name.substr(7, dot - 7)), name.substr(dot + 1)};
        CHECK(golden::worst_ulp(state.at(path), value) == 0);
      }
    }
    auto fwd = nnx::remat([](MLP& m, Array in) { return m(in); });
    const Array out = fwd(model, x), plain = model(x);
    CHECK(out.to_vector<float>() == plain.to_vector<float>());
    worst_out = std::max(worst_out, golden::worst_ulp(out, c.at("out")));
    CHECK(golden::worst_ulp(out, c.at("out")) <= 2);
    if (!c.contains("grad_params")) continue;
    auto loss = [fwd](MLP& m, Array in) { return rp::sum(fwd(m, in)); };
    const auto [grads, grad_x] = nnx::grad<0, 1>(loss)(model, x);
    for (const auto& [name, value] : c.at("grad_params").items()) {
      const auto dot = name.find('.', 7);
      const nnx::Path path{"layers", std::stoi(name.substr(7, dot - 7)), name.substr(dot + 1)};
      worst_grad = std::max(worst_grad, golden::worst_ulp(grads.at(path), value));
    }
    worst_grad = std::max(worst_grad, golden::worst_ulp(grad_x, c.at("grad_x")));
  }
  MESSAGE("worst distance in ulp: outputs " << worst_out << ", gradients " << worst_grad);
  CHECK(worst_grad <= 2);
}
