// Attention: softmax(query * key) * value, and its masks.
#include "nn/functions/axes.h"
#include "reprise/lax.h"
#include "reprise/nn_functions.h"
#include "reprise/nn_layers.h"
#include "reprise/ops_shape.h"
#include "reprise/random.h"

#include <cmath>
#include <limits>

namespace reprise::nn {
namespace {

Shape batch_of(const Array& x) { return {x.shape().begin(), x.shape().end() - 3}; }

void check_same_batch(const char* op, const Array& query, const Array& other, const char* name) {
  if (query.ndim() < 3 || query.ndim() != other.ndim() || batch_of(query) != batch_of(other)) {
    fail<TypeError>(op, ": query and ", name,
                    " must be (batch..., length, heads, depth) with the same batch, got ",
                    query.type(), " and ", other.type());
  }
}
void check_heads(const char* op, const Array& query, const Array& other, const char* name) {
  const std::int64_t heads = query.shape(-2), served_by = other.shape(-2);
  if (served_by == 0 || heads % served_by != 0) {
    fail<TypeError>(op, ": the heads of the query must be a multiple of those of the ", name,
                    ", got ", heads, " and ", served_by);
  }
}
void check_key(const char* op, const Array& query, const Array& key) {
  check_same_batch(op, query, key, "key");
  check_heads(op, query, key, "key");
  if (query.shape(-1) != key.shape(-1)) {
    fail<TypeError>(op, ": query and key must have the same depth, got ", query.shape(-1), " and ",
                    key.shape(-1));
  }
}
void check_value(const char* op, const Array& query, const Array& key, const Array& value) {
  check_same_batch(op, query, value, "value");
  if (key.shape(-2) != value.shape(-2) || key.shape(-3) != value.shape(-3)) {
    fail<TypeError>(op, ": key and value must have the same length and heads, got ", key.type(),
                    " and ", value.type());
  }
}

// The most negative finite number: its exponential is 0, and a row of nothing else stays finite.
double lowest(Dtype dtype) {
  if (dtype == float16) return -65504;
  if (dtype == bfloat16) return -0x1.fep127;
  return dtype == float64 ? std::numeric_limits<double>::lowest()
                          : std::numeric_limits<float>::lowest();
}

// (..., heads, depth) -> (..., key heads, queries per key head, depth)
Array split_heads(const Array& x, std::int64_t axis, std::int64_t groups) {
  Shape shape = x.shape();
  const auto at = static_cast<std::size_t>(canonical_axis("attention", axis, x.ndim()));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, shape[at] / groups);
  shape[at] = groups;
  return reshape(x, shape);
}
Array merge_heads(const Array& x, std::int64_t axis) {
  Shape shape = x.shape();
  const auto at = static_cast<std::size_t>(canonical_axis("attention", axis, x.ndim()));
  shape[at] *= shape[at + 1];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return reshape(x, shape);
}

Array logits_of(const Array& query, const Array& key) {
  if (query.shape(-2) == key.shape(-2)) return einsum("...qhd,...khd->...hqk", query, key);
  const Array grouped = split_heads(query, -2, key.shape(-2));
  const Array logits = einsum("...qhgd,...khd->...hgqk", grouped, key);
  return merge_heads(logits, -4);
}

OptionalArray mask_of(const AttentionOptions& options, const Array& logits) {
  if (!options.is_causal) return options.mask;
  const Array seen = tri(logits.shape(-2), logits.shape(-1), 0, bool_);
  const Array causal = broadcast_to(seen, options.mask ? options.mask->shape() : logits.shape());
  return combine_masks({options.mask, causal}, logits.dtype());
}

Array dropped(const Array& weights, const AttentionOptions& options) {
  if (!options.dropout_rng) {
    fail_with_hint<TypeError>("pass .dropout_rng, or set .deterministic",
                              "dot_product_attention: dropout needs a key, got rate ",
                              options.dropout_rate);
  }
  const double keep_prob = 1.0 - options.dropout_rate;
  Shape shape = weights.shape();
  if (options.broadcast_dropout) std::fill(shape.begin(), shape.end() - 2, 1);
  const Array keep = random::bernoulli(*options.dropout_rng, keep_prob, shape);
  const Array kept = keep.astype(weights.dtype());
  const Array multiplier = kept / full({}, keep_prob, weights.dtype());
  return weights * multiplier;
}

}  // namespace

