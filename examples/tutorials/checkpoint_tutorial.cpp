// Gradient checkpointing step by step: what a backward pass reads, and the four ways to choose it:
// where checkpoint is placed, by policy, by name, recursively. Each section prints what it talks
// about; the whole output is examples/tutorials/checkpoint_tutorial.expected.
#include <reprise/reprise.h>

#include <functional>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rp = reprise;
using rp::Array;
namespace policies = rp::checkpoint_policies;

void title(const std::string& text) { std::cout << "\n== " << text << "\n"; }

// ----------------------------------------------------------------- 1. What the backward pass reads

Array g(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}
Array f(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = g(W2, x);
  x = g(W3, x);
  return x;
}
// Checkpointed layers keep only their inputs.
Array f2(Array W1, Array W2, Array W3, Array x) {
  x = rp::checkpoint(g)(W1, x);
  x = rp::checkpoint(g)(W2, x);
  x = rp::checkpoint(g)(W3, x);
  return x;
}
// A policy decides from outside: f itself stays as it is.
const auto f3 = rp::checkpoint(f, {.policy = policies::dots_with_no_batch_dims_saveable});
// Names let a policy speak of single values.
Array named_layers(Array W1, Array W2, Array W3, Array x) {
  x = g(W1, x);
  x = rp::checkpoint_name(x, "a");
  x = g(W2, x);
  x = rp::checkpoint_name(x, "b");
  x = g(W3, x);
  x = rp::checkpoint_name(x, "c");
  return x;
}
const auto f4 = rp::checkpoint(named_layers, {.policy = policies::save_only_these_names("a")});

void saved_values() {
  const Array W1 = rp::ones({5, 4}), W2 = rp::ones({6, 5}), W3 = rp::ones({7, 6}),
              x = rp::ones({4});
  title("f: everything that the backward pass reads");
  rp::print_saved_residuals(f, RP_ARGS(W1, W2, W3, x));
  title("f2: checkpoint around each layer");
  rp::print_saved_residuals(f2, RP_ARGS(W1, W2, W3, x));
  title("f3: checkpoint around f, products may be saved");
  rp::print_saved_residuals(f3, RP_ARGS(W1, W2, W3, x));
  title("f4: checkpoint around f, the value named 'a' may be saved");
  rp::print_saved_residuals(f4, RP_ARGS(W1, W2, W3, x));
  title("f3 in detail: sizes, reasons, readers");
  std::cout << rp::residual_report(f3, RP_ARGS(W1, W2, W3, x));
  title("f: the two programs");
  rp::print_fwd_bwd(f, W1, W2, W3, x);
  title("f3: the two programs");
  rp::print_fwd_bwd(f3, W1, W2, W3, x);
}

// --------------------------------------------------------------------- 2. When things are computed

// The coefficient cos(x) of sin can be computed in the forward pass and kept ...
std::pair<Array, std::function<Array(Array)>> sin_vjp(Array x) {
  Array y = rp::sin(x);
  Array cos_x = rp::cos(x);
  return {y, [cos_x](Array y_bar) { return cos_x * y_bar; }};
}
// ... or in the backward pass from x: the same memory, but the work moves to the backward pass.
std::pair<Array, std::function<Array(Array)>> sin_vjp2(Array x) {
  Array y = rp::sin(x);
  return {y, [x](Array y_bar) { return rp::cos(x) * y_bar; }};
}

// A function of two stages. Both have values worth keeping.
Array first_stage(Array x) {
  x = rp::sin(x);
  x = rp::exp(x);
  return rp::sin(x);
}
Array second_stage(Array y) {
  y = rp::tanh(y);
  y = rp::sin(y);
  return rp::sum(y);
}
Array stages(Array x) { return second_stage(first_stage(x)); }
Array stages_checkpoint(Array x) {
  Array y = rp::checkpoint(first_stage)(x);
  return second_stage(y);
}

