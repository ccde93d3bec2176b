#include "nn/layer_case.h"
#include "reprise/nn_layers.h"

#include <string>

namespace reprise {
namespace {

using flax_golden::array_of;
using flax_golden::dict_of;
using flax_golden::Json;
using flax_golden::near;
using flax_golden::section;

TEST_CASE("layer functions give the outputs of Linen's layers") {
  for (const auto& item : section("linen_layers_seed0").items()) {
    const std::string& name = item.key();
    INFO(name);
    const Json& c = item.value();
    const Array x = array_of(c["inputs"][0]);
    Dict variables = dict_of(c["variables"]);
    auto p = [&](const std::string& key) -> Array { return variables["params"][key]; };
    if (name == "LayerNorm") {
      near(nn::layer_norm(x, p("scale"), p("bias")), c["out"]);
    } else if (name == "RMSNorm") {
      near(nn::rms_norm(x, p("scale")), c["out"]);
    } else if (name == "GroupNorm_2") {
      near(nn::group_norm(x, 2, p("scale"), p("bias")), c["out"]);
    } else if (name == "BatchNorm_eval") {
      const nn::Statistics running{variables["batch_stats"]["mean"],
                                   variables["batch_stats"]["var"]};
      near(nn::normalize(x, running,
                         {.reduction_axes = nn::other_axes(x, -1),
                          .scale = p("scale"),
                          .bias = p("bias"),
                          .epsilon = 1e-5}),
           c["out"]);
    } else if (name == "Embed_5x3") {
      flax_golden::same_bits(nn::embed(p("embedding"), x), c["out"]);
    } else if (name == "Dense_4to5") {
      near(nn::dense(x, p("kernel"), p("bias")), c["out"]);
    } else if (name == "DenseGeneral_2x3") {
      near(nn::dense_general(x, p("kernel"), p("bias")), c["out"]);
    } else if (name == "Conv_3_k3") {
      near(nn::conv(x, p("kernel"), p("bias")), c["out"]);
    } else if (name == "MHDPA_2heads") {
      auto projected = [&](const std::string& part) {
        const Array kernel = variables["params"][part]["kernel"],
                    bias = variables["params"][part]["bias"];
        return nn::dense_general(x, kernel, bias);
      };
      const Array heads =
          nn::dot_product_attention(projected("query"), projected("key"), projected("value"));
      const Array kernel = variables["params"]["out"]["kernel"],
                  bias = variables["params"]["out"]["bias"];
      near(nn::dense_general(heads, kernel, bias, {.axis = {-2, -1}}), c["out"]);
    } else {
      CHECK(name == "Dropout_0.25");  // its key is made by the module; dropout is checked below
    }
  }
}

TEST_CASE("activations agree with jax.nn") {
  const Array x = array_of(section("activations")["x"]);
  const Json& y = section("activations")["y"];
  near(nn::relu(x), y["relu"]);
  near(nn::gelu(x), y["gelu"]);
  near(nn::gelu(x, false), y["gelu_exact"]);
  near(nn::silu(x), y["silu"]);
  near(nn::sigmoid(x), y["sigmoid"]);
  near(nn::tanh(x), y["tanh"]);
  near(nn::softplus(x), y["softplus"]);
  near(nn::elu(x), y["elu"]);
  near(nn::leaky_relu(x), y["leaky_relu"]);
  near(nn::log_softmax(x), y["log_softmax"]);
  near(nn::softmax(x), y["softmax"]);
  near(nn::selu(x), y["selu"]);
  near(nn::hard_tanh(x), y["hard_tanh"]);
  near(nn::relu6(x), y["relu6"]);
  near(nn::soft_sign(x), y["soft_sign"]);
  near(nn::log_sigmoid(x), y["log_sigmoid"]);
  check_layer("celu", [](const Arrays& a) { return nn::celu(a[0]); });
  check_layer("celu_2", [](const Arrays& a) { return nn::celu(a[0], 2.0); });
  check_layer("selu", [](const Arrays& a) { return nn::selu(a[0]); });
  check_layer("hard_tanh", [](const Arrays& a) { return nn::hard_tanh(a[0]); });
  check_layer("hard_sigmoid", [](const Arrays& a) { return nn::hard_sigmoid(a[0]); });
  check_layer("hard_silu", [](const Arrays& a) { return nn::hard_silu(a[0]); });
  check_layer("hard_silu", [](const Arrays& a) { return nn::hard_swish(a[0]); });
  check_layer("glu", [](const Arrays& a) { return nn::glu(a[0]); });
  check_layer("mish", [](const Arrays& a) { return nn::mish(a[0]); });
  check_layer("squareplus", [](const Arrays& a) { return nn::squareplus(a[0]); });
  check_layer("squareplus_1", [](const Arrays& a) { return nn::squareplus(a[0], 1.0); });
  check_layer("soft_sign", [](const Arrays& a) { return nn::soft_sign(a[0]); });
  check_layer("sparse_plus", [](const Arrays& a) { return nn::sparse_plus(a[0]); });
  check_layer("sparse_sigmoid", [](const Arrays& a) { return nn::sparse_sigmoid(a[0]); });
  check_layer("log1mexp", [](const Arrays& a) { return nn::log1mexp(abs(a[0]) + 0.1); });
  check_layer("logmeanexp", [](const Arrays& a) {
    return nn::logmeanexp(a[0].reshape({4, 4}), 1);
  });
  check_layer("identity", [](const Arrays& a) { return nn::identity(a[0]); });
  CHECK(begins(error_of<TypeError>([&] { nn::glu(x); }),
               "glu: the axis must have an even size, got 17 in f32[17]"));
}

LayerFunction conv_with(nn::ConvOptions options) {
  return [options](const Arrays& a) { return nn::conv(a[0], a[1], a[2], options); };
}

TEST_CASE("conv pads as Flax does") {
  for (const char* name : {"SAME", "VALID", "CIRCULAR", "REFLECT", "CAUSAL"}) {
    check_layer(std::string("conv1_") + name, conv_with({.padding = name}));
  }
  check_layer("conv1_strided", conv_with({.strides = 2}));
  check_layer("conv1_dilated", conv_with({.kernel_dilation = 2}));
  check_layer("conv1_dilated_circular", conv_with({.padding = "CIRCULAR", .kernel_dilation = 3}));
  check_layer("conv1_input_dilated", conv_with({.padding = {{2, 1}}, .input_dilation = 2}));
  check_layer("conv1_int", conv_with({.padding = 2}));
  check_layer("conv1_nobatch", conv_with({}));
  check_layer(
      "conv2_batches_groups",
      conv_with({.strides = {2, 1}, .padding = {{1, 2}, {0, 1}}, .feature_group_count = 2}));
}

TEST_CASE("conv and pool say what does not fit") {
  const Array x = ones({1, 5, 2}), kernel = ones({3, 2, 4});
  auto conv_error = [&](const nn::ConvOptions& options) {
    return error_of<TypeError>([&] { nn::conv(x, kernel, std::nullopt, options); });
  };
  CHECK(begins(
      conv_error({.padding = "same"}),
      "conv: the padding must be SAME, VALID, CIRCULAR, REFLECT, CAUSAL or numbers, got 'same'\n"
      "  at layers_test.cpp:"));
  CHECK(begins(
      conv_error({.padding = {1, 2}}),
      "conv: the padding needs one entry for each of the 1 dimensions of the window, got 2"));
  CHECK(begins(conv_error({.strides = {1, 2}}),
               "conv: strides needs one number for each of the 1 dimensions of the window, got 2"));
  CHECK(begins(conv_error({.strides = 0}), "conv: strides must be at least 1, got 0"));
  CHECK(begins(conv_error({.input_dilation = 2}),
               "conv: with input_dilation the padding must be numbers, got 'SAME'"));
  CHECK(begins(conv_error({.feature_group_count = 0}),
               "conv: feature_group_count must be at least 1, got 0"));
  CHECK(begins(
      error_of<TypeError>([&] {
        nn::conv(x, ones({3, 3, 4}));
      }),
      "conv: the kernel does not fit the features of the input, got f32[3,3,4] in 1 group(s) for "
      "f32[1,5,2]"));
  CHECK(begins(error_of<TypeError>([&] { nn::conv(ones({2}), kernel); }),
               "conv: needs an input (batch..., spatial..., in) and a kernel (window..., in, out), "
               "got f32[2]"));
  CHECK(begins(
      error_of<TypeError>([&] {
        nn::conv(ones({1, 4, 4, 1}), ones({2, 2, 1, 1}), std::nullopt, {.padding = "CAUSAL"});
      }),
      "conv: CAUSAL padding is for windows of one dimension, got 2"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::conv(ones({1, 0, 2}), kernel, std::nullopt, {.padding = "CIRCULAR"});
               }),
               "conv: an empty axis cannot be padded with itself, got f32[1,0,2]"));
  CHECK(begins(error_of<TypeError>([&] { nn::max_pool(ones({3}), {2}); }),
               "pool: needs an input (batch..., spatial..., features) for a window of 1 "
               "dimensions, got f32[3]"));
  CHECK(begins(error_of<TypeError>([&] { nn::max_pool(x, {2}, std::nullopt, "CAUSAL"); }),
               "pool: the padding must be SAME, VALID or numbers, got 'CAUSAL'"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::max_pool(x, {2}, {{1, 1}});
               }),
               "pool: strides needs one number for each of the 1 dimensions of the window, got 2"));
}

