// The code of docs/linen.md, section by section.
#include <reprise/nn.h>
#include <reprise/optim.h>
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
namespace nn = reprise::nn;
using rp::Array;

struct MLP : nn::Module<MLP> {
  int features;
  explicit MLP(int features) : features(features) {}
  Array call(Array x) {
    x = nn::Dense(features)(x);  // Dense_0
    x = nn::relu(x);
    return nn::Dense(features)(x);  // Dense_1
  }
};

void first_steps() {
  Array x = rp::ones({2, 4});
  MLP model(3);
  rp::Dict variables = model.init(rp::random::PRNGKey(0), x);
  Array y = model.apply(variables, x);
  Array kernel = variables["params"]["Dense_0"]["kernel"];
  std::cout << "first steps: " << y.type() << " from a kernel " << kernel.type() << "\n";
}

struct AutoEncoder : nn::Module<AutoEncoder> {
  nn::Dense encoder, decoder;
  explicit AutoEncoder(int features) : encoder(2), decoder(features) {}
  REPRISE_SUBMODULES(encoder, decoder)
  Array encode(Array x) { return encoder(x); }
  Array call(Array x) { return decoder(encode(x)); }
};

void members() {
  Array x = rp::ones({2, 4});
  AutoEncoder model(4);
  rp::Dict variables = model.init(rp::random::PRNGKey(0), x);
  Array code = model.apply<&AutoEncoder::encode>(variables, x);
  std::cout << "members: encoder and decoder, code " << code.type() << "\n";
}

struct Regressor : nn::Module<Regressor> {
  Array call(Array x, bool train) {
    x = nn::Dense(8)(x);
    x = nn::BatchNorm({.use_running_average = !train})(x);
    x = nn::Dropout(0.1, {.deterministic = !train})(x);
    return nn::Dense(1)(x);
  }
};

void collections() {
  Array x = rp::ones({4, 3});
  Regressor model;
  rp::Dict variables = model.init({{"params", rp::random::key(0)}, {"dropout", rp::random::key(1)}}, x, true);
  auto [y, changed] = model.apply(
      variables, nn::mutable_("batch_stats", {.rngs = {{"dropout", rp::random::key(2)}}}), x, true);
  variables["batch_stats"] = changed.dict("batch_stats");
  Array prediction = model.apply(variables, x, false);
  std::cout << "collections: " << y.type() << " in training, " << prediction.type() << " afterwards\n";
}

void remat() {
  Array x = rp::ones({2, 4});
  auto RematMLP = nn::remat<MLP>({.policy = rp::checkpoint_policies::dots_with_no_batch_dims_saveable});
  auto model = RematMLP(3);  // lift the class, then construct
  rp::Dict variables = model.init(rp::random::PRNGKey(0), x);
  auto loss = [&](rp::Dict v) { return rp::sum(rp::square(model.apply(v, x))); };
  auto [value, grads] = rp::value_and_grad(loss)(variables);
  std::cout << "remat: a loss of type " << value.type() << ", gradients of " << rp::tree_leaves(grads).size()
            << " parameters\n";
}

struct Block : nn::Module<Block> {
  std::pair<Array, rp::None> call(Array x) {
    Array h = nn::LayerNorm()(x);
    h = nn::MultiHeadDotProductAttention(2)(h);
    x = x + h;
    h = nn::LayerNorm()(x);
    h = nn::Dense(4 * x.shape(-1))(h);
    h = nn::gelu(h);
    h = nn::Dense(x.shape(-1))(h);
    return {x + h, rp::none};
  }
};

struct Stack : nn::Module<Stack> {
  int depth;
  explicit Stack(int depth) : depth(depth) {}
  Array call(Array x) {
    auto Blocks = nn::scan(nn::remat<Block>({.prevent_cse = false}),
                           {.variable_axes = {{"params", 0}}, .split_rngs = {{"params", true}}, .length = depth});
    auto [y, nothing] = Blocks().named("blocks")(x);
    return y;
  }
};

void training() {
  Array x = rp::random::normal(rp::random::key(1), {2, 5, 8});
  Stack model(12);
  rp::Dict variables = model.init(rp::random::PRNGKey(0), x);
  auto optimizer = rp::optim::adam(1e-2);
  rp::Dict state = optimizer.init(variables);
  auto step = rp::jit([&](rp::Dict v, rp::Dict s) {
    auto loss = [&](rp::Dict at) { return rp::mean(rp::square(model.apply(at, x))); };
    auto [value, grads] = rp::value_and_grad(loss)(v);
    auto [updates, next] = optimizer.update(grads, s, v);
    return std::tuple{value, rp::optim::apply_updates(v, updates), next};
  });
  float first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    auto [value, next_variables, next_state] = step(variables, state);
    variables = next_variables;
    state = next_state;
    last = value.item<float>();
    if (i == 0) first = last;
  }
  std::cout << "training: the loss fell by half: " << (last < 0.5f * first ? "yes" : "no") << "\n";
}

int main() {
  first_steps();
  members();
  collections();
  remat();
  training();
}
