// Linen's normalisation layers: LayerNorm, RMSNorm, GroupNorm, BatchNorm.
//
//   x = rp::nn::LayerNorm()(x);
//   x = rp::nn::BatchNorm({.use_running_average = !train})(x);
//
// y = (x - mean) * (rsqrt(var + epsilon) * scale) + bias, with statistics in f32 or wider.
// Parameters: scale (ones), bias (zeros), of the sizes of the feature axes.
#pragma once

#include "reprise/nn_layers.h"
#include "reprise/nn_module.h"

#include <cstdint>
#include <optional>
#include <string>

#pragma GCC visibility push(default)
namespace reprise::nn {

// Fields of LayerNorm.
struct LayerNormFields {
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_bias = true, use_scale = true;
  Initializer bias_init = initializers::zeros_init();
  Initializer scale_init = initializers::ones_init();
  ReduceAxes reduction_axes = -1, feature_axes = -1;
  bool use_fast_variance = true;  // mean(x^2) - mean(x)^2
  bool force_float32_reductions = true;
  std::string name = {};
};
// Over the last axis, or the reduction axes. Elements where the mask is false do not count.
class LayerNorm : public Module<LayerNorm> {
 public:
  explicit LayerNorm(LayerNormFields fields = {}, Location at = Location::current());
  Array call(Array x, OptionalArray mask = std::nullopt);

 private:
  LayerNormFields fields_;
};

// Fields of RMSNorm.
struct RMSNormFields {
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_scale = true;
  Initializer scale_init = initializers::ones_init();
  ReduceAxes reduction_axes = -1, feature_axes = -1;
  bool force_float32_reductions = true;
  std::string name = {};
};
// As LayerNorm without mean and bias: the variance is the mean square.
class RMSNorm : public Module<RMSNorm> {
 public:
  explicit RMSNorm(RMSNormFields fields = {}, Location at = Location::current());
  Array call(Array x, OptionalArray mask = std::nullopt);

 private:
  RMSNormFields fields_;
};

// Fields of GroupNorm.
struct GroupNormFields {
  std::optional<std::int64_t> num_groups = 32, group_size = std::nullopt;  // one of them
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_bias = true, use_scale = true;
  Initializer bias_init = initializers::zeros_init();
  Initializer scale_init = initializers::ones_init();
  std::optional<ReduceAxes> reduction_axes = std::nullopt;  // by default all but the first
  bool use_fast_variance = true;
  bool force_float32_reductions = true;
  std::string name = {};
};
// Over groups of features and all axes but the first.
class GroupNorm : public Module<GroupNorm> {
 public:
  explicit GroupNorm(GroupNormFields fields = {}, Location at = Location::current());
  Array call(Array x, OptionalArray mask = std::nullopt);

 private:
  std::int64_t groups_for(const Array& x) const;
  GroupNormFields fields_;
};

// Fields of BatchNorm.
struct BatchNormFields {
  std::optional<bool> use_running_average = std::nullopt;  // or given to the call
  ReduceAxes axis = -1;                                    // of the features
  double momentum = 0.99, epsilon = 1e-5;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_bias = true, use_scale = true;
  Initializer bias_init = initializers::zeros_init();
  Initializer scale_init = initializers::ones_init();
  bool use_fast_variance = true;
  bool force_float32_reductions = true;
  std::string name = {};
};
// Over all axes but that of the features. The collection batch_stats has the running averages mean
// and var, which a call without use_running_average moves (but not init).
class BatchNorm : public Module<BatchNorm> {
 public:
  explicit BatchNorm(BatchNormFields fields = {}, Location at = Location::current());
  Array call(Array x, std::optional<bool> use_running_average = std::nullopt,
             OptionalArray mask = std::nullopt);

 private:
  BatchNormFields fields_;
};

}  // namespace reprise::nn
#pragma GCC visibility pop
