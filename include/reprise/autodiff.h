// Differentiation and mapping, with JAX's names. Each takes a function and returns a function.
//
//   auto df = rp::grad([](rp::Array x) { return rp::sum(rp::sin(x)); });
//   rp::Array g = df(x);
//   auto [value, grads] = rp::value_and_grad<0, 1>(loss)(w, b, x);     // grads: a tuple of two
//   auto [y, f_vjp] = rp::vjp(f, x);   auto [dx] = f_vjp(ct);
//   auto batched = rp::vmap(f, {.in_axes = {0, std::nullopt}});
#pragma once

#include "reprise/callable.h"
#include "reprise/program.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

struct HasAux {};
inline constexpr HasAux has_aux{};  // the function returns std::pair(value, aux)

// One saved value of a backward pass.
struct Residual {
  Type type;
  Array value;
};

namespace detail {

struct GradOutputs {
  Arrays out;    // all outputs of the function
  Arrays grads;  // of the active leaves
};
// The first output is the value, one floating scalar; the others, with aux, are not differentiated.
GradOutputs value_and_grad(const Callee& f, const Arrays& args, const std::vector<bool>& active,
                           bool with_aux);

// A linear map with its saved values; shared by vjp and linearize.
struct LinearMap;
struct LinearMapPtr {
  std::shared_ptr<const LinearMap> map;
  Arrays transposed(const Arrays& cts, Location at) const;  // one cotangent per argument leaf
  Arrays forward(const Arrays& tangents, Location at) const;
  std::vector<Residual> residuals() const;
  Jaxpr linear_jaxpr() const;
};
struct VjpOutputs {
  Arrays out;
  LinearMapPtr map;
};
VjpOutputs vjp(const Callee& f, const Arrays& args);
std::pair<Arrays, Arrays> jvp(const Callee& f, const Arrays& primals, const Arrays& tangents);
Arrays vmap(const Callee& f, const Arrays& args,
            const std::vector<std::optional<std::int64_t>>& axes,
            const std::vector<std::optional<std::int64_t>>& out_axes,
            std::optional<std::int64_t> axis_size);
Array jacobian_basis(const Type& t);  // the unit vectors of t, stacked along axis 0
Array jacobian_shape(const Array& stacked, const Type& unit, bool unit_first);

template <bool with_value, bool aux, class F, std::size_t... I>
struct Grad : CallOperator<Grad<with_value, aux, F, I...>, F> {
  F f;
  explicit Grad(F fn) : f(std::move(fn)) {}

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    static_assert(((I < sizeof...(A)) && ...), "grad: no such argument");
    const auto applied = apply_to(f, std::move(args), at);
    GradOutputs g = value_and_grad(applied.callee(), applied.leaves(),
                                   applied.leaves_of(std::index_sequence<I...>{}), aux);
    // g.grads has the leaves of the differentiated arguments in argument order.
    auto gradient = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      auto like = std::get<K>(applied.args());
      const std::vector<bool> active = applied.leaves_of(std::index_sequence<I...>{});
      const std::vector<bool> mine = applied.leaves_of(std::index_sequence<K>{});
      std::size_t next = 0;
      for (std::size_t i = 0; i < mine.size() && !mine[i]; ++i) next += active[i] ? 1U : 0U;
      tree::replace_leaves(like, g.grads, next);
      return like;
    };
    auto grads = [&] {
      if constexpr (sizeof...(I) == 1) {
        return (gradient(std::integral_constant<std::size_t, I>{}), ...);
      } else {
        return std::tuple{gradient(std::integral_constant<std::size_t, I>{})...};
      }
    }();
    if constexpr (!with_value && !aux) {
      return grads;
    } else {
      auto out = applied.result(g.out);
      if constexpr (with_value) {
        return std::pair{std::move(out), std::move(grads)};
      } else {
        return std::pair{std::move(grads), std::move(out.second)};
      }
    }
  }
};

}  // namespace detail

