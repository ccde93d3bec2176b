// The identity of a module: copies of a module share it.
//
// A module made inside the call of another one is that module's child. Children are named late,
// when one of them is first used, in the order in which they were made: by then it is known which
// of them are members of others (and named after the member).
#pragma once

#include "nn/scope.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace reprise::nn::detail {

struct ModuleState;
using StatePtr = std::shared_ptr<ModuleState>;

// What the running call of a module has made so far.
struct Execution {
  std::map<std::string, int> cursor;  // class name -> number of auto-named children
  std::map<std::string, std::set<std::string>> taken;  // name -> collections ("" for a submodule)
  std::vector<StatePtr> unnamed;  // children in the order in which they were made

  // Methods that run one inside the other. A method that makes nothing itself (and so is not
  // compact) lets each method it runs begin anew: these share children by name.
  struct Method {
    bool makes = false;  // children or variables
    int anew = 0;        // methods inside that began anew
  };
  std::vector<Method> methods;
};

struct ModuleState {
  std::string class_name, name;
  bool has_explicit_name = false;
  Location made_at;
  std::uint64_t serial = 0;  // order of construction
  std::size_t object_size = 0;
  bool is_child = false;              // made in a call
  std::weak_ptr<ModuleState> parent;  // of the module whose call that was
  // The living copies of a child. Those of other modules are not noted: threads may share them.
  std::vector<ModuleBase*> objects;
  ScopePtr scope;  // null until the module is part of a running one
  std::shared_ptr<Execution> execution = std::make_shared<Execution>();
  std::map<std::string, std::set<std::string>> taken_in_setup;  // stay while calls come and go
  std::map<std::string, std::string> members;  // names of adopted members -> the member
  bool in_setup = false;

  // ModuleBase keeps these to itself.
  static StatePtr& of(ModuleBase& module) { return module.state_; }
  static const StatePtr& of(const ModuleBase& module) { return module.state_; }
  static bool& is_set_up(ModuleBase& module) { return module.is_set_up_; }
  void add_copy(ModuleBase& module) {
    if (is_child) objects.push_back(&module);
  }
  void remove_copy(ModuleBase& module);
  static void visit(ModuleBase& module, const SubmoduleVisitor& f) { module.visit_submodules(f); }
};

std::uint64_t next_serial();
// The running method, if any, makes the module: it becomes a child without a name yet.
void make_child(const StatePtr& state);

// The scope of a module, which is found now if the module is a child that was not used before.
// A TypeError if the module is not part of a running one.
const ScopePtr& scope_of(ModuleBase& module);

// Marks a name as used in a module; `what` ("param") is for the message.
void reserve(ModuleState& state, const std::string& name, const std::string& collection,
             const char* what);

// Gives the module an identity of its own at this scope. Its listed submodules become new ones too:
// those with a scope of the outside are rebound to what `inside` says, others lose their names.
using InsideScope = std::function<ScopePtr(const Scope& outside)>;
void rebind(ModuleBase& module, ScopePtr scope, const InsideScope& inside);

// The scopes of the listed submodules, of theirs, and so on.
void collect_scopes(ModuleBase& module, std::vector<ScopePtr>& scopes);

// For tabulate and capture_intermediates.
bool calls_are_watched(const ModuleBase& module);
void note_call(ModuleBase& module, std::uint64_t order, const char* method,
               const std::vector<Arrays>& inputs, const Arrays& outputs);

}  // namespace reprise::nn::detail
