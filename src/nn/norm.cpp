#include "reprise/errors.h"
#include "reprise/nn_norm.h"
#include "reprise/ops.h"

namespace reprise::nn {
namespace {

struct Affine {
  OptionalArray scale, bias;
};

// The parameters that a normalisation layer asks for, scale first.
template <class Fields>
Affine affine(ModuleBase& module, const Fields& fields, const Shape& shape) {
  Affine result;
  if (fields.use_scale)
    result.scale = module.param("scale", fields.scale_init, shape, fields.param_dtype);
  if (fields.use_bias)
    result.bias = module.param("bias", fields.bias_init, shape, fields.param_dtype);
  return result;
}

// What the functions below the layers take; the kinds of layers lack one field or another.
template <class Fields>
NormOptions norm_options(const Fields& fields, const OptionalArray& mask) {
  NormOptions o;
  o.reduction_axes = fields.reduction_axes;
  if constexpr (requires { fields.feature_axes; }) o.feature_axes = fields.feature_axes;
  if constexpr (requires { fields.use_fast_variance; })
    o.use_fast_variance = fields.use_fast_variance;
  o.epsilon = fields.epsilon;
  o.dtype = fields.dtype;
  o.mask = mask;
  o.force_float32_reductions = fields.force_float32_reductions;
  return o;
}

}  // namespace

// --------------------------------------------------------------------------------------- LayerNorm
LayerNorm::LayerNorm(LayerNormFields fields, Location at)
    : Module(fields.name, at), fields_(std::move(fields)) {}

Array LayerNorm::call(Array x, OptionalArray mask) {
  const AtUser at(made_at());
  const Affine p = affine(*this, fields_, feature_shape(x, fields_.feature_axes));
  return layer_norm(x, p.scale, p.bias, norm_options(fields_, mask));
}

// ----------------------------------------------------------------------------------------- RMSNorm
RMSNorm::RMSNorm(RMSNormFields fields, Location at)
    : Module(fields.name, at), fields_(std::move(fields)) {}

Array RMSNorm::call(Array x, OptionalArray mask) {
  const AtUser at(made_at());
  const Shape shape = feature_shape(x, fields_.feature_axes);
  OptionalArray scale;
  if (fields_.use_scale) scale = param("scale", fields_.scale_init, shape, fields_.param_dtype);
  return rms_norm(x, scale, norm_options(fields_, mask));
}

// --------------------------------------------------------------------------------------- GroupNorm
GroupNorm::GroupNorm(GroupNormFields fields, Location at)
    : Module(fields.name, at), fields_(std::move(fields)) {}

std::int64_t GroupNorm::groups_for(const Array& x) const {
  if (fields_.num_groups.has_value() == fields_.group_size.has_value()) {
    fail_with_hint<TypeError>("num_groups is 32 unless you say .num_groups = std::nullopt",
                              "GroupNorm: one of num_groups and group_size must be given, got ",
                              fields_.num_groups ? "both" : "neither");
  }
  if (fields_.num_groups) return *fields_.num_groups;
  const std::int64_t size = *fields_.group_size, features = x.shape(-1);
  if (size <= 0 || features % size != 0) {
    fail<TypeError>("GroupNorm: group_size must divide the ", features, " features, got ", size);
  }
  return features / size;
}

Array GroupNorm::call(Array x, OptionalArray mask) {
  const AtUser at(made_at());
  const std::int64_t groups = groups_for(x);
  const Affine p = affine(*this, fields_, feature_shape(x, -1));
  return group_norm(x, groups, p.scale, p.bias, norm_options(fields_, mask));
}

// --------------------------------------------------------------------------------------- BatchNorm
BatchNorm::BatchNorm(BatchNormFields fields, Location at)
    : Module(fields.name, at), fields_(std::move(fields)) {}

Array BatchNorm::call(Array x, std::optional<bool> use_running_average, OptionalArray mask) {
  const AtUser at(made_at());
  const bool uses_average =
      merge_param("use_running_average", fields_.use_running_average, use_running_average);
  const Shape shape = feature_shape(x, fields_.axis), axes = other_axes(x, fields_.axis);
  const Dtype dtype = fields_.force_float32_reductions ? float32 : fields_.param_dtype;
  Variable mean = variable("batch_stats", "mean", [&] { return zeros(shape, dtype); });
  Variable var = variable("batch_stats", "var", [&] { return ones(shape, dtype); });

  Statistics statistics;
  if (uses_average) {
    statistics = {mean.value(), var.value()};
    if (!fields_.force_float32_reductions) {
      statistics.mean = statistics.mean.astype(dtype);
      statistics.var = statistics.var.astype(dtype);
    }
  } else {
    statistics = compute_stats(x, {.axes = axes,
                                   .dtype = fields_.dtype,
                                   .use_fast_variance = fields_.use_fast_variance,
                                   .mask = mask,
                                   .force_float32_reductions = fields_.force_float32_reductions});
    if (!is_initializing()) {
      mean.set_value(running_average(mean.value(), statistics.mean, fields_.momentum));
      var.set_value(running_average(var.value(), statistics.var, fields_.momentum));
    }
  }
  const Affine p = affine(*this, fields_, shape);
  return normalize(x, statistics,
                   {.reduction_axes = axes,
                    .feature_axes = fields_.axis,
                    .scale = p.scale,
                    .bias = p.bias,
                    .epsilon = fields_.epsilon,
                    .dtype = fields_.dtype});
}

}  // namespace reprise::nn