Array dot_product_attention_weights(Operand query, const Array& key,
                                    const AttentionOptions& options) {
  const AtUser at(query.at);
  check_key("dot_product_attention", query.array, key);
  const Arrays in = promote_dtype({query.array, key}, options.dtype);
  const Dtype dtype = in[0].dtype();
  const float root = std::sqrt(static_cast<float>(query.array.shape(-1)));
  const Array scaled = in[0] / full({}, root, dtype);
  Array weights = logits_of(scaled, in[1]);
  if (options.bias) weights = weights + *options.bias;
  if (const OptionalArray mask = mask_of(options, weights)) {
    weights = where(*mask, weights, lowest(dtype));
  }
  if (options.force_fp32_for_softmax && dtype != float32) {
    weights = softmax(weights.astype(float32));
  } else {
    weights = softmax(weights).astype(dtype);
  }
  const bool drops = !options.deterministic && options.dropout_rate > 0;
  return drops ? dropped(weights, options) : weights;
}

Array attention_values(Operand weights, const Array& value) {
  const AtUser at(weights.at);
  const Array& w = weights.array;
  if (w.shape(-3) == value.shape(-2)) return einsum("...hqk,...khd->...qhd", w, value);
  check_heads("attention_values", swapaxes(w, -2, -3), value, "value");
  const Array grouped = split_heads(w, -3, value.shape(-2));
  const Array out = einsum("...hgqk,...khd->...qhgd", grouped, value);
  return merge_heads(out, -3);
}

Array dot_product_attention(Operand query, const Array& key, const Array& value,
                            const AttentionOptions& options) {
  const AtUser at(query.at);
  check_key("dot_product_attention", query.array, key);
  check_value("dot_product_attention", query.array, key, value);
  const Arrays in = promote_dtype({query.array, key, value}, options.dtype);
  const Array weights = dot_product_attention_weights(in[0], in[1], options);
  return attention_values(weights, in[2]);
}

// ------------------------------------------------------------------------------- scaled attention
namespace {

// (batch..., a, b, c) -> (batch, a, b, c); entries of a bias or mask are repeated where it lacks
// them.
Array one_batch(const Array& x, const Shape& batch) {
  Shape full_shape = batch;
  full_shape.insert(full_shape.end(), x.shape().end() - 3, x.shape().end());
  const Array wide = x.shape() == full_shape ? x : broadcast_to(x, full_shape);
  Shape flat(full_shape.end() - 3, full_shape.end());
  flat.insert(flat.begin(), product(batch, 0, batch.size()));
  return batch.size() == 1 ? wide : reshape(wide, flat);
}

// With at least the three axes (heads, queries, keys), or empty.
OptionalArray with_heads(const OptionalArray& x) {
  if (!x || x->ndim() >= 3) return x;
  Shape leading(static_cast<std::size_t>(3 - x->ndim()), 1);
  leading.insert(leading.end(), x->shape().begin(), x->shape().end());
  return reshape(*x, leading);
}

Array masked_logits(Array logits, const ScaledAttentionOptions& options, const Shape& batch) {
  if (const OptionalArray bias = with_heads(options.bias)) {
    const Array sum = logits + one_batch(*bias, batch);
    logits = sum.astype(logits.dtype());
  }
  OptionalArray mask;
  if (options.mask) mask = one_batch(with_heads(options.mask)->astype(bool_), batch);
  if (options.is_causal) {
    const Array seen = tri(logits.shape(-2), logits.shape(-1), 0, bool_);
    mask = mask ? logical_and(*mask, seen) : seen;
  }
  if (!mask) return logits;
  return where(*mask, logits, -0.7 * std::numeric_limits<float>::max());
}

}  // namespace

