// Modules in the style of Flax's Linen: a module describes layers, its variables live outside of it
// in a tree of arrays that init makes and apply reads.
//
//   struct MLP : rp::nn::Module<MLP> {
//     int features;
//     explicit MLP(int features) : features(features) {}
//     rp::Array call(rp::Array x) {                   // compact: submodules are made where they are used
//       x = rp::nn::Dense(features)(x);               // Dense_0
//       x = rp::nn::relu(x);
//       return rp::nn::Dense(features)(x);            // Dense_1
//     }
//   };
//   MLP model(4);
//   rp::Dict variables = model.init(rp::random::PRNGKey(0), x);   // {"params": {"Dense_0": ...}}
//   rp::Array y = model.apply(variables, x);
//
// Write one submodule per statement: C++ leaves the order of operands open, and the order of
// construction gives the names. A submodule called twice shares its variables; a copy of a module
// is the same module. Submodules that are members are listed, and named after the member:
//
//   struct Net : rp::nn::Module<Net> {
//     rp::nn::Dense first, second;
//     explicit Net(int f) : first(f), second(f) {}
//     REPRISE_SUBMODULES(first, second)
//     rp::Array call(rp::Array x) { return second(first(x)); }
//   };
//
// A member function `void setup()` runs once before the first call: it may assign the listed
// members and ask for parameters. Variables have the names, the tree and, for the same key, the
// numbers of Flax.
#pragma once

#include "reprise/errors.h"
#include "reprise/function.h"
#include "reprise/initializers.h"
#include "reprise/program.h"

#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nn {

// ---------------------------------------------------------------------------------------- filters
// Which collections or random streams: true (all), false (none), a name, several names, or
// DenyList(filter) for all but these.
class Filter {
 public:
  Filter(bool all) : inverted_(all) {}                                 // NOLINT: implicit by design
  Filter(const char* name) : names_{name} {}                           // NOLINT
  Filter(const std::string& name) : names_{name} {}                    // NOLINT
  Filter(std::initializer_list<std::string> names) : names_(names) {}  // NOLINT
  Filter(const std::vector<std::string>& names) : names_(names.begin(), names.end()) {}  // NOLINT
  bool matches(const std::string& name) const { return (names_.count(name) != 0) != inverted_; }
  bool empty() const { return names_.empty() && !inverted_; }
  friend Filter DenyList(Filter filter) {
    filter.inverted_ = !filter.inverted_;
    return filter;
  }
  friend Filter operator&(const Filter& a, const Filter& b);  // what both match
  friend Filter operator|(const Filter& a, const Filter& b);  // what either matches

 private:
  std::set<std::string> names_;
  bool inverted_ = false;  // all but the names
};
Filter DenyList(Filter filter);

// A key for each random stream; one key alone is that of "params".
class Rngs {
 public:
  Rngs() = default;
  Rngs(const Array& key) : keys_{{"params", key}} {}  // NOLINT: implicit by design
  Rngs(std::initializer_list<std::pair<const std::string, Array>> keys) : keys_(keys) {}  // NOLINT
  Rngs(std::map<std::string, Array> keys) : keys_(std::move(keys)) {}                     // NOLINT
  const std::map<std::string, Array>& keys() const { return keys_; }

 private:
  std::map<std::string, Array> keys_;
};

struct InitOptions {
  Filter mutable_ = DenyList("intermediates");  // the collections that are made
  bool capture_intermediates = false;           // store the result of each call, named __call__
};
struct ApplyOptions {
  Rngs rngs = {};
  bool capture_intermediates = false;
};
struct BindOptions {
  Rngs rngs = {};
  Filter mutable_ = false;
};
// For apply: which collections the call may change; apply then returns them beside the result.
struct Mutable {
  Filter filter;
  ApplyOptions options;
};
inline Mutable mutable_(Filter filter, ApplyOptions options = {}) {
  return {std::move(filter), std::move(options)};
}

// The value that a layer was made with or that its call was given: exactly one of them.
bool merge_param(const std::string& name, std::optional<bool> field, std::optional<bool> argument);
std::string merge_param(const std::string& name, const std::optional<std::string>& field,
                        const std::optional<std::string>& argument);

// -------------------------------------------------------------------------------------- variables
class ModuleBase;
namespace detail {
struct Scope;
struct ModuleState;
using SubmoduleVisitor = std::function<void(const std::string& name, ModuleBase& module)>;
using InitFunction = std::function<Array(const Array& key)>;
}  // namespace detail

