// Layers against Flax: parameters bit for bit, outputs within the golden tolerance. The data is
// made by tests/golden/nnx_layers.py.
#include "nnx/checks.h"
#include "nnx/golden.h"
#include "test_data.h"
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;
using rp::Shape;

namespace {

Array numbers(const Shape& shape) {
  std::int64_t size = 1;
  for (std::int64_t n : shape) size *= n;
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(1.7 * std::sin(1.3 * static_cast<double>(i) + 0.5)));
  }
  return rp::array(values, shape);
}

const nlohmann::json& layer_case(const std::string& name) {
  static const nlohmann::json cases = [] {
    std::ifstream file(golden_path("nnx_layers.json"));
    return nlohmann::json::parse(file);
  }();
  return cases.at(name);
}
nnx::State stored(const nnx::Module& m) {
  return nnx::state(m, nnx::Any({nnx::OfType<nnx::Param>, nnx::OfType<nnx::BatchStat>}));
}
template <class Check>
void compare(const nnx::State& state, const nlohmann::json& wanted, const Check& check) {
  CHECK(state.size() == wanted.size());
  for (const nnx::Leaf& leaf : state.leaves()) {
    const std::string path = nnx::joined(leaf.path, "/");
    CAPTURE(path);
    REQUIRE(wanted.contains(path));
    CHECK(leaf.value.shape() == wanted.at(path).at("shape").get<Shape>());
    CHECK(check(leaf.value, wanted.at(path)));
  }
}
constexpr double tolerance =
    2e-6;  // of the largest output; GEMMs and rsqrt differ in the last bits

// `run(module, i)` is the i-th call.
template <class M, class Run>
void check_layer(const std::string& name, M module, const Run& run, double within = tolerance) {
  CAPTURE(name);
  const auto& c = layer_case(name);
  compare(stored(module), c.at("params"),
          [](const Array& a, const auto& j) { return golden::worst_ulp(a, j) == 0; });
  for (std::size_t i = 0; i < c.at("outs").size(); ++i) {
    CAPTURE(i);
    const Array out = run(module, i).astype(rp::float32);
    CHECK(out.shape() == c.at("outs")[i].at("shape").template get<Shape>());
    CHECK(golden::worst_ratio(out, c.at("outs")[i]) <= within);
  }
  compare(stored(module), c.at("after"),
          [&](const Array& a, const auto& j) { return golden::worst_ratio(a, j) <= within; });
}
template <class M>
void check_call(const std::string& name, M module, const Array& x, double within = tolerance) {
  check_layer(
      name, std::move(module), [&](M& m, std::size_t) { return m(x); }, within);
}

}  // namespace

TEST_CASE("linear layers have Flax's parameters and outputs") {
  check_call("linear_no_bias", nnx::Linear(3, 4, nnx::Rngs(1), {.use_bias = false}),
             numbers({2, 3}));
  check_call("linear_bf16", nnx::Linear(3, 4, nnx::Rngs(1), {.dtype = rp::bfloat16}),
             numbers({2, 3}), 0.01);
  check_call("linear_general", nnx::LinearGeneral({3, 4}, {2, 5}, nnx::Rngs(2), {.axis = {-2, -1}}),
             numbers({2, 3, 4}));
  check_call("linear_general_batch",
             nnx::LinearGeneral(4, 5, nnx::Rngs(2), {.batch_axis = {{0, 2}}}), numbers({2, 3, 4}));
  check_call("einsum",
             nnx::Einsum("abc,cde->abde", {4, 2, 3}, nnx::Rngs(3), {.bias_shape = Shape{2, 3}}),
             numbers({2, 5, 4}));
  check_call("einsum_ellipsis",
             nnx::Einsum("...a,ab->...b", {4, 3}, nnx::Rngs(3), {.bias_shape = Shape{3}}),
             numbers({2, 5, 4}));
  check_call("embed", nnx::Embed(5, 3, nnx::Rngs(4)), rp::array({{0, 4}, {-1, 2}}));
  nnx::Rngs rngs(13);
  const nnx::Linear first(3, 4, rngs), second(4, 2, rngs);
  check_call("sequential", nnx::Sequential(first, rp::nn::relu, second), numbers({2, 3}));
  const nnx::Embed embed(5, 3, nnx::Rngs(4));
  CHECK(embed.attend(numbers({2, 3})).shape() == Shape{2, 5});
}