TEST_CASE("pooling agrees with Flax") {
  check_layer("avg_pool", [](const Arrays& a) { return nn::avg_pool(a[0], {2, 3}); });
  check_layer("avg_pool_same", [](const Arrays& a) {
    return nn::avg_pool(a[0], {2, 3}, {{2, 2}}, "SAME");
  });
  check_layer("avg_pool_same_nopad", [](const Arrays& a) {
    return nn::avg_pool(a[0], {2, 3}, {{2, 2}}, "SAME", false);
  });
  check_layer("max_pool_same", [](const Arrays& a) {
    return nn::max_pool(a[0], {2, 2}, {{2, 2}}, "SAME");
  });
  check_layer("max_pool_pads", [](const Arrays& a) {
    return nn::max_pool(a[0], {3, 2}, {{1, 2}}, {{1, 1}, {0, 1}});
  });
  check_layer("min_pool", [](const Arrays& a) { return nn::min_pool(a[0], {2, 2}); });
  check_layer("max_pool_single", [](const Arrays& a) { return nn::max_pool(a[0], {2}); });
}

TEST_CASE("normalisation agrees with Flax in all its options") {
  auto layer_norm = [](nn::NormOptions options) -> LayerFunction {
    return [=](const Arrays& a) { return nn::layer_norm(a[0], a[1], a[2], options); };
  };
  check_layer("layer_norm", layer_norm({}));
  check_layer("layer_norm_slow", layer_norm({.epsilon = 1e-3, .use_fast_variance = false}));
  check_layer("layer_norm_axes", layer_norm({.reduction_axes = ReduceAxes{-1, 1},
                                             .feature_axes = ReduceAxes{-2, -1}}));
  check_layer("layer_norm_bf16", layer_norm({}));
  check_layer("layer_norm_bf16_out", layer_norm({.dtype = bfloat16}));
  std::vector<bool> every_third_out;
  for (int i = 0; i < 2 * 3 * 4 * 6; ++i) every_third_out.push_back(i % 3 != 1);
  check_layer("layer_norm_masked", layer_norm({.mask = array(every_third_out, Shape{2, 3, 4, 6})}));
  check_layer("rms_norm", [](const Arrays& a) { return nn::rms_norm(a[0], a[1]); });
  check_layer("group_norm", [](const Arrays& a) { return nn::group_norm(a[0], 3, a[1], a[2]); });
  check_layer("group_norm_axes", [](const Arrays& a) {
    return nn::group_norm(a[0], 2, a[1], a[2], {.reduction_axes = ReduceAxes{2, -1}});
  });
  check_layer("instance_norm", [](const Arrays& a) { return nn::instance_norm(a[0], a[1], a[2]); });
  check_layer("batch_norm_train", [](const Arrays& a) {
    const Shape reduced = nn::other_axes(a[0], -1);
    const nn::Statistics batch = nn::compute_stats(a[0], {.axes = reduced});
    const Array y = nn::normalize(
        a[0], batch, {.reduction_axes = reduced, .scale = a[1], .bias = a[2], .epsilon = 1e-5});
    const Array mean = nn::running_average(a[3], batch.mean, 0.9);
    const Array var = nn::running_average(a[4], batch.var, 0.9);
    return concatenate({ravel(y), mean, var});
  });
}

