// How transforms call a user's function: arguments flattened to arrays, results put back together.
// Library plumbing; users meet it only in error messages.
#pragma once

#include "reprise/function.h"

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// Names an argument in residual tables and messages: rp::arg("x", x), or RP_ARGS(x, y) for several.
template <class T>
struct NamedArg {
  const char* name;
  const T& value;
};
template <class T>
NamedArg<T> arg(const char* name, const T& value) {
  return {name, value};
}

namespace detail {

// ------------------------------------------------------------------------------------- signatures
template <class M>
struct MemberSignature;
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...) const> {
  using type = R(P...);
};
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...)> {
  using type = R(P...);
};
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...) const noexcept> {
  using type = R(P...);
};

template <class F>
struct SignatureOf {
  using type = void;  // generic lambdas, overloaded call operators
};
template <class R, class... P>
struct SignatureOf<R (*)(P...)> {
  using type = R(P...);
};
template <class F>
concept Wrapper = requires {
  typename F::reprise_signature;
};
template <class F>
requires(!Wrapper<F> && requires { &F::operator(); }) struct SignatureOf<F> {
  using type = typename MemberSignature<decltype(&F::operator())>::type;
};
// A wrapper made by a transform has the signature of the function it wraps.
template <Wrapper F>
struct SignatureOf<F> {
  using type = typename F::reprise_signature;
};

// Positions of arguments; negative ones count from the end.
template <int... I>
struct Argnums {
  static constexpr bool fits(std::size_t count) {
    const int n = static_cast<int>(count);
    return ((I < n && I >= -n) && ...);
  }
  static constexpr bool has(std::size_t i, std::size_t count) {
    const int n = static_cast<int>(count), at = static_cast<int>(i);
    return ((I == at || I + n == at) || ...);
  }
};
// Which arguments of F are static although their types do not say so; wrappers pass it on.
template <class F>
struct StaticsOf {
  using type = Argnums<>;
};
template <class F>
requires requires { typename F::reprise_static; }
struct StaticsOf<F> {
  using type = typename F::reprise_static;
};
// What holds an argument: numbers passed to Array parameters become Arrays.
template <class P>
struct HeldArg {
  using type = P;
};
template <>
struct HeldArg<Operand> {
  using type = Array;
};
template <class P>
using Held = typename HeldArg<std::decay_t<P>>::type;
template <class A>
using HeldGeneric = std::conditional_t<std::is_arithmetic_v<std::decay_t<A>>, Array, Held<A>>;

template <bool is_pinned, bool generic, class A>
using HeldAt = std::conditional_t<is_pinned, tree::Static<Held<A>>,
                                  std::conditional_t<generic, HeldGeneric<A>, Held<A>>>;
template <class F, bool generic, class Positions, class... A>
struct HeldArgs;
template <class F, bool generic, std::size_t... I, class... A>
struct HeldArgs<F, generic, std::index_sequence<I...>, A...> {
  using Statics = typename StaticsOf<F>::type;
  static_assert(Statics::fits(sizeof...(A)),
                "static_argnums: the function has no argument with this number");
  using type = std::tuple<HeldAt<Statics::has(I, sizeof...(A)), generic, A>...>;
  template <class... Given>
  static type make(Given&&... args) {
    return type(std::tuple_element_t<I, type>(std::forward<Given>(args))...);
  }
};
// The tuple that holds arguments for F: of a known signature, or as they come (generic).
template <class F, bool generic, class... A>
using HeldFor = HeldArgs<F, generic, std::index_sequence_for<A...>, A...>;

// What the function itself receives.
template <class T>
T&& plain(T&& argument) {
  return std::forward<T>(argument);
}
template <class T>
T&& plain(tree::Static<T>&& argument) {
  return std::move(argument.value);
}
template <class T>
using Plain = decltype(plain(std::declval<T>()));

// -------------------------------------------------------------------------------------- flat calls
// A function and its static arguments, seen by the type-erased core.
struct Callee {
  std::function<Arrays(const Arrays&)> run;  // leaves of the arguments -> leaves of the result
  std::string name;
  std::vector<std::string> arg_names;  // one path per leaf
  Location at;                         // where the transformed function was called
  std::string identity;                // equal bytes: the same function; empty: unknown
};

