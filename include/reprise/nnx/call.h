// How nnx transforms call a user's function: modules by reference, the values of their variables as
// arguments and results of the transformed program. Library plumbing.
#pragma once

#include "reprise/callable.h"
#include "reprise/nnx/graph.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx::detail {

// ------------------------------------------------------------------------------------- signatures
// As for other transforms, and a method is a function whose first parameter is the module.
template <class F>
struct SignatureOf : reprise::detail::SignatureOf<F> {};
template <class C, class R, class... P>
struct SignatureOf<R (C::*)(P...)> {
  using type = R(C&, P...);
};
template <class C, class R, class... P>
struct SignatureOf<R (C::*)(P...) const> {
  using type = R(const C&, P...);
};
template <class F>
using StaticsOf = typename reprise::detail::StaticsOf<F>::type;

// std::bind and std::bind_front of a method.
template <class F>
inline constexpr bool is_bound_method = std::is_bind_expression_v<F>;
template <template <class...> class Bound, class Method, class... Rest>
inline constexpr bool is_bound_method<Bound<Method, Rest...>> =
    std::is_bind_expression_v<Bound<Method, Rest...>> ||
    (std::is_member_function_pointer_v<Method> && sizeof...(Rest) > 0 &&
     !reprise::detail::Wrapper<Bound<Method, Rest...>>);

// --------------------------------------------------------------------------------------- arguments
// What holds an argument: modules and variables by reference where the function takes a reference,
// everything else by value, numbers for Array parameters as Arrays.
template <class T>
struct Reference {
  T* target;
};
template <class T>
inline constexpr bool is_reference = false;
template <class T>
inline constexpr bool is_reference<Reference<T>> = true;

template <class P>
using Value = std::decay_t<P>;
template <class P>
inline constexpr bool is_node_type = is_module<Value<P>>() || is_variable<Value<P>>();
template <class P>
using Held = std::conditional_t<is_node_type<P> && std::is_lvalue_reference_v<P>,
                                Reference<std::remove_reference_t<P>>, reprise::detail::Held<P>>;
template <class A, bool is_static>
using HeldGeneric =
    std::conditional_t<is_node_type<A> && std::is_lvalue_reference_v<A>,
                       Reference<std::remove_reference_t<A>>,
                       std::conditional_t<is_static, Value<A>, reprise::detail::HeldGeneric<A>>>;

template <class H, class A>
H hold(A&& argument) {
  if constexpr (is_reference<H>) {
    return H{&argument};
  } else {
    return H(std::forward<A>(argument));
  }
}
template <class H>
decltype(auto) released(H& held) {
  if constexpr (is_reference<H>) {
    return (*held.target);
  } else {
    return std::move(held);
  }
}
template <class H>
using Released = decltype(released(std::declval<H&>()));

// ------------------------------------------------------------------------------------------- calls
// The arguments of a call, or its result: one member each. `local` ones belong to the call alone.
struct Roots {
  Fields fields;
  std::vector<bool> local;
};

// A function together with its arguments, seen by the core. The core may run it several times.
class Target {
 public:
  Target(Location here, std::string id) : at(here), identity(std::move(id)) {}
  virtual ~Target() = default;
  virtual Roots arguments() = 0;  // as they were given
  virtual Roots begin_run() = 0;  // those of a new run: the given ones, values copied
  virtual Roots running() = 0;    // the same, as they are now
  virtual void run() = 0;
  virtual void end_run() = 0;  // drops the values of the run
  virtual Roots result() = 0;
  // The C++ types of all arguments, and the values of those that are static by number.
  virtual std::string signature() const = 0;

  Location at;
  std::string identity;
};

struct NoResult {};  // of a function that returns nothing
template <class R>
using Kept = std::conditional_t<std::is_void_v<R>, NoResult, std::decay_t<R>>;

template <class F, class... H>
class TypedTarget final : public Target {
 public:
  using Args = std::tuple<H...>;
  using Raw = std::invoke_result_t<F&, Released<H>...>;
  using Result = Kept<Raw>;

  TypedTarget(const F& f, Args args, Location here, std::string id)
      : Target(here, std::move(id)), f_(f), given_(std::move(args)) {}

