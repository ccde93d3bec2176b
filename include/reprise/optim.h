// Optimisers, with optax's names, formulas and state: pure functions of trees of arrays.
//
//   namespace optim = rp::optim;
//   auto optimizer = optim::adamw(optim::warmup_cosine_decay_schedule(0, 1e-3, 100, 10000));
//   rp::Dict state = optimizer.init(params);
//   auto step = rp::jit([=](rp::Dict params, rp::Dict state, Array x) {
//     auto [loss, grads] = rp::value_and_grad(loss_of)(params, x);
//     auto [updates, next] = optimizer.update(grads, state, params);
//     return std::tuple(optim::apply_updates(params, updates), next, loss);
//   });
//
// The parameters are any tree (rp::Dict, structs, vectors ...); the state is a Dict of arrays,
// which may be jitted, scanned over and saved like any other: the entries have optax's names
// ("count", "mu", "nu"), those of a chain stand under "0", "1", .... Leaves that are not floating
// have no gradient and stay as they are.
#pragma once

#include "reprise/array.h"
#include "reprise/function.h"
#include "reprise/named_leaves.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::optim {

// --------------------------------------------------------------------------------------- schedules
// A number for each step, counted from 0. Made of traced operations: one compiled step serves all
// counts.
using Schedule = std::function<Array(const Array& count)>;

Schedule constant_schedule(double value);  // the same for all steps
// From init_value to end_value over transition_steps, from step transition_begin on, then constant:
// (init - end) * (1 - progress)^power + end. Without steps it stays at init_value.
Schedule polynomial_schedule(double init_value, double end_value, double power,
                             std::int64_t transition_steps, std::int64_t transition_begin = 0);
Schedule linear_schedule(double init_value, double end_value, std::int64_t transition_steps,
                         std::int64_t transition_begin = 0);
// At each boundary multiplied by its scale.
Schedule piecewise_constant_schedule(double init_value,
                                     std::map<std::int64_t, double> boundaries_and_scales);
struct ExponentialDecayOptions {
  std::int64_t transition_begin = 0;
  bool staircase = false;                          // changes once in transition_steps
  std::optional<double> end_value = std::nullopt;  // not beyond
};
// init_value * decay_rate^(count / transition_steps)
Schedule exponential_decay(double init_value, std::int64_t transition_steps, double decay_rate,
                           const ExponentialDecayOptions& options = {});
// Half a cosine from init_value to alpha * init_value. A TypeError unless decay_steps > 0.
Schedule cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha = 0.0,
                               double exponent = 1.0, Location at = Location::current());
Schedule warmup_constant_schedule(double init_value, double peak_value, std::int64_t warmup_steps);
// Linear to peak_value, then a cosine to end_value at step decay_steps (warm-up included).
Schedule warmup_cosine_decay_schedule(double init_value, double peak_value,
                                      std::int64_t warmup_steps, std::int64_t decay_steps,
                                      double end_value = 0.0, double exponent = 1.0,
                                      Location at = Location::current());
Schedule warmup_exponential_decay_schedule(double init_value, double peak_value,
                                           std::int64_t warmup_steps, std::int64_t transition_steps,
                                           double decay_rate,
                                           const ExponentialDecayOptions& options = {});
// schedules[i + 1] begins at boundaries[i] with its own count 0. A TypeError unless there is one
// boundary less than schedules.
Schedule join_schedules(std::vector<Schedule> schedules, std::vector<std::int64_t> boundaries,
                        Location at = Location::current());

// A number, an array (which may be traced) or a schedule.
class ScalarOrSchedule {
 public:
  template <Number T>
  ScalarOrSchedule(T value) : value_(value) {}                 // NOLINT: implicit, here and below
  ScalarOrSchedule(Array value) : value_(std::move(value)) {}  // NOLINT
  template <class F>
  requires std::is_invocable_r_v<Array, const F&, const Array&> ScalarOrSchedule(F f)
      : schedule_(std::move(f)) {}  // NOLINT
  bool is_schedule() const { return schedule_ != nullptr; }
  Array at(const Array& count) const { return schedule_ ? schedule_(count) : value_; }

 private:
  Array value_;
  Schedule schedule_;
};

