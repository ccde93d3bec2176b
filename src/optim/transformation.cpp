// The frame of all transformations: floating leaves in, updates for them out; combinations of
// several.
#include "optim/moments.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"

#include <utility>

namespace reprise::optim {
namespace {

// The leaves that have a gradient, and where they stand among all.
struct Floating {
  NamedLeaves leaves;
  std::vector<std::size_t> positions;
};
Floating floating(const NamedLeaves& all) {
  Floating out;
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    if (!is_floating(all.values[i].dtype())) continue;
    out.leaves.paths.push_back(all.paths[i]);
    out.leaves.values.push_back(all.values[i]);
    out.positions.push_back(i);
  }
  return out;
}

void check_same_tree(const char* op, const NamedLeaves& params, const NamedLeaves& updates) {
  if (params.paths != updates.paths) {
    fail<TypeError>(op, ": gradients and parameters must be trees of the same structure, got ",
                    updates.paths.size(), " and ", params.paths.size(), " leaves",
                    params.paths.size() == updates.paths.size() ? " with other names" : "");
  }
  for (std::size_t i = 0; i < params.values.size(); ++i) {
    const Array& p = params.values[i];
    const Array& u = updates.values[i];
    if (!is_floating(u.dtype()) || p.shape() == u.shape()) continue;
    fail<TypeError>(op, ": gradient and parameter must have the same shape, got ", u.type(),
                    " and ", p.type(), " in '", path_text(params.paths[i]), "'");
  }
}

// The part of a state that one member of a chain keeps; members without state have none.
Dict substate(const Dict& state, const std::string& key) {
  const auto it = state.items().find(key);
  if (it == state.items().end()) return {};
  const auto* dict = std::get_if<Dict>(&it->second);
  if (dict == nullptr)
    fail<TypeError>("optim: '", key, "' in the state must be a dict, got an array");
  return *dict;
}

NamedLeaves subset(const NamedLeaves& all, const std::vector<std::size_t>& positions) {
  NamedLeaves out;
  for (const std::size_t i : positions) {
    out.paths.push_back(all.paths[i]);
    out.values.push_back(all.values[i]);
  }
  return out;
}

std::vector<std::size_t> selected(const Mask& mask, const std::vector<KeyPath>& paths,
                                  const Arrays& params) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (mask(path_text(paths[i]), params[i])) out.push_back(i);
  }
  return out;
}

}  // namespace

Dict GradientTransformation::init_leaves(const NamedLeaves& params, Location at) const {
  const AtUser scope(at);
  return init_(floating(params).leaves);
}

std::pair<Arrays, Dict> GradientTransformation::update_leaves(
    const NamedLeaves& grads, const Dict& state, const std::optional<NamedLeaves>& params,
    Location at) const {
  const AtUser scope(at);
  if (params) check_same_tree("optim", *params, grads);
  const Floating inputs = floating(grads);
  std::optional<Arrays> inner_params;
  if (params) inner_params = subset(*params, inputs.positions).values;
  auto [updates, next] = update_(inputs.leaves, state, inner_params);
  if (updates.size() != inputs.positions.size()) {
    fail<TypeError>("optim: a transformation must return one update for each leaf, got ",
                    updates.size(), " for ", inputs.positions.size());
  }
  Arrays all = grads.values;
  for (std::size_t i = 0; i < inputs.positions.size(); ++i) all[inputs.positions[i]] = updates[i];
  return {std::move(all), std::move(next)};
}

GradientTransformation chain(std::vector<GradientTransformation> members) {
  auto init = [members](const NamedLeaves& params) {
    Dict state;
    for (std::size_t i = 0; i < members.size(); ++i) {
      Dict own = members[i].init_leaves(params);
      if (own.size() != 0) state[std::to_string(i)] = std::move(own);
    }
    return state;
  };
  auto update = [members](const NamedLeaves& grads, const Dict& state,
                          const std::optional<Arrays>& params) {
    NamedLeaves updates = grads;
    std::optional<NamedLeaves> named;
    if (params) named = NamedLeaves{grads.paths, *params};
    Dict next;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string key = std::to_string(i);
      auto [changed, own] = members[i].update_leaves(updates, substate(state, key), named);
      updates.values = std::move(changed);
      if (own.size() != 0) next[key] = std::move(own);
    }
    return std::pair{updates.values, next};
  };
  return {init, update};
}