// What grad of `stages` does, by hand: both stages run once and keep what they need.
Array stages_grad(Array x) {
  auto [y, first_vjp] = rp::vjp(first_stage, x);
  auto [z, second_vjp] = rp::vjp(second_stage, y);
  auto [y_bar] = second_vjp(1.0);
  auto [x_bar] = first_vjp(y_bar);
  return x_bar;
}
// What grad of `stages_checkpoint` does: the first stage runs again when the backward pass gets
// there.
Array stages_checkpoint_grad(Array x) {
  Array y = first_stage(x);
  auto [z, second_vjp] = rp::vjp(second_stage, y);
  auto [y_bar] = second_vjp(1.0);
  auto [again, first_vjp] = rp::vjp(first_stage, x);
  auto [x_bar] = first_vjp(y_bar);
  return x_bar;
}
// Around the whole function nothing is gained: all of it runs, and at once runs again to keep
// everything.
Array stages_grad_bad(Array x) {
  stages(x);
  auto [z, all_vjp] = rp::vjp(stages, x);
  auto [x_bar] = all_vjp(1.0);
  return x_bar;
}
// Nor around the last stage: what it would keep is read immediately.
Array stages_grad_bad2(Array x) {
  auto [y, first_vjp] = rp::vjp(first_stage, x);
  second_stage(y);
  auto [z, second_vjp] = rp::vjp(second_stage, y);
  auto [y_bar] = second_vjp(1.0);
  auto [x_bar] = first_vjp(y_bar);
  return x_bar;
}

void where_to_place() {
  title("The coefficient of sin, early and late");
  const auto [y, early] = sin_vjp(0.5);
  const auto [y2, late] = sin_vjp2(0.5);
  std::cout << early(1.0) << " " << late(1.0) << "\n";

  const Array x = rp::array({0.1, 0.2, 0.3});
  title("Two stages: the gradient by hand, with and without checkpoint, and by grad");
  std::cout << stages_grad(x) << "\n"
            << stages_checkpoint_grad(x) << "\n"
            << stages_grad_bad(x) << "\n"
            << stages_grad_bad2(x) << "\n"
            << rp::grad(stages)(x) << "\n"
            << rp::grad(stages_checkpoint)(x) << "\n";
  title("Two stages, no checkpoint");
  rp::print_saved_residuals(stages, RP_ARGS(x));
  title("Two stages, checkpoint around the first");
  rp::print_saved_residuals(stages_checkpoint, RP_ARGS(x));
}

// ------------------------------------------------------------------------------------- 3. Policies

using Weights = std::vector<Array>;

Array layer(Array W, Array x) {
  Array y = rp::dot(W, x);
  return rp::sin(y);
}
Array predict(const Weights& params, Array x) {
  for (std::size_t i = 0; i + 1 < params.size(); ++i) x = layer(params[i], x);
  return rp::dot(params.back(), x);
}
Array predict_named(const Weights& params, Array x) {
  for (std::size_t i = 0; i + 1 < params.size(); ++i) {
    x = layer(params[i], x);
    x = rp::checkpoint_name(x, "layer" + std::to_string(i) + "_output");
  }
  return rp::dot(params.back(), x);
}
Array loss(Weights params, Array x, Array y) {
  Array difference = predict(params, x) - y;
  return rp::sum(rp::power(difference, 2));
}
Array loss_named(Weights params, Array x, Array y) {
  Array difference = predict_named(params, x) - y;
  return rp::sum(rp::power(difference, 2));
}

void policies_and_names() {
  const Array W = rp::ones({4, 4});
  const Weights params = {W, W * 1.0, W * 2.0};
  const Array x = rp::ones({4}), y = rp::ones({4});
  title("loss");
  rp::print_saved_residuals(loss, RP_ARGS(params, x, y));
  title("loss, products may be saved");
  const auto loss_checkpoint =
      rp::checkpoint(loss, {.policy = policies::dots_with_no_batch_dims_saveable});
  rp::print_saved_residuals(loss_checkpoint, RP_ARGS(params, x, y));
  title("loss with named layers: a name alone changes only the label");
  rp::print_saved_residuals(loss_named, RP_ARGS(params, x, y));
  // layer0_output is saved because the backward pass reads it; allowed values that nobody reads
  // never are.
  title("loss with named layers, any name but layer1_output may be saved");
  const auto loss_checkpoint2 =
      rp::checkpoint(loss_named, {.policy = policies::save_any_names_but_these("layer1_output")});
  rp::print_saved_residuals(loss_checkpoint2, RP_ARGS(params, x, y));

  for (const rp::Policy& policy :
       {policies::everything_saveable, policies::nothing_saveable, policies::dots_saveable,
        policies::save_only_these_names("layer0_output", "layer1_output"),
        policies::save_anything_except_these_names("layer0_output"),
        policies::dots_saveable & policies::bytes_at_least(32),
        policies::offload_dot_with_no_batch_dims("device", "pinned_host"),
        policies::save_and_offload_only_these_names({.names_which_can_be_saved = {"layer0_output"},
        .names_which_can_be_offloaded = {"layer1_output"},
        .offload_src = "device",
        .offload_dst = "pinned_host"})}) {
    title("loss with named layers, " + policy.str());
    rp::print_saved_residuals(rp::checkpoint(loss_named, {.policy = policy}),
                              RP_ARGS(params, x, y));
  }
}

