// vmap and scan of functions that take modules, and the splitting of random streams for them.
//
//   auto create = nnx::vmap([](nnx::Rngs& rngs) { return Block(rngs); });
//   Block blocks = nnx::split_rngs(create, {.splits = 12})(rngs);    // kernels are (12, in, out)
//   auto forward = nnx::scan(nnx::remat([](Block& block, Array x) { return block(x); }),
//                            {.in_axes = {0, nnx::Carry}, .out_axes = {nnx::Carry}});
//   Array y = forward(blocks, x);
#pragma once

#include "reprise/control.h"
#include "reprise/nnx/rngs.h"
#include "reprise/nnx/transforms.h"

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nnx {

struct CarryMark {};
inline constexpr CarryMark Carry{};  // handed from one step to the next

// What a loop does with an argument, a result, or a part of a module's state: an axis to go along,
// Carry, or std::nullopt: the same for all.
using StateAxis = std::variant<std::int64_t, std::nullopt_t, CarryMark>;
class StateAxes {
 public:
  struct Rule {
    template <class A>
    Rule(Filter which, A along) : filter(std::move(which)), axis(to_axis(along)) {}
    Filter filter;
    StateAxis axis;

   private:
    template <class A>
    static StateAxis to_axis(A axis) {
      if constexpr (std::is_integral_v<A>) {
        return static_cast<std::int64_t>(axis);
      } else {
        return axis;
      }
    }
  };
  StateAxes(std::initializer_list<Rule> rules) : rules_(rules) {}
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
};

// What happens to an argument or a result: an axis, Carry, nullopt (the same for all), or
// StateAxes.
class Axis {
 public:
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Axis(T axis)
      : value_(StateAxis(static_cast<std::int64_t>(axis))) {}  // NOLINT: implicit by design
  Axis(std::nullopt_t) : value_(StateAxis(std::nullopt)) {}    // NOLINT
  Axis(CarryMark) : value_(StateAxis(CarryMark{})) {}          // NOLINT
  Axis(StateAxes axes) : value_(std::move(axes)) {}            // NOLINT
  const std::variant<StateAxis, StateAxes>& value() const { return value_; }

 private:
  std::variant<StateAxis, StateAxes> value_;
};
// One each, {0, nnx::Carry}; or one for all, 0.
class Axes : public std::vector<Axis> {
 public:
  using vector::vector;
  template <class T>
  requires std::convertible_to<T, Axis> Axes(T axis)
      : vector{Axis(axis)} {}  // NOLINT: implicit by design
};

// Options of nnx::vmap and nnx::scan.
struct VmapOptions {
  Axes in_axes = {0};   // one for all arguments, or one each
  Axes out_axes = {0};  // one for all results, or one for each part of a tuple
  std::optional<std::int64_t> axis_size = std::nullopt;
};
struct ScanOptions {
  Axes in_axes = {Carry, 0};   // one per argument
  Axes out_axes = {Carry, 0};  // one for the result, or one for each part of a tuple
  std::optional<std::int64_t> length = std::nullopt;
  bool reverse = false;
  std::int64_t unroll = 1;
  std::optional<reprise::Checkpoints> checkpoints = std::nullopt;  // as those of rp::scan
  std::optional<std::int64_t> checkpoint_bytes = std::nullopt;
  std::int64_t disk_checkpoints = 0;
};

namespace detail {

void run_vmap(Target& target, const VmapOptions& options);
void run_scan(Target& target, const ScanOptions& options);

template <class F>
struct Vmap : CallOperator<Vmap<F>, F> {
  F f;
  VmapOptions options;
  Vmap(F fn, VmapOptions o) : f(std::move(fn)), options(std::move(o)) { check_function<F>(); }
  template <class... H>
  auto call(Location at, std::tuple<H...> args) const {
    auto target = target_of(f, std::move(args), at);
    run_vmap(target, options);
    return target.take();
  }
};

template <class F>
struct Scan : CallOperator<Scan<F>, F> {
  F f;
  ScanOptions options;
  Scan(F fn, ScanOptions o) : f(std::move(fn)), options(std::move(o)) { check_function<F>(); }
  template <class... H>
  auto call(Location at, std::tuple<H...> args) const {
    auto target = target_of(f, std::move(args), at, function_identity(f));
    run_scan(target, options);
    return target.take();
  }
};

template <class F>
struct SplitRngs : CallOperator<SplitRngs<F>, F> {
  F f;
  SplitRngsOptions options;
  SplitRngs(F fn, SplitRngsOptions o) : f(std::move(fn)), options(std::move(o)) {
    check_function<F>();
  }
  template <class... H>
  auto call(Location at, std::tuple<H...> args) const {
    std::vector<Module*> modules;
    std::apply([&](auto&... held) { (collect(held, modules), ...); }, args);
    const SplitRngsScope scope(modules, options, at);
    F function = f;
    return std::apply([&](auto&... held) { return std::invoke(function, released(held)...); },
                      args);
  }

 private:
  template <class H>
  static void collect(H& held, std::vector<Module*>& modules) {
    if constexpr (is_reference<H>) {
      using T = std::remove_pointer_t<decltype(held.target)>;
      if constexpr (is_module<std::remove_const_t<T>>()) {
        modules.push_back(const_cast<std::remove_const_t<T>*>(held.target));
      }
    } else if constexpr (is_module<H>()) {
      modules.push_back(&held);
    }
  }
};

}  // namespace detail

// f for each index of the mapped axes at once. Variables that f changes, and those of modules that
// it makes, have the axis too.
template <class F>
detail::Vmap<F> vmap(F f, VmapOptions options = {}) {
  return {std::move(f), std::move(options)};
}

// f step by step: arguments along an axis give one slice each, the Carry goes from one step to the
// next. f returns the carry, or a pair or tuple of which out_axes says what each part is. Variables
// that f changes must be carried or scanned along an axis.
template <class F>
detail::Scan<F> scan(F f, ScanOptions options = {}) {
  return {std::move(f), std::move(options)};
}

// f, called with the random streams of its arguments split (see split_rngs of a module).
template <class F>
requires(!detail::is_module<F>()) detail::SplitRngs<F> split_rngs(F f, SplitRngsOptions options) {
  return {std::move(f), std::move(options)};
}

}  // namespace reprise::nnx
#pragma GCC visibility pop
