// The workloads that Reprise and its rivals are measured on: the same computations in each system.
#pragma once

#include <reprise/reprise.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace bench {

namespace rp = reprise;
using rp::Array;

inline Array normal(rp::Shape shape, float scale, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(0.f, scale);
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = draw(engine);
  return rp::array(values).reshape(shape);
}

// ------------------------------------------------------------------------------------------- gpt
struct GptSize {
  std::int64_t layers = 8, width = 512, heads = 8, length = 256, batch = 4, vocabulary = 1024;
};
struct Block {
  Array ln1, ln1b, wqkv, bqkv, wo, bo, ln2, ln2b, w1, b1, w2, b2;
};
struct Gpt {
  Array emb, pos, lnf, lnfb;
  std::vector<Block> blocks;
  REPRISE_FIELDS(emb, pos, lnf, lnfb, blocks)
};
struct StackedGpt {
  Array emb, pos, lnf, lnfb;
  Block blocks;
  REPRISE_FIELDS(emb, pos, lnf, lnfb, blocks)
};

inline Array norm(const Array& x, const Array& g, const Array& b) {
  const Array m = rp::mean(x, -1, true);
  const Array centred = x - m;
  const Array v = rp::mean(centred * centred, -1, true);
  return centred * rp::lax::rsqrt(v + 1e-6f) * g + b;
}

inline Array block(const GptSize& s, const Array& mask, const Block& p, const Array& x) {
  const std::int64_t D = s.width, H = s.heads, T = s.length, B = s.batch;
  const Array qkv = rp::matmul(norm(x, p.ln1, p.ln1b), p.wqkv) + p.bqkv;
  const Array heads = rp::transpose(rp::reshape(qkv, {B, T, 3 * H, D / H}), {0, 2, 1, 3});
  const rp::Arrays parts = rp::split(heads, 3, 1);
  const Array scores = rp::matmul(parts[0], rp::swapaxes(parts[1], -1, -2)) / std::sqrt(static_cast<float>(D / H));
  const Array p_attn = rp::nn::softmax(rp::where(mask, scores, -1e9f), -1);
  const Array o = rp::reshape(rp::transpose(rp::matmul(p_attn, parts[2]), {0, 2, 1, 3}), {B, T, D});
  const Array h1 = x + rp::checkpoint_name(rp::matmul(o, p.wo) + p.bo, "attn_out");
  const Array h = rp::checkpoint_name(rp::matmul(norm(h1, p.ln2, p.ln2b), p.w1) + p.b1, "ffn_in");
  return h1 + rp::matmul(rp::nn::gelu(h), p.w2) + p.b2;
}

inline Block init_block(const GptSize& s, unsigned i) {
  const std::int64_t D = s.width;
  return {rp::ones({D}),    rp::zeros({D}), normal({D, 3 * D}, 0.02f, 10 * i + 1), rp::zeros({3 * D}),
          normal({D, D}, 0.02f, 10 * i + 2), rp::zeros({D}), rp::ones({D}), rp::zeros({D}),
          normal({D, 4 * D}, 0.02f, 10 * i + 3), rp::zeros({4 * D}), normal({4 * D, D}, 0.02f, 10 * i + 4), rp::zeros({D})};
}
inline Gpt init_gpt(const GptSize& s) {
  Gpt p{normal({s.vocabulary, s.width}, 0.02f, 1000), normal({s.length, s.width}, 0.02f, 1001), rp::ones({s.width}), rp::zeros({s.width}), {}};
  for (unsigned i = 0; i < s.layers; ++i) p.blocks.push_back(init_block(s, i));
  return p;
}
inline StackedGpt stacked(const Gpt& p) {
  auto stack = [&](Array Block::* member) {
    rp::Arrays all;
    for (const Block& b : p.blocks) all.push_back(b.*member);
    return rp::stack(all);
  };
  return {p.emb, p.pos, p.lnf, p.lnfb,
          {stack(&Block::ln1), stack(&Block::ln1b), stack(&Block::wqkv), stack(&Block::bqkv), stack(&Block::wo), stack(&Block::bo),
           stack(&Block::ln2), stack(&Block::ln2b), stack(&Block::w1), stack(&Block::b1), stack(&Block::w2), stack(&Block::b2)}};
}

struct GptData {
  Array tokens, targets, mask;
};
inline GptData gpt_data(const GptSize& s) {
  std::mt19937 engine(7);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(s.batch * s.length));
  for (auto& t : tokens) t = static_cast<std::int32_t>(engine() % static_cast<unsigned>(s.vocabulary));
  const Array all = rp::array(tokens).reshape({s.batch, s.length});
  return {all, rp::roll(all, -1, 1), rp::tril(rp::ones({s.length, s.length}, rp::bool_))};
}
template <class P>
Array embed(const P& p, const GptData& data) {
  return rp::take(p.emb, data.tokens, 0) + p.pos;
}
template <class P>
Array cross_entropy(const P& p, const GptData& data, const Array& x) {
  const Array logits = rp::matmul(norm(x, p.lnf, p.lnfb), rp::transpose(p.emb));
  const Array logp = rp::nn::log_softmax(logits, -1);
  return -rp::mean(rp::take_along_axis(logp, rp::expand_dims(data.targets, -1), -1));
}

}  // namespace bench
