// A stack of twelve checkpointed blocks, scanned, trained compiled: the loss is that without
// checkpointing, the memory is what the policy promises.
#include "nn/golden.h"
#include <reprise/optim.h>

namespace rp = reprise;
namespace nn = reprise::nn;
namespace policies = reprise::checkpoint_policies;
using rp::Array;
using rp::Dict;

namespace {

constexpr std::int64_t vocabulary = 32, features = 16, heads = 2, positions = 16, batch = 4,
                       blocks = 12;

struct Block : nn::Module<Block> {
  std::pair<Array, rp::None> call(Array x) {
    const Array mask = nn::make_causal_mask(rp::ones({x.shape(0), x.shape(1)}));
    Array h = nn::LayerNorm()(x);
    h = nn::MultiHeadDotProductAttention(heads)(h, {}, {}, {.mask = mask});
    x = x + h;
    h = nn::LayerNorm()(x);
    h = nn::Dense(4 * features)(h);
    h = nn::gelu(h);
    h = nn::Dense(features)(h);
    return {x + h, rp::none};
  }
};

template <class Blocks>
struct Transformer : nn::Module<Transformer<Blocks>> {
  Blocks block;
  explicit Transformer(Blocks block) : block(std::move(block)) {}
  Array call(Array tokens) {
    nn::Embed embed(vocabulary, features);
    Array x = embed(tokens);
    const Array position =
        this->param("position", nn::initializers::normal(0.02), {positions, features});
    x = x + position;
    auto stack = nn::scan(block, {.variable_axes = {{"params", 0}},
                                  .split_rngs = {{"params", true}},
                                  .length = blocks})()
                     .named("blocks");
    x = stack(x).first;
    x = nn::LayerNorm()(x);
    return embed.template run<&nn::Embed::attend>(x);
  }
};

// 50 steps on one batch: predict the next of a pattern.
struct Training {
  std::vector<float> losses;
  rp::MemoryAnalysis memory;
  rp::CostAnalysis cost;
};

template <class Blocks>
Training train(const Blocks& block, int steps) {
  const Transformer<Blocks> model(block);
  const Array i = rp::arange(batch * positions).reshape({batch, positions});
  const Array tokens = (i * 7 + rp::floor_divide(i, 5)) % vocabulary;
  const Array targets = nn::one_hot((tokens * 3 + 1) % vocabulary, vocabulary);
  const auto loss = [&](Dict variables) {
    const Array logits = model.apply(variables, tokens);
    const Array log_probabilities = nn::log_softmax(logits);
    return -rp::mean(rp::sum(targets * log_probabilities, -1));
  };
  const auto optimizer = rp::optim::adamw(3e-3);
  const auto step = rp::jit([&](Dict variables, Dict state) {
    const auto [value, grads] = rp::value_and_grad(loss)(variables);
    const auto [updates, next_state] = optimizer.update(grads, state, variables);
    return std::tuple{value, rp::optim::apply_updates(variables, updates), next_state};
  });
  Dict variables = model.init(rp::random::PRNGKey(0), tokens);
  Dict state = optimizer.init(variables);
  Training result;
  const auto compiled = step.lower(variables, state).compile();
  result.memory = compiled.memory_analysis();
  result.cost = compiled.cost_analysis();
  for (int n = 0; n < steps; ++n) {
    const auto [value, next, next_state] = step(variables, state);
    result.losses.push_back(value.template item<float>());
    variables = next;
    state = next_state;
  }
  return result;
}

double worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

// A class that is lifted by nothing, so that scan takes it as it takes remat<Block>().
const nn::Lift<Block> plain_block = nn::detail::as_lift<Block>({});

}  // namespace

TEST_CASE(
    "twelve scanned blocks train 50 steps with the same loss with and without remat, in less "
    "memory") {
  const Training plain = train(plain_block, 50);
  const Training full = train(nn::remat<Block>({.prevent_cse = false}), 50);
  const Training dots =
      train(nn::remat<Block>(
                {.policy = policies::dots_with_no_batch_dims_saveable, .prevent_cse = false}),
            50);
  MESSAGE("loss " << plain.losses.front() << " to " << plain.losses.back() << "; temp bytes: plain "
                  << plain.memory.temp_bytes << ", dots " << dots.memory.temp_bytes << ", remat "
                  << full.memory.temp_bytes);
  CHECK(plain.losses.back() < 0.5 * plain.losses.front());
  CHECK(worst_difference(plain.losses, full.losses) <= 1e-5);
  CHECK(worst_difference(plain.losses, dots.losses) <= 1e-5);
  CHECK(full.memory.temp_bytes < dots.memory.temp_bytes);
  CHECK(dots.memory.temp_bytes < plain.memory.temp_bytes);
  CHECK(full.cost.matmul_flops > dots.cost.matmul_flops);
  // attention's products have batch dimensions
  CHECK(dots.cost.matmul_flops > plain.cost.matmul_flops);
}
