#include "error_text.h"
#include "flax_golden.h"
#include "reprise/optim.h"

#include <string>
#include <tuple>

namespace reprise {
namespace {

namespace opt = optim;
using flax_golden::array_of;
using flax_golden::dict_of;
using flax_golden::Json;
using flax_golden::near;
using opt::GradientTransformation;

// Three steps on one array, as golden section `optax` has them.
void check_steps(const std::string& name, const GradientTransformation& tx) {
  INFO(name);
  const Json& golden = flax_golden::section("optax");
  const Json& wanted = golden["params_after_each_step"];
  REQUIRE(wanted.contains(name));
  Array params = array_of(golden["p0"]);
  Dict state = tx.init(params);
  auto step = jit([&](Array p, Dict s, Array g) {
    auto [updates, next] = tx.update(g, s, p);
    return std::pair{opt::apply_updates(p, updates), next};
  });
  Array compiled = params;
  Dict compiled_state = state;
  for (std::size_t i = 0; i < 3; ++i) {
    const Array grads = array_of(golden["grads"][i]);
    auto [updates, next] = tx.update(grads, state, params);
    params = opt::apply_updates(params, updates);
    state = next;
    near(params, wanted[name][i]);
    std::tie(compiled, compiled_state) = step(compiled, compiled_state, grads);
    near(compiled, wanted[name][i], 2e-6);
  }
}

void near_tree(const Dict& ours, const Json& theirs, double tolerance) {
  for (const auto& item : ours.items()) {
    INFO(item.first);
    if (const auto* leaf = std::get_if<Array>(&item.second)) {
      near(*leaf, theirs[item.first], tolerance);
    } else {
      near_tree(std::get<Dict>(item.second), theirs[item.first], tolerance);
    }
  }
}

// Five compiled steps on a nested Dict, as made by optax.
void check_tree(const std::string& name, const GradientTransformation& tx,
                double tolerance = 3e-6) {
  INFO(name);
  const Json& golden = flax_golden::file("optim_cases.json");
  REQUIRE(golden["after"].contains(name));
  Dict params = dict_of(golden["params"]);
  Dict state = tx.init(params);
  auto step = jit([&](Dict p, Dict s, Dict g) {
    auto [updates, next] = tx.update(g, s, p);
    return std::pair{opt::apply_updates(p, updates), next};
  });
  for (std::size_t i = 0; i < 5; ++i) {
    std::tie(params, state) = step(params, state, dict_of(golden["grads"][i]));
    if (i % 2 == 0) near_tree(params, golden["after"][name][i / 2], tolerance);
  }
}

TEST_CASE("optimisers follow optax step by step") {
  check_steps("sgd(0.1)", opt::sgd(0.1));
  check_steps("sgd(0.1,momentum=0.9)", opt::sgd(0.1, {.momentum = 0.9}));
  check_steps("sgd(0.1,momentum=0.9,nesterov)", opt::sgd(0.1, {.momentum = 0.9, .nesterov = true}));
  check_steps("adam(0.1)", opt::adam(0.1));
  check_steps("adam(0.1,nesterov)", opt::adam(0.1, {.nesterov = true}));
  check_steps("adamw(0.1)", opt::adamw(0.1));
  check_steps("adamw(0.1,wd=0.01)", opt::adamw(0.1, {.weight_decay = 0.01}));
  check_steps("clip_by_global_norm(1.0)+sgd(0.1)",
              opt::chain({opt::clip_by_global_norm(1.0), opt::sgd(0.1)}));
  check_steps("rmsprop(0.1)", opt::rmsprop(0.1));
  check_steps("adagrad(0.1)", opt::adagrad(0.1));
  check_steps("lion(0.1)", opt::lion(0.1));
}

TEST_CASE("optimisers follow optax in all their options") {
  const opt::Schedule falling = opt::linear_schedule(0.1, 0.01, 3);
  check_tree("adam_options",
             opt::adam(0.05, {.b1 = 0.8, .b2 = 0.95, .eps = 1e-3, .eps_root = 1e-4}));
  check_tree("adam_schedule", opt::adam(falling));
  check_tree("adamw_mask",
             opt::adamw(0.05, {.weight_decay = 0.2, .mask = [](const std::string&, const Array& p) {
                                 return p.ndim() > 1;
                               }}));
  check_tree("adamw_decay_schedule", opt::adamw(0.05, {.weight_decay = falling}));
  check_tree("adamw_nesterov", opt::adamw(0.05, {.nesterov = true}));
  check_tree("lion_options", opt::lion(0.02, {.b1 = 0.8, .b2 = 0.9, .weight_decay = 0.1}));
  check_tree("rmsprop_centered", opt::rmsprop(0.05, {.centered = true, .momentum = 0.9}));
  check_tree(
      "rmsprop_outside",
      opt::rmsprop(0.05, {.initial_scale = 0.1, .eps_in_sqrt = false, .bias_correction = true}));
  check_tree("rmsprop_nesterov", opt::rmsprop(0.05, {.momentum = 0.7, .nesterov = true}));
  check_tree("rmsprop_centered_corrected",
             opt::rmsprop(0.05, {.eps = 1e-3, .centered = true, .bias_correction = true}), 1e-5);
  check_tree("adagrad_options", opt::adagrad(0.3, 0.5, 1e-2));
  check_tree("sgd_schedule", opt::sgd(falling, {.momentum = 0.9, .nesterov = true}));
  check_tree("clip_chain", opt::chain({opt::clip(0.5), opt::clip_by_global_norm(0.8),
                                       opt::trace(0.9), opt::scale(-0.1)}));
  check_tree("ema", opt::chain({opt::ema(0.9), opt::scale(-0.1)}));
  check_tree(
      "ema_plain",
      opt::chain({opt::ema(0.9, false), opt::add_decayed_weights(0.1),
                  opt::scale_by_schedule([](const Array& count) { return -0.1 / (count + 1); })}));
  check_tree("block_rms", opt::chain({opt::clip_by_block_rms(0.3), opt::scale_by_param_block_rms(),
                                      opt::scale(-1.0)}));
}

TEST_CASE("adafactor factors the second moments of matrices") {
  check_tree("adafactor", opt::adafactor(0.1));
  check_tree("adafactor_factored", opt::adafactor(0.1, {.min_dim_size_to_factor = 2}));
  check_tree("adafactor_options", opt::adafactor(opt::linear_schedule(0.1, 0.01, 3),
                                                 {.min_dim_size_to_factor = 3,
                                                  .decay_rate = 0.7,
                                                  .multiply_by_parameter_scale = false,
                                                  .clipping_threshold = 0.5,
                                                  .momentum = 0.9,
                                                  .weight_decay_rate = 0.05}));
  check_tree("adafactor_no_rate", opt::adafactor(std::nullopt, {.min_dim_size_to_factor = 3}));
  Dict params;
  params["w"] = ones({200, 300});
  const Dict state = opt::adafactor(0.1).init(params);
  CHECK(state.dict("0").dict("v_row").array("w").shape() == Shape{200});
  CHECK(state.dict("0").dict("v_col").array("w").shape() == Shape{300});
  CHECK(state.dict("0").dict("v").array("w").shape() == Shape{1});
}

TEST_CASE("MultiSteps collects gradients and then makes one update") {
  check_tree("multi_steps", opt::MultiSteps(opt::adam(0.1), 2));
  check_tree("multi_steps_sum",
             opt::MultiSteps(opt::sgd(0.1, {.momentum = 0.9}), 3, {.use_grad_mean = false}));
  const GradientTransformation tx = opt::MultiSteps(opt::sgd(1.0), 2);
  Array params = ones({2});
  Dict state = tx.init(params);
  std::vector<bool> updated;
  for (int i = 0; i < 4; ++i) {
    auto [updates, next] = tx.update(Array(array({1.0, 2.0})), state, params);
    params = opt::apply_updates(params, updates);
    state = next;
    updated.push_back(opt::has_updated(state).item<bool>());
  }
  CHECK(updated == std::vector<bool>{false, true, false, true});
  CHECK(params.to_vector<float>() == std::vector<float>{-1, -3});
}

TEST_CASE("the state of an optimiser is a Dict with optax's names") {
  Dict params;
  params["Dense_0"]["kernel"] = ones({2, 3});
  params["Dense_0"]["bias"] = zeros({3});
  const Dict state = opt::adamw(opt::constant_schedule(0.1)).init(params);
  std::vector<std::string> names;
  for (const KeyPath& path : named_leaves(state).paths) names.push_back(path_text(path));
  CHECK(names == std::vector<std::string>{"0/count", "0/mu/Dense_0/bias", "0/mu/Dense_0/kernel",
                                          "0/nu/Dense_0/bias", "0/nu/Dense_0/kernel", "2/count"});
  CHECK(state.dict("0").array("count").type() == Type{int32, {}});
  CHECK(opt::sgd(0.1).init(params).size() == 0);
}

struct Layer {
  Array w, b;
};
struct Model {
  std::vector<Layer> layers;
  Array steps;
  REPRISE_FIELDS(layers, steps)
};

TEST_CASE("parameters may be any tree, and leaves without gradient stay") {
  const Model model{{{ones({2, 2}), zeros({2})}, {ones({2, 1}), zeros({1})}}, array({7})};
  const GradientTransformation tx = opt::adam(0.1);
  const Dict state = tx.init(model);
  std::vector<std::string> names;
  for (const KeyPath& path : named_leaves(state.dict("0").dict("mu")).paths)
    names.push_back(path_text(path));
  CHECK(names == std::vector<std::string>{"layers/0/0", "layers/0/1", "layers/1/0", "layers/1/1"});
  const Model grads = tree_map([](const Array& p) { return ones_like(p); }, model);
  auto [updates, next] = tx.update(grads, state, model);
  const Model moved = opt::apply_updates(model, updates);
  CHECK(moved.layers[1].w.to_vector<float>()[0] == doctest::Approx(0.9f));
  CHECK(moved.steps.item<int>() == 7);
}

TEST_CASE("moments are kept in the dtype asked for") {
  const Array p = ones({2}, bfloat16);
  const GradientTransformation tx = opt::adam(0.1, {.mu_dtype = float32});
  const Dict state = tx.init(p);
  auto [updates, next] = tx.update(p, state, p);
  CHECK(next.dict("0").array("mu").dtype() == float32);
  CHECK(next.dict("0").array("nu").dtype() == bfloat16);
  CHECK(opt::apply_updates(p, updates).dtype() == bfloat16);
}

TEST_CASE("optimiser steps run inside scan") {
  const GradientTransformation tx = opt::adam(0.1);
  auto loss = [](Array p) { return sum(square(p - 3.0)); };
  auto body = [&](std::pair<Array, Dict> carry, None) {
    auto [value, g] = value_and_grad(loss)(carry.first);
    auto [updates, state] = tx.update(g, carry.second, carry.first);
    return std::pair{std::pair{opt::apply_updates(carry.first, updates), state}, value};
  };
  const Array start = zeros({3});
  auto [end, losses] = scan(body, std::pair{start, tx.init(start)}, none, {.length = 100});
  CHECK(losses[99].item<float>() < 0.05f);
  CHECK(end.second.dict("0").array("count").item<int>() == 100);
}

TEST_CASE("global_norm is that of all leaves together") {
  Dict tree;
  tree["a"] = array({3.0});
  tree["b"]["c"] = array({{0.0, 4.0}});
  CHECK(opt::global_norm(tree).item<float>() == 5);
  CHECK(opt::global_norm(Dict()).item<float>() == 0);
}

TEST_CASE("a learning rate may be traced") {
  auto step = jit([](Array p, Array rate) {
    const GradientTransformation tx = opt::sgd(rate);
    auto [updates, state] = tx.update(p, tx.init(p), p);
    return opt::apply_updates(p, updates);
  });
  CHECK(step(array({2.0}), 0.25).item<float>() == 1.5f);
}

TEST_CASE("optimisers say what does not fit") {
  const GradientTransformation tx = opt::adamw(0.1);
  Dict params, other;
  params["w"] = ones({2});
  other["v"] = ones({2});
  const Dict state = tx.init(params);
  const std::string no_params = error_of<TypeError>([&] { tx.update(params, state); });
  CHECK(begins(no_params,
               "add_decayed_weights: needs the parameters, got none\n  at optimizers_test.cpp:"));
  CHECK(no_params.find("hint: call update(grads, state, params)") != std::string::npos);
  CHECK(begins(error_of<TypeError>([&] { tx.update(other, state, params); }),
               "optim: gradients and parameters must be trees of the same structure, got 1 and 1 "
               "leaves with other "
               "names"));
  CHECK(begins(error_of<TypeError>([&] { tx.update(other, state, other); }),
               "optim: the state has no entry 'nu/v'"));
  CHECK(begins(error_of<TypeError>([&] { tx.update(params, Dict(), params); }),
               "optim: the state has no entry 'nu/w'"));
  Dict longer;
  longer["w"] = ones({3});
  CHECK(begins(error_of<TypeError>([&] { tx.update(longer, state, longer); }),
               "optim: the state does not fit the parameters, got f32[2] in 'nu/w' for f32[3]"));
  CHECK(begins(
      error_of<TypeError>([&] { tx.update(longer, state, params); }),
      "optim: gradient and parameter must have the same shape, got f32[3] and f32[2] in 'w'"));
  CHECK(begins(error_of<TypeError>([&] { opt::apply_updates(params, other); }),
               "apply_updates: gradients and parameters must be trees of the same structure"));
  Dict broken = state;
  broken["0"]["count"] = ones({2});
  CHECK(begins(error_of<TypeError>([&] { tx.update(params, broken, params); }),
               "optim: 'count' in the state must be an integer scalar, got f32[2]"));
  broken["0"] = Array(1);
  CHECK(begins(error_of<TypeError>([&] { tx.update(params, broken, params); }),
               "optim: '0' in the state must be a dict, got an array"));
  const GradientTransformation forgetful([](const NamedLeaves&) { return Dict(); },
                                         [](const NamedLeaves&, const Dict&, const auto&) {
                                           return std::pair{Arrays{}, Dict()};
                                         });
  CHECK(begins(error_of<TypeError>([&] { forgetful.update(params, Dict()); }),
               "optim: a transformation must return one update for each leaf, got 0 for 1"));
  const GradientTransformation selective =
      opt::masked(opt::sgd(0.1), [](const std::string& path, const Array&) { return path != "w"; });
  CHECK(begins(error_of<TypeError>([&] { selective.update(params, Dict()); }),
               "masked: needs the parameters, got none"));
  const GradientTransformation ada = opt::adafactor(0.1);
  Dict ada_state = ada.init(params);
  ada_state["0"]["v"]["w"] = ones({5});
  CHECK(begins(error_of<TypeError>([&] { ada.update(params, ada_state, params); }),
               "adafactor: the state does not fit the parameters, got f32[5] for f32[2] in 'w'"));
}

}  // namespace
}  // namespace reprise
