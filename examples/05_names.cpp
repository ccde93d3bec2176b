// 5. Names: checkpoint_name marks a value, and policies speak of values by name.
#include <reprise/reprise.h>

#include <iostream>

namespace rp = reprise;
namespace policies = rp::checkpoint_policies;
using rp::Array;

Array predict(std::vector<Array> params, Array x) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    Array y = rp::dot(params[i], x);
    x = rp::sin(y);
    x = rp::checkpoint_name(x, "layer" + std::to_string(i));
  }
  return x;
}

Array loss(std::vector<Array> params, Array x) { return rp::sum(predict(params, x)); }

int main() {
  std::vector<Array> params = {rp::ones({8, 8}), rp::ones({8, 8}), rp::ones({8, 8})};
  Array x = rp::ones({8});
  auto show = [&](const rp::Policy& policy) {
    std::cout << policy << "\n";
    rp::print_saved_residuals(rp::checkpoint(loss, {.policy = policy}), RP_ARGS(params, x));
    std::cout << "\n";
  };

  // A name alone changes nothing but the label.
  std::cout << "no checkpoint\n";
  rp::print_saved_residuals(loss, RP_ARGS(params, x));
  std::cout << "\n";

  // What a policy allows is saved if the backward pass reads it: layer2 is the output, nobody does.
  show(policies::save_only_these_names("layer1", "layer2"));
  show(policies::save_any_names_but_these("layer1"));
  // Names and products together.
  show(policies::save_only_these_names("layer0") | policies::dots_saveable);

  // A name that the function does not carry is a warning, and with strict an error.
  auto misspelt =
      rp::checkpoint(loss, {.policy = policies::save_only_these_names("layer_1"), .strict = true});
  try {
    rp::grad(misspelt)(params, x);
  } catch (const rp::TypeError& e) {
    std::cout << e.what() << "\n";
  }
}