TEST_CASE("normalisation says what does not fit") {
  const Array x = ones({2, 3, 4});
  CHECK(nn::feature_shape(x, {2, 1}) == Shape{4, 3});
  CHECK(begins(
      error_of<TypeError>([&] { nn::layer_norm(x, ones({3})); }),
      "normalize: the scale does not fit the features, got f32[3] for axes [2] of f32[2,3,4]"));
  CHECK(begins(error_of<TypeError>([&] { nn::layer_norm(x, std::nullopt, ones({2})); }),
               "normalize: the bias does not fit the features, got f32[2]"));
  CHECK(begins(error_of<TypeError>([&] { nn::group_norm(x, 3); }),
               "group_norm: the number of groups must divide the number of features, got 3 and 4"));
  CHECK(begins(
      error_of<TypeError>(
          [&] { nn::group_norm(x, 2, std::nullopt, std::nullopt, {.reduction_axes = 1}); }),
      "group_norm: the reduction axes must include the last one, which holds the features, got "
      "[1]"));
  CHECK(begins(error_of<TypeError>([&] { nn::group_norm(1.0, 2); }),
               "group_norm: the input needs at least one axis, got f32[]"));
  CHECK(
      begins(error_of<TypeError>([&] {
               nn::instance_norm(x, std::nullopt, std::nullopt, {.feature_axes = ReduceAxes{0, 2}});
             }),
             "instance_norm: the feature axes must not include the first one, which is the batch"));
  CHECK(begins(error_of<TypeError>([&] { nn::compute_stats(x, {.axes = 3}); }),
               "compute_stats: axis 3 is out of range for 3 dimensions"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::compute_stats(x, {.axes = {1, -2}});
               }),
               "compute_stats: axis -2 is given twice"));
}

