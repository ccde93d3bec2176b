// 11. Training: a checkpointed model, an optimiser with a schedule, one compiled step that updates
// in place, and a file to go on from.
#include <reprise/io.h>
#include <reprise/nn.h>
#include <reprise/optim.h>
#include <reprise/reprise.h>

#include <cstdio>
#include <filesystem>
#include <tuple>

namespace rp = reprise;
namespace nn = reprise::nn;
namespace optim = rp::optim;
using rp::Array;
using rp::Dict;

struct Block : nn::Module<Block> {
  std::pair<Array, rp::None> call(Array x) {
    Array h = nn::LayerNorm()(x);
    h = nn::Dense(4 * x.shape(-1))(h);
    h = nn::gelu(h);
    h = nn::Dense(x.shape(-1))(h);
    return {x + h, rp::none};
  }
};

struct Net : nn::Module<Net> {
  Array call(Array x) {
    x = nn::Dense(16)(x);
    // Eight blocks as one loop over stacked parameters, each played again in the backward pass.
    auto Blocks =
        nn::scan(nn::remat<Block>({.prevent_cse = false}),
                 {.variable_axes = {{"params", 0}}, .split_rngs = {{"params", true}}, .length = 8});
    auto [y, nothing] = Blocks().named("blocks")(x);
    return nn::Dense(1)(y);
  }
};

int main() {
  const Array x = rp::random::uniform(rp::random::key(1), {256, 2}, rp::float32, -1.0, 1.0);
  const Array y = rp::sin(3.0 * x(rp::all, rp::slice(0, 1))) * x(rp::all, rp::slice(1, 2));

  Net net;
  Dict params = net.init(rp::random::key(0), x);
  const auto optimizer =
      optim::chain({optim::clip_by_global_norm(1.0),
                    optim::adamw(optim::warmup_cosine_decay_schedule(0.0, 1e-2, 20, 200, 1e-4))});
  Dict state = optimizer.init(params);

  // Parameters and state are donated: the new ones take over the memory of the old ones, if these
  // are moved into the call.
  const auto step = rp::jit(
      [&](Dict p, Dict s, Array in, Array out) {
        const auto loss = [&](Dict at) { return rp::mean(rp::square(net.apply(at, in) - out)); };
        auto [value, grads] = rp::value_and_grad(loss)(p);
        auto [updates, next] = optimizer.update(grads, s, p);
        return std::tuple(optim::apply_updates(p, updates), next, value);
      },
      {.name = "step", .donate_argnums = {0, 1}});

  const auto train = [&](int steps) {
    Array value;
    for (int i = 0; i < steps; ++i) {
      std::tie(params, state, value) = step(std::move(params), std::move(state), x, y);
    }
    return value.item<float>();
  };
  std::printf("after   1 step : loss %.2f\n", train(1));
  std::printf("after 100 steps: loss below 0.02: %s\n", train(99) < 0.02f ? "yes" : "no");

  // Parameters and state in one file, which Python reads too; loading gives the same tree back.
  const std::string file =
      std::filesystem::temp_directory_path() / "reprise_11_training.safetensors";
  rp::io::save_safetensors(file, std::tuple(params, state));
  std::tie(params, state) = rp::io::load_safetensors(file, std::tuple(params, state));
  std::filesystem::remove(file);
  std::printf("after 200 steps: loss below 0.005: %s\n", train(100) < 0.005f ? "yes" : "no");
}
