// The code of docs/nnx.md, compiled and run; tools/check_snippets.py keeps both alike.
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <iostream>
#include <sstream>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

namespace {

struct MLP : nnx::Module {
  nnx::List<nnx::Linear> layers;
  nnx::BatchNorm norm;
  nnx::Dropout dropout;
  MLP(int num_layers, int features, nnx::Rngs& rngs) : norm(features, rngs), dropout(0.1, rngs) {
    for (int i = 0; i < num_layers; ++i) layers.append(nnx::Linear(features, features, rngs));
  }
  Array operator()(Array x) {
    for (auto& layer : layers) x = rp::nn::relu(layer(x));
    x = norm(x);
    return dropout(x);
  }
  REPRISE_FIELDS(layers, norm, dropout)
};

struct LossScale : nnx::VariableKind<LossScale> {
  using VariableKind::VariableKind;
};

struct Block : nnx::Module {
  nnx::Linear linear;
  explicit Block(const nnx::Rngs& rngs) : linear(4, 4, rngs) {}
  Array operator()(Array x) { return rp::nn::relu(linear(x)); }
  REPRISE_FIELDS(linear)
};

}  // namespace

TEST_CASE("the guide: modules, state, remat and training") {
  nnx::Rngs rngs(0);
  MLP model(2, 4, rngs);
  Array y = model(rp::ones({3, 4}));
  CHECK(y.shape() == rp::Shape{3, 4});

  LossScale scale(Array(1024.0));
  Array half = scale / 2;  // reads like an array
  scale.set_value(half);   // every holder of the box sees it
  scale *= 2;
  CHECK(scale.get_value().item<float>() == 1024);

  nnx::Rngs streams(0, {{"dropout", 1}});
  Array key = streams.params();  // from the default stream: there is no stream "params"
  Array other = streams.dropout();
  CHECK(key.shape() == other.shape());

  nnx::State params = nnx::state(model, nnx::OfType<nnx::Param>);
  Array kernel = params["layers"][0]["kernel"];
  auto [graphdef, weights, rest] = nnx::split(model, nnx::OfType<nnx::Param>, rp::ellipsis);
  MLP again = nnx::merge(graphdef, weights, rest);
  nnx::update(model, params);
  CHECK(kernel.shape() == again.layers[0].kernel.shape());

  auto forward = nnx::remat([](MLP& m, Array x) { return m(x); });
  auto loss = [forward](MLP& m, Array x) { return rp::mean(rp::square(forward(m, x))); };
  auto [value, grads] = nnx::value_and_grad(loss)(model, rp::ones({3, 4}));
  CHECK(grads.size() == 6);
  CHECK(value.item<float>() >= 0);

  std::ostringstream printed;
  std::streambuf* const terminal = std::cout.rdbuf(printed.rdbuf());
  nnx::Optimizer optimizer(model, rp::optim::adamw(1e-2), nnx::OfType<nnx::Param>);
  auto step = nnx::jit([](MLP& m, nnx::Optimizer& o, Array x) {
    auto mean_square = [](MLP& inner, Array in) { return rp::mean(rp::square(inner(in))); };
    auto [loss_value, gradients] = nnx::value_and_grad(mean_square)(m, x);
    o.update(m, gradients);
    return loss_value;
  });
  Array first = step(model, optimizer, rp::ones({3, 4}));
  std::cout << step.lower(model, optimizer, rp::ones({3, 4})).compile().memory_analysis();
  std::cout.rdbuf(terminal);
  CHECK(printed.str().find("peak") != std::string::npos);
  CHECK(first.shape().empty());

  auto create = nnx::split_rngs(nnx::vmap([](nnx::Rngs& r) { return Block(r); }), {.splits = 12});
  Block blocks = create(rngs);  // twelve blocks in one: kernels are (12, 4, 4)
  auto run =
      nnx::scan(nnx::remat([](Block& block, Array x) { return block(x); }, {.prevent_cse = false}),
                {.in_axes = {0, nnx::Carry}, .out_axes = {nnx::Carry}});
  Array out = run(blocks, rp::ones({3, 4}));
  CHECK(out.shape() == rp::Shape{3, 4});
}