// ------------------------------------------------------------------------------------------- grad
// The gradient of a scalar function with respect to the arguments I... (the first by default).
template <std::size_t... I, class F>
auto grad(F f) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<false, false, F, 0>(std::move(f));
  } else {
    return detail::Grad<false, false, F, I...>(std::move(f));
  }
}
template <std::size_t... I, class F>
auto grad(F f, HasAux) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<false, true, F, 0>(std::move(f));
  } else {
    return detail::Grad<false, true, F, I...>(std::move(f));
  }
}
template <std::size_t... I, class F>
auto value_and_grad(F f) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<true, false, F, 0>(std::move(f));
  } else {
    return detail::Grad<true, false, F, I...>(std::move(f));
  }
}
template <std::size_t... I, class F>
auto value_and_grad(F f, HasAux) {
  if constexpr (sizeof...(I) == 0) {
    return detail::Grad<true, true, F, 0>(std::move(f));
  } else {
    return detail::Grad<true, true, F, I...>(std::move(f));
  }
}

// ------------------------------------------------------------------------------------ vjp and jvp
// The backward pass of one call: a function from the result's cotangent to the arguments' ones.
template <class Result, class Args>
class VjpFunction {
 public:
  VjpFunction(detail::LinearMapPtr map, const Args& args)
      : map_(std::move(map)), args_(tree::structure_of(args)) {}
  Args operator()(const Result& ct, Location at = Location::current()) const {
    return tree_unflatten(args_, map_.transposed(tree_leaves(ct), at));
  }
  std::vector<Residual> residuals() const { return map_.residuals(); }
  Jaxpr jaxpr() const { return map_.linear_jaxpr(); }  // residuals as constants

 private:
  detail::LinearMapPtr map_;
  Args args_;  // without values: of the arguments only residuals are kept
};

// f at the arguments, and its backward pass there: auto [y, f_vjp] = rp::vjp(f, x).
template <class F, class... A>
auto vjp(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  detail::VjpOutputs v = detail::vjp(applied.callee(), applied.leaves());
  auto out = applied.result(v.out);
  VjpFunction<decltype(out), std::decay_t<decltype(applied.args())>> backward(std::move(v.map),
                                                                              applied.args());
  return std::pair{std::move(out), std::move(backward)};
}

// (f(primals), derivative along tangents); both given as tuples of the arguments.
template <class F, class... A, class... T>
auto jvp(const F& f, const std::tuple<A...>& primals, const std::tuple<T...>& tangents) {
  const auto applied =
      std::apply([&](const auto&... a) { return detail::inspect(f, Location{}, a...); }, primals);
  auto [out, tangent] = detail::jvp(applied.callee(), applied.leaves(), [&] {
    Arrays leaves;
    std::apply(
        [&](const auto&... t) {
          (tree::flatten(detail::HeldGeneric<decltype(t)>(t), leaves), ...);
        },
        tangents);
    return leaves;
  }());
  return std::pair{applied.result(out), applied.result(tangent)};
}

template <class F, class... A>
REPRISE_UNAVAILABLE(
    "jvp takes the arguments as one std::tuple and their tangents as another: "
    "rp::jvp(f, std::tuple{x}, std::tuple{t})")
void jvp(const F& f, const A&... primals_and_tangents);

// The derivative of one call: a linear function of the tangents of the arguments.
template <class Result>
class LinearFunction {
 public:
  LinearFunction(detail::LinearMapPtr map, const Result& like)
      : map_(std::move(map)), like_(tree::structure_of(like)) {}
  template <class... T>
  Result operator()(const T&... tangents) const {
    Arrays leaves;
    (tree::flatten(detail::HeldGeneric<T>(tangents), leaves), ...);
    return tree_unflatten(like_, map_.forward(leaves, Location{}));
  }
  std::vector<Residual> residuals() const { return map_.residuals(); }
  Jaxpr jaxpr() const { return map_.linear_jaxpr(); }

 private:
  detail::LinearMapPtr map_;
  Result like_;  // without values
};

