// 9. NNX: modules that hold their parameters; nnx::remat, grad and jit take functions of modules.
#include <reprise/nnx.h>
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
namespace nnx = rp::nnx;
using rp::Array;

struct Block : nnx::Module {
  nnx::Linear up, down;
  nnx::Dropout dropout;
  // Members are made in the order of their declaration, which decides on their random numbers.
  Block(int features, nnx::Rngs& rngs)
      : up(features, 4 * features, rngs), down(4 * features, features, rngs), dropout(0.1, rngs) {}
  Array operator()(Array x) {
    Array h = rp::nn::gelu(up(x));
    h = down(h);
    return x + dropout(h);
  }
  REPRISE_FIELDS(up, down, dropout)
};

struct Net : nnx::Module {
  nnx::List<Block> blocks;
  nnx::Linear head;
  Net(int depth, int features, nnx::Rngs& rngs) : head(features, 1, rngs) {
    for (int i = 0; i < depth; ++i) blocks.append(Block(features, rngs));
  }
  Array operator()(Array x) {
    // A function whose first argument is the module. Dropout draws the same mask when it is played
    // again, and what it counts moves on once.
    auto forward = nnx::remat([](Block& block, Array in) { return block(in); });
    for (Block& block : blocks) x = forward(block, x);
    return head(x);
  }
  REPRISE_FIELDS(blocks, head)
};

Array loss(Net& net, Array x, Array y) { return rp::mean(rp::square(net(x) - y)); }

int main() {
  nnx::Rngs rngs(0);
  Net net(2, 8, rngs);
  Array x = rp::random::normal(rp::random::key(1), {32, 8});
  Array y = rp::sum(rp::sin(x), 1, true);

  // Gradients come as a State, the tree of the parameters.
  auto [value, grads] = nnx::value_and_grad(loss)(net, x, y);
  Array kernel = grads["blocks"][0]["up"]["kernel"];
  std::cout << "gradient of blocks[0].up.kernel: " << kernel.type() << "\n";

  // A compiled step changes the net and the optimiser in place, as in Flax.
  nnx::Optimizer optimizer(net, rp::optim::adam(1e-2), nnx::OfType<nnx::Param>);
  auto step = nnx::jit(
      [](Net& m, nnx::Optimizer& o, Array in, Array out) {
        auto [at, gradients] = nnx::value_and_grad(loss)(m, in, out);
        o.update(m, gradients);
        return at;
      },
      {.donate_argnums = {0, 1}});
  float first = 0, last = 0;
  for (int i = 0; i < 200; ++i) {
    last = step(net, optimizer, x, y).item<float>();
    if (i == 0) first = last;
  }
  std::cout << "200 steps: the loss is a twentieth of what it was: " << std::boolalpha
            << (last < first / 20) << "\n";

  // Without dropout the net is a plain function again.
  net.eval();
  std::cout << "evaluated: loss below 0.1: " << (loss(net, x, y).item<float>() < 0.1f) << "\n";
}
