// Gradient checkpointing step by step: what is saved without checkpoint, by placing it, by policy and by name.
#include <iostream>

#include <reprise/reprise.h>

namespace rp = reprise;
using rp::Array;

Array g(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}
Array f(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = g(W2, x);
  return g(W3, x);
}
Array f2(Array W1, Array W2, Array W3, Array x) {
  x = rp::checkpoint(g)(W1, x);
  x = rp::checkpoint(g)(W2, x);
  return rp::checkpoint(g)(W3, x);
}
Array f4(Array W1, Array W2, Array W3, Array x) {
  x = rp::checkpoint_name(g(W1, x), "a");
  x = rp::checkpoint_name(g(W2, x), "b");
  return rp::checkpoint_name(g(W3, x), "c");
}

int main() {
  namespace policies = rp::checkpoint_policies;
  Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), W3 = rp::ones({7, 6}), x = rp::ones({4});

  std::cout << "Without checkpoint the backward pass reads\n";
  rp::print_saved_residuals(f, RP_ARGS(W1, W2, W3, x));

  std::cout << "\nWith checkpoint around each layer\n";
  rp::print_saved_residuals(f2, RP_ARGS(W1, W2, W3, x));

  auto f3 = rp::checkpoint(f, {.policy = policies::dots_with_no_batch_dims_saveable});
  std::cout << "\nWith the policy " << policies::dots_with_no_batch_dims_saveable << "\n";
  rp::print_saved_residuals(f3, RP_ARGS(W1, W2, W3, x));

  auto named = rp::checkpoint(f4, {.policy = policies::save_only_these_names("a")});
  std::cout << "\nWith the policy " << policies::save_only_these_names("a") << "\n";
  rp::print_saved_residuals(named, RP_ARGS(W1, W2, W3, x));

  std::cout << "\nThe two programs of the policy on products\n";
  rp::print_fwd_bwd(f3, W1, W2, W3, x);
}
