// Linen's Dropout and attention layers.
//
//   x = rp::nn::Dropout(0.1, {.deterministic = !train})(x);
//   x = rp::nn::MultiHeadDotProductAttention(8)(x, {}, {}, {.mask = rp::nn::make_causal_mask(tokens)});
#pragma once

#include "reprise/nn_layers.h"
#include "reprise/nn_module.h"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#pragma GCC visibility push(default)
namespace reprise::nn {

// Fields of Dropout.
struct DropoutFields {
  Shape broadcast_dims = {};                         // axes that share one decision
  std::optional<bool> deterministic = std::nullopt;  // or given to the call
  std::string rng_collection = "dropout";
  std::string name = {};
};
// Zero with probability `rate`, else x / (1 - rate). Deterministic, or with rate 0, it is x and no
// key is drawn.
class Dropout : public Module<Dropout> {
 public:
  explicit Dropout(double rate, DropoutFields fields = {}, Location at = Location::current());
  Array call(Array x, std::optional<bool> deterministic = std::nullopt,
             OptionalArray rng = std::nullopt);

 private:
  double rate_;
  DropoutFields fields_;
};

// Fields of the attention layers, as in Flax.
struct AttentionFields {
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  // By default the number of features of the queries.
  std::optional<std::int64_t> qkv_features = std::nullopt, out_features = std::nullopt;
  bool broadcast_dropout = true;  // batch entries and heads share one mask
  double dropout_rate = 0.0;
  // needed if dropout_rate > 0, here or by the call
  std::optional<bool> deterministic = std::nullopt;
  Initializer kernel_init = initializers::lecun_normal();
  std::optional<Initializer> out_kernel_init = std::nullopt;  // by default as kernel_init
  Initializer bias_init = initializers::zeros_init();
  std::optional<Initializer> out_bias_init = std::nullopt;
  bool use_bias = true;
  // one position per call, keys and values are kept in the collection cache
  bool decode = false;
  bool normalize_qk = false;  // LayerNorm of queries and keys
  bool force_fp32_for_softmax = false;
  std::string name = {};
};
// What a call may add to its inputs.
struct AttentionCall {
  OptionalArray mask = std::nullopt;  // (batch..., heads, queries, keys), false: left out
  std::optional<bool> deterministic = std::nullopt;
  OptionalArray dropout_rng = std::nullopt;  // by default a key of the stream dropout
  bool sow_weights = false;                  // into intermediates
  REPRISE_FIELDS(mask, deterministic, dropout_rng, sow_weights)
};

// Queries, keys and values by linear maps, attention for each head, and a linear map of all heads'
// results. Without keys the queries are the keys, without values the keys are the values. Children:
// query, key, value, out, and query_ln, key_ln if normalize_qk.
class MultiHeadDotProductAttention : public Module<MultiHeadDotProductAttention> {
 public:
  explicit MultiHeadDotProductAttention(std::int64_t num_heads, AttentionFields fields = {},
                                        Location at = Location::current());
  Array operator()(const Array& inputs_q, const OptionalArray& inputs_k = std::nullopt,
                   const OptionalArray& inputs_v = std::nullopt,
                   const AttentionCall& options = {}) {
    return run(inputs_q, inputs_k, inputs_v, options);
  }
  Array call(Array inputs_q, OptionalArray inputs_k = std::nullopt,
             OptionalArray inputs_v = std::nullopt, AttentionCall options = {});

 protected:
  MultiHeadDotProductAttention(const std::string& class_name, std::int64_t num_heads,
                               AttentionFields fields, Location at);

 private:
  Array projected(const std::string& name, const Array& x, std::int64_t head_features);
  Array use_cache(Array& key, Array& value, const Array& query, const OptionalArray& mask);
  Array attend(const Array& query, const Array& key, const Array& value,
               const AttentionCall& options, const OptionalArray& mask);

  std::int64_t num_heads_;
  AttentionFields fields_;
};
// The same under another name (which children's names, and so their numbers, depend on).
class MultiHeadAttention : public MultiHeadDotProductAttention {
 public:
  explicit MultiHeadAttention(std::int64_t num_heads, AttentionFields fields = {},
                              Location at = Location::current())
      : MultiHeadDotProductAttention("MultiHeadAttention", num_heads, std::move(fields), at) {}
};
// Of the queries with themselves.
class SelfAttention : public MultiHeadDotProductAttention {
 public:
  explicit SelfAttention(std::int64_t num_heads, AttentionFields fields = {},
                         Location at = Location::current())
      : MultiHeadDotProductAttention("SelfAttention", num_heads, std::move(fields), at) {}
  Array operator()(const Array& inputs, const AttentionCall& options = {}) {
    return MultiHeadDotProductAttention::operator()(inputs, std::nullopt, std::nullopt, options);
  }
};

}  // namespace reprise::nn
#pragma GCC visibility pop
