// Trains a small network with three optimisers, saves the parameters and the state of the best one,
// and goes on from the file.
#include <reprise/initializers.h>
#include <reprise/io.h>
#include <reprise/nn_layers.h>
#include <reprise/optim.h>
#include <reprise/reprise.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <tuple>

namespace rp = reprise;
namespace optim = rp::optim;
using rp::Array;
using rp::Dict;

Dict init_params(Array key) {
  const rp::nn::Initializer lecun = rp::nn::initializers::lecun_normal();
  Dict params;
  params["Dense_0"]["kernel"] = lecun(rp::random::fold_in(key, 0), {2, 32});
  params["Dense_0"]["bias"] = rp::zeros({32});
  params["Dense_1"]["kernel"] = lecun(rp::random::fold_in(key, 1), {32, 1});
  params["Dense_1"]["bias"] = rp::zeros({1});
  return params;
}

Array dense(const Dict& layer, Array x) {
  return rp::nn::dense(x, layer.array("kernel"), layer.array("bias"));
}

Array loss(Dict params, Array x, Array y) {
  const Array hidden = rp::tanh(dense(params.dict("Dense_0"), x));
  const Array out = dense(params.dict("Dense_1"), hidden);
  return rp::mean(rp::square(out - y));
}

// A compiled step: parameters and state in, parameters, state and loss out.
auto make_step(const optim::GradientTransformation& optimizer) {
  return rp::jit([optimizer](Dict params, Dict state, Array x, Array y) {
    auto [value, grads] = rp::value_and_grad(loss)(params, x, y);
    auto [updates, next] = optimizer.update(grads, state, params);
    return std::tuple(optim::apply_updates(params, updates), next, value);
  });
}

int main() {
  const Array x = rp::random::uniform(rp::random::key(1), {256, 2}, rp::float32, -1.0, 1.0);
  const Array y = rp::sin(3.0 * x(rp::all, rp::slice(0, 1))) * x(rp::all, rp::slice(1, 2));

  auto train = [&](const char* name, const optim::GradientTransformation& optimizer, int steps) {
    Dict params = init_params(rp::random::key(0));
    Dict state = optimizer.init(params);
    Array value;
    const auto step = make_step(optimizer);
    for (int i = 0; i < steps; ++i) std::tie(params, state, value) = step(params, state, x, y);
    std::printf("%-22s loss after %d steps: %.5f\n", name, steps, value.item<float>());
    return std::pair(params, state);
  };
  train("sgd with momentum", optim::sgd(0.1, {.momentum = 0.9}), 300);
  train("clipped lion", optim::chain({optim::clip_by_global_norm(1.0), optim::lion(3e-3)}), 300);
  const auto adamw = optim::adamw(optim::warmup_cosine_decay_schedule(0.0, 3e-2, 30, 600, 1e-4));
  auto [params, state] = train("adamw with a schedule", adamw, 300);

  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string file = (folder / "reprise_example.safetensors").string();
  rp::io::save_safetensors(file, std::tuple(params, state));
  std::tie(params, state) = rp::io::load_safetensors(file, std::tuple(params, state));
  Array value;
  const auto step = make_step(adamw);
  for (int i = 0; i < 300; ++i) std::tie(params, state, value) = step(params, state, x, y);
  std::printf("%-22s loss after %d steps: %.5f\n", "continued from a file", 600,
              value.item<float>());
  std::filesystem::remove(file);
}
