// Multi-head attention.
//
//   nnx::MultiHeadAttention attention(8, 512, rngs, {.decode = false});
//   Array y = attention(x, {.mask = rp::nn::make_causal_mask(tokens)});
#pragma once

#include "reprise/nnx/layers.h"

#include <optional>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// Options of MultiHeadAttention, as in Flax; behind some of them, what they are by default.
struct MultiHeadAttentionOptions {
  std::optional<std::int64_t> qkv_features = std::nullopt,
                              out_features = std::nullopt;  // in_features
  std::optional<std::int64_t> num_kv_heads =
      std::nullopt;  // num_heads; fewer serve groups of heads
  std::optional<std::int64_t> in_kv_features = std::nullopt;  // in_features
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool broadcast_dropout = true;
  double dropout_rate = 0.0;
  std::optional<bool> deterministic = std::nullopt;
  Initializer kernel_init = initializers::lecun_normal();
  std::optional<Initializer> out_kernel_init = std::nullopt;
  Initializer bias_init = initializers::zeros_init();
  std::optional<Initializer> out_bias_init = std::nullopt;
  bool use_bias = true;
  std::optional<bool> decode = std::nullopt;
  bool normalize_qk = false;
  bool keep_rngs = true;
};

// What a call may say; it takes precedence over the module.
struct AttentionCall {
  OptionalArray inputs_k = std::nullopt, inputs_v = std::nullopt;  // the queries, the keys
  OptionalArray mask = std::nullopt;
  std::optional<bool> deterministic = std::nullopt;
  OptionalArray dropout_key = std::nullopt;  // instead of one from the module's stream
  bool sow_weights = false;                  // as "attention_weights"
  std::optional<bool> decode = std::nullopt;
  bool is_causal = false;
};

// Attention of several heads with projections of queries, keys, values and of the result.
struct MultiHeadAttention : Module {
  MultiHeadAttention(std::int64_t heads, std::int64_t in, const Rngs& source,
                     const MultiHeadAttentionOptions& options = {},
                     Location at = Location::current());
  // Queries (batch..., length, in_features) to (batch..., length, out_features).
  Array operator()(Operand inputs_q, const AttentionCall& call = {});
  // Makes room for keys and values of inputs of this shape; then call with one position at a time.
  void init_cache(const Shape& input_shape, Dtype cache_dtype = float32);

  LinearGeneral query, key, value;  // kernels (in, heads, depth)
  std::optional<LayerNorm> query_ln, key_ln;
  LinearGeneral out;  // kernel (heads, depth, out)
  std::optional<RngStream> rngs;
  std::optional<Cache> cached_key, cached_value, cache_index;
  std::int64_t num_heads, in_features, qkv_features, out_features, in_kv_features, num_kv_heads,
      head_dim;
  OptionalDtype dtype;
  Dtype param_dtype;
  bool broadcast_dropout;
  double dropout_rate;
  std::optional<bool> deterministic;
  bool use_bias;
  std::optional<bool> decode;
  bool normalize_qk;
  REPRISE_FIELDS_DECLARED

 private:
  struct Projected {
    Array q, k, v;
    OptionalArray mask;
  };
  Projected project(const Array& inputs_q, const AttentionCall& call) const;
  void use_cache(Projected& p) const;
  Array attend(const Projected& p, const AttentionCall& call);
};

}  // namespace reprise::nnx
#pragma GCC visibility pop
