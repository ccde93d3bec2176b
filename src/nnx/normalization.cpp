// Normalising layers, dropout and Sequential.
#include "nnx/parameters.h"
#include "nnx/record.h"
#include "reprise/errors.h"
#include "reprise/nnx/layers.h"

namespace reprise::nnx {
namespace {

// The scale is drawn before the bias.
template <class Layer, class Options>
void make_scale_and_bias(Layer& layer, const Shape& shape, const Rngs& rngs, const Options& o) {
  if (o.use_scale) layer.scale = Param(o.scale_init(rngs.params(), shape, o.param_dtype));
  if (o.use_bias) layer.bias = Param(o.bias_init(rngs.params(), shape, o.param_dtype));
}
template <class Layer>
nn::NormOptions norm_options(const Layer& layer, const OptionalArray& mask) {
  nn::NormOptions o;
  if constexpr (requires { layer.feature_axes; }) {
    o.reduction_axes = ReduceAxes(layer.reduction_axes);
    o.feature_axes = ReduceAxes(layer.feature_axes);
  } else if (layer.reduction_axes) {
    o.reduction_axes = ReduceAxes(*layer.reduction_axes);
  }
  o.epsilon = layer.epsilon;
  o.dtype = layer.dtype;
  o.use_fast_variance = layer.use_fast_variance;
  o.mask = mask;
  return o;
}

}  // namespace

LayerNorm::LayerNorm(std::int64_t features, const Rngs& rngs, const LayerNormOptions& o,
                     Location at)
    : num_features(features),
      epsilon(o.epsilon),
      dtype(o.dtype),
      param_dtype(o.param_dtype),
      use_bias(o.use_bias),
      use_scale(o.use_scale),
      reduction_axes(o.reduction_axes.expanded(1)),
      feature_axes(o.feature_axes.expanded(1)),
      use_fast_variance(o.use_fast_variance) {
  const AtUser scope(at);
  make_scale_and_bias(*this, {features}, rngs, o);
}
Array LayerNorm::operator()(Operand x, const OptionalArray& mask) const {
  const Array y =
      nn::layer_norm(x, detail::value_of(scale), detail::value_of(bias), norm_options(*this, mask));
  return detail::recorded(*this, x, y);
}

RMSNorm::RMSNorm(std::int64_t features, const Rngs& rngs, const RMSNormOptions& o, Location at)
    : num_features(features),
      epsilon(o.epsilon),
      dtype(o.dtype),
      param_dtype(o.param_dtype),
      use_scale(o.use_scale),
      reduction_axes(o.reduction_axes.expanded(1)),
      feature_axes(o.feature_axes.expanded(1)),
      use_fast_variance(o.use_fast_variance) {
  const AtUser scope(at);
  if (use_scale) scale = Param(o.scale_init(rngs.params(), {features}, param_dtype));
}
Array RMSNorm::operator()(Operand x, const OptionalArray& mask) const {
  return detail::recorded(*this, x,
                          nn::rms_norm(x, detail::value_of(scale), norm_options(*this, mask)));
}

GroupNorm::GroupNorm(std::int64_t features, const Rngs& rngs, const GroupNormOptions& o,
                     Location at)
    : num_features(features),
      epsilon(o.epsilon),
      dtype(o.dtype),
      param_dtype(o.param_dtype),
      use_bias(o.use_bias),
      use_scale(o.use_scale),
      reduction_axes(o.reduction_axes),
      use_fast_variance(o.use_fast_variance) {
  const AtUser scope(at);
  if (o.num_groups.has_value() == o.group_size.has_value()) {
    fail_with_hint<TypeError>(
        "for a group size write {.num_groups = std::nullopt, .group_size = ...}",
        "GroupNorm: one of num_groups and group_size must be given, got ",
        o.num_groups ? "both" : "none");
  }
  const std::int64_t parts = o.num_groups ? *o.num_groups : *o.group_size;
  if (parts <= 0 || features % parts != 0) {
    fail<TypeError>("GroupNorm: the ", o.num_groups ? "number of groups" : "group size",
                    " must divide the number of features, got ", parts, " and ", features);
  }
  num_groups = o.num_groups ? parts : features / parts;
  group_size = features / num_groups;
  make_scale_and_bias(*this, {features}, rngs, o);
}
Array GroupNorm::operator()(Operand x, const OptionalArray& mask) const {
  const Array y = nn::group_norm(x, num_groups, detail::value_of(scale), detail::value_of(bias),
                                 norm_options(*this, mask));
  return detail::recorded(*this, x, y);
}

BatchNorm::BatchNorm(std::int64_t features, const Rngs& rngs, const BatchNormOptions& o,
                     Location at)
    : num_features(features),
      use_running_average(o.use_running_average),
      axis(o.axis),
      momentum(o.momentum),
      epsilon(o.epsilon),
      dtype(o.dtype),
      param_dtype(o.param_dtype),
      use_bias(o.use_bias),
      use_scale(o.use_scale),
      use_fast_variance(o.use_fast_variance) {
  const AtUser scope(at);
  mean = BatchStat(zeros({features}));
  var = BatchStat(ones({features}));
  make_scale_and_bias(*this, {features}, rngs, o);
}
Array BatchNorm::operator()(Operand x, std::optional<bool> running,
                            const OptionalArray& mask) const {
  const AtUser scope(x.at);
  if (!running && !use_running_average) {
    fail_with_hint<TypeError>(
        "pass it to the constructor or to the call, or call model.train() or model.eval()",
        "BatchNorm: use_running_average is not known");
  }
  const Shape reduced = nn::other_axes(x.array, axis);
  const Arrays in = nn::promote_dtype(
      {x.array, mean, var, scale ? Array(*scale) : Array(), bias ? Array(*bias) : Array()}, dtype);
  nn::Statistics statistics{in[1], in[2]};
  if (!running.value_or(use_running_average.value_or(false))) {
    statistics = nn::compute_stats(
        in[0],
        {.axes = reduced, .dtype = dtype, .use_fast_variance = use_fast_variance, .mask = mask});
    mean.set_value(nn::running_average(mean, statistics.mean, momentum));
    var.set_value(nn::running_average(var, statistics.var, momentum));
  }
  const Array y = nn::normalize(in[0], statistics,
                                {.reduction_axes = reduced,
                                 .feature_axes = axis,
                                 .scale = scale ? OptionalArray(in[3]) : std::nullopt,
                                 .bias = bias ? OptionalArray(in[4]) : std::nullopt,
                                 .epsilon = epsilon,
                                 .dtype = dtype});
  return detail::recorded(*this, x, y);
}

// ----------------------------------------------------------------------------------------- Dropout
Dropout::Dropout(double drop_rate, const DropoutOptions& o)
    : rate(drop_rate),
      broadcast_dims(o.broadcast_dims),
      deterministic(o.deterministic),
      rng_collection(o.rng_collection) {}
Dropout::Dropout(double drop_rate, const Rngs& source, const DropoutOptions& o, Location at)
    : Dropout(drop_rate, o) {
  rngs = source.stream(rng_collection, at).fork(at);
}
Array Dropout::operator()(Operand x, std::optional<bool> is_deterministic,
                          const OptionalArray& key) const {
  const AtUser scope(x.at);
  if (!is_deterministic && !deterministic) {
    fail_with_hint<TypeError>(
        "pass it to the constructor or to the call, or call model.train() or model.eval()",
        "Dropout: deterministic is not known");
  }
  if (rate == 0.0 || is_deterministic.value_or(deterministic.value_or(false))) {
    return detail::recorded(*this, x, x.array);
  }
  if (rate == 1.0) return detail::recorded(*this, x, zeros_like(x));
  if (!key && !rngs) {
    fail_with_hint<TypeError>("pass rngs to the constructor, or a key to the call",
                              "Dropout: it is not deterministic and has no random stream");
  }
  const Array mask_key = key ? *key : (*rngs)(x.at);
  return detail::recorded(*this, x, nn::dropout(x, rate, mask_key, broadcast_dims));
}

// -------------------------------------------------------------------------------------- Sequential
Array Sequential::operator()(Array x) const {
  for (const Layer& layer : layers_)
    x = layer.module ? layer.call(*layer.module, x) : layer.function.get()(x);
  return x;
}
void Sequential::reprise_visit(Fields& out) {
  Fields list;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].module) {
      list.add(i, layers_[i].module);
    } else {
      list.add(i, layers_[i].function);
    }
  }
  out.list().push_back({"layers", std::move(list.list())});
}

// ---------------------------------------------------------------------------------------- members
REPRISE_FIELDS_OF(LayerNorm, scale, bias, num_features, epsilon, dtype, param_dtype, use_bias,
                  use_scale, reduction_axes, feature_axes, use_fast_variance)
REPRISE_FIELDS_OF(RMSNorm, scale, num_features, epsilon, dtype, param_dtype, use_scale,
                  reduction_axes, feature_axes, use_fast_variance)
REPRISE_FIELDS_OF(GroupNorm, scale, bias, num_features, num_groups, group_size, epsilon, dtype,
                  param_dtype, use_bias, use_scale, reduction_axes, use_fast_variance)
REPRISE_FIELDS_OF(BatchNorm, mean, var, scale, bias, num_features, use_running_average, axis,
                  momentum, epsilon, dtype, param_dtype, use_bias, use_scale, use_fast_variance)
REPRISE_FIELDS_OF(Dropout, rate, broadcast_dims, deterministic, rng_collection, rngs)

}  // namespace reprise::nnx