// A value of a collection, read and (if the collection is mutable) written.
class Variable {
 public:
  Array value() const;
  void set_value(Operand value);
  const std::string& name() const { return name_; }
  const std::string& collection() const { return collection_; }

 private:
  friend class ModuleBase;
  Variable(std::shared_ptr<detail::Scope> scope, std::string collection, std::string name)
      : scope_(std::move(scope)), collection_(std::move(collection)), name_(std::move(name)) {}
  std::shared_ptr<detail::Scope> scope_;
  std::string collection_, name_;
};

// ------------------------------------------------------------------------------------- ModuleBase
// What all modules share; derive from Module<Self>. The functions for variables and keys work
// inside call, setup and other methods, and on what bind returned.
class ModuleBase {
 public:
  virtual ~ModuleBase();
  ModuleBase(const ModuleBase&);
  ModuleBase& operator=(const ModuleBase&);

  std::string name() const;               // in its parent; empty for a module without parent
  std::vector<std::string> path() const;  // from the outermost module
  const std::string& class_name() const;

  // The parameter, made by the initialiser if it is not there yet. A TypeError if it has another
  // shape, or is missing and cannot be made.
  Array param(const std::string& name, const Initializer& init, const Shape& shape,
              Dtype dtype = float32, Location at = Location::current());
  // The same with a function of a key.
  Array param(const std::string& name, const detail::InitFunction& init,
              Location at = Location::current());
  // A value of a collection, made by init if it is not there yet.
  Variable variable(const std::string& collection, const std::string& name,
                    const std::function<Array()>& init, Location at = Location::current());
  bool has_variable(const std::string& collection, const std::string& name) const;
  Array get_variable(const std::string& collection, const std::string& name,
                     Location at = Location::current()) const;
  void put_variable(const std::string& collection, const std::string& name, Operand value);
  bool is_mutable_collection(const std::string& collection) const;
  Dict variables() const;  // of this module and its submodules

  // A new key of the stream, or of "params" if there is no such stream. It depends on the path of
  // the module and on how many keys it asked for before.
  Array make_rng(const std::string& stream = "params", Location at = Location::current());
  bool has_rng(const std::string& stream) const;
  bool is_initializing() const;

  // Appends a value to those stored under the name (entries "0", "1", ...) if the collection is
  // mutable; returns whether it is.
  bool sow(const std::string& collection, const std::string& name, Operand value);
  // The same, but one value is kept: reduce(old, value), starting from init().
  bool sow(const std::string& collection, const std::string& name, Operand value,
           const std::function<Array(Array, Array)>& reduce, const std::function<Array()>& init);
  // value plus a variable of zeros, whose gradient is that of the value.
  Array perturb(const std::string& name, Operand value,
                const std::string& collection = "perturbations");

 protected:
  ModuleBase(std::string class_name, std::size_t object_size, std::string name, Location at);
  // Calls the visitor for each listed submodule.
  virtual void visit_submodules(const detail::SubmoduleVisitor&) {}
  const Location& made_at() const;  // where the user made it: library layers report errors there
  void set_name(const std::string& name);

 private:
  friend struct detail::ModuleState;
  std::shared_ptr<detail::ModuleState> state_;
  bool is_set_up_ = false;
};

namespace detail {

std::string readable_class_name(const std::type_info& type);
template <class T>
const std::string& class_name_of() {
  static const std::string& name = *new const std::string(readable_class_name(typeid(T)));
  return name;
}

// Values whose arrays can be listed.
template <class T>
struct IsTree : std::bool_constant<tree::is_leaf<T> || tree::is_static<T> || tree::HasFields<T> ||
                                   std::is_same_v<T, Dict> ||
                                   (std::is_aggregate_v<T> && !std::is_base_of_v<ModuleBase, T>)> {
};
template <class... T>
struct IsTree<std::tuple<T...>> : std::bool_constant<(IsTree<T>::value && ...)> {};
template <class A, class B>
struct IsTree<std::pair<A, B>> : std::bool_constant<IsTree<A>::value && IsTree<B>::value> {};
template <class T>
struct IsTree<std::vector<T>> : IsTree<T> {};
template <class T, std::size_t N>
struct IsTree<std::array<T, N>> : IsTree<T> {};
template <class T>
struct IsTree<std::map<std::string, T>> : IsTree<T> {};
template <class T>
struct IsTree<std::optional<T>> : IsTree<T> {};
template <class T>
Arrays leaves_if_tree(const T& t) {
  if constexpr (IsTree<T>::value) {
    return tree_leaves(t);
  } else {
    return {};
  }
}

// While it lives the module's method runs: submodules made now are its children.
class MethodCall {
 public:
  using Setup = void (*)(ModuleBase&);  // null: the module has none
  MethodCall(ModuleBase& module, Setup setup);
  ~MethodCall();
  MethodCall(const MethodCall&) = delete;
  MethodCall& operator=(const MethodCall&) = delete;
  // For tabulate and capture_intermediates.
  bool is_watched() const;
  void finish(const char* method, const std::vector<Arrays>& inputs, const Arrays& outputs) const;

