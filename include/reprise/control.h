// Control flow inside programs, and functions with derivative rules of their own; JAX's names.
//
//   auto [carry, ys] = rp::scan([](Array c, Array x) { return std::pair{rp::sin(c) * x, c}; }, c0, xs);
//   Array y = rp::cond(p, [](Array x) { return rp::sin(x); }, [](Array x) { return -x; }, x);
//   auto f = rp::custom_vjp(plain, fwd, bwd);
#pragma once

#include "reprise/callable.h"
#include "reprise/loops.h"

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// reverse: from the last element to the first. unroll changes no result: loops are compiled as
// loops.
struct ScanOptions {
  std::optional<std::int64_t> length = std::nullopt;  // needed when xs has no arrays
  bool reverse = false;
  std::int64_t unroll = 1;
  // As in LoopOptions: reverse mode keeps at most so many carries and plays again what lies between
  // them.
  std::optional<Checkpoints> checkpoints = std::nullopt;
  std::optional<std::int64_t> checkpoint_bytes = std::nullopt;
  std::int64_t disk_checkpoints = 0;
};
// The names that printed programs give to the function and to its rules.
struct CustomJvpOptions {
  std::string name = "<lambda>", jvp = "jvp";  // as printed
};
struct CustomVjpOptions {
  std::string name = "<lambda>", fwd = "fwd", bwd = "bwd";
};

namespace detail {

// `body` takes the leaves of (carry, x) and returns those of (carry, y).
Arrays scan(const Callee& body, Arrays init, const Arrays& xs, const ScanOptions& options);
Arrays cond(const Array& index_or_pred, const std::vector<Callee>& branches, const Arrays& operands,
            bool is_switch);
Arrays while_loop(const Callee& cond, const Callee& body, Arrays init, const LoopOptions& options);
using FlatRule = std::function<std::pair<Arrays, Arrays>(const Arrays&, const Arrays&)>;
Arrays custom_jvp(const Callee& f, const CustomJvpOptions& names, FlatRule rule,
                  const Arrays& args);
using FlatFwd = std::function<std::pair<Arrays, Arrays>(const Arrays&)>;
using FlatBwd = std::function<Arrays(const Arrays&, const Arrays&)>;
Arrays custom_vjp(const Callee& f, const CustomVjpOptions& names, FlatFwd fwd, FlatBwd bwd,
                  const Arrays& args);
Array next_index(const Array& i);
Array less_index(const Array& i, const Array& upper);
Array scalar_row(const Array& stacked);  // one element of the leading axis, for its type only

// What loops ask of their bodies; generic ones are looked at with the types that the loop will use.
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class A, class B>
inline constexpr bool is_pair<std::tuple<A, B>> = true;
template <class F, class C, class X>
concept ScanBody = is_pair<std::decay_t<std::invoke_result_t<F&, HeldGeneric<C>, HeldGeneric<X>>>>;
template <class F, class C>
concept CountedBody = std::is_invocable_r_v < HeldGeneric<C>,
const F&, const Array&, HeldGeneric < C >> ;
struct AnyBranch {
  template <class F>
  AnyBranch(const F&);  // NOLINT: takes whatever stands in braces
};

// The element that the body sees: leaves without their leading axis.
template <class X>
X element_of(const X& xs) {
  return tree_map([](const Array& a) { return scalar_row(a); }, xs);
}

}  // namespace detail

// Loops over the leading axis of xs: body(carry, x) -> std::pair(carry, y). Returns the last carry
// and the stacked y. Use rp::none for no xs or no y.
template <class F, class C, class X>
requires detail::ScanBody<F, C, X>
auto scan(const F& body, const C& init, const X& xs, ScanOptions options = {},
          Location at = Location::current()) {
  using Carry = detail::HeldGeneric<C>;
  using Xs = detail::HeldGeneric<X>;
  const Carry carry(init);
  const Xs stacked(xs);
  const auto applied =
      detail::apply_to(body, std::tuple<Carry, Xs>(carry, detail::element_of(stacked)), at);
  const Arrays out =
      detail::scan(applied.callee(), tree_leaves(carry), tree_leaves(stacked), options);
  return applied.result(out);
}
template <class F, class C, class X>
REPRISE_UNAVAILABLE(
    "scan: the body takes (carry, x) and must return two values, std::pair(carry, y); several y "
    "are one tree, "
    "std::pair(carry, std::tuple(y, z)), and rp::none stands for none")