Array scaled_attention(Operand query, const Array& key, const Array& value,
                       const ScaledAttentionOptions& options) {
  const AtUser at(query.at);
  check_key("scaled_attention", query.array, key);
  check_value("scaled_attention", query.array, key, value);
  const Shape batch = batch_of(query.array);
  const Array q = one_batch(query.array, batch), k = one_batch(key, batch),
              v = one_batch(value, batch);
  const std::int64_t groups = k.shape(-2);
  const Dtype logits_dtype = promote_types(q.dtype(), false, float32, false).dtype;
  // (b, t, group, member, depth), (b, s, group, depth) -> (b, group, t, member, s)
  const Array grouped = split_heads(q, -2, groups);
  const Array products = lax::dot_general(grouped, k, {{4}, {3}, {0, 2}, {0, 2}}, logits_dtype);
  const Array by_member = swapaxes(products, 2, 3);
  Array logits = merge_heads(by_member, 1);
  const double depth = static_cast<double>(q.shape(-1));
  logits = logits * full({}, options.scale.value_or(1.0 / std::sqrt(depth)), logits_dtype);
  logits = masked_logits(logits, options, batch);
  const Array weights = softmax(logits.astype(float32)).astype(key.dtype());
  // (b, group, member, t, s), (b, s, group, depth) -> (b, group, member, t, depth)
  const Array by_group = split_heads(weights, 1, groups);
  const Array encoded = lax::dot_general(by_group, v, {{4}, {1}, {0, 1}, {0, 2}});
  const Array in_order = transpose(encoded, {0, 3, 1, 2, 4});
  Shape out(query.array.shape().begin(), query.array.shape().end() - 1);
  out.push_back(value.shape(-1));
  return reshape(in_order, out);
}

// ------------------------------------------------------------------------------------------- masks
Array make_attention_mask(Operand query_input, Operand key_input,
                          const PairwiseFunction& pairwise_fn, std::int64_t extra_batch_dims,
                          Dtype dtype) {
  const AtUser at(query_input.at);
  const Array rows = expand_dims(query_input, -1);
  const Array columns = expand_dims(key_input, -2);
  const Array pairs = pairwise_fn(rows, columns);
  Shape shape(static_cast<std::size_t>(std::max<std::int64_t>(0, extra_batch_dims)), 1);
  shape.insert(shape.end(), pairs.shape().begin(), pairs.shape().end());
  shape.insert(shape.end() - 2, 1);  // the heads
  const Array mask = reshape(pairs, shape);
  return mask.astype(dtype);
}

Array make_causal_mask(Operand x, std::int64_t extra_batch_dims, Dtype dtype) {
  const AtUser at(x.at);
  if (x.array.ndim() == 0) fail<TypeError>("make_causal_mask: the input needs at least one axis");
  const Array positions = broadcast_to(arange(x.array.shape(-1), int32), x.array.shape());
  return make_attention_mask(positions, positions, greater_equal, extra_batch_dims, dtype);
}

OptionalArray combine_masks(const std::vector<OptionalArray>& masks, Dtype dtype, Location at) {
  const AtUser scope(at);
  OptionalArray out;
  for (const OptionalArray& mask : masks) {
    if (!mask) continue;
    if (out && out->ndim() != mask->ndim()) {
      fail<TypeError>("combine_masks: the masks must have the same number of dimensions, got ",
                      out->type(), " and ", mask->type());
    }
    out = out ? logical_and(*out, *mask) : *mask;
  }
  if (out) out = out->astype(dtype);
  return out;
}

}  // namespace reprise::nn
