// Layers and lifted layers against what the real Flax computes for seed 0.
#include "nn/golden.h"

namespace rp = reprise;
namespace nn = reprise::nn;
using rp::Array;
using rp::Dict;

namespace {

template <class Model>
void check_layer(const std::string& name, const Model& model, const nn::Rngs& rngs = {}) {
  CAPTURE(name);
  const flax::Json& c = flax::cases("linen_layers_seed0").at(name);
  const Array x = flax::array_of(c.at("inputs")[0]);
  nn::Rngs init_rngs = rp::random::PRNGKey(0);
  if (!rngs.keys().empty()) {
    std::map<std::string, Array> all = rngs.keys();
    all["params"] = rp::random::PRNGKey(0);
    init_rngs = all;
  }
  const Dict variables = model.init(init_rngs, x);
  flax::check_bits(variables, flax::dict_of(c.at("variables")));
  flax::check_close(model.apply(variables, {.rngs = rngs}, x), flax::array_of(c.at("out")));
}

struct DropoutNet : nn::Module<DropoutNet> {
  Array call(Array x) {
    x = nn::Dense(4)(x);
    x = nn::relu(x);
    return nn::Dropout(0.5, {.deterministic = false})(x);
  }
};

struct BatchNormNet : nn::Module<BatchNormNet> {
  Array call(Array x) {
    x = nn::Dense(4)(x);
    return nn::BatchNorm({.use_running_average = false, .momentum = 0.9})(x);
  }
};

struct Block : nn::Module<Block> {
  std::int64_t features;
  explicit Block(std::int64_t features) : features(features) {}
  std::pair<Array, rp::None> call(Array x, rp::None) {
    Array h = nn::Dense(features)(x);
    h = nn::relu(h);
    h = nn::Dense(features)(h);
    return {x + h, rp::none};
  }
};

struct Stack : nn::Module<Stack> {
  std::int64_t features, length;
  bool check;
  Stack(std::int64_t features, std::int64_t length, bool check)
      : features(features), length(length), check(check) {}
  Array call(Array x) {
    const auto Layers =
        nn::scan(nn::remat<Block>({.prevent_cse = false}), {.variable_axes = {{"params", 0}},
                                                            .split_rngs = {{"params", true}},
                                                            .length = length,
                                                            .check_constancy_invariants = check});
    auto layers = Layers(features).named("layers");
    return layers(x, rp::none).first;
  }
};

}  // namespace

TEST_CASE("layers make the parameters of Flax to the bit and compute its outputs") {
  check_layer("LayerNorm", nn::LayerNorm());
  check_layer("RMSNorm", nn::RMSNorm());
  check_layer("BatchNorm_eval", nn::BatchNorm({.use_running_average = true}));
  check_layer("Embed_5x3", nn::Embed(5, 3));
  check_layer("Dense_4to5", nn::Dense(5));
  check_layer("DenseGeneral_2x3", nn::DenseGeneral({2, 3}));
  check_layer("Conv_3_k3", nn::Conv(2, 3));
  check_layer("MHDPA_2heads", nn::MultiHeadDotProductAttention(2));
  check_layer("Dropout_0.25", nn::Dropout(0.25, {.deterministic = false}),
              {{"dropout", rp::random::PRNGKey(1)}});
  check_layer("GroupNorm_2", nn::GroupNorm({.num_groups = 2}));
}

TEST_CASE("remat of dropout draws the mask of Flax, and the gradient has the same zeros") {
  const flax::Json& c = flax::cases("linen_remat_dropout");
  const Array x = flax::array_of(c.at("x"));
  const nn::Rngs rngs = {{"dropout", rp::random::PRNGKey(2)}};
  const auto check = [&](const auto& model) {
    const Dict variables =
        model.init({{"params", rp::random::PRNGKey(0)}, {"dropout", rp::random::PRNGKey(1)}}, x);
    flax::check_bits(variables.dict("params"), flax::dict_of(c.at("params")));
    flax::check_close(model.apply(variables, {.rngs = rngs}, x),
                      flax::array_of(c.at("out_dropout_key2")));
    const Dict grads =
        rp::grad([&](Dict v) { return rp::sum(model.apply(v, {.rngs = rngs}, x)); })(variables);
    const Dict wanted = flax::dict_of(c.at("grad_params_sum"));
    flax::check_close(grads.dict("params").dict("Dense_0")["kernel"],
                      wanted.dict("Dense_0")["kernel"]);
    flax::check_close(grads.dict("params").dict("Dense_0")["bias"], wanted.dict("Dense_0")["bias"]);
  };
  check(nn::remat<DropoutNet>()());
  check(DropoutNet());
}

TEST_CASE("remat of batch normalisation moves the statistics of Flax once") {
  const flax::Json& c = flax::cases("linen_remat_batchnorm");
  const Array x = flax::array_of(c.at("x"));
  const auto check = [&](const auto& model) {
    const Dict variables = model.init(rp::random::PRNGKey(0), x);
    flax::check_bits(variables, flax::dict_of(c.at("variables")));
    const auto [out, changed] = model.apply(variables, nn::mutable_("batch_stats"), x);
    flax::check_close(out, flax::array_of(c.at("out")));
    CHECK(changed.size() == 1);
    const Dict wanted = flax::dict_of(c.at("new_batch_stats"));
    const Dict& stats = changed.dict("batch_stats");
    flax::check_close(stats.dict("BatchNorm_0")["mean"], wanted.dict("BatchNorm_0")["mean"]);
    flax::check_close(stats.dict("BatchNorm_0")["var"], wanted.dict("BatchNorm_0")["var"]);
  };
  check(nn::remat<BatchNormNet>()());
  check(BatchNormNet());
}

TEST_CASE(
    "scan of remat makes the parameters of Flax to the bit, with and without the constancy check") {
  for (const flax::Json& c : flax::cases("linen_scan_of_remat")) {
    const Stack model(c.at("features"), c.at("length"), c.at("check_constancy_invariants"));
    CAPTURE(c.at("seed").dump() + " " + c.at("check_constancy_invariants").dump());
    const Array x = flax::array_of(c.at("x"));
    const Dict variables = model.init(rp::random::PRNGKey(c.at("seed").get<int>()), x);
    flax::check_bits(variables.dict("params"), flax::dict_of(c.at("params")));
    flax::check_close(model.apply(variables, x), flax::array_of(c.at("out")));
  }
}

TEST_CASE("remat_scan makes the parameters of Flax to the bit") {
  const flax::Json& c = flax::cases("linen_remat_scan_2x3_dense4_seed0");
  const auto model = nn::remat_scan<nn::Dense>({.lengths = {2, 3}})(4);
  const Array x = flax::array_of(c.at("x"));
  const Dict variables = model.init(rp::random::PRNGKey(0), x);
  flax::check_bits(variables.dict("params"), flax::dict_of(c.at("params")));
  flax::check_close(model.apply(variables, x), flax::array_of(c.at("out")));
}
