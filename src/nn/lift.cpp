#include "nn/lift.h"

#include "reprise/jit.h"
#include "reprise/ops.h"
#include "reprise/random.h"
#include "reprise/remat.h"

#include <algorithm>

namespace reprise::nn::detail {
namespace {

// A lifted call runs on this thread.
class Deeper {
 public:
  Deeper() { ++lift_depth(); }
  ~Deeper() { --lift_depth(); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

bool starts_with(const Path& path, const Path& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// The scopes whose subtrees cover all: one inside another goes with it.
Scopes without_inner(const Scopes& scopes) {
  Scopes result;
  for (const ScopePtr& scope : scopes) {
    const bool is_inner = std::any_of(scopes.begin(), scopes.end(), [&](const ScopePtr& other) {
      return other->frame == scope->frame && other->path.size() < scope->path.size() &&
             starts_with(scope->path, other->path);
    });
    const bool is_known = std::any_of(result.begin(), result.end(), [&](const ScopePtr& other) {
      return other->path == scope->path;
    });
    if (!is_inner && !is_known && scope->frame == scopes[0]->frame) result.push_back(scope);
  }
  return result;
}

}  // namespace

// ---------------------------------------------------------------------------------------- boundary
Boundary::Boundary(const Scopes& outside, const std::string& name, const Filter& changes)
    : outside_(outside), name_(name), changes_(changes) {
  count_from_here();
}

void Boundary::count_from_here() {
  drawn_.clear();
  for (const ScopePtr& scope : outside_) drawn_.push_back(scope->counters->copy());
}

Dict Boundary::below_paths(const Dict& variables, const Filter& filter) const {
  Dict result;
  for (const auto& [collection, node] : variables.items()) {
    if (!filter.matches(collection)) continue;
    Dict& kept = make_dict_at(result, {collection});
    for (const ScopePtr& scope : outside_) {
      const Dict* tree = dict_at(std::get<Dict>(node), scope->path);
      if (tree != nullptr) merge_into(make_dict_at(kept, scope->path), *tree);
    }
  }
  return result;
}

Dict Boundary::variables(const Filter& filter) const {
  return below_paths(outside_[0]->frame->variables, filter);
}

Dict Boundary::streams(const Filter& filter) const {
  Dict result;
  for (std::size_t i = 0; i < outside_.size(); ++i) {
    Dict& keys = make_dict_at(result, {std::to_string(i)});
    for (const auto& [stream, key] : outside_[i]->streams) {
      if (filter.matches(stream)) keys[stream] = key;
    }
  }
  return result;
}

std::pair<Arrays, Dict> Boundary::run(const Dict& variables, const Dict& streams,
                                      const std::function<Arrays(const Scopes&)>& body) const {
  const Deeper deeper;
  const Frame& outer = *outside_[0]->frame;
  auto frame = std::make_shared<Frame>(outer);
  frame->variables = variables;
  frame->mutable_ = outer.mutable_ & changes_;
  frame->depth = lift_depth();
  Scopes inside;
  for (std::size_t i = 0; i < outside_.size(); ++i) {
    outside_[i]->counters->restore(drawn_[i]);
    auto scope = std::make_shared<Scope>(*outside_[i]);
    scope->frame = frame;
    if (scope->debug_path.empty()) scope->debug_path.emplace_back();
    scope->debug_path.back() = name_ + "(" + scope->debug_path.back() + ")";
    if (!keeps_names_) scope->suffix.clear();
    scope->streams.clear();
    for (const auto& [stream, key] : streams.dict(std::to_string(i)).items()) {
      scope->streams[stream] = std::get<Array>(key);
    }
    inside.push_back(std::move(scope));
  }
  Arrays out = body(inside);
  frame->is_open = false;
  return {std::move(out), below_paths(frame->variables, frame->mutable_)};
}

void Boundary::write_back(const Dict& changed) const {
  Frame& frame = *outside_[0]->frame;
  for (const auto& [collection, node] : changed.items()) {
    if (!frame.mutable_.matches(collection)) continue;
    merge_into(make_dict_at(frame.variables, {collection}), std::get<Dict>(node));
  }
}

// ------------------------------------------------------------------------------------- remat, jit
Arrays lift_remat(const RematOptions& options, const Scopes& scopes, const LiftedArgs& args,
                  const OnScopes& f) {
  if (options.concrete) {
    fail_with_hint<TypeError>(
        "use static_argnums for arguments whose values decide C++ control flow",
        "remat: the option concrete no longer exists");
  }
  const Boundary boundary(scopes, "remat", options.variables);
  auto body = [&](Dict variables, Dict streams, Arrays leaves) {
    return boundary.run(variables, streams,
                        [&](const Scopes& inside) { return f(inside, leaves); });
  };
  const auto [out, changed] =
      reprise::checkpoint(body, {.policy = options.policy, .prevent_cse = options.prevent_cse})(
          boundary.variables(options.variables), boundary.streams(options.rngs), args.leaves);
  boundary.write_back(changed);
  return out;
}

Arrays lift_jit(const LiftJitOptions& options, const Scopes& scopes, const LiftedArgs& args,
                const OnScopes& f) {
  Dict streams;
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    Dict& keys = make_dict_at(streams, {std::to_string(i)});
    for (const auto& [stream, key] : scopes[i]->streams) {
      if (options.rngs.matches(stream)) keys[stream] = scopes[i]->make_rng(stream);
    }
  }
  Boundary boundary(scopes, "jit", options.variables);
  boundary.forget_names();
  auto body = [&](Dict variables, Dict inner_streams, Arrays leaves) {
    return boundary.run(variables, inner_streams,
                        [&](const Scopes& inside) { return f(inside, leaves); });
  };
  const auto [out, changed] =
      reprise::jit(body)(boundary.variables(options.variables), streams, args.leaves);
  boundary.write_back(changed);
  return out;
}

Arrays lift_remat_scan(const RematScanOptions& options, const Scopes& scopes,
                       const LiftedArgs& args, const OnScopes& f) {
  if (options.lengths.empty()) {
    fail<TypeError>("remat_scan: lengths must name at least one loop, got none");
  }
  const LiftScanOptions outermost = {.variable_axes = options.variable_axes,
                                     .variable_broadcast = options.variable_broadcast,
                                     .variable_carry = options.variable_carry,
                                     .split_rngs = options.split_rngs,
                                     .length = options.lengths[0]};
  if (options.lengths.size() == 1) return lift_scan(outermost, scopes, args, f);
  RematScanOptions rest = options;
  rest.lengths.erase(rest.lengths.begin());
  const RematOptions remat_options = {.policy = options.policy, .prevent_cse = false};
  return lift_scan(outermost, scopes, args, [&](const Scopes& step, const Arrays& carry) {
    const LiftedArgs inner = {carry, args.argument, args.count};
    return lift_remat(remat_options, step, inner, [&](const Scopes& inside, const Arrays& leaves) {
      return lift_remat_scan(rest, inside, {leaves, args.argument, args.count}, f);
    });
  });
}

// ------------------------------------------------------------------------------------ lifted calls
namespace {

Arrays run_step(const LiftOptions& options, const Scopes& scopes, const LiftedArgs& args,
                const OnScopes& f) {
  if (const auto* o = std::get_if<RematOptions>(&options)) return lift_remat(*o, scopes, args, f);
  if (const auto* o = std::get_if<LiftScanOptions>(&options)) return lift_scan(*o, scopes, args, f);
  if (const auto* o = std::get_if<LiftVmapOptions>(&options)) return lift_vmap(*o, scopes, args, f);
  if (const auto* o = std::get_if<LiftJitOptions>(&options)) return lift_jit(*o, scopes, args, f);
  return lift_remat_scan(std::get<RematScanOptions>(options), scopes, args, f);
}

// The scope inside for one outside: below the lifted ones by name, others as they are (read-only).
ScopePtr inside_scope(const Scopes& outside, const Scopes& inside, const Scope& wanted) {
  for (std::size_t i = 0; i < outside.size(); ++i) {
    const Path& path = outside[i]->path;
    if (wanted.frame != outside[i]->frame || !starts_with(wanted.path, path)) continue;
    ScopePtr scope = inside[i];
    for (std::size_t k = path.size(); k < wanted.path.size(); ++k)
      scope = scope->push(wanted.path[k]);
    return scope;
  }
  return std::make_shared<Scope>(wanted);
}

}  // namespace

Arrays run_lifted(ModuleBase& module, const std::vector<const LiftOptions*>& steps,
                  const LiftedArgs& args, Location at, bool continues_call, const LiftBody& body) {
  const AtUser place(at);
  Scopes all = {scope_of(module)};
  collect_scopes(module, all);
  const Scopes outside = without_inner(all);
  const StatePtr state = ModuleState::of(module);
  Execution before = *state->execution;
  std::function<Arrays(std::size_t, const Scopes&, const Arrays&)> run_from =
      [&](std::size_t i, const Scopes& scopes, const Arrays& leaves) -> Arrays {
    if (i < steps.size()) {
      const LiftedArgs here = {leaves, args.argument, args.count};
      return run_step(*steps[i], scopes, here, [&, i](const Scopes& inside, const Arrays& inner) {
        return run_from(i + 1, inside, inner);
      });
    }
    const BindInside bind = [&](ModuleBase& copy) {
      rebind(copy, scopes[0],
             [&](const Scope& wanted) { return inside_scope(outside, scopes, wanted); });
      if (!continues_call) return;
      // A function of a running module makes children as the module itself would.
      if (!before.methods.empty()) before.methods.back().makes = true;
      *state->execution = before;
      ModuleState::of(copy)->execution = state->execution;
    };
    const InUserCode user;
    return body(bind, leaves);
  };
  return run_from(0, outside, args.leaves);
}

std::vector<bool> pinned_arguments(const std::vector<const LiftOptions*>& steps, std::size_t count,
                                   const Location& at) {
  std::vector<bool> pinned(count, false);
  const int size = static_cast<int>(count) + 1;  // the module is number 0
  for (const LiftOptions* step : steps) {
    const auto* options = std::get_if<RematOptions>(step);
    if (options == nullptr) continue;
    for (const int number : options->static_argnums) {
      if (number < -size || number >= size) {
        const AtUser place(at);
        fail_with_hint<TypeError>("count the module itself as argument 0",
                                  "remat: static_argnums must be at least ", -size,
                                  " and less than ", size, " for this call, got ", number);
      }
      const int position = number < 0 ? number + size : number;
      if (position > 0) pinned[static_cast<std::size_t>(position - 1)] = true;
    }
  }
  return pinned;
}

std::vector<const LiftOptions*> steps_for(const std::vector<LiftStep>& steps, MethodId method) {
  std::vector<const LiftOptions*> result;
  for (const LiftStep& step : steps) {
    const auto it = step.find(method);
    if (it != step.end()) result.push_back(&it->second);
  }
  return result;
}

void bind_here(ModuleBase& copy, ModuleBase& lifted) {
  rebind(copy, scope_of(lifted), [](const Scope& scope) { return std::make_shared<Scope>(scope); });
}

void take_place_of(ModuleBase& lifted, const ModuleBase& target) {
  ModuleState& state = *ModuleState::of(lifted);
  const ModuleState& before = *ModuleState::of(target);
  state.serial = before.serial;
  if (!before.has_explicit_name) return;
  state.name = before.name;
  state.has_explicit_name = true;
}

void visit_submodules_of(ModuleBase& module, const SubmoduleVisitor& visit) {
  ModuleState::visit(module, visit);
}

}  // namespace reprise::nn::detail
