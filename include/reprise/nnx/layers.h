// Layers, with Flax's names, options and numbers. Each makes its parameters when it is constructed,
// from the stream "params" of rngs: kernel, then bias; scale, then bias. Features are the last
// axis.
//
//   nnx::Rngs rngs(0);
//   nnx::Linear in(784, 128, rngs);
//   nnx::Conv conv(1, 32, {3, 3}, rngs, {.padding = "VALID"});
//   Array y = in(x);
//
// `dtype` is the one to compute in, by default promoted from inputs and parameters; parameters are
// made in `param_dtype`. Inputs that do not fit give a TypeError.
#pragma once

#include "reprise/nn_layers.h"
#include "reprise/nnx/rngs.h"

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

// Names that both layer libraries share.
namespace initializers = nn::initializers;
using nn::Initializer;
using nn::OptionalArray;
using nn::OptionalDtype;
using nn::PerDimension;
using OptionalParam = std::optional<Param>;

// ------------------------------------------------------------------------------------------ linear
// Options of Linear.
struct LinearOptions {
  bool use_bias = true;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
};
// x * kernel + bias over the last axis.
struct Linear : Module {
  Linear(std::int64_t in, std::int64_t out, const Rngs& rngs, const LinearOptions& options = {},
         Location at = Location::current());
  Array operator()(Operand x) const;

  Param kernel;        // (in_features, out_features)
  OptionalParam bias;  // (out_features)
  std::int64_t in_features, out_features;
  bool use_bias;
  OptionalDtype dtype;
  Dtype param_dtype;
  REPRISE_FIELDS_DECLARED
};

// Options of LinearGeneral.
struct LinearGeneralOptions {
  PerDimension axis = -1;  // of x, contracted with the kernel
  std::vector<std::pair<std::int64_t, std::int64_t>> batch_axis =
      {};  // leading axes with kernels of their own, and sizes
  bool use_bias = true;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
};
// The same over several axes: the kernel is (batch..., in..., out...).
struct LinearGeneral : Module {
  LinearGeneral(const PerDimension& in, const PerDimension& out, const Rngs& rngs,
                const LinearGeneralOptions& options = {}, Location at = Location::current());
  Array operator()(Operand x) const;

  Param kernel;
  OptionalParam bias;  // (batch..., out...)
  Shape in_features, out_features, axis;
  std::vector<std::pair<std::int64_t, std::int64_t>> batch_axis;
  bool use_bias;
  OptionalDtype dtype;
  Dtype param_dtype;
  REPRISE_FIELDS_DECLARED
};

// Options of Einsum.
struct EinsumOptions {
  std::optional<Shape> bias_shape = std::nullopt;  // none: no bias
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
};
// einsum(einsum_str, x, kernel) + bias, the bias along the axes of the result that the kernel has.
struct Einsum : Module {
  Einsum(std::string equation, const Shape& kernel_sizes, const Rngs& rngs,
         const EinsumOptions& options = {}, Location at = Location::current());
  Array operator()(Operand x) const;

  Param kernel;
  OptionalParam bias;
  std::string einsum_str;
  OptionalDtype dtype;
  Dtype param_dtype;
  REPRISE_FIELDS_DECLARED
};

// Options of Embed.
struct EmbedOptions {
  OptionalDtype dtype = std::nullopt;  // that of the embedding by default
  Dtype param_dtype = float32;
  Initializer embedding_init =
      initializers::variance_scaling(1.0, "fan_in", "normal", {.out_axis = 0});
};
// Rows by number; -1 is the last, numbers outside give NaN.
struct Embed : Module {
  Embed(std::int64_t count, std::int64_t width, const Rngs& rngs, const EmbedOptions& options = {},
        Location at = Location::current());
  Array operator()(Operand indices) const;
  Array attend(Operand query) const;  // inner products with all rows

  Param embedding;  // (num_embeddings, features)
  std::int64_t num_embeddings, features;
  Dtype dtype, param_dtype;
  REPRISE_FIELDS_DECLARED
};

// ------------------------------------------------------------------------------------- convolution
// Options of Conv.
struct ConvOptions {
  PerDimension strides = 1;
  nn::Padding padding = "SAME";
  PerDimension input_dilation = 1, kernel_dilation = 1;
  std::int64_t feature_group_count = 1;
  bool use_bias = true;
  OptionalArray mask = std::nullopt;  // multiplies the kernel; of its shape
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
};
// x (batch..., spatial..., in_features); the kernel is not flipped.
struct Conv : Module {
  Conv(std::int64_t in, std::int64_t out, const PerDimension& window, const Rngs& rngs,
       const ConvOptions& options = {}, Location at = Location::current());
  Array operator()(Operand x) const;

  Param kernel;  // (window..., in_features / feature_group_count, out_features)
  OptionalParam bias;
  std::optional<Array> mask;
  std::int64_t in_features, out_features;
  Shape kernel_size, strides;
  std::string padding;  // a name, or empty: the widths
  std::vector<std::pair<std::int64_t, std::int64_t>> padding_widths;
  Shape input_dilation, kernel_dilation;
  std::int64_t feature_group_count;
  bool use_bias;
  OptionalDtype dtype;
  Dtype param_dtype;
  REPRISE_FIELDS_DECLARED
};

// ----------------------------------------------------------------------------------- normalisation
struct LayerNormOptions {
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_bias = true, use_scale = true;
  Initializer bias_init = initializers::zeros_init();
  Initializer scale_init = initializers::ones_init();
  PerDimension reduction_axes = -1, feature_axes = -1;
  bool use_fast_variance = true;
};
struct LayerNorm : Module {
  LayerNorm(std::int64_t features, const Rngs& rngs, const LayerNormOptions& options = {},
            Location at = Location::current());
  Array operator()(Operand x, const OptionalArray& mask = std::nullopt) const;