 private:
  ModuleBase& module_;
  std::uint64_t order_;
  InUserCode user_code_;
};

// Variables and keys bound to a module for one init or apply.
struct SessionOptions {
  Rngs rngs = {};
  Filter mutable_ = false;
  bool initializing = false;
  bool capture_intermediates = false;
};
class Session {
 public:
  // Binds the module, which is a copy made for this.
  Session(ModuleBase& module, const Dict& variables, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Dict mutable_variables() const;

 private:
  std::shared_ptr<Scope> scope_;
};
void bind_module(ModuleBase& module, const Dict& variables, const SessionOptions& options);
Dict unbind_module(ModuleBase& module);

// Calls of modules while a table is made.
class CallLog {
 public:
  CallLog();
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;
  std::string table(const std::string& title, const Dict& variables) const;
};

// The submodules among the members of a module, by name: first, blocks_0, heads_left.
template <class T>
void visit_member(const SubmoduleVisitor& visit, const std::string& name, T& member) {
  if constexpr (std::is_base_of_v<ModuleBase, T>) {
    visit(name, member);
  } else if constexpr (tree::is_sequence<T>) {
    for (std::size_t i = 0; i < member.size(); ++i) {
      visit_member(visit, name + "_" + std::to_string(i), member[i]);
    }
  } else if constexpr (tree::is_map<T>) {
    for (auto& [key, value] : member) visit_member(visit, name + "_" + key, value);
  } else if constexpr (tree::is_optional<T>) {
    if (member) visit_member(visit, name, *member);
  } else {
    static_assert(std::is_base_of_v<ModuleBase, T>,
                  "REPRISE_SUBMODULES lists modules, and std::vector, array, map<std::string, ...> "
                  "and optional of modules");
  }
}
template <class... T>
void visit_members(const SubmoduleVisitor& visit, const std::vector<std::string>& names,
                   T&... members) {
  std::size_t i = 0;
  (visit_member(visit, names[i++], members), ...);
}

}  // namespace detail

// Lists the members that are submodules, so that they are named after the members.
#define REPRISE_SUBMODULES(...)                                                             \
  void reprise_submodules(const ::reprise::nn::detail::SubmoduleVisitor& visit) {           \
    ::reprise::nn::detail::visit_members(visit, ::reprise::tree::split_names(#__VA_ARGS__), \
                                         __VA_ARGS__);                                      \
  }

// ----------------------------------------------------------------------------------------- Module
// struct Self : Module<Self>, with a member function call(...).
template <class Self>
class Module : public ModuleBase {
 public:
  // Runs call(args...) in the module's scope.
  template <class... A>
  auto operator()(A&&... args) {
    return run(std::forward<A>(args)...);
  }
  // Runs another method in the module's scope: encoder.run<&AutoEncoder::encode>(x).
  template <auto method = nullptr, class... A>
  auto run(A&&... args) {
    const detail::MethodCall running(*this, setup_hook());
    if constexpr (requires { Self::reprise_is_lifted; }) {  // the target's call is noted
      return invoke<method>(std::forward<A>(args)...);
    } else {
      std::vector<Arrays> inputs;
      if (running.is_watched()) inputs = {detail::leaves_if_tree(args)...};
      auto result = invoke<method>(std::forward<A>(args)...);
      if (running.is_watched()) {
        running.finish(method_name<method>(), inputs, detail::leaves_if_tree(result));
      }
      return result;
    }
  }
  // Runs f(*this, args...) in the module's scope.
  template <class F, class... A>
  auto run_function(const F& f, A&&... args) {
    const detail::MethodCall running(*this, setup_hook());
    return f(self(), std::forward<A>(args)...);
  }

  // The variables that a call of the module needs.
  template <auto method = nullptr, class... A>
  Dict init(const Rngs& rngs, const A&... args) const {
    return init_with_output<method>(rngs, InitOptions{}, args...).second;
  }
  template <auto method = nullptr, class... A>
  Dict init(const Rngs& rngs, const InitOptions& options, const A&... args) const {
    return init_with_output<method>(rngs, options, args...).second;
  }
  // std::pair(result of the call, variables)
  template <auto method = nullptr, class... A>
  auto init_with_output(const Rngs& rngs, const A&... args) const {
    return init_with_output<method>(rngs, InitOptions{}, args...);
  }
  template <auto method = nullptr, class... A>
  auto init_with_output(const Rngs& rngs, const InitOptions& options, const A&... args) const {
    Self module(self());
    const detail::Session session(module, {},
                                  {rngs, options.mutable_, true, options.capture_intermediates});
    auto out = module.template run<method>(args...);
    return std::pair{std::move(out), session.mutable_variables()};
  }

  // The result of the call with the given variables.
  template <auto method = nullptr, class... A>
  auto apply(const Dict& variables, const A&... args) const {
    return apply<method>(variables, ApplyOptions{}, args...);
  }
  template <auto method = nullptr, class... A>
  auto apply(const Dict& variables, const ApplyOptions& options, const A&... args) const {
    Self module(self());
    const detail::Session session(module, variables,
                                  {options.rngs, false, false, options.capture_intermediates});
    return module.template run<method>(args...);
  }
  // std::pair(result of the call, the collections that may change, with their new values)
  template <auto method = nullptr, class... A>
  auto apply(const Dict& variables, const Mutable& changes, const A&... args) const {
    Self module(self());
    const ApplyOptions& options = changes.options;
    const detail::Session session(
        module, variables, {options.rngs, changes.filter, false, options.capture_intermediates});
    auto out = module.template run<method>(args...);
    return std::pair{std::move(out), session.mutable_variables()};
  }

  // The module with variables, to call it step by step; unbind gives both back.
  Self bind(const Dict& variables, const BindOptions& options = {}) const {
    Self module(self());
    detail::bind_module(module, variables, {options.rngs, options.mutable_, false, false});
    return module;
  }
  std::pair<Self, Dict> unbind() const {
    Self module(self());
    Dict variables = detail::unbind_module(module);
    return {std::move(module), std::move(variables)};
  }

  // A table of all calls: path, class, inputs, outputs, variables and their bytes. Nothing is
  // computed.
  template <class... A>
  std::string tabulate(const Rngs& rngs, const A&... args) const {
    const detail::CallLog log;
    auto make = [this](std::map<std::string, Array> keys,
                       std::tuple<reprise::detail::Held<A>...> held) {
      return std::apply([&](const auto&... a) { return init(Rngs(std::move(keys)), a...); }, held);
    };
    const Dict variables =
        eval_shape(make, rngs.keys(), std::tuple<reprise::detail::Held<A>...>(args...));
    return log.table(class_name(), variables);
  }

  // The same module under an explicit name, to be said where it is made: MLP(4).named("mlp").
  Self named(const std::string& name) && {
    set_name(name);
    return std::move(self());
  }

 protected:
  explicit Module(std::string name = {}, Location at = Location::current())
      : ModuleBase(detail::class_name_of<Self>(), sizeof(Self), std::move(name), at) {}
  // For classes whose name is known at run time only.
  struct ClassName {
    std::string text;
  };
  Module(ClassName class_name, std::string name, Location at)
      : ModuleBase(std::move(class_name.text), sizeof(Self), std::move(name), at) {}

  void visit_submodules(const detail::SubmoduleVisitor& visit) override {
    if constexpr (requires { self().reprise_submodules(visit); }) self().reprise_submodules(visit);
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  static detail::MethodCall::Setup setup_hook() {
    if constexpr (requires(Self & s) { s.setup(); }) {
      return [](ModuleBase& module) { static_cast<Self&>(module).setup(); };
    } else {
      return nullptr;
    }
  }
  template <auto method>
  static constexpr const char* method_name() {
    return std::is_same_v<decltype(method), std::nullptr_t> ? "__call__" : "";
  }
  template <auto method, class... A>
  auto invoke(A&&... args) {
    if constexpr (requires { self().template call_method<method>(std::forward<A>(args)...); }) {
      return self().template call_method<method>(std::forward<A>(args)...);
    } else if constexpr (std::is_same_v<decltype(method), std::nullptr_t>) {
      static_assert(
          requires { self().call(std::forward<A>(args)...); },
          "the module has no member function call(...) that takes these arguments");
      return self().call(std::forward<A>(args)...);
    } else {
      return (self().*method)(std::forward<A>(args)...);
    }
  }
};

}  // namespace reprise::nn
#pragma GCC visibility pop
