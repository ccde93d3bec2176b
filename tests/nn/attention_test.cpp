#include "nn/layer_case.h"
#include "reprise/nn_layers.h"

#include <string>

namespace reprise {
namespace {

const Array key3 = random::PRNGKey(3);

Array some_mask() {
  std::vector<bool> mask;
  for (int i = 0; i < 2 * 3 * 6; ++i) mask.push_back(i % 4 != 2);
  return array(mask, Shape{2, 1, 3, 6});
}

LayerFunction attention(nn::AttentionOptions options) {
  return [=](const Arrays& a) {
    nn::AttentionOptions with_bias = options;
    if (a.size() > 3) with_bias.bias = a[3];
    return nn::dot_product_attention(a[0], a[1], a[2], with_bias);
  };
}
LayerFunction scaled(nn::ScaledAttentionOptions options) {
  return [=](const Arrays& a) {
    nn::ScaledAttentionOptions with_bias = options;
    if (a.size() > 3) with_bias.bias = a[3];
    return nn::scaled_attention(a[0], a[1], a[2], with_bias);
  };
}

TEST_CASE("dot_product_attention agrees with Flax") {
  check_layer("attention", attention({}));
  check_layer("attention_masked", attention({.mask = some_mask()}));
  check_layer("attention_causal", attention({.mask = nn::make_causal_mask(zeros({2, 6}))}));
  check_layer("attention_causal", attention({.is_causal = true}));
  check_layer("attention_dropout", attention({.dropout_rng = key3, .dropout_rate = 0.4}));
  check_layer("attention_dropout_each",
              attention({.broadcast_dropout = false, .dropout_rng = key3, .dropout_rate = 0.4}));
  check_layer("attention", attention({.dropout_rate = 0.4, .deterministic = true}));
  check_layer("attention_grouped", attention({}));
  check_layer("attention_nnx_causal", attention({.is_causal = true}));
}

TEST_CASE("scaled_attention agrees with jax.nn.dot_product_attention") {
  check_layer("scaled_attention", scaled({}));
  check_layer("scaled_attention_masked",
              scaled({.mask = some_mask(), .scale = 0.3, .is_causal = true}));
  check_layer("scaled_attention_grouped", scaled({.is_causal = true}));
  check_layer("scaled_attention_nobatch", scaled({}));
}

TEST_CASE("scaled_attention takes any number of batch axes") {
  const Array q = random::normal(key3, {2, 3, 4, 2, 5});
  const Array mask = nn::make_causal_mask(zeros({4}));
  const Array all_at_once = nn::scaled_attention(q, q, q, {.mask = mask});
  const Array one = nn::scaled_attention(q(1, 2), q(1, 2), q(1, 2), {.is_causal = true});
  CHECK(max(abs(all_at_once(1, 2) - one)).item<float>() < 1e-6f);
}

TEST_CASE("attention in half precision may compute its softmax in f32") {
  const Array q = random::normal(key3, {1, 3, 2, 4}, bfloat16);
  CHECK(nn::dot_product_attention_weights(q, q).dtype() == bfloat16);
  CHECK(nn::dot_product_attention_weights(q, q, {.force_fp32_for_softmax = true}).dtype() ==
        float32);
  CHECK(nn::scaled_attention(q, q, q).dtype() == bfloat16);
  const Array nothing = zeros({1, 1, 3, 3});
  const Array even = nn::dot_product_attention_weights(q, q, {.mask = nothing}).astype(float32);
  CHECK(max(abs(even - 1.0 / 3)).item<float>() < 2e-3f);  // finite where everything is masked
}

TEST_CASE("masks have the shapes and values of Flax's") {
  check_layer("attention_mask",
              [](const Arrays& a) { return nn::make_attention_mask(a[0], a[1]); });
  check_layer("attention_mask_extra", [](const Arrays& a) {
    return nn::make_attention_mask(a[0], a[1], greater_equal, 1, int32);
  });
  const Array causal = nn::make_causal_mask(zeros({2, 3}), 0, bool_);
  CHECK(causal.type() == Type{bool_, {2, 1, 3, 3}});
  CHECK(causal(1, 0).to_vector<int>() == std::vector<int>{1, 0, 0, 1, 1, 0, 1, 1, 1});
  const Array first = array({{1.0, 0.0}}), second = array({{1.0, 1.0}});
  CHECK(nn::combine_masks({first, std::nullopt, second})->to_vector<float>() ==
        std::vector<float>{1, 0});
  CHECK(!nn::combine_masks({std::nullopt}));
  CHECK(begins(
      error_of<TypeError>([&] {
        nn::combine_masks({first, ones({2})});
      }),
      "combine_masks: the masks must have the same number of dimensions, got f32[1,2] and f32[2]\n"
      "  at attention_test.cpp:"));
  CHECK(begins(error_of<TypeError>([&] { nn::make_causal_mask(1.0); }),
               "make_causal_mask: the input needs at least one axis"));
}

TEST_CASE("attention says what does not fit") {
  const Array q = ones({2, 3, 4, 5});
  auto error = [&](const Array& key, const Array& value) {
    return error_of<TypeError>([&] { nn::dot_product_attention(q, key, value); });
  };
  CHECK(begins(
      error(ones({1, 3, 4, 5}), q),
      "dot_product_attention: query and key must be (batch..., length, heads, depth) with the same "
      "batch, got f32[2,3,4,5] and f32[1,3,4,5]\n  at attention_test.cpp:"));
  CHECK(begins(
      error(ones({2, 3, 3, 5}), q),
      "dot_product_attention: the heads of the query must be a multiple of those of the key, got 4 "
      "and 3"));
  CHECK(begins(error(ones({2, 3, 4, 6}), q),
               "dot_product_attention: query and key must have the same depth, got 5 and 6"));
  CHECK(begins(error(q, ones({2, 7, 4, 5})),
               "dot_product_attention: key and value must have the same length and heads, got "
               "f32[2,3,4,5] and "
               "f32[2,7,4,5]"));
  const std::string no_key =
      error_of<TypeError>([&] { nn::dot_product_attention(q, q, q, {.dropout_rate = 0.5}); });
  CHECK(begins(no_key, "dot_product_attention: dropout needs a key, got rate 0.5"));
  CHECK(no_key.find("hint: pass .dropout_rng, or set .deterministic") != std::string::npos);
}

}  // namespace
}  // namespace reprise
