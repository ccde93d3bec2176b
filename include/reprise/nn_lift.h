// Lifted transformations: checkpoint, scan, vmap and jit for module classes.
//
//   auto RematMLP = rp::nn::remat<MLP>({.policy = rp::checkpoint_policies::dots_saveable});
//   auto model = RematMLP(4);                       // lift the class, then construct
//   auto Stack = rp::nn::scan(rp::nn::remat<Block>({.prevent_cse = false}),
//                             {.variable_axes = {{"params", 0}}, .split_rngs = {{"params", true}}, .length = 12});
//
// A lift takes a class, or another lift, or a function whose first parameter is a module, and gives
// a class: it has a name of its own (CheckpointMLP, ScanCheckpointBlock), which auto-named children
// and so their random numbers depend on. The module's variables and keys become arguments of the
// transformed function, what it changes becomes a result and is written back once.
//
// The type of a parameter decides: Arrays are traced, numbers, bool, text and enums are static.
#pragma once

#include "reprise/callable.h"
#include "reprise/nn_lift_options.h"
#include "reprise/nn_module.h"

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nn {

// --------------------------------------------------------------------------------------- plumbing
namespace detail {

using LiftOptions =
    std::variant<RematOptions, LiftScanOptions, LiftVmapOptions, LiftJitOptions, RematScanOptions>;

using MethodId = const void*;  // null: call
template <auto method>
inline constexpr char method_tag = 0;
template <auto method>
MethodId id_of() {
  if constexpr (std::is_same_v<decltype(method), std::nullptr_t>) {
    return nullptr;
  } else {
    return &method_tag<method>;
  }
}
using LiftStep = std::map<MethodId, LiftOptions>;  // the methods that one transformation changes

// A call of a lifted method: its traced arrays and what they belong to.
struct LiftedArgs {
  Arrays leaves;
  std::vector<std::size_t> argument;  // of each leaf
  std::size_t count = 0;              // of the arguments
};
using BindInside = std::function<void(ModuleBase& copy)>;
using LiftBody = std::function<Arrays(const BindInside&, const Arrays& leaves)>;
// Runs the body inside of the transformations, the first the outermost.
Arrays run_lifted(ModuleBase& module, const std::vector<const LiftOptions*>& steps,
                  const LiftedArgs& args, Location at, bool continues_call, const LiftBody& body);
// Which of `count` arguments are not traced, by the static_argnums of the steps.
std::vector<bool> pinned_arguments(const std::vector<const LiftOptions*>& steps, std::size_t count,
                                   const Location& at);
std::vector<const LiftOptions*> steps_for(const std::vector<LiftStep>& steps, MethodId method);
void bind_here(ModuleBase& copy, ModuleBase& lifted);
void take_place_of(ModuleBase& lifted, const ModuleBase& target);
void visit_submodules_of(ModuleBase& module, const SubmoduleVisitor& visit);

// While it lives, modules are made without a parent.
class MakingOrphans {
 public:
  MakingOrphans();
  ~MakingOrphans();
  MakingOrphans(const MakingOrphans&) = delete;
  MakingOrphans& operator=(const MakingOrphans&) = delete;
};

// The parameters of a method as a tuple of values, as far as arguments are given.
template <class Signature, class Given>
struct HeldMethodArgs {
  using type = Given;  // overloaded or a template: as they come
};
template <class Given, class Taken, class... P>
struct TakeParameters {
  using type = Taken;
};
template <class G, class... Given, class... Taken, class First, class... P>
struct TakeParameters<std::tuple<G, Given...>, std::tuple<Taken...>, First, P...>
    : TakeParameters<std::tuple<Given...>, std::tuple<Taken..., reprise::detail::Held<First>>,
                     P...> {};
template <class R, class... P, class... Given>
struct HeldMethodArgs<R(P...), std::tuple<Given...>>
    : TakeParameters<std::tuple<Given...>, std::tuple<>, P...> {};

template <class M, auto method>
auto method_signature() {
  if constexpr (!std::is_same_v<decltype(method), std::nullptr_t>) {
    return std::type_identity<typename reprise::detail::MemberSignature<decltype(method)>::type>{};
  } else if constexpr (requires { &M::call; }) {
    return std::type_identity<
        typename reprise::detail::MemberSignature<decltype(&M::call)>::type>{};
  } else {
    return std::type_identity<void>{};
  }
}

// Arguments that are traced, flattened; the others stay in `held`.
template <class... H>
LiftedArgs flatten_args(const std::tuple<H...>& held, const std::vector<bool>& pinned) {
  LiftedArgs args;
  args.count = sizeof...(H);
  std::size_t i = 0;
  auto add = [&](const auto& argument) {
    if constexpr (IsTree<std::decay_t<decltype(argument)>>::value) {
      if (!pinned[i]) {
        const Arrays leaves = tree_leaves(argument);
        args.leaves.insert(args.leaves.end(), leaves.begin(), leaves.end());
        args.argument.insert(args.argument.end(), leaves.size(), i);
      }
    }
    ++i;
  };
  std::apply([&](const auto&... argument) { (add(argument), ...); }, held);
  return args;
}
template <class... H>
std::tuple<H...> fill_args(std::tuple<H...> held, const std::vector<bool>& pinned,
                           const Arrays& leaves) {
  std::size_t i = 0, next = 0;
  auto fill = [&](auto& argument) {
    if constexpr (IsTree<std::decay_t<decltype(argument)>>::value) {
      if (!pinned[i]) tree::replace_leaves(argument, leaves, next);
    }
    ++i;
  };
  std::apply([&](auto&... argument) { (fill(argument), ...); }, held);
  return held;
}

template <class Inside, class... H>
auto inside_result(const Inside& inside, const std::tuple<H...>&)
    -> decltype(inside(std::declval<const BindInside&>(), std::declval<H>()...));

// Flattens, runs `inside(bind, args...)` within the transformations, puts the result together.
template <class Held, class Inside>
auto call_lifted(ModuleBase& module, const std::vector<const LiftOptions*>& steps, const Held& held,
                 Location at, bool continues_call, const Inside& inside) {
  using Result = decltype(inside_result(inside, held));
  static_assert(IsTree<Result>::value,
                "a lifted method must return Arrays or a tree of them, not modules or variables");
  const std::vector<bool> pinned = pinned_arguments(steps, std::tuple_size_v<Held>, at);
  std::optional<Result> result;
  const LiftBody body = [&](const BindInside& bind, const Arrays& leaves) {
    result = std::apply([&](auto... a) { return inside(bind, std::move(a)...); },
                        fill_args(held, pinned, leaves));
    return tree_leaves(*result);
  };
  const Arrays out =
      run_lifted(module, steps, flatten_args(held, pinned), at, continues_call, body);
  return tree_unflatten(std::move(*result), out);
}

}  // namespace detail

// ------------------------------------------------------------------------------------------ Lifted
template <class M>
class Lift;

// A module of a lifted class: the target's call, transformed.
template <class M>
class Lifted : public Module<Lifted<M>> {
 public:
  Lifted(const Lift<M>& lift, M target);
  const M& target() const { return target_; }  // for its fields
  static constexpr bool reprise_is_lifted = true;

  template <auto method, class... A>
  auto call_method(A&&... args) {
    using Given = std::tuple<std::decay_t<A>...>;
    using Signature = typename decltype(detail::method_signature<M, method>())::type;
    using Held = typename detail::HeldMethodArgs<Signature, Given>::type;
    const std::vector<const detail::LiftOptions*> steps =
        detail::steps_for(*steps_, detail::id_of<method>());
    if (steps.empty()) {
      M module(target_);
      detail::bind_here(module, *this);
      return module.template run<method>(std::forward<A>(args)...);
    }
    return detail::call_lifted(*this, steps, Held(std::forward<A>(args)...), at_, false,
                               [this](const detail::BindInside& bind, auto... a) {
                                 M module(target_);
                                 bind(module);
                                 return module.template run<method>(std::move(a)...);
                               });
  }

 protected:
  void visit_submodules(const detail::SubmoduleVisitor& visit) override {
    detail::visit_submodules_of(target_, visit);
  }

 private:
  M target_;
  std::shared_ptr<const std::vector<detail::LiftStep>> steps_;
  Location at_;
};

// A lifted class: call it with the arguments of the target's constructor.
template <class M>
class Lift {
 public:
  using Target = M;
  Lift(std::string class_name, std::vector<detail::LiftStep> steps, Location at)
      : class_name_(std::move(class_name)),
        steps_(std::make_shared<const std::vector<detail::LiftStep>>(std::move(steps))),
        at_(at) {}
  template <class... A>
  Lifted<M> operator()(A&&... args) const {
    auto make = [&] {
      const detail::MakingOrphans alone;
      return M(std::forward<A>(args)...);
    };
    return {*this, make()};
  }
  const std::string& class_name() const { return class_name_; }
  const std::shared_ptr<const std::vector<detail::LiftStep>>& steps() const { return steps_; }
  const Location& at() const { return at_; }

 private:
  std::string class_name_;
  std::shared_ptr<const std::vector<detail::LiftStep>> steps_;
  Location at_;
};

template <class M>
Lifted<M>::Lifted(const Lift<M>& lift, M target)
    : Module<Lifted<M>>(typename Module<Lifted<M>>::ClassName{lift.class_name()}, std::string(),
                        lift.at()),
      target_(std::move(target)),
      steps_(lift.steps()),
      at_(lift.at()) {
  detail::take_place_of(*this, target_);
}

// ------------------------------------------------------------------------------------------- lifts
namespace detail {

template <class T>
concept ModuleInstance = std::is_base_of_v<ModuleBase, T>;
template <class T>
inline constexpr bool is_lift = false;
template <class M>
inline constexpr bool is_lift<Lift<M>> = true;

template <class M>
Lift<M> as_lift(Location at) {
  static_assert(ModuleInstance<M>, "a lift takes a module class, derived from rp::nn::Module");
  return {class_name_of<M>(), {}, at};
}
template <class M>
Lift<M> lifted_once_more(const char* prefix, const Lift<M>& inner, LiftStep step, Location at) {
  std::vector<LiftStep> steps = {std::move(step)};
  steps.insert(steps.end(), inner.steps()->begin(), inner.steps()->end());
  return {prefix + inner.class_name(), std::move(steps), at};
}
// The same options for all methods named; without any: for call.
template <auto... methods>
LiftStep step_of(const LiftOptions& options) {
  if constexpr (sizeof...(methods) == 0) {
    return {{nullptr, options}};
  } else {
    return {{id_of<methods>(), options}...};
  }
}

// A function of a module, transformed: f(module, args...).
template <class F>
class LiftedFunction {
 public:
  LiftedFunction(F f, LiftOptions options, Location at)
      : f_(std::move(f)), options_(std::move(options)), at_(at) {}
  template <class M, class... A>
  auto operator()(M& module, A&&... args) const {
    using Signature = typename reprise::detail::SignatureOf<F>::type;
    using Given = std::tuple<std::decay_t<M>, std::decay_t<A>...>;
    using All = typename HeldMethodArgs<Signature, Given>::type;
    using Held = typename WithoutFirst<All>::type;
    static_assert(ModuleInstance<M>, "the first argument of a lifted function is a module");
    return call_lifted(module, {&options_}, Held(std::forward<A>(args)...), at_, true,
                       [&](const BindInside& bind, auto... a) {
                         M copy(module);
                         bind(copy);
                         return copy.run_function(f_, std::move(a)...);
                       });
  }

 private:
  template <class T>
  struct WithoutFirst;
  template <class First, class... Rest>
  struct WithoutFirst<std::tuple<First, Rest...>> {
    using type = std::tuple<Rest...>;
  };
  F f_;
  LiftOptions options_;
  Location at_;
};

// A lift, an instance (which is an error) or a function.
template <class T>
auto lift_target(const char* prefix, const T& target, const LiftOptions& options, Location at) {
  static_assert(
      !ModuleInstance<T>,
      "lift the class, not an instance: write rp::nn::remat<MLP>(options)(arguments of MLP) "
      "instead of rp::nn::remat(MLP(arguments)); the same for checkpoint, scan, vmap and jit");
  if constexpr (is_lift<T>) {
    return lifted_once_more(prefix, target, step_of<>(options), at);
  } else {
    return LiftedFunction<T>(target, options, at);
  }
}

}  // namespace detail

// Options for one method, where methods differ: remat<M>(method<&M::encode>({...}),
// method<&M::decode>({...})).
class MethodRemat {
 public:
  MethodRemat(detail::MethodId method_id, RematOptions method_options, Location where)
      : id(method_id), options(std::move(method_options)), at(where) {}
  detail::MethodId id;
  RematOptions options;
  Location at;
};
template <auto m>
MethodRemat method(RematOptions options = {}, Location at = Location::current()) {
  return {detail::id_of<m>(), std::move(options), at};
}

// Each lift has two forms: for a class M (and methods other than call), and for a deduced target.
// The leading int keeps remat<MLP>({}) from meaning the second.

// Recomputes the intermediate values of call, or of the methods named, in the backward pass.
template <class M, auto... methods>
Lift<M> remat(const RematOptions& options = {}, Location at = Location::current()) {
  return detail::lifted_once_more("Checkpoint", detail::as_lift<M>(at),
                                  detail::step_of<methods...>(options), at);
}
template <class M, std::same_as<MethodRemat>... Rest>
Lift<M> remat(const MethodRemat& first, const Rest&... rest) {
  detail::LiftStep step = {{first.id, first.options}, {rest.id, rest.options}...};
  return detail::lifted_once_more("Checkpoint", detail::as_lift<M>(first.at), std::move(step),
                                  first.at);
}
template <int = 0, class T>
auto remat(const T& target, const RematOptions& options = {}, Location at = Location::current()) {
  return detail::lift_target("Checkpoint", target, options, at);
}
// The same under its other name.
template <class M, auto... methods>
Lift<M> checkpoint(const RematOptions& options = {}, Location at = Location::current()) {
  return remat<M, methods...>(options, at);
}
template <class M, std::same_as<MethodRemat>... Rest>
Lift<M> checkpoint(const MethodRemat& first, const Rest&... rest) {
  return remat<M>(first, rest...);
}
template <int = 0, class T>
auto checkpoint(const T& target, const RematOptions& options = {},
                Location at = Location::current()) {
  return detail::lift_target("Checkpoint", target, options, at);
}

// Runs call(carry, xs...) -> std::pair(carry, ys) once for each slice of xs (or `length` times).
template <class M, auto... methods>
Lift<M> scan(const LiftScanOptions& options, Location at = Location::current()) {
  return detail::lifted_once_more("Scan", detail::as_lift<M>(at),
                                  detail::step_of<methods...>(options), at);
}
template <int = 0, class T>
auto scan(const T& target, const LiftScanOptions& options, Location at = Location::current()) {
  return detail::lift_target("Scan", target, options, at);
}

// Maps call over an axis of its arguments and of its variables.
template <class M, auto... methods>
Lift<M> vmap(const LiftVmapOptions& options = {}, Location at = Location::current()) {
  return detail::lifted_once_more("Vmap", detail::as_lift<M>(at),
                                  detail::step_of<methods...>(options), at);
}
template <int = 0, class T>
auto vmap(const T& target, const LiftVmapOptions& options = {}, Location at = Location::current()) {
  return detail::lift_target("Vmap", target, options, at);
}

// Compiles call. It is traced at each call; to compile a training step, jit the whole step instead.
// The streams start anew inside, so that initial values differ from those without jit, as in Flax.
template <class M, auto... methods>
Lift<M> jit(const LiftJitOptions& options = {}, Location at = Location::current()) {
  return detail::lifted_once_more("Jit", detail::as_lift<M>(at),
                                  detail::step_of<methods...>(options), at);
}
template <int = 0, class T>
auto jit(const T& target, const LiftJitOptions& options = {}, Location at = Location::current()) {
  return detail::lift_target("Jit", target, options, at);
}

// call(carry) -> carry, repeated lengths[0] * lengths[1] * ... times by nested scans, all but the
// innermost of which recompute: memory of the order of the sum of the lengths.
template <class M, auto... methods>
Lift<M> remat_scan(const RematScanOptions& options, Location at = Location::current()) {
  return detail::lifted_once_more("Remat_scan", detail::as_lift<M>(at),
                                  detail::step_of<methods...>(options), at);
}
template <int = 0, class T>
auto remat_scan(const T& target, const RematScanOptions& options,
                Location at = Location::current()) {
  return detail::lift_target("Remat_scan", target, options, at);
}

}  // namespace reprise::nn
#pragma GCC visibility pop