TEST_CASE("convolutions have Flax's parameters and outputs") {
  check_call("conv_same", nnx::Conv(2, 3, {3, 3}, nnx::Rngs(5)), numbers({2, 5, 4, 2}));
  check_call("conv_valid_strides",
             nnx::Conv(2, 3, 3, nnx::Rngs(5), {.strides = 2, .padding = "VALID"}),
             numbers({2, 7, 2}));
  check_call("conv_groups_dilation",
             nnx::Conv(4, 4, {2, 2}, nnx::Rngs(6),
                       {.padding = {{1, 0}, {2, 1}},
                        .kernel_dilation = 2,
                        .feature_group_count = 2,
                        .use_bias = false}),
             numbers({1, 5, 5, 4}));
  check_call("conv_circular", nnx::Conv(2, 3, 3, nnx::Rngs(5), {.padding = "CIRCULAR"}),
             numbers({2, 5, 2}));
  check_call("conv_causal", nnx::Conv(2, 3, 3, nnx::Rngs(5), {.padding = "CAUSAL"}),
             numbers({5, 2}));
  const nnx::Conv masked(2, 3, 3, nnx::Rngs(5), {.use_bias = false, .mask = rp::zeros({3, 2, 3})});
  CHECK(floats(masked(numbers({1, 4, 2}))) == std::vector<float>(12, 0.0f));
}

TEST_CASE("normalising layers have Flax's outputs and statistics") {
  check_call("layer_norm", nnx::LayerNorm(4, nnx::Rngs(7)), numbers({3, 4}));
  check_call("layer_norm_slow",
             nnx::LayerNorm(4, nnx::Rngs(7),
                            {.epsilon = 1e-3, .use_bias = false, .use_fast_variance = false}),
             numbers({3, 4}));
  check_call("rms_norm", nnx::RMSNorm(4, nnx::Rngs(7)), numbers({3, 4}));
  check_call("group_norm", nnx::GroupNorm(6, nnx::Rngs(7), {.num_groups = 3}), numbers({2, 4, 6}));
  check_call("group_norm_size",
             nnx::GroupNorm(6, nnx::Rngs(7), {.num_groups = std::nullopt, .group_size = 3}),
             numbers({2, 4, 6}));
  check_layer("batch_norm", nnx::BatchNorm(4, nnx::Rngs(8), {.momentum = 0.9}),
              [](nnx::BatchNorm& m, std::size_t i) {
                return i == 0   ? m(numbers({5, 4}))
                       : i == 1 ? m(numbers({2, 3, 4}))
                                : m(numbers({5, 4}), true);
              });
  check_layer("batch_norm_mask", nnx::BatchNorm(4, nnx::Rngs(8)),
              [](nnx::BatchNorm& m, std::size_t) {
                return m(numbers({3, 4}), std::nullopt, rp::array({{true}, {false}, {true}}));
              });
}

TEST_CASE("dropout has Flax's masks, and its count goes up when one is drawn") {
  check_layer("dropout", nnx::Dropout(0.3, nnx::Rngs(9)), [](nnx::Dropout& m, std::size_t i) {
    return m(numbers({4, 5}), i == 2 ? std::optional(true) : std::nullopt);
  });
  check_call("dropout_broadcast",
             nnx::Dropout(0.5, nnx::Rngs({{"dropout", 2}}), {.broadcast_dims = {0}}),
             numbers({4, 5}));
  const nnx::Dropout all(1.0, nnx::Rngs(0)), none(0.0, nnx::Rngs(0)), bare(0.5);
  CHECK(floats(all(rp::ones({3}))) == std::vector<float>(3, 0.0f));
  CHECK(floats(none(rp::ones({3}))) == std::vector<float>(3, 1.0f));
  CHECK(all.rngs->count.get_value().item<int>() + none.rngs->count.get_value().item<int>() == 0);
  CHECK(bare(rp::ones({3}), std::nullopt, rp::random::key(0)).shape() == Shape{3});
}

