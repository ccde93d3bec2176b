// Statistics and scaling of the normalising layers, in the order in which Flax computes them.
#include "nn/functions/axes.h"
#include "reprise/lax.h"
#include "reprise/nn_layers.h"
#include "reprise/ops_shape.h"

namespace reprise::nn {
namespace {

Array masked_mean(const Array& x, const Shape& axes, const OptionalArray& mask) {
  if (!mask) return mean(x, axes);
  const Array counts = broadcast_to(mask->astype(bool_), x.shape());
  const Array count = sum(counts.astype(x.dtype()), axes);
  const Array total = sum(where(counts, x, 0.0), axes);
  return total / count;
}

// Statistics lack the reduced axes: put them back with size 1.
Array expanded(const Array& x, const Shape& axes) {
  return axes.empty() ? x : expand_dims(x, axes);
}

Shape sorted(Shape axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

Shape reduced_axes(const char* op, const ReduceAxes& axes, const Array& x) {
  return axes.axes() ? sorted(canonical_axes(op, axes, x.ndim())) : other_axes(x, {});
}

StatisticsOptions statistics_options(const NormOptions& options, ReduceAxes axes) {
  return {.axes = std::move(axes),
          .dtype = options.dtype,
          .use_fast_variance = options.use_fast_variance,
          .mask = options.mask,
          .force_float32_reductions = options.force_float32_reductions};
}

NormalizeOptions normalize_options(const NormOptions& options, ReduceAxes reduction_axes,
                                   ReduceAxes feature_axes, const OptionalArray& scale,
                                   const OptionalArray& bias) {
  return {.reduction_axes = std::move(reduction_axes),
          .feature_axes = std::move(feature_axes),
          .scale = scale,
          .bias = bias,
          .epsilon = options.epsilon,
          .dtype = options.dtype};
}

Array spread_features(const char* what, const Array& parameter, const Array& x, const Shape& axes) {
  Shape wide(x.shape().size(), 1), wanted;
  for (const std::int64_t axis : axes) {
    wanted.push_back(x.shape()[static_cast<std::size_t>(axis)]);
    wide[static_cast<std::size_t>(axis)] = wanted.back();
  }
  if (parameter.shape() != wanted) {
    fail<TypeError>("normalize: the ", what, " does not fit the features, got ", parameter.type(),
                    " for axes [", join(axes, ", "), "] of ", x.type());
  }
  return reshape(parameter, wide);
}

}  // namespace

Statistics compute_stats(Operand input, const StatisticsOptions& options) {
  const AtUser at(input.at);
  Dtype dtype = options.dtype.value_or(input.array.dtype());
  if (options.force_float32_reductions) dtype = promote_types(dtype, false, float32, false).dtype;
  const Array x = input.array.astype(dtype);
  const Shape axes = reduced_axes("compute_stats", options.axes, x);
  if (!options.use_mean) {
    const Array squares = lax::square(x);
    const Array var = masked_mean(squares, axes, options.mask);
    return {zeros_like(var), var};
  }
  if (options.use_fast_variance) {
    const Array squares = lax::square(x);
    const Array mean_of = masked_mean(x, axes, options.mask);
    const Array mean_of_squares = masked_mean(squares, axes, options.mask);
    const Array square_of_mean = lax::square(mean_of);
    const Array difference = mean_of_squares - square_of_mean;
    return {mean_of, maximum(0.0, difference)};  // rounding may leave it just below 0
  }
  const Array mean_of = masked_mean(x, axes, options.mask);
  const Array centred = x - expanded(mean_of, axes);
  const Array squares = lax::square(centred);
  return {mean_of, masked_mean(squares, axes, options.mask)};
}

Array normalize(Operand input, const Statistics& statistics, const NormalizeOptions& options) {
  const AtUser at(input.at);
  const Array& x = input.array;
  const Shape reduced = reduced_axes("normalize", options.reduction_axes, x);
  const Shape features = canonical_axes("normalize", options.feature_axes, x.ndim());
  const Array mean_of = expanded(statistics.mean, reduced);
  const Array var_of = expanded(statistics.var, reduced);
  Array y = x - mean_of;
  const Array safe = var_of + options.epsilon;
  Array factor = lax::rsqrt(safe);
  Arrays typed{x};
  if (options.scale) {
    const Array scale = spread_features("scale", *options.scale, x, features);
    factor = factor * scale;
    typed.push_back(scale);
  }
  y = y * factor;
  if (options.bias) {
    const Array bias = spread_features("bias", *options.bias, x, features);
    y = y + bias;
    typed.push_back(bias);
  }
  return y.astype(canonicalize_dtype(typed, options.dtype));
}

Shape feature_shape(const Array& x, const ReduceAxes& feature_axes) {
  Shape out;
  for (const std::int64_t axis : canonical_axes("feature_shape", feature_axes, x.ndim())) {
    out.push_back(x.shape()[static_cast<std::size_t>(axis)]);
  }
  return out;
}

Shape other_axes(const Array& x, const ReduceAxes& axes) {
  const Shape named = canonical_axes("other_axes", axes, x.ndim());
  Shape out;
  for (std::int64_t i = 0; i < x.ndim(); ++i) {
    if (!contains(named, i)) out.push_back(i);
  }
  return out;
}

Array running_average(Operand old, const Array& batch, double momentum) {
  const AtUser at(old.at);
  const Array kept = momentum * old.array;
  const Array added = (1 - momentum) * batch;
  return kept + added;
}

Array layer_norm(Operand x, const OptionalArray& scale, const OptionalArray& bias,
                 const NormOptions& options) {
  const AtUser at(x.at);
  const ReduceAxes reduced = options.reduction_axes.value_or(ReduceAxes(-1));
  const ReduceAxes features = options.feature_axes.value_or(ReduceAxes(-1));
  const Statistics statistics = compute_stats(x, statistics_options(options, reduced));
  return normalize(x, statistics, normalize_options(options, reduced, features, scale, bias));
}

Array rms_norm(Operand x, const OptionalArray& scale, const NormOptions& options) {
  const AtUser at(x.at);
  const ReduceAxes reduced = options.reduction_axes.value_or(ReduceAxes(-1));
  const ReduceAxes features = options.feature_axes.value_or(ReduceAxes(-1));
  StatisticsOptions without_mean = statistics_options(options, reduced);
  without_mean.use_mean = false;
  const Statistics statistics = compute_stats(x, without_mean);
  return normalize(x, statistics,
                   normalize_options(options, reduced, features, scale, std::nullopt));
}

Array group_norm(Operand input, std::int64_t num_groups, const OptionalArray& scale,
                 const OptionalArray& bias, const NormOptions& options) {
  const AtUser at(input.at);
  const Array& x = input.array;
  const std::int64_t last = x.ndim() - 1;
  if (last < 0) fail<TypeError>("group_norm: the input needs at least one axis, got ", x.type());
  Shape reduced;
  for (std::int64_t i = 1; i < last; ++i) reduced.push_back(i);
  reduced.push_back(last);
  if (options.reduction_axes)
    reduced = sorted(canonical_axes("group_norm", *options.reduction_axes, x.ndim()));
  if (reduced.empty() || reduced.back() != last) {
    fail<TypeError>(
        "group_norm: the reduction axes must include the last one, which holds the features, got [",
        join(reduced, ", "), "]");
  }
  const std::int64_t channels = x.shape(-1);
  if (num_groups <= 0 || channels % num_groups != 0) {
    fail<TypeError>("group_norm: the number of groups must divide the number of features, got ",
                    num_groups, " and ", channels);
  }
  const std::int64_t group_size = channels / num_groups;
  auto grouped = [&](const Array& a) {
    Shape shape(a.shape().begin(), a.shape().end() - 1);
    shape.insert(shape.end(), {num_groups, group_size});
    return reshape(a, shape);
  };
  NormOptions by_group = options;
  if (options.mask) by_group.mask = grouped(broadcast_to(*options.mask, x.shape()));
  reduced.back() = last + 1;  // the members of a group; the groups themselves stay
  Statistics statistics = compute_stats(grouped(x), statistics_options(by_group, reduced));
  statistics.mean = repeat(statistics.mean, group_size, -1);
  statistics.var = repeat(statistics.var, group_size, -1);
  reduced.pop_back();
  return normalize(x, statistics, normalize_options(options, reduced, -1, scale, bias));
}

Array instance_norm(Operand x, const OptionalArray& scale, const OptionalArray& bias,
                    const NormOptions& options) {
  const AtUser at(x.at);
  const Shape features = canonical_axes(
      "instance_norm", options.feature_axes.value_or(ReduceAxes(-1)), x.array.ndim());
  if (contains(features, 0)) {
    fail<TypeError>(
        "instance_norm: the feature axes must not include the first one, which is the batch");
  }
  Shape named = features;
  named.push_back(0);
  const Shape reduced = other_axes(x.array, named);
  const Statistics statistics = compute_stats(x, statistics_options(options, reduced));
  return normalize(x, statistics, normalize_options(options, reduced, features, scale, bias));
}

}  // namespace reprise::nn
