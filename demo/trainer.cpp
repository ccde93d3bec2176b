#include "trainer.h"

#include <reprise/optim.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace demo {

namespace policies = rp::checkpoint_policies;
namespace optim = rp::optim;

const std::vector<NamedPolicy>& all_policies() {
  static const std::vector<NamedPolicy> all = {
      {"none", std::nullopt},
      {"dots_with_no_batch_dims_saveable", policies::dots_with_no_batch_dims_saveable},
      {"save_only_these_names", policies::save_only_these_names("attention", "hidden")},
      {"save_and_offload_only_these_names",
       policies::save_and_offload_only_these_names({.names_which_can_be_saved = {"attention"},
                                                    .names_which_can_be_offloaded = {"hidden"},
                                                    .offload_src = "device",
                                                    .offload_dst = "pinned_host"}),
       true},
      {"nothing_saveable", policies::nothing_saveable},
  };
  return all;
}

namespace {

optim::GradientTransformation make_optimizer(std::int64_t steps) {
  constexpr double peak = 6e-3;
  const std::int64_t warm_up = steps / 20;
  return optim::adamw(optim::warmup_cosine_decay_schedule(peak / 20, peak, warm_up,
                                                          std::max(steps, warm_up + 1), peak / 20),
                      {.b2 = 0.95, .weight_decay = 0.01});
}

// One training step as one compiled program. With the donated arguments the new parameters and
// state take over the memory of the old ones.
auto make_step(const Transformer& model, const optim::GradientTransformation& optimizer,
               const std::string& spill_directory) {
  const auto step = [model, optimizer](rp::Dict params, rp::Dict state, Array text) {
    const auto loss = [&](rp::Dict at) { return loss_of(model, at, text); };
    auto [value, grads] = rp::value_and_grad(loss)(params);
    auto [updates, next] = optimizer.update(grads, state, params);
    return std::tuple(value, optim::apply_updates(params, updates), next);
  };
  return rp::jit(
      step,
      {.name = "training_step", .spill_directory = spill_directory, .donate_argnums = {0, 1}});
}

rp::Dict initial_params(const Transformer& model, std::int64_t seed) {
  const auto init = rp::jit([&model](Array key) {
    return model.init(key, rp::zeros({1, model.sizes.length}, rp::int32));
  });
  return init(rp::random::key(seed));
}

}  // namespace

Trainer::Trainer(const NamedPolicy& policy, const Corpus& corpus, const TrainingOptions& options)
    : corpus_(corpus),
      name_(policy.name),
      model_(options.sizes, policy.policy),
      random_(static_cast<std::uint32_t>(options.seed)),
      params_(initial_params(model_, options.seed)) {
  const auto optimizer = make_optimizer(options.steps);
  state_ = optimizer.init(params_);
  const auto step =
      make_step(model_, optimizer,
                policy.offloads ? std::filesystem::temp_directory_path().string() : std::string());
  const Sizes& sizes = options.sizes;
  const Array text = rp::zeros({sizes.batch, sizes.length + 1}, rp::int32);
  const auto compiled = step.lower(params_, state_, text).compile();
  compiled_.emplace(name_, compiled);
  memory_ = compiled.memory_analysis();
  cost_ = compiled.cost_analysis();
  step_ = step;
}

void Trainer::step() {
  const Sizes& sizes = model_.sizes;
  const Array text = corpus_.pieces(sizes.batch, sizes.length + 1, random_);
  const std::size_t before = rp::live_bytes();
  rp::reset_peak_live_bytes();
  const auto begin = std::chrono::steady_clock::now();
  Array loss;
  std::tie(loss, params_, state_) = step_(std::move(params_), std::move(state_), text);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  measured_bytes_ = std::max(measured_bytes_, rp::peak_live_bytes() - before);
  losses_.push_back(loss.item<float>());
  seconds_.push_back(taken.count());
}

double Trainer::seconds_per_step() const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

double Trainer::tokens_per_second() const {
  const double seconds = seconds_per_step();
  return seconds > 0 ? static_cast<double>(model_.sizes.batch * model_.sizes.length) / seconds : 0;
}

}  // namespace demo