TEST_CASE("attention has Flax's parameters, outputs and masks") {
  check_layer("attention", nnx::MultiHeadAttention(2, 4, nnx::Rngs(10), {.decode = false}),
              [](nnx::MultiHeadAttention& m, std::size_t i) {
                const Array x = numbers({2, 3, 4});
                if (i == 1) return m(x, {.is_causal = true});
                if (i == 2) return m(x, {.inputs_k = numbers({2, 5, 4})});
                if (i == 3) return m(x, {.mask = rp::nn::make_causal_mask(rp::ones({2, 3}))});
                return m(x);
              });
  check_call("attention_options",
             nnx::MultiHeadAttention(4, 6, nnx::Rngs(10),
                                     {.qkv_features = 8,
                                      .out_features = 5,
                                      .num_kv_heads = 2,
                                      .use_bias = false,
                                      .decode = false,
                                      .normalize_qk = true}),
             numbers({2, 3, 6}));
  check_call("attention_batches", nnx::MultiHeadAttention(2, 4, nnx::Rngs(10), {.decode = false}),
             numbers({2, 2, 3, 4}));
  check_layer(
      "attention_dropout",
      nnx::MultiHeadAttention(2, 4, nnx::Rngs(11),
                              {.dropout_rate = 0.4, .deterministic = false, .decode = false}),
      [](nnx::MultiHeadAttention& m, std::size_t i) {
        return i == 2 ? m(numbers({2, 3, 4}), {.deterministic = true}) : m(numbers({2, 3, 4}));
      });
  nnx::MultiHeadAttention decoder(2, 4, nnx::Rngs(12), {.decode = true});
  decoder.init_cache({2, 3, 4});
  check_layer("attention_decode", decoder, [](nnx::MultiHeadAttention& m, std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    return m(numbers({2, 3, 4})(rp::all, rp::slice(at, at + 1)));
  });
  nnx::MultiHeadAttention sowing(2, 4, nnx::Rngs(10), {.decode = false});
  sowing(numbers({2, 3, 4}), {.sow_weights = true});
  const nnx::State weights = nnx::pop(sowing, nnx::OfType<nnx::Intermediate>);
  CHECK(weights.at({"attention_weights", 0}).shape() == Shape{2, 2, 3, 3});
}

TEST_CASE("an optimizer makes optax's steps and has Flax's state") {
  const auto& c = layer_case("optimizer_adamw_3_steps");
  nnx::Linear model(3, 2, nnx::Rngs(14));
  nnx::Optimizer optimizer(model, rp::optim::adamw(0.1), nnx::OfType<nnx::Param>);
  const auto step = nnx::jit([](nnx::Linear& m, nnx::Optimizer& o, Array x) {
    const nnx::State grads =
        nnx::grad([](nnx::Linear& l, Array in) { return rp::sum(rp::square(l(in))); })(m, x);
    o.update(m, grads);
  });
  for (int i = 0; i < 3; ++i) step(model, optimizer, numbers({4, 3}));
  compare(stored(model), c.at("params"),
          [](const Array& a, const auto& j) { return golden::worst_ratio(a, j) <= 1e-5; });
  CHECK(optimizer.step.get_value().item<int>() == 3);
  std::vector<std::string> paths;
  for (const nnx::Leaf& leaf : nnx::state(optimizer).leaves()) {
    paths.push_back(nnx::joined(leaf.path, "/") + " " + leaf.kind->name);
  }
  CHECK(paths == std::vector<std::string>{
                     "opt_state/0/count OptArray", "opt_state/0/mu/bias OptVariable",
                     "opt_state/0/mu/kernel OptVariable", "opt_state/0/nu/bias OptVariable",
                     "opt_state/0/nu/kernel OptVariable", "step OptState"});
  CHECK_MENTIONS(message<rp::TypeError>([&] { optimizer.update(model, nnx::State()); }),
                 "a gradient for each variable that wrt chooses, got 0 for 2");
}

TEST_CASE("tables show each layer once, with the variables of each kind") {
  struct Net : nnx::Module {
    nnx::Linear l;
    nnx::BatchNorm bn;
    nnx::Dropout drop;
    explicit Net(const nnx::Rngs& rngs) : l(2, 2, rngs), bn(2, rngs), drop(0.5, rngs) {}
    Array operator()(Array x) {
      x = l(x);
      x = bn(x);
      return drop(x);
    }
    REPRISE_FIELDS(l, bn, drop)
  };
  Net net(nnx::Rngs(0));
  const std::string table = nnx::tabulate(net, rp::ones({2, 2}));
  CHECK_MENTIONS(table, "Net Summary");
  CHECK_MENTIONS(table,
                 "┃ path ┃ type      ┃ inputs       ┃ outputs      ┃ BatchStat        ┃ Param      "
                 "          ┃ RngState ┃");
  CHECK_MENTIONS(table,
                 "│      │ Net       │ float32[2,2] │ float32[2,2] │ 4 (16 B)         │ 10 (40 B)  "
                 "          │ 2 (12 B) │");
  CHECK_MENTIONS(table,
                 "│ l    │ Linear    │ float32[2,2] │ float32[2,2] │                  │ bias: "
                 "float32[2]     │          │");
  CHECK_MENTIONS(table,
                 "│ drop │ Dropout   │ float32[2,2] │ float32[2,2] │                  │            "
                 "          │ 2 (12 B) │");
  CHECK_MENTIONS(table, "Total Parameters: 16 (68 B)");
  CHECK(net.drop.rngs->count.get_value().item<int>() == 0);
}