TEST_CASE("dense layers agree with Flax") {
  check_layer("dense_general_axes", [](const Arrays& a) {
    return nn::dense_general(a[0], a[1], a[2], {.axis = {1, -1}});
  });
  check_layer("dense_general_batch", [](const Arrays& a) {
    return nn::dense_general(a[0], a[1], a[2], {.batch_dims = 0});
  });
  check_layer("embed", [](const Arrays& a) { return nn::embed(a[0], a[1]); });
  check_layer("embed_attend", [](const Arrays& a) { return nn::embed_attend(a[0], a[1]); });
  CHECK(nn::embed(ones({1, 3}), array({5, 7})).shape() == Shape{2, 3});  // one row serves all
}

TEST_CASE("a general kernel is filled as a plain one") {
  const Array key = random::key(1);
  const nn::Initializer lecun = nn::initializers::lecun_normal();
  const Array kernel = nn::flattened_init(lecun, 2)(key, {3, 4, 2, 5});
  CHECK(to_string(kernel.reshape({12, 10})) == to_string(lecun(key, {12, 10})));
  const Array bias = nn::flattened_init(nn::initializers::normal(), 2)(key, {2, 5});
  CHECK(to_string(ravel(bias)) == to_string(nn::initializers::normal()(key, {10})));
}

TEST_CASE("dense layers say what does not fit") {
  const Array x = ones({2, 3});
  CHECK(begins(error_of<TypeError>([&] {
                 nn::dense(x, ones({4, 5}));
               }),
               "dense: the kernel does not fit the input, got f32[4,5] for axis 1 of f32[2,3]\n"
               "  at layers_test.cpp:"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::dense(1.0, ones({4, 5}));
               }),
               "dense: the input needs at least one axis, got f32[]"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::dense_general(x, ones({2, 3}), std::nullopt, {.batch_dims = 1});
               }),
               "dense_general: batch_dims must be the leading axes 0, 1, ..., got [1]"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::embed(ones({4, 3}), x);
               }),
               "embed: the input must be integers, got f32[2,3]"));
  CHECK(begins(error_of<TypeError>([&] { nn::embed(ones({4}), array({1})); }),
               "embed: the embedding must have 2 dimensions, got f32[4]"));
  CHECK(begins(error_of<TypeError>([&] {
                 nn::dense(x, ones({3, 5}), std::nullopt, int32);
               }),
               "promote_dtype: the dtype must be floating, got i32"));
}

TEST_CASE("dense computes in the promoted dtype") {
  CHECK(nn::dense(ones({2, 3}, int32), ones({3, 4})).dtype() == float32);
  CHECK(nn::dense(ones({2, 3}, bfloat16), ones({3, 4}, bfloat16)).dtype() == bfloat16);
  CHECK(nn::dense(ones({2, 3}), ones({3, 4}), std::nullopt, bfloat16).dtype() == bfloat16);
  CHECK(nn::canonicalize_dtype({ones({1}, int32), Array()}) == float32);
  CHECK(nn::canonicalize_dtype({ones({1}, int8)}, std::nullopt, false) == int8);
  CHECK(nn::canonicalize_dtype({ones({1}, float16), Array(2.0)}) == float16);
  CHECK(!nn::promote_dtype({ones({1}), Array()})[1].defined());
}

TEST_CASE("dropout repeats its mask and shares it along broadcast axes") {
  const Array key = random::PRNGKey(5);
  check_layer("dropout", [&](const Arrays& a) { return nn::dropout(a[0], 0.3, key); });
  check_layer("dropout_rows", [&](const Arrays& a) { return nn::dropout(a[0], 0.3, key, {-1}); });
  const Array x = ones({3});
  CHECK(nn::dropout(x, 0, Array()).to_vector<float>() == std::vector<float>{1, 1, 1});
  CHECK(nn::dropout(x, 1, Array()).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(begins(error_of<TypeError>([&] { nn::dropout(x, 1.5, key); }),
               "dropout: the rate must be between 0 and 1, got 1.5"));
  CHECK(begins(error_of<TypeError>([&] { nn::dropout(x, 0.5, key, {1}); }),
               "dropout: axis 1 is out of range for 1 dimensions"));
}

}  // namespace
}  // namespace reprise
