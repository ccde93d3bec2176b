// Linen's linear layers: Dense, DenseGeneral, Einsum, Conv, Embed.
//
//   x = rp::nn::Dense(128)(x);
//   x = rp::nn::Conv(32, {3, 3}, {.strides = 2, .padding = "VALID"})(x);
//
// Features are the last axis. Parameters are made in param_dtype; `dtype` is the one to compute in,
// by default promoted from input and parameters.
#pragma once

#include "reprise/nn_layers.h"
#include "reprise/nn_module.h"

#include <cstdint>
#include <optional>
#include <string>

#pragma GCC visibility push(default)
namespace reprise::nn {

// Fields of Dense.
struct DenseFields {
  bool use_bias = true;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
  std::string name = {};
};
// x * kernel + bias over the last axis of x. Parameters: kernel (in, features), bias (features).
class Dense : public Module<Dense> {
 public:
  explicit Dense(std::int64_t features, DenseFields fields = {}, Location at = Location::current());
  Array call(Array x);

 private:
  std::int64_t features_;
  DenseFields fields_;
};

// Fields of DenseGeneral.
struct DenseGeneralFields {
  ReduceAxes axis = -1;        // of x, contracted
  ReduceAxes batch_dims = {};  // leading axes with a kernel of their own each; none by default
  bool use_bias = true;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
  std::string name = {};
};
// A linear map over several axes, to several axes of features. Parameters: kernel (batch..., in...,
// features...), bias (batch..., features...), filled as those of the flattened map.
class DenseGeneral : public Module<DenseGeneral> {
 public:
  explicit DenseGeneral(PerDimension features, DenseGeneralFields fields = {},
                        Location at = Location::current());
  Array call(Array x);

 private:
  Shape features_;
  DenseGeneralFields fields_;
};

// Fields of Einsum.
struct EinsumFields {
  std::string einsum_str = {};  // "abc,cde->abde": the input, the kernel; else given to the call
  bool use_bias = true;
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
  std::string name = {};
};
// einsum(x, kernel) + bias. Parameters: kernel (shape), bias (the kernel's axes that the result
// has).
class Einsum : public Module<Einsum> {
 public:
  explicit Einsum(Shape shape, EinsumFields fields = {}, Location at = Location::current());
  Array call(Array x, std::string einsum_str = {});

 private:
  Shape shape_;
  EinsumFields fields_;
};

// Fields of Conv.
struct ConvFields {
  PerDimension strides = 1;
  Padding padding = "SAME";  // "SAME", "VALID", "CIRCULAR", "REFLECT", "CAUSAL", or widths
  PerDimension input_dilation = 1, kernel_dilation = 1;
  std::int64_t feature_group_count = 1;
  bool use_bias = true;
  OptionalArray mask = std::nullopt;  // times the kernel, of its shape
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer kernel_init = initializers::lecun_normal();
  Initializer bias_init = initializers::zeros_init();
  std::string name = {};
};
// A convolution (without flipping the kernel) of x (batch..., spatial..., in). Parameters: kernel
// (window..., in / groups, features), bias (features).
class Conv : public Module<Conv> {
 public:
  Conv(std::int64_t features, PerDimension kernel_size, ConvFields fields = {},
       Location at = Location::current());
  Array call(Array x);

 private:
  std::int64_t features_;
  Shape kernel_size_;
  ConvFields fields_;
};

// Fields of Embed.
struct EmbedFields {
  OptionalDtype dtype = std::nullopt;
  Dtype param_dtype = float32;
  Initializer embedding_init =
      initializers::variance_scaling(1.0, "fan_in", "normal", {.out_axis = 0});
  std::string name = {};
};
// Rows of a table by number: -1 is the last, what is outside gives NaN. Parameter: embedding
// (num_embeddings, features).
class Embed : public Module<Embed> {
 public:
  Embed(std::int64_t num_embeddings, std::int64_t features, EmbedFields fields = {},
        Location at = Location::current());
  void setup();
  Array call(Array indices);
  // The inner products of queries with all rows: embed.run<&Embed::attend>(x).
  Array attend(Array query);

 private:
  std::int64_t num_embeddings_, features_;
  EmbedFields fields_;
  Array embedding_;
};

}  // namespace reprise::nn
#pragma GCC visibility pop