TEST_CASE("layers say what does not fit") {
  const nnx::Rngs rngs(0);
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::Linear(2, 3, rngs)(rp::ones({3})); }), "3");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::Embed(5, 3, rngs)(rp::ones({2})); }), "integer");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::LinearGeneral({2, 3}, 4, rngs);
                 }),
                 "same length, got 2 and 1");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::LinearGeneral(2, 4, rngs, {.batch_axis = {{1, 2}}});
                 }),
                 "batch axes must be the leading ones in order, got axis 1 in place 0");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::Einsum("ab->a", {2}, rngs); }),
                 "two operands and '->', got 'ab->a'");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { nnx::Conv(3, 4, 3, rngs, {.feature_group_count = 2}); }),
      "feature_group_count must divide in_features, got 2 and 3");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::Conv(3, 4, 3, rngs, {.mask = rp::ones({2})}); }),
                 "the mask must have the shape of the kernel, got f32[2] for f32[3,3,4]");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::GroupNorm(6, rngs, {.num_groups = 4}); }),
                 "number of groups must divide the number of features, got 4 and 6");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::GroupNorm(6, rngs, {.group_size = 3}); }),
                 "one of num_groups and group_size must be given, got both");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::BatchNorm(3, rngs, {.use_running_average = std::nullopt})(rp::ones({2, 3}));
                 }),
                 "BatchNorm: use_running_average is not known");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   nnx::Dropout(0.5, rngs, {.deterministic = std::nullopt})(rp::ones({2}));
                 }),
                 "Dropout: deterministic is not known");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::Dropout(0.5)(rp::ones({2})); }),
                 "has no random stream");
}

TEST_CASE("attention says what does not fit") {
  const nnx::Rngs rngs(0);
  const Array x = rp::ones({2, 3, 4});
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::MultiHeadAttention(3, 4, rngs); }),
                 "the number of heads must divide qkv_features, got 3 and 4");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { nnx::MultiHeadAttention(2, 4, rngs, {.num_kv_heads = 3}); }),
      "num_kv_heads must divide the number of heads, got 3 and 2");
  CHECK_MENTIONS(message<rp::TypeError>([&] { nnx::MultiHeadAttention(2, 4, rngs)(x); }),
                 "decode is not known");
  CHECK_MENTIONS(
      message<rp::TypeError>([&] { nnx::MultiHeadAttention(2, 4, rngs, {.decode = true})(x); }),
      "decoding needs a cache");
  nnx::MultiHeadAttention attention(2, 4, rngs, {.decode = false});
  CHECK_MENTIONS(message<rp::TypeError>([&] { attention(x, {.inputs_v = x}); }),
                 "inputs_v needs inputs_k");
  CHECK_MENTIONS(message<rp::TypeError>([&] {
                   attention(rp::ones({2, 3, 5}));
                 }),
                 "the last axis of the queries must be in_features, got f32[2,3,5] for 4");
  nnx::MultiHeadAttention decoder(2, 4, rngs, {.decode = true});
  decoder.init_cache({2, 3, 4});
  CHECK_MENTIONS(message<rp::TypeError>([&] { decoder(x); }),
                 "the key must be one position, got f32[2,3,2,2] for f32[2,1,2,2]");
  nnx::MultiHeadAttention dropping(2, 4, rngs, {.dropout_rate = 0.5, .decode = false});
  CHECK_MENTIONS(message<rp::TypeError>([&] { dropping(x); }), "deterministic is not known");
  nnx::MultiHeadAttention bare(
      2, 4, rngs,
      {.dropout_rate = 0.5, .deterministic = false, .decode = false, .keep_rngs = false});
  CHECK_MENTIONS(message<rp::TypeError>([&] { bare(x); }), "has no random stream");
}
