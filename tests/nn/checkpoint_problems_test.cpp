// The two Linen problems of the tutorials against the real Flax.
#include "nn/golden.h"

namespace rp = reprise;
using rp::Array;

namespace {

struct MLP : rp::nn::Module<MLP> {
  int features, layers;
  MLP(int features, int layers) : features(features), layers(layers) {}
  Array call(Array x) {
    for (int i = 0; i < layers; ++i) {
      if (i > 0) x = rp::nn::relu(x);
      x = rp::nn::Dense(features)(x);
    }
    return x;
  }
};

template <class Model>
void check_case(const flax::Json& c, const Model& model) {
  const Array x = flax::array_of(c.at("x"));
  const auto [first, variables] =
      model.init_with_output(rp::random::PRNGKey(c.at("seed").get<std::int64_t>()), x);
  if (c.contains("params"))
    flax::check_bits(variables.dict("params"), flax::dict_of(c.at("params")));
  const Array out = model.apply(variables, x);
  const Array wanted = flax::array_of(c.at("out"));
  CHECK(flax::worst_ulp(out, wanted) == 0);
  CHECK(flax::worst_ulp(first, wanted) == 0);
  if (!c.contains("grad_params")) return;
  auto loss = [&](rp::Dict v, Array at) { return rp::sum(model.apply(v, at)); };
  const auto [dv, dx] = rp::grad<0, 1>(loss)(variables, x);
  CHECK(flax::worst_ulp(dx, flax::array_of(c.at("grad_x"))) == 0);
  flax::check_bits(dv.dict("params"), flax::dict_of(c.at("grad_params")));
}

}  // namespace

TEST_CASE("nn_checkpoint_forward has the bits of Flax: parameters, outputs and gradients") {
  for (const flax::Json& c : flax::cases("nn_checkpoint_forward")) {
    CAPTURE(c.at("seed").dump() + " D " + c.at("D").dump() + " F " + c.at("features").dump());
    const int features = c.at("features");
    check_case(c, rp::nn::checkpoint<MLP>()(features, 2));
    check_case(c, MLP(features, 2));
  }
}

TEST_CASE("nn_remat_policy has the bits of Flax: parameters, outputs and gradients") {
  const auto RematMLP =
      rp::nn::remat<MLP>({.policy = rp::checkpoint_policies::dots_with_no_batch_dims_saveable});
  for (const flax::Json& c : flax::cases("nn_remat_policy")) {
    CAPTURE(c.at("seed").dump() + " D " + c.at("D").dump() + " F " + c.at("features").dump());
    const int features = c.at("features");
    check_case(c, RematMLP(features, 3));
    check_case(c, MLP(features, 3));
  }
}
