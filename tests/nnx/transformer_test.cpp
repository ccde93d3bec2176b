// A transformer of twelve blocks, scanned and rematerialised, trains compiled as it does without.
#include "nnx/checks.h"
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
namespace nnx = rp::nnx;
namespace policies = rp::checkpoint_policies;
using rp::Array;

namespace {

constexpr int width = 32, heads = 4, vocabulary = 32, depth = 12, length = 16, batch = 4;

struct Block : nnx::Module {
  nnx::LayerNorm norm1, norm2;
  nnx::MultiHeadAttention attention;
  nnx::Linear up, down;
  nnx::Dropout dropout;
  explicit Block(const nnx::Rngs& rngs)
      : norm1(width, rngs),
        norm2(width, rngs),
        attention(heads, width, rngs, {.decode = false}),
        up(width, 4 * width, rngs),
        down(4 * width, width, rngs),
        dropout(0.1, rngs) {}
  Array operator()(Array x) {
    Array h = norm1(x);
    h = attention(h, {.is_causal = true});
    h = dropout(h);
    x = x + h;
    h = norm2(x);
    h = up(h);
    h = rp::nn::gelu(h);
    h = down(h);
    return x + h;
  }
  REPRISE_FIELDS(norm1, norm2, attention, up, down, dropout)
};

Block make_blocks(nnx::Rngs& rngs) {
  return nnx::split_rngs(nnx::vmap([](nnx::Rngs& r) { return Block(r); }), {.splits = depth})(rngs);
}

// How the blocks are run: without remat, or with a policy.
enum class Mode { plain, nothing, dots };

struct Transformer : nnx::Module {
  nnx::Embed embed;
  Block blocks;
  nnx::LayerNorm norm;
  Mode mode;
  Transformer(nnx::Rngs& rngs, Mode how)
      : embed(vocabulary, width, rngs), blocks(make_blocks(rngs)), norm(width, rngs), mode(how) {}
  Array operator()(Array tokens) {
    const auto block = [](Block& b, Array x) { return b(x); };
    const nnx::ScanOptions along{.in_axes = {0, nnx::Carry}, .out_axes = {nnx::Carry}};
    Array x = embed(tokens);
    if (mode == Mode::plain) {
      x = nnx::scan(block, along)(blocks, x);
    } else {
      const rp::Policy policy = mode == Mode::dots ? policies::dots_saveable : rp::Policy();
      x = nnx::scan(nnx::remat(block, {.policy = policy, .prevent_cse = false}), along)(blocks, x);
    }
    return embed.attend(norm(x));
  }
  REPRISE_FIELDS(embed, blocks, norm, mode)
};

Array loss_of(Transformer& model, Array tokens) {
  const Array logits = model(tokens(rp::all, rp::slice(0, -1)));
  const Array targets = rp::nn::one_hot(tokens(rp::all, rp::slice(1, std::nullopt)), vocabulary);
  return -rp::mean(rp::sum(rp::nn::log_softmax(logits) * targets, -1));
}

Array train_step(Transformer& model, nnx::Optimizer& optimizer, Array tokens) {
  const auto [loss, grads] = nnx::value_and_grad(loss_of)(model, tokens);
  optimizer.update(model, grads);
  return loss;
}

struct Training {
  std::vector<float> losses;
  std::size_t temp_bytes;
};
Training train(Mode mode, int steps) {
  nnx::Rngs rngs(0);
  Transformer model(rngs, mode);
  nnx::Optimizer optimizer(model, rp::optim::adamw(1e-2), nnx::OfType<nnx::Param>);
  const auto step = nnx::jit(train_step, {.name = "train_step"});
  const Array tokens = rp::random::randint(rp::random::key(1), {batch, length + 1}, 0, vocabulary);
  Training result;
  // Of the gradient alone: a whole step can use the space of the new parameters meanwhile.
  const Array larger = rp::zeros({16, 65}, rp::int32);
  result.temp_bytes = nnx::jit(nnx::value_and_grad(loss_of))
                          .lower(model, larger)
                          .compile()
                          .memory_analysis()
                          .temp_bytes;
  for (int i = 0; i < steps; ++i)
    result.losses.push_back(step(model, optimizer, tokens).item<float>());
  CHECK(model.blocks.dropout.rngs->count.get_value().to_vector<int>() ==
        std::vector<int>(depth, steps));
  CHECK(optimizer.step.get_value().item<int>() == steps);
  return result;
}

}  // namespace

TEST_CASE("a transformer of twelve scanned remat blocks trains as without remat, in less memory") {
  constexpr int steps = 50;
  const Training plain = train(Mode::plain, steps), nothing = train(Mode::nothing, steps),
                 dots = train(Mode::dots, steps);
  double worst = 0;
  for (int i = 0; i < steps; ++i) {
    const auto k = static_cast<std::size_t>(i);
    worst = std::max(
        {worst,
         std::abs(static_cast<double>(nothing.losses[k]) - plain.losses[k]) / plain.losses[k],
         std::abs(static_cast<double>(dots.losses[k]) - plain.losses[k]) / plain.losses[k]});
  }
  MESSAGE("loss " << plain.losses.front() << " -> " << plain.losses.back()
                  << ", worst relative difference " << worst << "; temporaries: plain "
                  << plain.temp_bytes << ", nothing saved " << nothing.temp_bytes << ", dots saved "
                  << dots.temp_bytes);
  CHECK(plain.losses.back() < 0.3f * plain.losses.front());
  CHECK(worst < 1e-5);
  // Twelve inputs of blocks and the values of one block, instead of the values of all. Without a
  // policy the compiler recomputes what is cheap anyway, which leaves about what dots_saveable
  // saves.
  CHECK(5 * nothing.temp_bytes < plain.temp_bytes);
  CHECK(100 * dots.temp_bytes < 101 * plain.temp_bytes);
}
