#include "optim/moments.h"

#include "reprise/ops_math.h"

#include <limits>

namespace reprise::optim {
namespace {

KeyPath below(const std::string& name, const KeyPath& path) {
  KeyPath out{name};
  out.insert(out.end(), path.begin(), path.end());
  return out;
}

const Array* find(const Dict& state, const KeyPath& path) {
  const Dict* at = &state;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto it = at->items().find(path[i]);
    if (it == at->items().end()) return nullptr;
    if (i + 1 == path.size()) return std::get_if<Array>(&it->second);
    at = std::get_if<Dict>(&it->second);
    if (at == nullptr) return nullptr;
  }
  return nullptr;
}

constexpr const char* state_hint = "make the state with init of the same optimiser and parameters";

}  // namespace

Arrays load_moments(const Dict& state, const std::string& name, const NamedLeaves& leaves,
                    bool any_shape) {
  Arrays out;
  for (std::size_t i = 0; i < leaves.paths.size(); ++i) {
    const KeyPath path = below(name, leaves.paths[i]);
    const Array* found = find(state, path);
    if (found == nullptr) {
      fail_with_hint<TypeError>(state_hint, "optim: the state has no entry '", path_text(path),
                                "'");
    }
    if (!any_shape && found->shape() != leaves.values[i].shape()) {
      fail_with_hint<TypeError>(state_hint, "optim: the state does not fit the parameters, got ",
                                found->type(), " in '", path_text(path), "' for ",
                                leaves.values[i].type());
    }
    out.push_back(*found);
  }
  return out;
}

void store_moments(Dict& state, const std::string& name, const NamedLeaves& leaves,
                   const Arrays& values) {
  for (std::size_t i = 0; i < leaves.paths.size(); ++i) {
    const KeyPath& path = leaves.paths[i];
    if (path.empty()) {
      state[name] = values[i];
      continue;
    }
    Dict* at = &state.nested(name);
    for (std::size_t k = 0; k + 1 < path.size(); ++k) at = &at->nested(path[k]);
    (*at)[path.back()] = values[i];
  }
}

Arrays filled_like(const NamedLeaves& leaves, double value, OptionalDtype dtype) {
  Arrays out;
  for (const Array& leaf : leaves.values) out.push_back(full_like(leaf, value, dtype));
  return out;
}

Arrays cast_moments(Arrays values, OptionalDtype dtype) {
  for (Array& v : values) {
    if (dtype) v = v.astype(*dtype);
  }
  return values;
}

Array load_count(const Dict& state, const std::string& name) {
  const Array* count = find(state, {name});
  if (count == nullptr)
    fail_with_hint<TypeError>(state_hint, "optim: the state has no entry '", name, "'");
  if (count->ndim() != 0 || !is_integer(count->dtype())) {
    fail<TypeError>("optim: '", name, "' in the state must be an integer scalar, got ",
                    count->type());
  }
  return *count;
}

Array zero_count() { return zeros({}, int32); }

Array next_count(const Array& count) {
  const Array largest = full({}, std::numeric_limits<std::int32_t>::max(), count.dtype());
  const Array below_it = count < largest;
  const Array next = count + full({}, 1, count.dtype());
  return where(below_it, next, largest);
}

Arrays update_moments(const Arrays& grads, const Arrays& moments, double decay, int order) {
  Arrays out;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Array powered = order == 1 ? grads[i] : power(grads[i], order);
    const Array added = (1 - decay) * powered;
    const Array kept = decay * moments[i];
    out.push_back(added + kept);
  }
  return out;
}

Arrays correct_bias(const Arrays& moments, double decay, const Array& count) {
  const Array decayed = power(decay, count.astype(float32));
  const Array correction = 1 - decayed;
  Arrays out;
  for (const Array& m : moments) out.push_back(m / correction.astype(m.dtype()));
  return out;
}

const Arrays& needed(const char* op, const std::optional<Arrays>& params) {
  if (!params) {
    fail_with_hint<TypeError>("call update(grads, state, params)", op,
                              ": needs the parameters, got none");
  }
  return *params;
}

}  // namespace reprise::optim