  OptionalParam scale, bias;  // (num_features)
  std::int64_t num_features;
  double epsilon;
  OptionalDtype dtype;
  Dtype param_dtype;
  bool use_bias, use_scale;
  Shape reduction_axes, feature_axes;
  bool use_fast_variance;
  REPRISE_FIELDS_DECLARED
};

struct RMSNormOptions {
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_scale = true;
  Initializer scale_init = initializers::ones_init();
  PerDimension reduction_axes = -1, feature_axes = -1;
  bool use_fast_variance = true;
};
struct RMSNorm : Module {
  RMSNorm(std::int64_t features, const Rngs& rngs, const RMSNormOptions& options = {},
          Location at = Location::current());
  Array operator()(Operand x, const OptionalArray& mask = std::nullopt) const;

  OptionalParam scale;
  std::int64_t num_features;
  double epsilon;
  OptionalDtype dtype;
  Dtype param_dtype;
  bool use_scale;
  Shape reduction_axes, feature_axes;
  bool use_fast_variance;
  REPRISE_FIELDS_DECLARED
};

struct GroupNormOptions {
  std::optional<std::int64_t> num_groups = 32, group_size = std::nullopt;  // one of both
  double epsilon = 1e-6;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_bias = true, use_scale = true;
  Initializer bias_init = initializers::zeros_init();
  Initializer scale_init = initializers::ones_init();
  std::optional<Shape> reduction_axes = std::nullopt;  // all but the first by default
  bool use_fast_variance = true;
};
struct GroupNorm : Module {
  GroupNorm(std::int64_t features, const Rngs& rngs, const GroupNormOptions& options = {},
            Location at = Location::current());
  Array operator()(Operand x, const OptionalArray& mask = std::nullopt) const;

  OptionalParam scale, bias;
  std::int64_t num_features, num_groups, group_size;
  double epsilon;
  OptionalDtype dtype;
  Dtype param_dtype;
  bool use_bias, use_scale;
  std::optional<Shape> reduction_axes;
  bool use_fast_variance;
  REPRISE_FIELDS_DECLARED
};

// Options of BatchNorm.
struct BatchNormOptions {
  std::optional<bool> use_running_average = false;  // none: each call must say it
  std::int64_t axis = -1;
  double momentum = 0.99, epsilon = 1e-5;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  bool use_bias = true, use_scale = true;
  Initializer bias_init = initializers::zeros_init();
  Initializer scale_init = initializers::ones_init();
  bool use_fast_variance = true;
};
// In training by the statistics of the batch, which also move the running ones; in evaluation by
// those.
struct BatchNorm : Module {
  BatchNorm(std::int64_t features, const Rngs& rngs, const BatchNormOptions& options = {},
            Location at = Location::current());
  Array operator()(Operand x, std::optional<bool> running = std::nullopt,
                   const OptionalArray& mask = std::nullopt) const;

  BatchStat mean, var;
  OptionalParam scale, bias;
  std::int64_t num_features;
  std::optional<bool> use_running_average;
  std::int64_t axis;
  double momentum, epsilon;
  OptionalDtype dtype;
  Dtype param_dtype;
  bool use_bias, use_scale, use_fast_variance;
  REPRISE_FIELDS_DECLARED
};

// ----------------------------------------------------------------------------------------- dropout
// Options of Dropout.
struct DropoutOptions {
  Shape broadcast_dims = {};                  // axes that share one decision
  std::optional<bool> deterministic = false;  // none: each call must say it
  std::string rng_collection = "dropout";
};
// Each element zero with probability `rate`, the others divided by 1 - rate. Has a stream of its
// own, forked from rngs; without one each call must bring a key.
struct Dropout : Module {
  Dropout(double drop_rate, const Rngs& source, const DropoutOptions& options = {},
          Location at = Location::current());
  explicit Dropout(double drop_rate, const DropoutOptions& options = {});
  Array operator()(Operand x, std::optional<bool> is_deterministic = std::nullopt,
                   const OptionalArray& key = std::nullopt) const;

  double rate;
  Shape broadcast_dims;
  std::optional<bool> deterministic;
  std::string rng_collection;
  std::optional<RngStream> rngs;
  REPRISE_FIELDS_DECLARED
};

// -------------------------------------------------------------------------------------- Sequential
// Layers one after the other: modules and functions from Array to Array.
class Sequential : public Module {
 public:
  template <class... L>
  explicit Sequential(const L&... layers) {
    (append(layers), ...);
  }
  template <class L>
  void append(const L& layer) {
    static_assert(std::is_invocable_r_v<Array, L&, Array>,
                  "nnx::Sequential: a layer must be callable with one Array and return one");
    if constexpr (detail::is_module<L>()) {
      layers_.push_back({std::make_shared<L>(layer), Function{},
                         [](Module& m, const Array& x) { return Array(static_cast<L&>(m)(x)); }});
    } else {
      layers_.push_back(
          {nullptr, Function([layer](const Array& x) { return Array(layer(x)); }), nullptr});
    }
  }
  Array operator()(Array x) const;
  std::size_t size() const { return layers_.size(); }

  void reprise_visit(Fields& out) override;
  std::shared_ptr<Module> reprise_copy() const override {
    return std::make_shared<Sequential>(*this);
  }

 private:
  using Function = Static<std::function<Array(const Array&)>>;
  struct Layer {
    std::shared_ptr<Module> module;  // or
    Function function;
    Array (*call)(Module&, const Array&);
  };
  std::vector<Layer> layers_;
};

}  // namespace reprise::nnx
#pragma GCC visibility pop
