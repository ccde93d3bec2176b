// The model of the demo: a character-level transformer as a user of Linen writes it. One member,
// the policy, decides what its blocks keep for the backward pass.
#pragma once

#include <reprise/nn.h>
#include <reprise/reprise.h>

#include <cstdint>
#include <optional>
#include <string>

namespace demo {

namespace rp = reprise;
namespace nn = reprise::nn;
using rp::Array;

struct Sizes {
  std::int64_t vocabulary = 0;  // that of the text
  std::int64_t layers = 6, width = 64, heads = 4;
  std::int64_t length = 64, batch = 16;  // characters of a piece of text, pieces of a step
};

struct Block : nn::Module<Block> {
  std::int64_t heads;
  explicit Block(std::int64_t heads) : heads(heads) {}

  Array call(Array x, Array mask) {
    Array h = nn::LayerNorm()(x);
    h = nn::SelfAttention(heads)(h, {.mask = mask});
    x = x + h;
    x = rp::checkpoint_name(x, "attention");
    h = nn::LayerNorm()(x);
    h = nn::Dense(4 * x.shape(-1))(h);
    h = rp::checkpoint_name(h, "hidden");
    h = nn::gelu(h);
    h = nn::Dense(x.shape(-1))(h);
    return x + h;
  }
};

// Characters i32[batch, length] in, the logits of each next character out.
struct Transformer : nn::Module<Transformer> {
  Sizes sizes;
  std::optional<rp::Policy> policy;  // none: no checkpoint at all
  Transformer(const Sizes& sizes, std::optional<rp::Policy> policy)
      : sizes(sizes), policy(std::move(policy)) {}

  Array call(Array characters) {
    Array x = nn::Embed(sizes.vocabulary, sizes.width)(characters);
    const Array position =
        param("position", nn::initializers::normal(0.02), {sizes.length, sizes.width});
    x = x + position;
    const Array mask = nn::make_causal_mask(rp::ones({1, sizes.length}), 0, rp::bool_);
    for (std::int64_t i = 0; i < sizes.layers; ++i) x = block(i, x, mask);
    x = nn::LayerNorm()(x);
    return nn::Dense(sizes.vocabulary)(x);
  }

 private:
  // Named alike with and without checkpoint, so that one seed gives the same parameters.
  Array block(std::int64_t i, const Array& x, const Array& mask) {
    const std::string name = "block_" + std::to_string(i);
    if (!policy) return Block(sizes.heads).named(name)(x, mask);
    const auto CheckpointBlock = nn::remat<Block>({.policy = *policy});
    return CheckpointBlock(sizes.heads).named(name)(x, mask);
  }
};

// Mean negative log-likelihood, in nats, of each character of text i32[batch, length + 1] but the
// first.
inline Array loss_of(const Transformer& model, const rp::Dict& params, const Array& text) {
  const Array inputs = text(rp::all, rp::slice(-1));
  const Array targets = text(rp::all, rp::slice(1, std::nullopt));
  const Array log_probabilities = nn::log_softmax(model.apply(params, inputs));
  const Array of_targets = rp::take_along_axis(log_probabilities, rp::expand_dims(targets, -1), -1);
  return -rp::mean(of_targets);
}

}  // namespace demo