void scan(const F& body, const C& init, const X& xs, ScanOptions options = {},
          Location at = Location::current());

// true_fun(operands...) if pred else false_fun(operands...); only the chosen one runs.
template <class T, class F, class... A>
auto cond(const Operand& pred, const T& true_fun, const F& false_fun, const A&... operands) {
  const auto yes = detail::inspect(true_fun, pred.at, operands...);
  const auto no = detail::inspect(false_fun, pred.at, operands...);
  static_assert(std::is_same_v<typename decltype(yes)::Result, typename decltype(no)::Result>,
                "cond: both functions must return the same type");
  return yes.result(
      detail::cond(pred.array, {no.callee(), yes.callee()}, yes.leaves(), /*is_switch=*/false));
}

// branches[index](operands...), the index clamped to the valid range.
template <class F, class... A>
auto switch_(const Operand& index, const std::vector<F>& branches, const A&... operands) {
  std::vector<decltype(detail::inspect(branches[0], index.at, operands...))> all;
  std::vector<detail::Callee> callees;
  for (const F& f : branches) {
    all.push_back(detail::inspect(f, index.at, operands...));
    callees.push_back(all.back().callee());
  }
  const Arrays leaves = all.empty() ? Arrays{} : all[0].leaves();
  const Arrays out = detail::cond(index.array, callees, leaves, /*is_switch=*/true);
  return all[0].result(out);
}

template <class... A>
REPRISE_UNAVAILABLE(
    "switch_ takes its functions in a std::vector of one type, which braces alone do not tell: "
    "std::vector<std::function<Array(Array)>>{f, g}")
void switch_(const Operand& index, std::initializer_list<detail::AnyBranch> branches,
             const A&... operands);

// Repeats body(carry) while cond(carry) holds. With .checkpoints it can be differentiated in
// reverse.
template <class P, class F, class C>
auto while_loop(const P& cond, const F& body, const C& init, LoopOptions options = {},
                Location at = Location::current()) {
  using Carry = detail::HeldGeneric<C>;
  const auto test = detail::apply_to(cond, std::tuple<Carry>(Carry(init)), at);
  const auto step = detail::apply_to(body, std::tuple<Carry>(Carry(init)), at);
  static_assert(std::is_same_v<typename decltype(step)::Result, Carry>,
                "while_loop: the body must return a carry of the same type");
  return step.result(detail::while_loop(test.callee(), step.callee(), step.leaves(), options));
}

// carry = body(i, carry) for i in [lower, upper). C++ integers as bounds make a scan, which can be
// differentiated in reverse; traced bounds make a while_loop, which with .checkpoints can be, too.
template <std::integral L, std::integral U, class F, class C>
requires detail::CountedBody<F, C>
auto fori_loop(L lower, U upper, const F& body, const C& init, LoopOptions options = {},
               Location at = Location::current()) {
  using Carry = detail::HeldGeneric<C>;
  auto step = [&body](std::tuple<Array, Carry> state, None) {
    const Array i = std::get<0>(state);
    Array next = detail::next_index(i);
    Carry carry = body(i, std::move(std::get<1>(state)));
    return std::pair{std::tuple<Array, Carry>(std::move(next), std::move(carry)), none};
  };
  const std::int64_t length = upper > lower ? static_cast<std::int64_t>(upper - lower) : 0;
  auto result = scan(step, std::tuple<Array, Carry>(Array(lower), Carry(init)), none,
                     {.length = length,
                      .checkpoints = options.checkpoints,
                      .checkpoint_bytes = options.checkpoint_bytes,
                      .disk_checkpoints = options.disk_checkpoints},
                     at);
  return std::get<1>(std::move(result.first));
}
template <class F, class C>
requires detail::CountedBody<F, C>
auto fori_loop(Array lower, Array upper, const F& body, const C& init, LoopOptions options = {},
               Location at = Location::current()) {
  using Carry = detail::HeldGeneric<C>;
  using State = std::tuple<Array, Array, Carry>;
  auto more = [](State s) { return detail::less_index(std::get<0>(s), std::get<1>(s)); };
  auto step = [&body](State s) {
    const Array i = std::get<0>(s);
    Array next = detail::next_index(i);
    Carry carry = body(i, std::move(std::get<2>(s)));
    return State(std::move(next), std::get<1>(s), std::move(carry));
  };
  return std::get<2>(while_loop(more, step, State(lower, upper, Carry(init)), options, at));
}

