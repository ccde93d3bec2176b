// 3. Checkpoint: the values of a function are not kept for the backward pass but computed again.
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
using rp::Array;

Array layer(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}

Array loss(Array W1, Array W2, Array x) {
  x = layer(W1, x);
  x = layer(W2, x);
  return rp::sum(x);
}

// The same function. Between the passes each layer keeps its arguments only; the backward pass
// plays the layer again when it gets there.
Array loss_checkpoint(Array W1, Array W2, Array x) {
  x = rp::checkpoint(layer)(W1, x);
  x = rp::checkpoint(layer)(W2, x);
  return rp::sum(x);
}

int main() {
  Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), x = rp::ones({4});

  // Nothing is computed here: the residuals are read off the traced program, with the line that
  // makes each. RP_ARGS gives the arguments their names.
  std::cout << "loss keeps\n";
  rp::print_saved_residuals(loss, RP_ARGS(W1, W2, x));
  std::cout << "\nloss_checkpoint keeps\n";
  rp::print_saved_residuals(loss_checkpoint, RP_ARGS(W1, W2, x));

  // The gradients are the same, to the bit.
  Array plain = rp::grad(loss)(W1, W2, x), again = rp::grad(loss_checkpoint)(W1, W2, x);
  std::cout << "\nlargest difference of the gradients: " << rp::max(rp::abs(plain - again)) << "\n";

  // What the two passes do. The backward pass of the checkpointed function begins with a copy of
  // the forward pass.
  std::cout << "\nthe two programs of one checkpointed layer:\n";
  rp::print_fwd_bwd(rp::checkpoint(layer), W1, x);

  // Compiled too the recomputation stays, and with it the memory saved: no pass undoes a
  // checkpoint.
  auto flops = [&](auto f) {
    return rp::jit(rp::grad<0, 1>(f)).lower(W1, W2, x).compile().cost_analysis().matmul_flops;
  };
  std::cout << "products: " << flops(loss) << " flops, with checkpoint " << flops(loss_checkpoint)
            << "\n";
}