// f at the arguments, and its derivative there as a linear function of tangents.
template <class F, class... A>
auto linearize(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  detail::VjpOutputs v = detail::vjp(applied.callee(), applied.leaves());
  auto out = applied.result(v.out);
  LinearFunction linear(std::move(v.map), out);
  return std::pair{std::move(out), std::move(linear)};
}

// ------------------------------------------------------------------------------------------- vmap
// Axes of arguments or of results: {0, std::nullopt} one each (their leaves share it), nullopt: not
// mapped; or one for all, 0. Empty: axis 0 of each.
class InAxes {
 public:
  using Axis = std::optional<std::int64_t>;
  InAxes() = default;
  InAxes(std::initializer_list<Axis> axes)
      : axes_(axes) {}                          // NOLINT: implicit by design, here and below
  template <std::same_as<std::vector<Axis>> V>  // not from braces: {{0, 1}} means {0, 1}
  InAxes(V axes) : axes_(std::move(axes)) {}    // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool>) InAxes(T axis)
      : axes_{static_cast<std::int64_t>(axis)}, is_one_for_all_(true) {}  // NOLINT
  const std::vector<Axis>& axes() const { return axes_; }
  bool is_one_for_all() const { return is_one_for_all_; }

 private:
  std::vector<Axis> axes_;
  bool is_one_for_all_ = false;
};
struct VmapOptions {
  InAxes in_axes = {};
  InAxes out_axes = 0;  // one axis for all results, or one per result leaf
  std::optional<std::int64_t> axis_size = std::nullopt;
};

namespace detail {
void check_axes_count(std::size_t axes, std::size_t args);

template <class F>
struct Vmap : CallOperator<Vmap<F>, F> {
  F f;
  VmapOptions options;
  Vmap(F fn, VmapOptions o) : f(std::move(fn)), options(std::move(o)) {}

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    const auto applied = apply_to(f, std::move(args), at);
    std::vector<InAxes::Axis> given = options.in_axes.axes();
    if (given.empty()) given = {0};
    if (options.in_axes.axes().empty() || options.in_axes.is_one_for_all())
      given.resize(sizeof...(A), given[0]);
    check_axes_count(given.size(), sizeof...(A));
    std::vector<std::optional<std::int64_t>> axes;
    std::size_t i = 0;
    auto add = [&](const auto& a) {
      axes.insert(axes.end(), tree_leaves(a).size(), given[i]);
      ++i;
    };
    std::apply([&](const auto&... a) { (add(a), ...); }, applied.args());
    return applied.result(
        vmap(applied.callee(), applied.leaves(), axes, options.out_axes.axes(), options.axis_size));
  }
};
}  // namespace detail

// f for all elements along an axis at once: what f does to one, the result does to each.
template <class F>
detail::Vmap<F> vmap(F f, VmapOptions options = {}) {
  return {std::move(f), std::move(options)};
}

// -------------------------------------------------------------------------------------- jacobians
// Jacobians of functions of one Array; a result of shape s gives s + x.shape.
template <class F>
auto jacfwd(F f) {
  return [f](Array x) {
    const Array basis = detail::jacobian_basis(x.type());
    auto push = [&](Array t) { return jvp(f, std::tuple{x}, std::tuple{t}).second; };
    auto stacked = vmap(push)(basis);
    return tree_map([&](const Array& j) { return detail::jacobian_shape(j, x.type(), true); },
                    stacked);
  };
}
template <class F>
auto jacrev(F f) {
  return [f](Array x) {
    auto [y, pullback] = vjp(f, x);
    static_assert(std::is_same_v<decltype(y), Array>, "jacrev: the function must return one Array");
    const Array basis = detail::jacobian_basis(y.type());
    auto pull = [&pb = pullback](Array ct) { return std::get<0>(pb(ct)); };
    const Array stacked = vmap(pull)(basis);
    return detail::jacobian_shape(stacked, y.type(), false);
  };
}
template <class F>
auto hessian(F f) {
  return jacfwd(jacrev(std::move(f)));
}

}  // namespace reprise
#pragma GCC visibility pop
