// The workloads that Reprise and its rivals are measured on: the same computations in each system.
#pragma once

#include <reprise/reprise.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
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
  const Array scores =
      rp::matmul(parts[0], rp::swapaxes(parts[1], -1, -2)) / std::sqrt(static_cast<float>(D / H));
  const Array p_attn = rp::nn::softmax(rp::where(mask, scores, -1e9f), -1);
  const Array o = rp::reshape(rp::transpose(rp::matmul(p_attn, parts[2]), {0, 2, 1, 3}), {B, T, D});
  const Array h1 = x + rp::checkpoint_name(rp::matmul(o, p.wo) + p.bo, "attn_out");
  const Array h = rp::checkpoint_name(rp::matmul(norm(h1, p.ln2, p.ln2b), p.w1) + p.b1, "ffn_in");
  return h1 + rp::matmul(rp::nn::gelu(h), p.w2) + p.b2;
}

inline Block init_block(const GptSize& s, unsigned i) {
  const std::int64_t D = s.width;
  return {rp::ones({D}),
          rp::zeros({D}),
          normal({D, 3 * D}, 0.02f, 10 * i + 1),
          rp::zeros({3 * D}),
          normal({D, D}, 0.02f, 10 * i + 2),
          rp::zeros({D}),
          rp::ones({D}),
          rp::zeros({D}),
          normal({D, 4 * D}, 0.02f, 10 * i + 3),
          rp::zeros({4 * D}),
          normal({4 * D, D}, 0.02f, 10 * i + 4),
          rp::zeros({D})};
}
inline Gpt init_gpt(const GptSize& s) {
  Gpt p{normal({s.vocabulary, s.width}, 0.02f, 1000),
        normal({s.length, s.width}, 0.02f, 1001),
        rp::ones({s.width}),
        rp::zeros({s.width}),
        {}};
  for (unsigned i = 0; i < s.layers; ++i) p.blocks.push_back(init_block(s, i));
  return p;
}
inline StackedGpt stacked(const Gpt& p) {
  auto stack = [&](Array Block::*member) {
    rp::Arrays all;
    for (const Block& b : p.blocks) all.push_back(b.*member);
    return rp::stack(all);
  };
  return {p.emb,
          p.pos,
          p.lnf,
          p.lnfb,
          {stack(&Block::ln1), stack(&Block::ln1b), stack(&Block::wqkv), stack(&Block::bqkv),
           stack(&Block::wo), stack(&Block::bo), stack(&Block::ln2), stack(&Block::ln2b),
           stack(&Block::w1), stack(&Block::b1), stack(&Block::w2), stack(&Block::b2)}};
}

struct GptData {
  Array tokens, targets, mask;
};
inline GptData gpt_data(const GptSize& s) {
  std::mt19937 engine(7);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(s.batch * s.length));
  for (auto& t : tokens)
    t = static_cast<std::int32_t>(engine() % static_cast<unsigned>(s.vocabulary));
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

// ------------------------------------------------------------------------------------- all of them
// Each workload calls visit(workload, mode, differentiated, loss, arguments...) for every mode.
namespace policies = rp::checkpoint_policies;

struct Sizes {
  GptSize gpt;
  std::int64_t mlp_layers = 16, mlp_width = 1024, mlp_batch = 256;
  std::int64_t chain_length = 64, chain_side = 512;
  std::int64_t scan_length = 1024, scan_side = 64;
  std::vector<int> deep{128, 512, 2048};
};

inline Array toy_layer(Array W, Array x) { return rp::sin(rp::matmul(W, x)); }
inline Array toy_loss(Array W1, Array W2, Array W3, Array x) {
  return rp::sum(toy_layer(W3, toy_layer(W2, toy_layer(W1, x))));
}
template <class Visit>
void toy(Visit& visit) {
  const Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), W3 = rp::ones({7, 6}),
              x = rp::ones({4});
  const auto loss = rp::checkpoint(toy_loss);
  visit("toy", "remat", rp::grad<0, 1, 2, 3>(loss), loss, W1, W2, W3, x);
}

using Layer = std::function<Array(const Array&, const Array&, const Array&)>;
struct MlpWeights {
  rp::Arrays W, b;
  REPRISE_FIELDS(W, b)
};
template <class Visit>
void mlp(Visit& visit, const Sizes& s) {
  MlpWeights weights;
  for (unsigned i = 0; i < s.mlp_layers; ++i) {
    weights.W.push_back(
        normal({s.mlp_width, s.mlp_width}, std::sqrt(2.f / static_cast<float>(s.mlp_width)), i));
    weights.b.push_back(rp::zeros({s.mlp_width}));
  }
  const Array x = normal({s.mlp_batch, s.mlp_width}, 1.f, 99);
  const Layer layer = [](Array W, Array b, Array v) {
    return rp::maximum(rp::matmul(v, W) + b, 0.f);
  };
  const auto run = [&](const char* mode, const Layer& f) {
    const auto loss = [f](MlpWeights w, Array v) {
      for (std::size_t i = 0; i < w.W.size(); ++i) v = f(w.W[i], w.b[i], v);
      return rp::mean(v * v);
    };
    visit("mlp", mode, rp::value_and_grad(loss), loss, weights, x);
  };
  run("none", layer);
  run("nothing", rp::checkpoint(layer));
  run("dots", rp::checkpoint(layer, {.policy = policies::dots_saveable}));
}

