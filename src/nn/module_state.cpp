// Names and places of modules, and the calls of their methods.
#include "nn/module_state.h"

#include "reprise/nn_lift.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unordered_map>

namespace reprise::nn::detail {
namespace {

// The modules whose methods run on this thread, the innermost last. Null: modules made now have no
// parent.
// Null: none. Objects of a thread with destructors are gone when those of the process are
// destroyed, and they may call modules.
thread_local std::vector<StatePtr>* running = nullptr;

void enter(StatePtr state) {
  if (running == nullptr) running = new std::vector<StatePtr>;
  running->push_back(std::move(state));
}
void leave() {
  running->pop_back();
  if (!running->empty()) return;
  delete running;
  running = nullptr;
}

// The running method makes something: then it is compact, and methods it ran before must have been
// numbered together with it.
void note_making(ModuleState& state, const std::string& what) {
  if (state.in_setup || state.execution->methods.empty()) return;
  Execution::Method& method = state.execution->methods.back();
  if (!method.makes && method.anew > 1) {
    fail_with_hint<TypeError>(
        "make it before the methods run, or in a method of its own", state.class_name,
        ": a call that ran several methods must not make children or variables itself, got ", what);
  }
  method.makes = true;
}

}  // namespace

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial = 0;
  return ++serial;
}

void ModuleState::remove_copy(ModuleBase& module) {
  if (is_child) objects.erase(std::remove(objects.begin(), objects.end(), &module), objects.end());
}

void make_child(const StatePtr& state) {
  if (running == nullptr || running->back() == nullptr) return;
  const StatePtr& parent = running->back();
  if (parent->in_setup) return;  // named after the member it is assigned to
  note_making(*parent, state->class_name);
  state->is_child = true;
  state->parent = parent;
  parent->execution->unnamed.push_back(state);
}

namespace {

bool is_free(const std::map<std::string, std::set<std::string>>& taken, const std::string& name,
             const std::string& collection) {
  const auto it = taken.find(name);
  if (it == taken.end()) return true;
  return !collection.empty() && it->second.count("") == 0 && it->second.count(collection) == 0;
}

[[noreturn]] void name_in_use(const ModuleState& state, const std::string& name, const char* what) {
  fail_with_hint<TypeError>("give it another name", what, ": the name \"", name, "\" is in use in ",
                            state.class_name);
}

std::string auto_name(ModuleState& parent, const std::string& class_name) {
  return class_name + "_" + std::to_string(parent.execution->cursor[class_name]++);
}

void adopt_members(ModuleBase& module);

// Makes a listed member a child that is named after the member.
void adopt(ModuleState& owner, const std::string& member, ModuleBase& module) {
  const StatePtr state = ModuleState::of(module);
  if (state->scope) return;
  if (const StatePtr parent = state->parent.lock()) {
    // Made in a call before its owner was: it belongs to that call. Made after: by the constructor.
    if (state->serial < owner.serial) return;
    std::vector<StatePtr>& unnamed = parent->execution->unnamed;
    unnamed.erase(std::remove(unnamed.begin(), unnamed.end(), state), unnamed.end());
  }
  const bool keeps_name = state->has_explicit_name && state->serial > owner.serial;
  if (!keeps_name) state->name = member;
  const std::string& holder = owner.members.try_emplace(state->name, member).first->second;
  if (holder != member || !is_free(owner.execution->taken, state->name, "") ||
      !is_free(owner.taken_in_setup, state->name, "")) {
    name_in_use(owner, state->name, "submodule");
  }
  state->scope = owner.scope->push(state->name);
  adopt_members(module);
}

void adopt_members(ModuleBase& module) {
  const StatePtr owner = ModuleState::of(module);
  ModuleState::visit(
      module, [&](const std::string& name, ModuleBase& member) { adopt(*owner, name, member); });
}

// A member that its owner does not list would be named as if it stood in the call.
void check_is_no_member(const ModuleState& state, const ModuleState& owner) {
  for (const ModuleBase* object : state.objects) {
    for (const ModuleBase* outer : owner.objects) {
      const auto begin = reinterpret_cast<std::uintptr_t>(outer),
                 at = reinterpret_cast<std::uintptr_t>(object);
      if (at <= begin || at >= begin + owner.object_size) continue;
      fail_with_hint<TypeError>("list the members that are modules: REPRISE_SUBMODULES(...)",
                                "submodule: ", owner.class_name, " has a member of class ",
                                state.class_name, " that it does not list");
    }
  }
}

// Names the children of a module that were made before `last`, and `last`.
void name_children(ModuleState& parent, const StatePtr& last) {
  std::vector<StatePtr>& unnamed = parent.execution->unnamed;
  while (std::find(unnamed.begin(), unnamed.end(), last) != unnamed.end()) {
    const StatePtr next = unnamed.front();
    unnamed.erase(unnamed.begin());
    const AtUser at(next->made_at);
    if (!next->has_explicit_name) next->name = auto_name(parent, next->class_name);
    reserve(parent, next->name, "", "submodule");
    next->scope = parent.scope->push(next->name);
    if (!next->objects.empty()) adopt_members(*next->objects.back());
    for (const StatePtr& other : unnamed) check_is_no_member(*other, *next);
  }
}

}  // namespace

MakingOrphans::MakingOrphans() { enter(nullptr); }
MakingOrphans::~MakingOrphans() { leave(); }