// ------------------------------------------------------------------------------------ 4. Recursion

using Function = std::function<Array(Array)>;
using Functions = std::vector<Function>;

Array sine(Array x) { return rp::sin(x); }

Function chain_compose(const Functions& funs) {
  return [funs](Array x) {
    for (const Function& fun : funs) x = fun(x);
    return x;
  };
}
// Halves that are checkpointed within halves: memory grows as the logarithm of the length.
Function recursive_checkpoint(const Functions& funs) {
  if (funs.size() == 1) return funs[0];
  if (funs.size() == 2) return [f1 = funs[0], f2 = funs[1]](Array x) { return f1(f2(x)); };
  const auto middle = funs.begin() + static_cast<std::ptrdiff_t>(funs.size() / 2);
  const Function f1 = recursive_checkpoint({funs.begin(), middle});
  const Function f2 = recursive_checkpoint({middle, funs.end()});
  return [f1, f2 = rp::checkpoint(f2)](Array x) { return f1(f2(x)); };
}

void recursion() {
  const Array x = 3.0;
  for (std::size_t n : {8, 16}) {
    title("A chain of " + std::to_string(n) + " sines");
    rp::print_saved_residuals(chain_compose(Functions(n, sine)), RP_ARGS(x));
  }
  for (std::size_t n : {8, 16}) {
    title("A chain of " + std::to_string(n) + " sines, checkpointed recursively");
    rp::print_saved_residuals(recursive_checkpoint(Functions(n, sine)), RP_ARGS(x));
  }
  title("A chain of 8 sines: the two programs");
  rp::print_fwd_bwd(chain_compose(Functions(8, sine)), x);
  title("A chain of 8 sines, checkpointed recursively: the two programs");
  rp::print_fwd_bwd(recursive_checkpoint(Functions(8, sine)), x);
}

// ---------------------------------------------------------------------------- 5. Loops over layers

using LayerParams = std::pair<Array, Array>;  // weights and bias

Array net(const std::vector<LayerParams>& params, Array x) {
  for (const auto& [W, b] : params) {
    Array y = rp::dot(x, W);
    y = y + b;
    x = rp::maximum(y, 0.0);
  }
  return x;
}
// The same net as one scan over stacked parameters: the program does not grow with the number of
// layers.
std::pair<Array, rp::None> scan_layer(Array x, LayerParams params) {
  Array y = rp::dot(x, params.first);
  y = y + params.second;
  return {rp::maximum(y, 0.0), rp::none};
}
Array scan_net(Array all_weights, Array all_biases, Array x) {
  return rp::scan(scan_layer, x, std::pair{all_weights, all_biases}).first;
}
// Forward and backward pass are two loops, and no compiler moves values between them: checkpoint
// the body.
const auto checkpointed_layer =
    rp::checkpoint(scan_layer, {.policy = policies::dots_with_no_batch_dims_saveable});
Array checkpointed_net(Array all_weights, Array all_biases, Array x) {
  return rp::scan(checkpointed_layer, x, std::pair{all_weights, all_biases}).first;
}

void layers_in_a_loop() {
  const Array W = rp::array({{0.5, 0.5}, {1.0, 1.0}}), b = rp::array({0.5, 0.5});
  const std::vector<LayerParams> params = {{W, b}, {W, b}};
  const Array all_weights = rp::stack({W, W}), all_biases = rp::stack({b, b}),
              x = rp::array({1.0, 2.0});
  title("A net as a C++ loop, as a scan, and as a scan over checkpointed layers");
  std::cout << net(params, x) << " " << scan_net(all_weights, all_biases, x) << " "
            << checkpointed_net(all_weights, all_biases, x) << "\n";
  title("scan_net");
  rp::print_saved_residuals(scan_net, RP_ARGS(all_weights, all_biases, x));
  title("scan_net with checkpointed layers");
  rp::print_saved_residuals(checkpointed_net, RP_ARGS(all_weights, all_biases, x));
  title("scan_net with checkpointed layers in detail");
  std::cout << rp::residual_report(checkpointed_net, RP_ARGS(all_weights, all_biases, x));

  auto total = [](auto f) {
    return [f](Array ws, Array bs, Array v) { return rp::sum(f(ws, bs, v)); };
  };
  const auto [dW, db] =
      rp::jit(rp::grad<0, 1>(total(checkpointed_net)))(all_weights, all_biases, x);
  title("Its gradient, jitted");
  std::cout << dW << "\n" << db << "\n";
}

int main() {
  saved_values();
  where_to_place();
  policies_and_names();
  recursion();
  layers_in_a_loop();
}
