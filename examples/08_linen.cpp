// 8. Linen: modules that describe layers, with the parameters outside; nn::remat lifts a module
// class.
#include <reprise/nn.h>
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
namespace nn = reprise::nn;
namespace policies = rp::checkpoint_policies;
using rp::Array;

struct Block : nn::Module<Block> {
  Array call(Array x) {
    // One submodule per statement: the order gives the names, LayerNorm_0, Dense_0, Dense_1.
    Array h = nn::LayerNorm()(x);
    h = nn::Dense(4 * x.shape(-1))(h);
    h = nn::gelu(h);
    h = nn::Dense(x.shape(-1))(h);
    return x + h;
  }
};

struct Net : nn::Module<Net> {
  int depth;
  bool remat;
  Net(int depth, bool remat) : depth(depth), remat(remat) {}

  Array call(Array x) {
    // Lift the class, then construct, as in Flax.
    auto RematBlock = nn::remat<Block>({.policy = policies::dots_with_no_batch_dims_saveable});
    for (int i = 0; i < depth; ++i) {
      // A lifted class names its parameters after itself; a name of our own makes them the same.
      std::string name = "block_" + std::to_string(i);
      x = remat ? RematBlock().named(name)(x) : Block().named(name)(x);
    }
    return nn::Dense(1)(x);
  }
};

int main() {
  Array x = rp::random::normal(rp::random::key(1), {16, 8});
  Net plain(3, false), checkpointed(3, true);

  // init makes the parameters, the same ones that Flax makes from this key; apply uses them.
  rp::Dict variables = plain.init(rp::random::PRNGKey(0), x);
  std::cout << Block().tabulate(rp::random::PRNGKey(0), x) << "\n";
  Array kernel = variables["params"]["block_0"]["Dense_0"]["kernel"];
  std::cout << "block_0/Dense_0/kernel is " << kernel.type() << "\n\n";

  // A loss for either net; the parameters serve both.
  auto loss_of = [&x](Net net) {
    return [net, &x](rp::Dict v) { return rp::mean(rp::square(net.apply(v, x))); };
  };
  auto [loss, grads] = rp::value_and_grad(loss_of(plain))(variables);
  auto [loss_again, grads_again] = rp::value_and_grad(loss_of(checkpointed))(variables);
  Array difference =
      rp::max(rp::abs(grads["params"]["block_0"]["Dense_0"]["kernel"].array() -
                      grads_again["params"]["block_0"]["Dense_0"]["kernel"].array()));
  std::cout << "the same loss: " << std::boolalpha
            << (loss.item<float>() == loss_again.item<float>()) << ", gradients differ by "
            << difference << "\n";
  std::cout << "kept: " << rp::residual_report(loss_of(plain), variables).computed_bytes()
            << " bytes, with remat "
            << rp::residual_report(loss_of(checkpointed), variables).computed_bytes() << "\n";
}