const ScopePtr& scope_of(ModuleBase& module) {
  const StatePtr& state = ModuleState::of(module);
  if (!state->scope) {
    const StatePtr parent = state->parent.lock();
    if (parent && parent->scope) name_children(*parent, state);
  }
  if (!state->scope) {
    const AtUser at(state->made_at);
    fail_with_hint<TypeError>(
        "call it through init or apply; inside another module make it in call(), or list it in "
        "REPRISE_SUBMODULES",
        state->class_name, ": a module cannot be called alone, it has no variables");
  }
  return state->scope;
}

void reserve(ModuleState& state, const std::string& name, const std::string& collection,
             const char* what) {
  if (!collection.empty()) note_making(state, name);
  auto& taken = state.in_setup ? state.taken_in_setup : state.execution->taken;
  if (state.members.count(name) != 0 || !is_free(state.execution->taken, name, collection) ||
      !is_free(state.taken_in_setup, name, collection)) {
    name_in_use(state, name, what);
  }
  taken[name].insert(collection);
}

namespace {

using NewStates = std::unordered_map<const ModuleState*, StatePtr>;

void rebind_members(ModuleBase& module, const InsideScope& inside, NewStates& made);

StatePtr copy_of(const ModuleState& state) {
  auto copy = std::make_shared<ModuleState>();
  copy->class_name = state.class_name;
  copy->name = state.name;
  copy->has_explicit_name = state.has_explicit_name;
  copy->made_at = state.made_at;
  copy->serial = state.serial;
  copy->object_size = state.object_size;
  return copy;
}

void replace_state(ModuleBase& module, const StatePtr& fresh) {
  StatePtr& state = ModuleState::of(module);
  state->remove_copy(module);
  state = fresh;
  ModuleState::is_set_up(module) = false;
}

void rebind_member(ModuleBase& module, const InsideScope& inside, NewStates& made) {
  const StatePtr old = ModuleState::of(module);
  StatePtr& fresh = made[old.get()];
  if (!fresh) {
    fresh = copy_of(*old);
    if (old->scope) fresh->scope = inside(*old->scope);
  }
  replace_state(module, fresh);
  rebind_members(module, inside, made);
}

void rebind_members(ModuleBase& module, const InsideScope& inside, NewStates& made) {
  ModuleState::visit(
      module, [&](const std::string&, ModuleBase& member) { rebind_member(member, inside, made); });
}

}  // namespace

void rebind(ModuleBase& module, ScopePtr scope, const InsideScope& inside) {
  NewStates made;
  // Members that are children of a running call take their places there before they are replaced.
  std::vector<ScopePtr> outside;
  collect_scopes(module, outside);
  const StatePtr fresh = copy_of(*ModuleState::of(module));
  fresh->scope = std::move(scope);
  made[ModuleState::of(module).get()] = fresh;
  replace_state(module, fresh);
  rebind_members(module, inside, made);
  if (fresh->scope) adopt_members(module);
}

void collect_scopes(ModuleBase& module, std::vector<ScopePtr>& scopes) {
  ModuleState::visit(module, [&](const std::string&, ModuleBase& member) {
    const StatePtr& state = ModuleState::of(member);
    if (!state->scope) {
      const StatePtr parent = state->parent.lock();
      if (parent && parent->scope) name_children(*parent, state);
    }
    if (state->scope) scopes.push_back(state->scope);
    collect_scopes(member, scopes);
  });
}

// ------------------------------------------------------------------------------------ method calls
namespace {

void begin_method(ModuleState& state) {
  Execution& execution = *state.execution;
  std::vector<Execution::Method>& outer = execution.methods;
  const auto makes = [](const Execution::Method& method) { return method.makes; };
  if (std::none_of(outer.begin(), outer.end(), makes)) {
    if (!outer.empty()) {
      if (!execution.unnamed.empty()) name_children(state, execution.unnamed.back());
      ++outer.back().anew;
    }
    execution = {{}, {}, {}, std::move(outer)};
  }
  execution.methods.emplace_back();
}

}  // namespace

MethodCall::MethodCall(ModuleBase& module, Setup setup) : module_(module), order_(next_serial()) {
  scope_of(module);
  const StatePtr state = ModuleState::of(module);
  if (!ModuleState::is_set_up(module)) {
    adopt_members(module);
    if (setup != nullptr) {
      enter(state);
      state->in_setup = true;
      state->taken_in_setup.clear();
      const auto end_setup = [&] {
        state->in_setup = false;
        leave();
      };
      try {
        setup(module);
      } catch (...) {
        end_setup();
        throw;
      }
      end_setup();
      adopt_members(module);
    }
    ModuleState::is_set_up(module) = true;
  }
  begin_method(*state);
  enter(state);
}

MethodCall::~MethodCall() {
  running->back()->execution->methods.pop_back();
  leave();
}

bool MethodCall::is_watched() const { return calls_are_watched(module_); }

void MethodCall::finish(const char* method, const std::vector<Arrays>& inputs,
                        const Arrays& outputs) const {
  note_call(module_, order_, method, inputs, outputs);
}

// ---------------------------------------------------------------------------------- names of types
std::string readable_class_name(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : type.name();
  std::free(text);
  // Without template arguments and what it is inside of; "(anonymous namespace)::A" and "f(int)::A"
  // end with the name too.
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (depth == 0) plain.push_back(c);
    if (c == '>' || c == ')' || c == '}') --depth;
  }
  const std::size_t colon = plain.rfind("::");
  return colon == std::string::npos ? plain : plain.substr(colon + 2);
}

}  // namespace reprise::nn::detail
