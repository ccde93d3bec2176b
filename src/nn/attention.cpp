#include "reprise/errors.h"
#include "reprise/nn_attention.h"
#include "reprise/nn_linear.h"
#include "reprise/nn_norm.h"
#include "reprise/ops.h"

namespace reprise::nn {

// ----------------------------------------------------------------------------------------- Dropout
Dropout::Dropout(double rate, DropoutFields fields, Location at)
    : Module(fields.name, at), rate_(rate), fields_(std::move(fields)) {}

Array Dropout::call(Array x, std::optional<bool> deterministic, OptionalArray rng) {
  const AtUser at(made_at());
  if (merge_param("deterministic", fields_.deterministic, deterministic)) return x;
  const bool draws = rate_ != 0.0 && rate_ != 1.0;
  Array key = rng ? *rng : Array();
  if (draws && !rng) key = make_rng(fields_.rng_collection);
  return dropout(x, rate_, key, fields_.broadcast_dims);
}

// --------------------------------------------------------------------------------------- attention
MultiHeadDotProductAttention::MultiHeadDotProductAttention(std::int64_t num_heads,
                                                           AttentionFields fields, Location at)
    : Module(fields.name, at), num_heads_(num_heads), fields_(std::move(fields)) {}

MultiHeadDotProductAttention::MultiHeadDotProductAttention(const std::string& class_name,
                                                           std::int64_t num_heads,
                                                           AttentionFields fields, Location at)
    : Module(ClassName{class_name}, fields.name, at),
      num_heads_(num_heads),
      fields_(std::move(fields)) {}

Array MultiHeadDotProductAttention::projected(const std::string& name, const Array& x,
                                              std::int64_t head_features) {
  return DenseGeneral(Shape{num_heads_, head_features},
                      {.use_bias = fields_.use_bias,
                       .dtype = fields_.dtype,
                       .param_dtype = fields_.param_dtype,
                       .kernel_init = fields_.kernel_init,
                       .bias_init = fields_.bias_init,
                       .name = name},
                      made_at())(x);
}

// Puts the new key and value into the cache and returns the mask of what is there already; the
// first call only makes the cache, of the given length.
Array MultiHeadDotProductAttention::use_cache(Array& key, Array& value, const Array& query,
                                              const OptionalArray& mask) {
  const bool is_filled = has_variable("cache", "cached_key");
  Variable cached_key =
      variable("cache", "cached_key", [&] { return zeros(key.shape(), key.dtype()); });
  Variable cached_value =
      variable("cache", "cached_value", [&] { return zeros(value.shape(), value.dtype()); });
  Variable cache_index = variable("cache", "cache_index", [] { return zeros({}, int32); });
  if (!is_filled) return mask ? *mask : Array();
  const Shape shape = cached_key.value().shape();
  const std::size_t position_axis = shape.size() - 3;
  Shape expected = shape;
  expected[position_axis] = 1;
  if (query.shape() != expected) {
    fail<TypeError>("attention: decoding takes one position per call, as (", join(expected, ", "),
                    ") after the projection, got ", query.type());
  }
  const Array index = cache_index.value();
  Arrays at(shape.size(), zeros({}, int32));
  at[position_axis] = index;
  key = lax::dynamic_update_slice(cached_key.value(), key, at);
  value = lax::dynamic_update_slice(cached_value.value(), value, at);
  cached_key.set_value(key);
  cached_value.set_value(value);
  cache_index.set_value(index + 1);
  Shape mask_shape(shape.begin(), shape.end() - 3);
  mask_shape.insert(mask_shape.end(), {1, 1, shape[position_axis]});
  const Array positions = arange(shape[position_axis]);
  const Array known = broadcast_to(positions <= index, mask_shape);
  return *combine_masks({mask, known});
}

Array MultiHeadDotProductAttention::attend(const Array& query, const Array& key, const Array& value,
                                           const AttentionCall& options,
                                           const OptionalArray& mask) {
  bool deterministic = true;
  OptionalArray dropout_rng = options.dropout_rng;
  if (fields_.dropout_rate > 0.0) {
    deterministic = merge_param("deterministic", fields_.deterministic, options.deterministic);
    if (!deterministic && !dropout_rng) dropout_rng = make_rng("dropout");
  }
  const AttentionOptions attention = {.mask = mask,
                                      .broadcast_dropout = fields_.broadcast_dropout,
                                      .dropout_rng = dropout_rng,
                                      .dropout_rate = fields_.dropout_rate,
                                      .deterministic = deterministic,
                                      .dtype = fields_.dtype,
                                      .force_fp32_for_softmax = fields_.force_fp32_for_softmax};
  if (!options.sow_weights) return dot_product_attention(query, key, value, attention);
  const Arrays promoted = promote_dtype({query, key, value}, fields_.dtype);
  const Array weights = dot_product_attention_weights(promoted[0], promoted[1], attention);
  sow("intermediates", "attention_weights", weights);
  return attention_values(weights, promoted[2]);
}

Array MultiHeadDotProductAttention::call(Array inputs_q, OptionalArray inputs_k,
                                         OptionalArray inputs_v, AttentionCall options) {
  const AtUser at(made_at());
  if (inputs_v && !inputs_k) {
    fail_with_hint<TypeError>("values alone: give them as keys, they are the values too",
                              "attention: values need keys, got none");
  }
  if (!inputs_k) inputs_k = inputs_q;
  if (!inputs_v) inputs_v = inputs_k;
  const std::int64_t qkv_features = fields_.qkv_features.value_or(inputs_q.shape(-1));
  const std::int64_t out_features = fields_.out_features.value_or(inputs_q.shape(-1));
  if (num_heads_ <= 0 || qkv_features % num_heads_ != 0) {
    fail<TypeError>("attention: the number of heads must divide qkv_features, got ", num_heads_,
                    " heads for ", qkv_features, " features");
  }
  Array query = projected("query", inputs_q, qkv_features / num_heads_);
  Array key = projected("key", *inputs_k, qkv_features / num_heads_);
  Array value = projected("value", *inputs_v, qkv_features / num_heads_);
  if (fields_.normalize_qk) {
    const auto normalized = [&](const std::string& name, const Array& x) {
      return LayerNorm({.dtype = fields_.dtype,
                        .param_dtype = fields_.param_dtype,
                        .use_bias = false,
                        .name = name},
                       made_at())(x);
    };
    query = normalized("query_ln", query);
    key = normalized("key_ln", key);
  }
  OptionalArray mask = options.mask;
  if (fields_.decode) {
    const Array known = use_cache(key, value, query, mask);
    if (known.defined()) mask = known;
  }
  const Array heads = attend(query, key, value, options, mask);
  return DenseGeneral(out_features,
                      {.axis = {-2, -1},
                       .use_bias = fields_.use_bias,
                       .dtype = fields_.dtype,
                       .param_dtype = fields_.param_dtype,
                       .kernel_init = fields_.out_kernel_init.value_or(fields_.kernel_init),
                       .bias_init = fields_.out_bias_init.value_or(fields_.bias_init),
                       .name = "out"},
                      made_at())(heads);
}

}  // namespace reprise::nn
