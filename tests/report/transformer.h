// A small transformer as users write one, for reports of a program that deserves one.
#pragma once

#include <reprise/nn_functions.h>
#include <reprise/reprise.h>

#include <vector>

namespace transformer {

namespace rp = reprise;
using rp::Array;

struct Size {
  int layers = 4;
  std::int64_t batch = 4, length = 64, features = 64, heads = 4, vocabulary = 96;
};

struct Block {
  Array query, key, value, merge, up, down, scale;
};
struct Model {
  Array embedding;
  std::vector<Block> blocks;
  Array head;
};

inline Array normalized(Array x, Array scale) {
  const Array centred = x - rp::mean(x, -1, true);
  const Array variance = rp::mean(centred * centred, -1, true);
  return centred * rp::lax::rsqrt(variance + 1e-5) * scale;
}

inline Array split_heads(Array x, std::int64_t heads) {
  const rp::Shape s = x.shape();
  return rp::transpose(rp::reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

inline Array attention(Block p, Array x, std::int64_t heads) {
  const rp::Shape s = x.shape();
  const Array q = split_heads(rp::matmul(x, p.query), heads);
  const Array k = split_heads(rp::matmul(x, p.key), heads);
  const Array v = split_heads(rp::matmul(x, p.value), heads);
  const Array scores = rp::matmul(q, rp::transpose(k, {0, 1, 3, 2})) / 8.0;
  const Array mixed = rp::matmul(rp::nn::softmax(scores), v);
  return rp::matmul(rp::reshape(rp::transpose(mixed, {0, 2, 1, 3}), s), p.merge);
}

inline Array block(Block p, Array x, std::int64_t heads) {
  x = x + attention(p, normalized(x, p.scale), heads);
  const Array hidden = rp::nn::gelu(rp::matmul(normalized(x, p.scale), p.up));
  return x + rp::matmul(hidden, p.down);
}

// Mean of the negative log likelihood; `wrap` puts a block into a checkpoint, or not.
template <class Wrap>
Array loss(const Model& model, Array tokens, const Size& size, const Wrap& wrap) {
  Array x = rp::take(model.embedding, tokens, 0);
  for (const Block& p : model.blocks)
    x = wrap([&](Block b, Array h) { return block(b, h, size.heads); })(p, x);
  const Array logits = rp::matmul(x, model.head);
  const Array likelihoods = rp::nn::log_softmax(logits) * rp::nn::one_hot(tokens, size.vocabulary);
  return -rp::sum(likelihoods) / static_cast<double>(size.batch * size.length);
}

inline Model initial(const Size& size) {
  Array key = rp::random::key(0);
  const auto normal = [&](rp::Shape shape) {
    const auto keys = rp::random::split(key, 2);
    key = keys[0];
    return rp::random::normal(keys[1], shape) * 0.05;
  };
  Model model;
  const std::int64_t d = size.features;
  model.embedding = normal({size.vocabulary, d});
  for (int i = 0; i < size.layers; ++i) {
    Block b;
    b.query = normal({d, d});
    b.key = normal({d, d});
    b.value = normal({d, d});
    b.merge = normal({d, d});
    b.up = normal({d, 4 * d});
    b.down = normal({4 * d, d});
    b.scale = rp::ones({d});
    model.blocks.push_back(b);
  }
  model.head = normal({d, size.vocabulary});
  return model;
}

inline Array tokens_of(const Size& size) {
  return rp::reshape(rp::arange(size.batch * size.length), {size.batch, size.length}) %
         size.vocabulary;
}

}  // namespace transformer