// A function pointer is its value, a function object without state its type; others have none.
template <class F>
std::string identity_of(const F& f) {
  std::string key;
  if constexpr (requires { f.reprise_wrapped; }) {
    return identity_of(f.reprise_wrapped);
  } else if constexpr (std::is_pointer_v<F>) {
    key = "p";
    tree::append_bits(key, f);
  } else if constexpr (std::is_empty_v<F>) {
    key = "t";
    tree::append_type<F>(key);
  }
  return key;
}

std::string new_identity();  // for wrappers of functions that have none

template <class F, class... A>
class Applied {
 public:
  using Args = std::tuple<A...>;
  using Result = std::decay_t<std::invoke_result_t<F&, Plain<A>...>>;
  static_assert(!std::is_void_v<Result>, "a transformed function must return its results");
  static_assert(
      !tree::is_static<Result> || std::is_arithmetic_v<Result> || std::is_same_v<Result, None>,
      "a transformed function must return Arrays, or a tree of them: text and enums are not "
      "values of a program");

  Applied(const F& f, Args args, Location at, std::string name = {},
          std::vector<std::string> arg_names = {})
      : args_(std::move(args)), at_(at), result_(std::make_shared<std::optional<Result>>()) {
    callee_.name = std::move(name);
    callee_.at = at;
    callee_.identity = identity_of(f);
    name_leaves(arg_names, std::index_sequence_for<A...>{});
    callee_.run = [fn = f, structure = tree::structure_of(args_),
                   result = result_](const Arrays& leaves) mutable {
      Args filled = structure;
      std::size_t next = 0;
      tree::replace_leaves(filled, leaves, next);
      *result =
          std::apply([&fn](A&&... a) { return fn(plain(std::move(a))...); }, std::move(filled));
      return tree_leaves(**result);
    };
  }

  const Callee& callee() const { return callee_; }
  const Args& args() const { return args_; }
  Arrays leaves() const { return tree_leaves(args_); }
  // Which leaves belong to the arguments I...
  template <std::size_t... I>
  std::vector<bool> leaves_of(std::index_sequence<I...>) const {
    static_assert(!(tree::is_pinned<std::tuple_element_t<I, Args>> || ...),
                  "static_argnums: an argument that is differentiated cannot be static");
    std::vector<bool> mask;
    mark(mask, std::array<std::size_t, sizeof...(I)>{I...}, std::index_sequence_for<A...>{});
    return mask;
  }
  // What the function returned while it was traced: its structure matters, its leaves are
  // variables.
  const Result& traced_result() const { return **result_; }
  // A result with other leaves; the function must have run.
  Result result(const Arrays& leaves) const { return tree_unflatten(**result_, leaves); }
  // Equal bytes: arguments of the same C++ types, structure and static values.
  std::string key() const {
    std::string key;
    tree::append_type<Args>(key);
    tree::describe(args_, key);
    return key;
  }

 private:
  template <std::size_t... I>
  void name_leaves(const std::vector<std::string>& names, std::index_sequence<I...>) {
    auto name_of = [&](std::size_t i) {
      return i < names.size() && !names[i].empty() ? names[i] : "args[" + std::to_string(i) + "]";
    };
    static_cast<void>(name_of);
    (tree::paths(std::get<I>(args_), name_of(I), callee_.arg_names), ...);
  }
  template <std::size_t N, std::size_t... I>
  void mark(std::vector<bool>& mask, const std::array<std::size_t, N>& wanted,
            std::index_sequence<I...>) const {
    auto one = [&](std::size_t i, std::size_t leaves) {
      bool hit = false;
      for (std::size_t w : wanted) hit = hit || w == i;
      mask.insert(mask.end(), leaves, hit);
    };
    static_cast<void>(one);
    (one(I, tree_leaves(std::get<I>(args_)).size()), ...);
  }

  Args args_;
  Location at_;
  Callee callee_;
  std::shared_ptr<std::optional<Result>> result_;
};

