// One init or apply: the variables and keys, checked, bound to a module.
#include "nn/module_state.h"

namespace reprise::nn::detail {
namespace {

void check_variables(const Dict& variables) {
  for (const auto& [name, node] : variables.items()) {
    if (std::holds_alternative<Array>(node)) {
      fail_with_hint<TypeError>(
          "pass {\"params\": {...}}, as init returns it",
          "apply: the variables must be a dictionary of collections, got an array \"", name,
          "\" at its first level");
    }
  }
  const auto params = variables.items().find("params");
  if (params == variables.items().end()) return;
  const Dict& below = std::get<Dict>(params->second);
  const auto again = below.items().find("params");
  if (again != below.items().end() && std::holds_alternative<Dict>(again->second)) {
    fail_with_hint<TypeError>(
        "pass the inner one: variables.dict(\"params\")",
        "apply: the variables have one \"params\" level too many, got {\"params\": {\"params\": "
        "...}}");
  }
}

void check_rngs(const std::string& class_name, const Rngs& rngs) {
  for (const auto& [stream, key] : rngs.keys()) {
    const bool is_key = key.defined() && key.dtype() == Dtype::key && key.ndim() == 0;
    const bool is_words = key.defined() && key.dtype() == uint32 && key.shape() == Shape{2};
    if (is_key || is_words) continue;
    fail_with_hint<TypeError>("make one with rp::random::key(seed) or rp::random::PRNGKey(seed)",
                              class_name, ": the key for \"", stream,
                              "\" must be a key or u32[2], got ",
                              key.defined() ? to_string(key.type()) : "nothing");
  }
}

ScopePtr root_scope(const ModuleBase& module, const Dict& variables,
                    const SessionOptions& options) {
  check_variables(variables);
  check_rngs(module.class_name(), options.rngs);
  auto frame = std::make_shared<Frame>();
  frame->variables = variables;
  frame->mutable_ = options.mutable_;
  frame->initializing = options.initializing;
  frame->depth = lift_depth();
  auto scope = std::make_shared<Scope>();
  scope->frame = std::move(frame);
  scope->streams = options.rngs.keys();
  scope->counters = std::make_shared<Counters>();
  return scope;
}

ScopePtr nothing_outside(const Scope&) { return nullptr; }

}  // namespace

Session::Session(ModuleBase& module, const Dict& variables, const SessionOptions& options)
    : scope_(root_scope(module, variables, options)) {
  scope_->frame->captures_calls = options.capture_intermediates;
  rebind(module, scope_, nothing_outside);
}

Session::~Session() { scope_->frame->is_open = false; }

Dict Session::mutable_variables() const {
  Dict result;
  for (const auto& [collection, node] : scope_->frame->variables.items()) {
    if (scope_->frame->mutable_.matches(collection)) result.items()[collection] = node;
  }
  return result;
}

void bind_module(ModuleBase& module, const Dict& variables, const SessionOptions& options) {
  rebind(module, root_scope(module, variables, options), nothing_outside);
}

Dict unbind_module(ModuleBase& module) {
  Dict variables = module.variables();
  rebind(module, nullptr, nothing_outside);
  return variables;
}

}  // namespace reprise::nn::detail
