// A training step of the shape of Llama 70B, planned from types alone: 80 blocks of width 8192, 64
// heads, 8 of keys and values, 28672 hidden, 4096 tokens, bfloat16.
//
//   build/release/bench/llama_plan [unrolled|scanned] [blocks]
//
// One JSON line per plan of the curve, and one with the seconds and the memory that planning took.
#include <reprise/reprise.h>

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

namespace rp = reprise;
using rp::Array;

constexpr std::int64_t width = 8192, heads = 64, kv_heads = 8, hidden = 28672, length = 4096,
                       vocabulary = 32000, head = width / heads;

struct Block {
  Array norm1, wq, wk, wv, wo, norm2, gate, up, down;
  REPRISE_FIELDS(norm1, wq, wk, wv, wo, norm2, gate, up, down)
};
struct Unrolled {
  Array embedding, last_norm;
  std::vector<Block> blocks;
  REPRISE_FIELDS(embedding, last_norm, blocks)
};
struct Scanned {
  Array embedding, last_norm;
  Block blocks;  // stacked
  REPRISE_FIELDS(embedding, last_norm, blocks)
};

Array normed(const Array& x, const Array& scale) {
  const Array squares = rp::mean(x * x, -1, true);
  return x / rp::sqrt(squares + 1e-5f) * scale;
}
// [length, n, head] -> [n, length, head]
Array by_heads(const Array& x, std::int64_t n) {
  const Array apart = rp::reshape(x, {length, n, head});
  return rp::transpose(apart, {1, 0, 2});
}
Array block(const Block& p, const Array& x) {
  const Array h = normed(x, p.norm1);
  const Array q = by_heads(rp::matmul(h, p.wq), heads);
  const Array k = by_heads(rp::matmul(h, p.wk), kv_heads);
  const Array v = by_heads(rp::matmul(h, p.wv), kv_heads);
  // the queries of one group share their keys
  const Array grouped = rp::reshape(q, {kv_heads, heads / kv_heads * length, head});
  const Array scores =
      rp::matmul(grouped, rp::swapaxes(k, -1, -2)) / std::sqrt(static_cast<float>(head));
  const Array weights = rp::nn::softmax(scores, -1);
  const Array mixed = rp::reshape(rp::matmul(weights, v), {heads, length, head});
  const Array joined = rp::reshape(rp::transpose(mixed, {1, 0, 2}), {length, width});
  const Array h1 = x + rp::checkpoint_name(rp::matmul(joined, p.wo), "attention");
  const Array h2 = normed(h1, p.norm2);
  const Array gate = rp::checkpoint_name(rp::matmul(h2, p.gate), "gate");
  const Array up = rp::checkpoint_name(rp::matmul(h2, p.up), "up");
  return h1 + rp::matmul(rp::nn::silu(gate) * up, p.down);
}
template <class Params>
Array loss_of(const Params& p, const Array& x, const Array& tokens) {
  const Array logits = rp::matmul(normed(x, p.last_norm), rp::swapaxes(p.embedding, 0, 1));
  const Array log_p = rp::nn::log_softmax(logits.astype(rp::float32), -1);
  const Array picked = log_p * rp::nn::one_hot(tokens, vocabulary);
  return -rp::sum(picked) / static_cast<float>(length);
}
Array unrolled_loss(Unrolled p, Array tokens) {
  Array x = rp::take(p.embedding, tokens, 0);
  for (const Block& b : p.blocks) x = block(b, x);
  return loss_of(p, x, tokens);
}
Array scanned_loss(Scanned p, Array tokens) {
  const Array x = rp::take(p.embedding, tokens, 0);
  const auto step = [](Array c, Block b) { return std::tuple(block(b, c), Array(0.f)); };
  const auto [last, none] = rp::scan(step, x, p.blocks);
  return loss_of(p, last, tokens);
}

Array typed(rp::Shape shape) {
  return rp::detail::abstract_array({rp::bfloat16, std::move(shape)});
}
// `stack`: nothing, or the number of blocks in front.
Block block_types(const rp::Shape& stack) {
  const auto of = [&](std::initializer_list<std::int64_t> own) {
    rp::Shape shape = stack;
    for (std::int64_t d : own) shape.push_back(d);
    return typed(shape);
  };
  const std::int64_t kv = kv_heads * head;
  return {of({width}),         of({width, width}),  of({width, kv}),
          of({width, kv}),     of({width, width}),  of({width}),
          of({width, hidden}), of({width, hidden}), of({hidden, width})};
}

template <class F, class Params>
int plan(const char* name, const F& loss, const Params& params) {
  const auto begin = std::chrono::steady_clock::now();
  const rp::Type tokens{rp::int32, {length}};
  const auto curve = rp::memory_curve(rp::value_and_grad(loss), params, tokens);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto& plain = curve.points.back();
  for (const auto& p : curve.points) {
    std::printf("{\"program\": \"%s\", \"peak_gib\": %.1f, \"time\": %.4f, \"flops\": %.4f}\n",
                name, std::ldexp(static_cast<double>(p.peak_bytes), -30), p.seconds / plain.seconds,
                p.flops / plain.flops);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"program\": \"%s\", \"planning_s\": %.1f, \"own_memory_mib\": %ld}\n", name,
              seconds, usage.ru_maxrss / 1024);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "scanned";
  const std::int64_t blocks = argc > 2 ? std::atoll(argv[2]) : 80;
  const Array embedding = typed({vocabulary, width}), last_norm = typed({width});
  if (which == "scanned") {
    return plan("scanned", scanned_loss, Scanned{embedding, last_norm, block_types({blocks})});
  }
  Unrolled params{embedding, last_norm, {}};
  for (std::int64_t i = 0; i < blocks; ++i) params.blocks.push_back(block_types({}));
  return plan("unrolled", unrolled_loss, params);
}