// ---------------------------------------------------------------------------------------- wrappers
// Objects that hold arrays without being trees say how a function of them is looked at
// (nnx::Module):
//   struct T::reprise_inspection {
//     static auto inspect(f, at, args...);        // with callee() and leaves(), as Applied
//     static auto lower(f, jit_options, args...);
//   };
template <class T>
concept Lifted = requires {
  typename std::remove_cvref_t<T>::reprise_inspection;
};
template <class F, std::size_t... I, class... P>
constexpr bool trees_but_static(std::index_sequence<I...>, std::type_identity<P>...) {
  return ((StaticsOf<F>::type::has(I, sizeof...(P)) || tree::is_tree<Held<P>>()) && ...);
}
// Gives Impl a call operator with the signature of F (so that numbers convert and the caller's line
// is known), or a generic one. Impl has `template <class... A> auto call(Location,
// std::tuple<A...>) const`.
template <class Impl, class F, class Signature = typename SignatureOf<F>::type>
struct CallOperator;

#define REPRISE_NOT_A_TREE                                                                       \
  "not a tree: an argument must be made of Arrays, numbers, std::tuple, vector, map, optional, " \
  "rp::Dict, "                                                                                   \
  "plain structs of these, or classes that list their members with REPRISE_FIELDS(members...)"
// Of a function with wrong static_argnums nothing is said here: that has a sentence of its own.
template <class F, class... P>
inline constexpr bool are_trees =
    !StaticsOf<F>::type::fits(sizeof...(P)) ||
    trees_but_static<F>(std::index_sequence_for<P...>{}, std::type_identity<P>{}...);

// Arguments are held anyway: taken by value they can be moved in, also for a function of const
// references.
template <class P>
using Passed =
    std::conditional_t<std::is_lvalue_reference_v<P> && std::is_const_v<std::remove_reference_t<P>>,
                       std::remove_cvref_t<P>, P>;

template <class Impl, class F, class R, class... P>
struct CallOperator<Impl, F, R(P...)> {
  using reprise_signature = void(P...);
  using reprise_static = typename StaticsOf<F>::type;
  static_assert(reprise_static::fits(sizeof...(P)),
                "static_argnums: the function has no argument with this number");
  auto operator()(Passed<P>... args, Location at = Location::current()) const
      requires(are_trees<F, P...>) {
    return static_cast<const Impl&>(*this).call(at,
                                                HeldFor<F, false, P...>::make(std::move(args)...));
  }
  REPRISE_UNAVAILABLE(REPRISE_NOT_A_TREE)
  void operator()(Passed<P>... args, Location at = Location::current()) const
      requires(!are_trees<F, P...> && !(Lifted<P> || ...));
};
template <class Impl, class F>
struct CallOperator<Impl, F, void> {
  using reprise_signature = void;
  using reprise_static = typename StaticsOf<F>::type;
  template <class... A>
  requires(are_trees<F, A...>) auto operator()(A&&... args) const {
    return static_cast<const Impl&>(*this).call(
        Location{}, HeldFor<F, true, A...>::make(std::forward<A>(args)...));
  }
  template <class... A>
  requires(!are_trees<F, A...> && !(Lifted<A> || ...)) REPRISE_UNAVAILABLE(REPRISE_NOT_A_TREE)
  void operator()(A&&... args) const;
};

template <class F, class... A>
Applied<F, A...> apply_to(const F& f, std::tuple<A...> args, Location at, std::string name = {},
                          std::vector<std::string> arg_names = {}) {
  return {f, std::move(args), at, std::move(name), std::move(arg_names)};
}

