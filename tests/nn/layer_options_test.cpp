// The options of Linen's layers against the real Flax.
#include "nn/golden.h"

namespace rp = reprise;
namespace nn = reprise::nn;
namespace init = reprise::nn::initializers;
using flax::check_gradients;
using flax::check_model;
using flax::wave;
using rp::Array;
using rp::Dict;

TEST_CASE("Dense: bias, initialisers and dtypes") {
  check_model("dense_no_bias", nn::Dense(3, {.use_bias = false}), {}, wave({2, 5}));
  check_model("dense_he_bias",
              nn::Dense(3, {.kernel_init = init::he_uniform(), .bias_init = init::normal(1.0)}),
              {.seed = 3}, wave({2, 5}));
  check_model("dense_bf16", nn::Dense(3, {.dtype = rp::bfloat16}), {}, wave({2, 5}));
  check_model("dense_bf16_params", nn::Dense(3, {.param_dtype = rp::bfloat16}), {}, wave({2, 5}));
  check_model("dense_int_input", nn::Dense(3), {}, rp::arange(5));
}

TEST_CASE("DenseGeneral: several axes, and a kernel for each batch entry") {
  const nn::DenseGeneral last_two(4, {.axis = {-2, -1}});
  check_model("dense_general_axes", last_two, {}, wave({2, 3, 5}));
  check_gradients("dense_general_axes", last_two, {}, wave({2, 3, 5}));
  check_model("dense_general_axes_01", nn::DenseGeneral({2, 2}, {.axis = {0, 2}}), {},
              wave({2, 3, 5}));
  check_model("dense_general_batch",
              nn::DenseGeneral({2, 3}, {.batch_dims = {0}, .bias_init = init::normal(1.0)}), {},
              wave({2, 3, 5}));
}

TEST_CASE("Einsum: the bias has the kernel's axes of the result") {
  check_model(
      "einsum",
      nn::Einsum({5, 2, 3}, {.einsum_str = "abc,cde->abde", .bias_init = init::normal(1.0)}), {},
      wave({2, 3, 5}));
  check_model(
      "einsum_ellipsis",
      nn::Einsum({5, 3}, {.einsum_str = "... c, c e -> ... e", .bias_init = init::normal(1.0)}), {},
      wave({2, 3, 5}));
  check_model("einsum_call_no_bias", nn::Einsum({3, 5}, {.use_bias = false}), {}, wave({2, 5}),
              std::string("ac,dc->ad"));
}

TEST_CASE("Conv: strides, padding, dilation, groups and batch axes") {
  const nn::Conv strided(3, {3, 2}, {.strides = {2, 1}, .padding = "VALID"});
  check_model("conv_stride_valid", strided, {}, wave({2, 6, 5, 2}));
  check_gradients("conv_stride_valid", strided, {}, wave({2, 6, 5, 2}));
  check_model("conv_same_even", nn::Conv(3, 2, {.strides = 3}), {}, wave({2, 7, 2}));
  check_model("conv_circular", nn::Conv(2, {3, 3}, {.padding = "CIRCULAR"}), {},
              wave({1, 4, 5, 2}));
  check_model("conv_reflect", nn::Conv(2, 3, {.padding = "REFLECT"}), {}, wave({1, 5, 2}));
  check_model("conv_causal", nn::Conv(2, 3, {.padding = "CAUSAL", .kernel_dilation = 2}), {},
              wave({1, 6, 2}));
  check_model("conv_groups", nn::Conv(4, 3, {.padding = 1, .feature_group_count = 2}), {},
              wave({1, 6, 4}));
  check_model("conv_pairs", nn::Conv(2, {3, 3}, {.padding = {{1, 2}, 0}}), {}, wave({1, 4, 5, 2}));
  check_model("conv_input_dilation", nn::Conv(2, 3, {.padding = 1, .input_dilation = 2}), {},
              wave({1, 5, 2}));
  check_model("conv_no_batch", nn::Conv(2, 3), {}, wave({5, 2}));
  check_model("conv_two_batches", nn::Conv(2, 3), {}, wave({2, 3, 5, 2}));
}

TEST_CASE("Embed: numbers from the end, numbers outside, one row, attend") {
  check_model("embed_negative", nn::Embed(6, 3), {}, rp::array({{0, -1, 5}, {-6, 2, 6}}));
  check_model("embed_one", nn::Embed(1, 3), {}, rp::array({0, 0, 4}));
  check_model<&nn::Embed::attend>("embed_attend", nn::Embed(6, 3), {}, wave({2, 3}));
}