GradientTransformation masked(GradientTransformation inner, Mask mask) {
  auto init = [inner, mask](const NamedLeaves& params) {
    const auto positions = selected(mask, params.paths, params.values);
    return inner.init_leaves(subset(params, positions));
  };
  auto update = [inner, mask](const NamedLeaves& grads, const Dict& state,
                              const std::optional<Arrays>& params) {
    const auto positions = selected(mask, grads.paths, needed("masked", params));
    const NamedLeaves named{grads.paths, *params};
    auto [changed, next] =
        inner.update_leaves(subset(grads, positions), state, subset(named, positions));
    Arrays all = grads.values;
    for (std::size_t i = 0; i < positions.size(); ++i) all[positions[i]] = changed[i];
    return std::pair{all, next};
  };
  return {init, update};
}

// -------------------------------------------------------------------------------------- MultiSteps
namespace {

Array accumulated(const Array& grad, const Array& sum, const Array& mini_step, bool use_mean) {
  if (!use_mean) return grad + sum;
  const Array difference = grad - sum;
  const Array count = mini_step + 1;
  const Array part = difference / count;
  return sum + part;
}

// The new state where an update was made, else the old one.
Dict chosen(const Array& emit, const Dict& old_state, const Dict& new_state) {
  return tree_map(
      [&](const Array& was, const Array& is) { return where(emit, is, was).astype(was.dtype()); },
      old_state, new_state);
}

}  // namespace

GradientTransformation MultiSteps(GradientTransformation optimizer, ScalarOrSchedule every_k,
                                  const MultiStepsOptions& options) {
  auto init = [=](const NamedLeaves& params) {
    Dict state;
    state["mini_step"] = zero_count();
    state["gradient_step"] = zero_count();
    Dict inner = optimizer.init_leaves(params);
    if (inner.size() != 0) state["inner_opt_state"] = std::move(inner);
    store_moments(state, "acc_grads", params, filled_like(params, 0.0, options.accumulator_dtype));
    return state;
  };
  auto update = [=](const NamedLeaves& grads, const Dict& state,
                    const std::optional<Arrays>& params) {
    const Array mini_step = load_count(state, "mini_step");
    const Array gradient_step = load_count(state, "gradient_step");
    const Array k_steps = every_k.at(gradient_step);
    const Arrays sums = load_moments(state, "acc_grads", grads);
    NamedLeaves collected = grads;
    Arrays in_their_dtype;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      in_their_dtype.push_back(
          accumulated(grads.values[i], sums[i], mini_step, options.use_grad_mean));
      collected.values[i] = in_their_dtype[i].astype(grads.values[i].dtype());
    }
    std::optional<NamedLeaves> named;
    if (params) named = NamedLeaves{grads.paths, *params};
    const Dict inner = substate(state, "inner_opt_state");
    auto [updates, next_inner] = optimizer.update_leaves(collected, inner, named);
    const Array emit = equal(mini_step, k_steps - 1);
    Dict next;
    next["mini_step"] = (next_count(mini_step) % k_steps).astype(int32);
    next["gradient_step"] = where(emit, next_count(gradient_step), gradient_step);
    if (inner.size() != 0) next["inner_opt_state"] = chosen(emit, inner, next_inner);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      updates[i] = where(emit, updates[i], zeros_like(updates[i]));
      const Array kept = in_their_dtype[i].astype(options.accumulator_dtype);
      in_their_dtype[i] = where(emit, zeros_like(kept), kept);
    }
    store_moments(next, "acc_grads", grads, in_their_dtype);
    return std::pair{updates, next};
  };
  return {init, update};
}

Array has_updated(const Dict& multi_steps_state) {
  const Array at_start = equal(load_count(multi_steps_state, "mini_step"), 0);
  const Array any_made = load_count(multi_steps_state, "gradient_step") > 0;
  return logical_and(at_start, any_made);
}

// ---------------------------------------------------------------------------------------- applying
Arrays apply_updates_to(const NamedLeaves& params, const NamedLeaves& updates, Location at) {
  const AtUser scope(at);
  check_same_tree("apply_updates", params, updates);
  Arrays out;
  for (std::size_t i = 0; i < params.values.size(); ++i) {
    const Array& p = params.values[i];
    if (!is_floating(updates.values[i].dtype())) {
      out.push_back(p);
      continue;
    }
    const Array moved = p + updates.values[i];
    out.push_back(moved.astype(p.dtype()));
  }
  return out;
}

Array global_norm_of(const Arrays& leaves, Location at) {
  const AtUser scope(at);
  Array total = 0.0;
  bool first = true;
  for (const Array& leaf : leaves) {
    if (!is_floating(leaf.dtype())) continue;
    const Array squares = square(leaf);
    const Array norm = sum(squares);
    total = first ? norm : total + norm;
    first = false;
  }
  return sqrt(total);
}

}  // namespace reprise::optim