Array abstract_array(const Type& type);  // a type in the place of an array: it has no elements
// Arguments of inspection functions: named or not, numbers as Arrays, types in the place of Arrays;
// converted to F's parameters.
template <class T>
const T& unnamed(const T& value) {
  return value;
}
inline Array unnamed(const Type& type) { return abstract_array(type); }
template <class T>
const T& unnamed(const NamedArg<T>& a) {
  return a.value;
}
inline Array unnamed(const NamedArg<Type>& a) { return abstract_array(a.value); }
template <class T>
std::string name_of(const T&) {
  return {};
}
template <class T>
std::string name_of(const NamedArg<T>& a) {
  return a.name;
}
template <class F, class Signature>
struct Inspect;
template <class F, class R, class... P>
struct Inspect<F, R(P...)> {
  template <class... A>
  static auto apply(const F& f, Location at, const A&... args) {
    static_assert(sizeof...(A) == sizeof...(P), "wrong number of arguments for this function");
    return apply_to(f, HeldFor<F, false, P...>::make(unnamed(args)...), at, {},
                    std::vector<std::string>{name_of(args)...});
  }
};
template <class F>
struct Inspect<F, void> {
  template <class... A>
  static auto apply(const F& f, Location at, const A&... args) {
    return apply_to(f, HeldFor<F, true, decltype(unnamed(args))...>::make(unnamed(args)...), at, {},
                    std::vector<std::string>{name_of(args)...});
  }
};
template <class A>
using Unnamed = std::remove_cvref_t<decltype(unnamed(std::declval<const A&>()))>;
template <class... A>
concept AnyLifted = (Lifted<Unnamed<A>> || ...);
// How the first of the arguments that is no tree wants to be looked at.
template <class First, class... A>
struct InspectionOf : InspectionOf<A...> {};
template <class First, class... A>
requires Lifted<First>
struct InspectionOf<First, A...> {
  using type = typename First::reprise_inspection;
};
template <class F, class... A>
auto inspect(const F& f, Location at, const A&... args) {
  if constexpr (AnyLifted<A...>) {
    return InspectionOf<Unnamed<A>...>::type::inspect(f, at, args...);
  } else {
    return Inspect<F, typename SignatureOf<F>::type>::apply(f, at, args...);
  }
}

template <int... I, int... J>
Argnums<I..., J...> joined(Argnums<I...>, Argnums<J...>);

template <class F, int... I>
struct StaticArgs {
  using reprise_signature = typename SignatureOf<F>::type;
  using reprise_static = decltype(joined(Argnums<I...>{}, typename StaticsOf<F>::type{}));
  F reprise_wrapped;
  template <class... A>
  auto operator()(A&&... args) const {
    return reprise_wrapped(std::forward<A>(args)...);
  }
};

}  // namespace detail

// f, whose arguments I... (negative: from the end) are never traced, whatever their types:
// transforms hand them to f as they are. A number for an `auto` parameter stays a C++ number, the
// elements of an Array can be read. Such an argument has no gradient; jit makes one program per
// value.
//
//   auto g = rp::checkpoint(rp::static_argnums<1>([](rp::Array x, auto train) { return train ? rp::sin(x) : x; }));
//   g(x, true);
template <int... I, class F>
detail::StaticArgs<F, I...> static_argnums(F f) {
  return {std::move(f)};
}

// RP_ARGS(x, y): the arguments with their own names.
#define RP_ARGS_1(a) ::reprise::arg(#a, a)
#define RP_ARGS_2(a, ...) ::reprise::arg(#a, a), RP_ARGS_1(__VA_ARGS__)
#define RP_ARGS_3(a, ...) ::reprise::arg(#a, a), RP_ARGS_2(__VA_ARGS__)
#define RP_ARGS_4(a, ...) ::reprise::arg(#a, a), RP_ARGS_3(__VA_ARGS__)
#define RP_ARGS_5(a, ...) ::reprise::arg(#a, a), RP_ARGS_4(__VA_ARGS__)
#define RP_ARGS_6(a, ...) ::reprise::arg(#a, a), RP_ARGS_5(__VA_ARGS__)
#define RP_ARGS_7(a, ...) ::reprise::arg(#a, a), RP_ARGS_6(__VA_ARGS__)
#define RP_ARGS_8(a, ...) ::reprise::arg(#a, a), RP_ARGS_7(__VA_ARGS__)
#define RP_ARGS_PICK(_1, _2, _3, _4, _5, _6, _7, _8, name, ...) name
#define RP_ARGS(...)                                                                          \
  RP_ARGS_PICK(__VA_ARGS__, RP_ARGS_8, RP_ARGS_7, RP_ARGS_6, RP_ARGS_5, RP_ARGS_4, RP_ARGS_3, \
               RP_ARGS_2, RP_ARGS_1, )                                                        \
  (__VA_ARGS__)

}  // namespace reprise
#pragma GCC visibility pop