template <class L, class U, class F, class C>
requires(!detail::CountedBody<F, C>) REPRISE_UNAVAILABLE(
    "fori_loop: the body takes (Array i, carry) and must return a carry of the same type; i is an "
    "Array, not "
    "an int, since the loop's body is traced once for all steps")
void fori_loop(L lower, U upper, const F& body, const C& init, LoopOptions options = {},
               Location at = Location::current());

// ----------------------------------------------------------------------------------- custom rules
namespace detail {

template <class F, class Rule>
struct CustomJvp : CallOperator<CustomJvp<F, Rule>, F> {
  F f;
  Rule rule;
  CustomJvpOptions options;
  CustomJvp(F fn, Rule r, CustomJvpOptions o)
      : f(std::move(fn)), rule(std::move(r)), options(std::move(o)) {}

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    const auto applied = apply_to(f, std::move(args), at, options.name);
    auto flat = [rule_ = rule, like = tree::structure_of(applied.args())](const Arrays& x,
                                                                          const Arrays& dx) {
      auto [y, dy] = rule_(tree_unflatten(like, x), tree_unflatten(like, dx));
      return std::pair{tree_leaves(y), tree_leaves(dy)};
    };
    return applied.result(custom_jvp(applied.callee(), options, flat, applied.leaves()));
  }
};

template <class F, class Fwd, class Bwd>
struct CustomVjp : CallOperator<CustomVjp<F, Fwd, Bwd>, F> {
  F f;
  Fwd fwd;
  Bwd bwd;
  CustomVjpOptions options;
  CustomVjp(F fn, Fwd forward, Bwd backward, CustomVjpOptions o)
      : f(std::move(fn)),
        fwd(std::move(forward)),
        bwd(std::move(backward)),
        options(std::move(o)) {}

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    const auto applied = apply_to(f, std::move(args), at, options.name);
    using Pair = std::decay_t<std::invoke_result_t<const Fwd&, A...>>;
    using Out = typename Pair::first_type;
    using Res = typename Pair::second_type;
    auto made = std::make_shared<std::optional<Pair>>();  // structures of result and residuals
    auto forward = [fwd_ = fwd, like = tree::structure_of(applied.args()), made](const Arrays& x) {
      Pair y = std::apply(fwd_, tree_unflatten(like, x));
      std::pair leaves{tree_leaves(y.first), tree_leaves(y.second)};
      *made = tree::structure_of(std::move(y));
      return leaves;
    };
    auto backward = [bwd_ = bwd, made](const Arrays& residuals, const Arrays& cts) {
      const Res res = tree_unflatten((*made)->second, residuals);
      const Out ct = tree_unflatten((*made)->first, cts);
      return tree_leaves(bwd_(res, ct));
    };
    return applied.result(
        custom_vjp(applied.callee(), options, forward, backward, applied.leaves()));
  }
};

}  // namespace detail

// rule(std::tuple(primals...), std::tuple(tangents...)) -> std::pair(f(primals...), tangent)
template <class F, class Rule>
detail::CustomJvp<F, Rule> custom_jvp(F f, Rule rule, CustomJvpOptions options = {}) {
  return {std::move(f), std::move(rule), std::move(options)};
}
// fwd(args...) -> std::pair(f(args...), residuals);  bwd(residuals, ct) -> cotangents of the arguments
template <class F, class Fwd, class Bwd>
detail::CustomVjp<F, Fwd, Bwd> custom_vjp(F f, Fwd fwd, Bwd bwd, CustomVjpOptions options = {}) {
  return {std::move(f), std::move(fwd), std::move(bwd), std::move(options)};
}

}  // namespace reprise
#pragma GCC visibility pop