TEST_CASE("normalisation layers: axes, masks, groups and running averages") {
  const nn::LayerNorm two_axes({.use_bias = false, .reduction_axes = {-2, -1}});
  check_model("layer_norm_axes", two_axes, {}, wave({2, 3, 4}));
  check_model(
      "layer_norm_feature_axes",
      nn::LayerNorm(
          {.scale_init = init::normal(1.0), .reduction_axes = {1, 2}, .feature_axes = {1, 2}}),
      {}, wave({2, 3, 4}));
  check_model("layer_norm_slow",
              nn::LayerNorm({.epsilon = 1e-3, .use_scale = false, .use_fast_variance = false}), {},
              wave({2, 3, 4}));
  check_model("layer_norm_mask", nn::LayerNorm(), {}, wave({2, 4}),
              rp::array({{true, true, false, true}, {false, true, true, true}}));
  check_model("layer_norm_bf16", nn::LayerNorm({.dtype = rp::bfloat16}), {}, wave({2, 4}));
  const nn::RMSNorm rms({.epsilon = 1e-3, .scale_init = init::normal(1.0)});
  check_model("rms_norm_scale", rms, {}, wave({2, 3, 4}));
  check_gradients("rms_norm_scale", rms, {}, wave({2, 3, 4}));
  const nn::GroupNorm grouped(
      {.num_groups = std::nullopt, .group_size = 3, .scale_init = init::normal(1.0)});
  check_model("group_norm_size", grouped, {}, wave({2, 5, 6}));
  check_gradients("group_norm_size", grouped, {}, wave({2, 5, 6}));
  check_model("group_norm_axes",
              nn::GroupNorm({.num_groups = 2, .reduction_axes = rp::ReduceAxes(-1)}), {},
              wave({2, 5, 6}));
  const flax::CaseOptions moving = {.changes = "batch_stats"};
  check_model("batch_norm_train", nn::BatchNorm({.use_running_average = false, .momentum = 0.9}),
              moving, wave({4, 3}));
  check_model("batch_norm_axis1",
              nn::BatchNorm({.use_running_average = false, .axis = 1, .use_bias = false}), moving,
              wave({4, 3, 2}));
  check_model("batch_norm_mask", nn::BatchNorm(), moving, wave({4, 3}), false,
              rp::array({{true}, {true}, {false}, {true}}));
}

TEST_CASE("Dropout: shared decisions, other streams; PReLU") {
  const auto stream = [](const char* name, int seed) {
    return flax::CaseOptions{.rngs = {{name, rp::random::PRNGKey(seed)}}};
  };
  check_model("dropout_broadcast",
              nn::Dropout(0.5, {.broadcast_dims = {0}, .deterministic = false}),
              stream("dropout", 5), wave({3, 8}));
  check_model("dropout_params_fallback", nn::Dropout(0.3), stream("params", 5), wave({3, 8}),
              false);
  check_model("dropout_collection",
              nn::Dropout(0.3, {.deterministic = false, .rng_collection = "noise"}),
              stream("noise", 7), wave({3, 8}));
  check_model("prelu", nn::PReLU(), {}, wave({3, 2}));
  check_gradients("prelu", nn::PReLU(), {}, wave({3, 2}));
}

namespace {
struct Aliases : nn::Module<Aliases> {
  Array call(Array x) {
    x = nn::MultiHeadAttention(2)(x);
    return nn::SelfAttention(2)(x);
  }
};
using MHA = nn::MultiHeadDotProductAttention;
const std::optional<Array> none = std::nullopt;
}  // namespace

TEST_CASE("attention: other keys and values, masks, dropout, normalised queries, weights") {
  const Array x = wave({2, 3, 4}), one = wave({1, 3, 4});
  check_model("mha_cross", MHA(2, {.qkv_features = 6, .out_features = 5}), {}, x,
              wave({2, 4, 4}) * 0.5);
  check_model("mha_kv", MHA(2), {}, x, wave({2, 5, 4}) * 0.5, wave({2, 5, 4}) * 0.25);
  check_model("mha_mask", MHA(2), {}, x, none, none,
              nn::AttentionCall{.mask = nn::make_causal_mask(rp::ones({2, 3}))});
  check_model("mha_no_bias_norm", MHA(2, {.use_bias = false, .normalize_qk = true}), {}, one);
  const flax::CaseOptions dropout = {.rngs = {{"dropout", rp::random::PRNGKey(3)}}};
  check_model("mha_dropout", MHA(2, {.dropout_rate = 0.5, .deterministic = false}), dropout, one);
  check_model("mha_dropout_full",
              MHA(2, {.broadcast_dropout = false, .dropout_rate = 0.5, .deterministic = false}),
              dropout, x);
  check_model("mha_sow", MHA(2), {.changes = "intermediates"}, one, none, none,
              nn::AttentionCall{.sow_weights = true});
  check_model("mha_out_init",
              MHA(2, {.out_kernel_init = init::ones_init(), .out_bias_init = init::ones_init()}),
              {}, one);
  check_model("mha_aliases", Aliases(), {}, one);
}

TEST_CASE("attention with a cache decodes one position per call") {
  const flax::Json& c = flax::more("mha_decode");
  const MHA model(2, {.decode = true});
  const Array xs = wave({1, 4, 4});
  Dict variables = model.init(rp::random::PRNGKey(0), xs);
  flax::check_bits(variables, flax::dict_of(c.at("variables")));
  for (int i = 0; i < 3; ++i) {
    const Array x = xs(rp::all, rp::slice(i, i + 1));
    const auto [out, changed] = model.apply(variables, nn::mutable_("cache"), x);
    flax::check_close(out, flax::array_of(c.at("out").at(std::to_string(i))));
    variables["cache"] = changed.dict("cache");
  }
  flax::check_close(variables.dict("cache"), flax::dict_of(c.at("changed")).dict("cache"));
}
