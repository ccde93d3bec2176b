#include "reprise/nnx/attention.h"

#include "nnx/record.h"
#include "reprise/errors.h"
#include "reprise/lax.h"

namespace reprise::nnx {
namespace {

LinearGeneralOptions projection(const MultiHeadAttentionOptions& o) {
  return {.use_bias = o.use_bias,
          .dtype = o.dtype,
          .param_dtype = o.param_dtype,
          .kernel_init = o.kernel_init,
          .bias_init = o.bias_init};
}
LinearGeneralOptions out_projection(const MultiHeadAttentionOptions& o) {
  LinearGeneralOptions out = projection(o);
  out.axis = {-2, -1};
  out.kernel_init = o.out_kernel_init.value_or(o.kernel_init);
  out.bias_init = o.out_bias_init.value_or(o.bias_init);
  return out;
}
std::optional<LayerNorm> head_norm(std::int64_t depth, const Rngs& rngs,
                                   const MultiHeadAttentionOptions& o) {
  if (!o.normalize_qk) return std::nullopt;
  return LayerNorm(depth, rngs,
                   {.dtype = o.dtype, .param_dtype = o.param_dtype, .use_bias = false});
}

Array one_batch_axis(const Array& x) {
  Shape shape(x.shape().end() - 3, x.shape().end());
  shape.insert(shape.begin(), -1);
  return reshape(x, shape);
}

// Checked before anything is made: the number of features for each head.
std::int64_t depth_of(std::int64_t heads, std::int64_t in, const MultiHeadAttentionOptions& o,
                      Location at) {
  const AtUser scope(at);
  const std::int64_t qkv = o.qkv_features.value_or(in), kv_heads = o.num_kv_heads.value_or(heads);
  if (heads <= 0 || qkv % heads != 0) {
    fail<TypeError>("MultiHeadAttention: the number of heads must divide qkv_features, got ", heads,
                    " and ", qkv);
  }
  if (kv_heads <= 0 || heads % kv_heads != 0) {
    fail<TypeError>("MultiHeadAttention: num_kv_heads must divide the number of heads, got ",
                    kv_heads, " and ", heads);
  }
  return qkv / heads;
}

}  // namespace

// Members are made in the order of their declaration, which is the order of Flax's draws.
MultiHeadAttention::MultiHeadAttention(std::int64_t heads, std::int64_t in, const Rngs& source,
                                       const MultiHeadAttentionOptions& o, Location at)
    : query(in, {heads, depth_of(heads, in, o, at)}, source, projection(o), at),
      key(o.in_kv_features.value_or(in),
          {o.num_kv_heads.value_or(heads), depth_of(heads, in, o, at)}, source, projection(o), at),
      value(o.in_kv_features.value_or(in),
            {o.num_kv_heads.value_or(heads), depth_of(heads, in, o, at)}, source, projection(o),
            at),
      query_ln(head_norm(depth_of(heads, in, o, at), source, o)),
      key_ln(head_norm(depth_of(heads, in, o, at), source, o)),
      out({heads, depth_of(heads, in, o, at)}, o.out_features.value_or(in), source,
          out_projection(o), at),
      num_heads(heads),
      in_features(in),
      qkv_features(o.qkv_features.value_or(in)),
      out_features(o.out_features.value_or(in)),
      in_kv_features(o.in_kv_features.value_or(in)),
      num_kv_heads(o.num_kv_heads.value_or(heads)),
      head_dim(depth_of(heads, in, o, at)),
      dtype(o.dtype),
      param_dtype(o.param_dtype),
      broadcast_dropout(o.broadcast_dropout),
      dropout_rate(o.dropout_rate),
      deterministic(o.deterministic),
      use_bias(o.use_bias),
      decode(o.decode),
      normalize_qk(o.normalize_qk) {
  if (o.keep_rngs && dropout_rate > 0) rngs = source.stream("dropout", at).fork(at);
}

void MultiHeadAttention::init_cache(const Shape& input_shape, Dtype cache_dtype) {
  Shape shape(input_shape.begin(), input_shape.end() - (input_shape.empty() ? 0 : 1));
  shape.push_back(num_kv_heads);
  shape.push_back(head_dim);
  cached_key = Cache(zeros(shape, cache_dtype));
  cached_value = Cache(zeros(shape, cache_dtype));
  cache_index = Cache(array(0, int32));
}

MultiHeadAttention::Projected MultiHeadAttention::project(const Array& inputs_q,
                                                          const AttentionCall& call) const {
  if (call.inputs_v && !call.inputs_k) {
    fail_with_hint<TypeError>("give inputs_k alone to use it for both",
                              "MultiHeadAttention: inputs_v needs inputs_k, got only inputs_v");
  }
  const Array inputs_k = call.inputs_k.value_or(inputs_q),
              inputs_v = call.inputs_v.value_or(inputs_k);
  if (inputs_q.ndim() == 0 || inputs_q.shape(-1) != in_features) {
    fail<TypeError>("MultiHeadAttention: the last axis of the queries must be in_features, got ",
                    inputs_q.type(), " for ", in_features);
  }
  Projected p;
  p.q = query(inputs_q);
  p.k = key(inputs_k);
  p.v = value(inputs_v);
  p.mask = call.mask;
  if (query_ln) p.q = (*query_ln)(p.q);
  if (key_ln) p.k = (*key_ln)(p.k);
  return p;
}

// One position: its key and value go into the cache, and it sees all positions up to itself.
void MultiHeadAttention::use_cache(Projected& p) const {
  if (!cached_key || !cached_value || !cache_index) {
    fail_with_hint<TypeError>("call init_cache with the shape of the whole input first",
                              "MultiHeadAttention: decoding needs a cache, got none");
  }
  const Shape room = cached_key->shape();
  Shape expected = room;
  expected[expected.size() - 3] = 1;
  if (p.k.shape() != expected) {
    fail<TypeError>("MultiHeadAttention: while decoding the key must be one position, got ",
                    p.k.type(), " for ", Type{p.k.dtype(), expected});
  }
  const Array index = *cache_index;
  Arrays start(room.size(), array(0, int32));
  start[start.size() - 3] = index;
  p.k = lax::dynamic_update_slice(*cached_key, p.k.astype(cached_key->dtype()), start);
  p.v = lax::dynamic_update_slice(*cached_value, p.v.astype(cached_value->dtype()), start);
  cached_key->set_value(p.k);
  cached_value->set_value(p.v);
  cache_index->set_value(index + array(1, int32));
  const std::int64_t length = room[room.size() - 3];
  Shape shape(room.begin(), room.end() - 3);
  shape.insert(shape.end(), {1, 1, length});
  const Array seen = broadcast_to(arange(length) <= index, shape);
  p.mask = nn::combine_masks({p.mask, seen});
}

Array MultiHeadAttention::attend(const Projected& p, const AttentionCall& call) {
  if (dropout_rate == 0.0 && !call.sow_weights) {
    const Arrays in = nn::promote_dtype({p.q, p.k, p.v}, dtype);
    const OptionalArray mask = p.mask ? OptionalArray(p.mask->astype(bool_)) : std::nullopt;
    if (in[0].ndim() <= 4) {
      return nn::scaled_attention(in[0], in[1], in[2], {.mask = mask, .is_causal = call.is_causal});
    }
    const Array q = one_batch_axis(in[0]), k = one_batch_axis(in[1]), v = one_batch_axis(in[2]);
    const Array x =
        nn::scaled_attention(q, k, v,
                             {.mask = mask ? OptionalArray(one_batch_axis(*mask)) : std::nullopt,
                              .is_causal = call.is_causal});
    return reshape(x, in[0].shape());
  }
  bool fixed = true;
  if (dropout_rate > 0) {
    if (!call.deterministic && !deterministic) {
      fail_with_hint<TypeError>(
          "pass it to the constructor or to the call, or call model.train() or model.eval()",
          "MultiHeadAttention: deterministic is not known");
    }
    fixed = call.deterministic.value_or(deterministic.value_or(false));
  }
  nn::AttentionOptions o;
  o.mask = p.mask;
  o.broadcast_dropout = broadcast_dropout;
  o.dropout_rate = dropout_rate;
  o.deterministic = fixed;
  o.dtype = dtype;
  o.is_causal = call.is_causal;
  if (!fixed) {
    if (!call.dropout_key && !rngs) {
      fail_with_hint<TypeError>(
          "pass a dropout_key to the call, or keep_rngs to the constructor",
          "MultiHeadAttention: it is not deterministic and has no random stream");
    }
    o.dropout_rng = call.dropout_key ? *call.dropout_key : (*rngs)();
  }
  const Array weights = nn::dot_product_attention_weights(p.q, p.k, o);
  if (call.sow_weights) sow("attention_weights", weights);
  const Arrays in = nn::promote_dtype({p.q, p.k, p.v}, dtype);
  return nn::attention_values(weights, in[2]);
}

Array MultiHeadAttention::operator()(Operand inputs_q, const AttentionCall& call) {
  const AtUser scope(inputs_q.at);
  Projected p = project(inputs_q.array, call);
  if (!call.decode && !decode) {
    fail_with_hint<TypeError>("pass {.decode = false} to the constructor or to the call",
                              "MultiHeadAttention: decode is not known");
  }
  if (call.decode.value_or(decode.value_or(false))) use_cache(p);
  const Array x = attend(p, call);
  return detail::recorded(*this, inputs_q, out(x));
}

// ---------------------------------------------------------------------------------------- members
REPRISE_FIELDS_OF(MultiHeadAttention, query, key, value, query_ln, key_ln, out, rngs, cached_key,
                  cached_value, cache_index, num_heads, in_features, qkv_features, out_features,
                  in_kv_features, num_kv_heads, head_dim, dtype, param_dtype, broadcast_dropout,
                  dropout_rate, deterministic, use_bias, decode, normalize_qk)

}  // namespace reprise::nnx