inline const std::map<std::string, rp::Policy>& block_policies() {
  static const std::map<std::string, rp::Policy> all{
      {"nothing", {}},
      {"dots", policies::dots_saveable},
      {"dots_no_batch", policies::dots_with_no_batch_dims_saveable},
      {"names", policies::save_only_these_names("attn_out", "ffn_in")}};
  return all;
}

template <class Visit>
void gpt(Visit& visit, const Sizes& s, bool scanned) {
  const GptSize size = s.gpt;
  const GptData data = gpt_data(size);
  const Gpt params = init_gpt(size);
  using BlockFunction = std::function<Array(const Block&, const Array&)>;
  auto plain = [size, mask = data.mask](Block p, Array x) { return block(size, mask, p, x); };
  auto run = [&](const std::string& mode, const BlockFunction& f) {
    if (!scanned) {
      const auto loss = [f, data](Gpt p) {
        Array x = embed(p, data);
        for (const Block& b : p.blocks) x = f(b, x);
        return cross_entropy(p, data, x);
      };
      return visit("gpt", mode, rp::value_and_grad(loss), loss, params);
    }
    const auto loss = [f, data](StackedGpt p) {
      const Array x = rp::scan(
                          [f](Array c, Block b) {
                            return std::pair{f(b, c), rp::none};
                          },
                          embed(p, data), p.blocks)
                          .first;
      return cross_entropy(p, data, x);
    };
    visit("gpt_scan", mode, rp::value_and_grad(loss), loss, stacked(params));
  };
  run("none", plain);
  for (const char* mode : {"nothing", "dots", "dots_no_batch", "names"}) {
    run(mode, rp::checkpoint(plain, {.policy = block_policies().at(mode)}));
  }
}

using Function = std::function<Array(Array)>;
inline Function recursive_checkpoint(const std::vector<Function>& fs) {
  if (fs.size() == 1) return fs[0];
  if (fs.size() == 2) return [fs](Array x) { return fs[0](fs[1](x)); };
  const auto middle = fs.begin() + static_cast<std::ptrdiff_t>(fs.size() / 2);
  const Function first = recursive_checkpoint({fs.begin(), middle}),
                 second = recursive_checkpoint({middle, fs.end()});
  return [first, second](Array x) { return first(rp::checkpoint(second)(x)); };
}
template <class Visit>
void chain(Visit& visit, const Sizes& s) {
  const Array x = rp::ones({s.chain_side, s.chain_side});
  const std::vector<Function> sines(static_cast<std::size_t>(s.chain_length),
                                    [](Array v) { return rp::sin(v); });
  const auto run = [&](const char* mode, const Function& f) {
    const auto loss = [f](Array v) { return rp::sum(f(v)); };
    visit("chain", mode, rp::grad(loss), loss, x);
  };
  run("none", [sines](Array v) {
    for (const Function& f : sines) v = f(v);
    return v;
  });
  run("recursive", recursive_checkpoint(sines));
}

template <class Visit>
void scan1024(Visit& visit, const Sizes& s) {
  const Array W = rp::eye(s.scan_side) * 0.99f, c0 = rp::ones({s.scan_side, s.scan_side});
  const Function body = [W](Array c) { return rp::tanh(rp::matmul(c, W)) + c; };
  const auto run = [&](const char* mode, const Function& f) {
    const auto loss = [f, length = s.scan_length](Array c) {
      return rp::sum(rp::scan(
                         [f](Array v, rp::None) {
                           return std::pair{f(v), rp::none};
                         },
                         c, rp::none, {.length = length})
                         .first);
    };
    visit("scan1024", mode, rp::grad(loss), loss, c0);
  };
  run("none", body);
  run("remat", rp::checkpoint(body));
}

template <class Visit>
void deep(Visit& visit, int layers) {
  const rp::Arrays Ws(static_cast<std::size_t>(layers), rp::full({16, 16}, 0.01f));
  const Array x = rp::ones({4, 16});
  using Two = std::function<Array(Array, Array)>;
  const Two layer = [](Array W, Array v) { return rp::tanh(rp::matmul(v, W)); };
  const auto run = [&](const char* mode, const Two& f) {
    const auto loss = [f](rp::Arrays all, Array v) {
      for (const Array& W : all) v = f(W, v);
      return rp::sum(v);
    };
    visit("deep" + std::to_string(layers), mode, rp::grad(loss), loss, Ws, x);
  };
  run("none", layer);
  run("remat", rp::checkpoint(layer));
}

inline constexpr const char* workload_names[] = {"toy",   "mlp",      "gpt", "gpt_scan",
                                                 "chain", "scan1024", "deep"};

// False: there is no workload of this name.
template <class Visit>
bool visit_workload(const std::string& name, Visit& visit, const Sizes& sizes = {}) {
  if (name == "toy")
    toy(visit);
  else if (name == "mlp")
    mlp(visit, sizes);
  else if (name == "gpt" || name == "gpt_scan")
    gpt(visit, sizes, name == "gpt_scan");
  else if (name == "chain")
    chain(visit, sizes);
  else if (name == "scan1024")
    scan1024(visit, sizes);
  else if (name == "deep")
    for (int layers : sizes.deep) deep(visit, layers);
  else
    return false;
  return true;
}

}  // namespace bench