  Roots arguments() override { return roots_of(given_); }
  Roots begin_run() override {
    run_.emplace(given_);
    return roots_of(*run_);
  }
  Roots running() override { return roots_of(*run_); }
  void run() override {
    // The values are moved into the call, so that `running` must not look at them afterwards.
    Args copy = *run_;
    auto call = [&](auto&... held) -> Raw { return std::invoke(f_, released(held)...); };
    if constexpr (std::is_void_v<Raw>) {
      std::apply(call, copy);
      result_.emplace();
    } else {
      result_.emplace(std::apply(call, copy));
    }
  }
  void end_run() override { run_.reset(); }
  Roots result() override {
    Roots roots;
    if constexpr (tree::is_tuple<Result>) {
      std::apply([&](auto&... parts) { (add(roots, parts), ...); }, *result_);
    } else if constexpr (!std::is_same_v<Result, NoResult>) {
      add(roots, *result_);
    }
    return roots;
  }
  std::string signature() const override {
    std::string key;
    tree::append_type<Args>(key);
    append_statics(key, std::index_sequence_for<H...>{});
    return key;
  }
  void set_result(Result result) { result_.emplace(std::move(result)); }
  Result& value() { return *result_; }
  std::conditional_t<std::is_void_v<Raw>, void, Result> take() {
    if constexpr (!std::is_void_v<Raw>) return std::move(*result_);
  }

 private:
  template <class T>
  static void add(Roots& roots, T& value) {
    roots.fields.add(roots.local.size(), value);
    roots.local.push_back(true);
  }
  template <bool is_static, class T>
  static void add_argument(Roots& roots, T& held) {
    const std::size_t i = roots.local.size();
    if constexpr (is_static) {
      roots.local.push_back(true);
    } else if constexpr (is_reference<T>) {
      roots.fields.add(i, *held.target);
      roots.local.push_back(false);
    } else {
      roots.fields.add(i, held);
      roots.local.push_back(true);
    }
  }
  template <std::size_t... I>
  static void add_arguments(Roots& roots, Args& args, std::index_sequence<I...>) {
    (add_argument<StaticsOf<F>::has(I, sizeof...(H))>(roots, std::get<I>(args)), ...);
  }
  static Roots roots_of(Args& args) {
    Roots roots;
    add_arguments(roots, args, std::index_sequence_for<H...>{});
    return roots;
  }
  template <std::size_t... I>
  void append_statics(std::string& key, std::index_sequence<I...>) const {
    auto one = [&](const auto& value) {
      tree::describe(tree::Static<Value<decltype(value)>>(value), key);
    };
    auto some = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      if constexpr (StaticsOf<F>::has(K, sizeof...(H))) one(std::get<K>(given_));
    };
    static_cast<void>(one);
    (some(std::integral_constant<std::size_t, I>{}), ...);
  }

  F f_;
  Args given_;
  std::optional<Args> run_;
  std::optional<Result> result_;
};

template <class F, class... H>
TypedTarget<F, H...> target_of(const F& f, std::tuple<H...> args, Location at,
                               std::string identity = {}) {
  return {f, std::move(args), at, std::move(identity)};
}

template <class F>
std::string function_identity(const F& f) {
  if constexpr (std::is_member_pointer_v<F>) {
    return {};
  } else {
    return reprise::detail::identity_of(f);
  }
}

// Gives Impl a call operator with the signature of F, so that numbers convert and the caller's line
// is known, or a generic one. Impl has
//   template <class... H> auto call(Location, std::tuple<H...>) const
template <class Impl, class F, class Signature = typename SignatureOf<F>::type>
struct CallOperator;

template <class Impl, class F, class R, class... P>
struct CallOperator<Impl, F, R(P...)> {
  using reprise_signature = void(P...);
  using reprise_static = StaticsOf<F>;
  decltype(auto) operator()(P... args, Location at = Location::current()) const {
    return static_cast<const Impl&>(*this).call(at, pack(std::forward<P>(args)...));
  }

 protected:
  static std::tuple<Held<P>...> pack(P... args) {
    static_assert(reprise_static::fits(sizeof...(P)),
                  "static_argnums: the function has no argument with this number");
    return std::tuple<Held<P>...>{hold<Held<P>>(std::forward<P>(args))...};
  }
};
template <class Impl, class F>
struct CallOperator<Impl, F, void> {
  using reprise_signature = void;
  using reprise_static = StaticsOf<F>;
  template <class... A>
  decltype(auto) operator()(A&&... args) const {
    return static_cast<const Impl&>(*this).call(Location{}, pack(std::forward<A>(args)...));
  }

 protected:
  template <class... A>
  static auto pack(A&&... args) {
    static_assert(reprise_static::fits(sizeof...(A)),
                  "static_argnums: the function has no argument with this number");
    return pack_each(std::index_sequence_for<A...>{}, std::forward<A>(args)...);
  }

 private:
  template <std::size_t... I, class... A>
  static auto pack_each(std::index_sequence<I...>, A&&... args) {
    using Tuple = std::tuple<HeldGeneric<A&&, reprise_static::has(I, sizeof...(A))>...>;
    return Tuple{hold<std::tuple_element_t<I, Tuple>>(std::forward<A>(args))...};
  }
};

}  // namespace reprise::nnx::detail
#pragma GCC visibility pop