// ------------------------------------------------------------------------ gradient transformations
// init: parameters -> state;  update: (gradients, state, parameters) -> (updates, new state).
class GradientTransformation {
 public:
  // What a transformation does with the floating leaves; parameters may be missing in updates.
  using Init = std::function<Dict(const NamedLeaves& params)>;
  using Update = std::function<std::pair<Arrays, Dict>(
      const NamedLeaves& updates, const Dict& state, const std::optional<Arrays>& params)>;
  GradientTransformation(Init init, Update update)
      : init_(std::move(init)), update_(std::move(update)) {}

  template <class T>
  Dict init(const T& params, Location at = Location::current()) const {
    return init_leaves(named_leaves(params), at);
  }
  // A TypeError if the trees or the state do not fit each other.
  template <class T>
  std::pair<T, Dict> update(const T& grads, const Dict& state, const T& params,
                            Location at = Location::current()) const {
    auto [updates, next] = update_leaves(named_leaves(grads), state, named_leaves(params), at);
    return {tree_unflatten(grads, updates), std::move(next)};
  }
  // Without parameters; a TypeError for transformations that need them (weight decay, adafactor).
  template <class T>
  std::pair<T, Dict> update(const T& grads, const Dict& state,
                            Location at = Location::current()) const {
    auto [updates, next] = update_leaves(named_leaves(grads), state, std::nullopt, at);
    return {tree_unflatten(grads, updates), std::move(next)};
  }

  // The same for leaves that were taken out of a tree.
  Dict init_leaves(const NamedLeaves& params, Location at = Location::current()) const;
  std::pair<Arrays, Dict> update_leaves(const NamedLeaves& grads, const Dict& state,
                                        const std::optional<NamedLeaves>& params,
                                        Location at = Location::current()) const;

 private:
  Init init_;
  Update update_;
};

// Which leaves a transformation is for, by path ("Dense_0/kernel") and parameter.
using Mask = std::function<bool(const std::string& path, const Array& param)>;
using OptionalDtype = std::optional<Dtype>;

// One after the other.
GradientTransformation chain(std::vector<GradientTransformation> transformations);
// Only for the leaves that the mask selects; the others pass unchanged.
GradientTransformation masked(GradientTransformation inner, Mask mask);

GradientTransformation identity();
GradientTransformation scale(Array step_size);
// Times -learning_rate (or +, without flip_sign).
GradientTransformation scale_by_learning_rate(ScalarOrSchedule learning_rate,
                                              bool flip_sign = true);
GradientTransformation scale_by_schedule(Schedule step_size);
GradientTransformation clip(double max_delta);  // each element
// All together to the norm max_norm, if theirs is larger.
GradientTransformation clip_by_global_norm(double max_norm);
GradientTransformation clip_by_block_rms(double threshold);  // each leaf by its root mean square
GradientTransformation add_decayed_weights(ScalarOrSchedule weight_decay = 0.0,
                                           Mask mask = nullptr);

// Momentum: t = g + decay * t.
GradientTransformation trace(double decay, bool nesterov = false,
                             OptionalDtype accumulator_dtype = std::nullopt);
// The exponential moving average of the gradients.
GradientTransformation ema(double decay, bool debias = true,
                           OptionalDtype accumulator_dtype = std::nullopt);

struct AdamOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0.0;
  OptionalDtype mu_dtype = std::nullopt;
  bool nesterov = false;
};
GradientTransformation scale_by_adam(const AdamOptions& options = {});

struct RmsOptions {
  double decay = 0.9, eps = 1e-8, initial_scale = 0.0;
  bool eps_in_sqrt = true, bias_correction = false;
};
GradientTransformation scale_by_rms(const RmsOptions& options = {});
GradientTransformation scale_by_stddev(const RmsOptions& options = {});  // centred
GradientTransformation scale_by_rss(double initial_accumulator_value = 0.1, double eps = 1e-7);
GradientTransformation scale_by_lion(double b1 = 0.9, double b2 = 0.99,
                                     OptionalDtype mu_dtype = std::nullopt);
struct FactoredRmsOptions {
  bool factored = true;  // of matrices keep the means of rows and columns only
  double decay_rate = 0.8;
  std::int64_t step_offset = 0;
  std::int64_t min_dim_size_to_factor = 128;
  double epsilon = 1e-30;
};
GradientTransformation scale_by_factored_rms(const FactoredRmsOptions& options = {});
GradientTransformation scale_by_param_block_rms(double min_scale = 1e-3);

// -------------------------------------------------------------------------------------- optimisers
struct SgdOptions {
  std::optional<double> momentum = std::nullopt;
  bool nesterov = false;
  OptionalDtype accumulator_dtype = std::nullopt;
};
GradientTransformation sgd(ScalarOrSchedule learning_rate, const SgdOptions& options = {});
GradientTransformation adam(ScalarOrSchedule learning_rate, const AdamOptions& options = {});
struct AdamWOptions {
  double b1 = 0.9, b2 = 0.999, eps = 1e-8, eps_root = 0.0;
  OptionalDtype mu_dtype = std::nullopt;
  ScalarOrSchedule weight_decay = 1e-4;
  Mask mask = nullptr;  // of the leaves that decay: all by default
  bool nesterov = false;
};
GradientTransformation adamw(ScalarOrSchedule learning_rate, const AdamWOptions& options = {});
struct LionOptions {
  double b1 = 0.9, b2 = 0.99;
  OptionalDtype mu_dtype = std::nullopt;
  ScalarOrSchedule weight_decay = 1e-3;
  Mask mask = nullptr;
};
GradientTransformation lion(ScalarOrSchedule learning_rate, const LionOptions& options = {});
struct RmsPropOptions {
  double decay = 0.9, eps = 1e-8, initial_scale = 0.0;
  bool eps_in_sqrt = true, centered = false;
  std::optional<double> momentum = std::nullopt;
  bool nesterov = false, bias_correction = false;
};
GradientTransformation rmsprop(ScalarOrSchedule learning_rate, const RmsPropOptions& options = {});
GradientTransformation adagrad(ScalarOrSchedule learning_rate,
                               double initial_accumulator_value = 0.1, double eps = 1e-7);
struct AdafactorOptions {
  std::int64_t min_dim_size_to_factor = 128;
  double decay_rate = 0.8;
  std::int64_t decay_offset = 0;
  bool multiply_by_parameter_scale = true;
  std::optional<double> clipping_threshold = 1.0;
  std::optional<double> momentum = std::nullopt;
  Dtype dtype_momentum = float32;
  std::optional<ScalarOrSchedule> weight_decay_rate = std::nullopt;
  double eps = 1e-30;
  bool factored = true;
  Mask weight_decay_mask = nullptr;
};
// Without a learning rate the steps are relative to the size of the parameters.
GradientTransformation adafactor(std::optional<ScalarOrSchedule> learning_rate = std::nullopt,
                                 const AdafactorOptions& options = {});

// ------------------------------------------------------------------------------------ accumulation
// Options of MultiSteps.
struct MultiStepsOptions {
  bool use_grad_mean = true;  // else their sum
  Dtype accumulator_dtype = float32;
};
// Collects the gradients of `every_k` steps (a number, or a schedule of the updates made so far)
// and then lets the optimiser make one update; the steps between give updates of 0.
GradientTransformation MultiSteps(GradientTransformation optimizer, ScalarOrSchedule every_k,
                                  const MultiStepsOptions& options = {});
Array has_updated(const Dict& multi_steps_state);  // whether the last step was such an update

// ---------------------------------------------------------------------------------------- applying
// for apply_updates
Arrays apply_updates_to(const NamedLeaves& params, const NamedLeaves& updates, Location at);
// params + updates, each leaf in the dtype of the parameter. Where an update is not floating the
// parameter stays.
template <class T>
T apply_updates(const T& params, const T& updates, Location at = Location::current()) {
  return tree_unflatten(params, apply_updates_to(named_leaves(params), named_leaves(updates), at));
}

Array global_norm_of(const Arrays& leaves, Location at);  // for global_norm
// The square root of the sum of the squares of all elements.
template <class T>
Array global_norm(const T& tree, Location at = Location::current()) {
  return global_norm_of(tree_leaves(tree), at);
}

}  // namespace reprise::optim
#pragma GCC visibility pop
