// Options of lifted transformations: nn::remat, nn::scan, nn::vmap, nn::jit and nn::remat_scan.
#pragma once

#include "reprise/loops.h"
#include "reprise/nn_module.h"
#include "reprise/policies.h"

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nn {

// Options of nn::remat and nn::checkpoint.
struct RematOptions {
  Policy policy = {};       // none: nothing is saved
  bool prevent_cse = true;  // off is right inside scan
  // Arguments that are not traced although they are Arrays; the module itself counts as 0, negative
  // numbers count from the end.
  std::vector<int> static_argnums = {};
  Filter variables = true, rngs = true;  // what the inside sees
  bool concrete = false;                 // an error: replaced by static_argnums
};

// The axis along which the variables of a collection are stacked; none: shared by all steps.
class VariableAxis {
 public:
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  VariableAxis(T axis)
      : VariableAxis(Axis(static_cast<std::int64_t>(axis)), true, true) {}  // NOLINT
  VariableAxis(std::nullopt_t) : VariableAxis(Axis(), true, true) {}        // NOLINT
  const std::optional<std::int64_t>& axis() const { return axis_; }
  bool goes_in() const { return in_; }
  bool comes_out() const { return out_; }
  friend VariableAxis In(VariableAxis axis) { return {axis.axis_, true, false}; }
  friend VariableAxis Out(VariableAxis axis) { return {axis.axis_, false, true}; }

 private:
  using Axis = std::optional<std::int64_t>;
  VariableAxis(Axis axis, bool in, bool out) : axis_(axis), in_(in), out_(out) {}
  Axis axis_;
  bool in_, out_;
};
VariableAxis In(VariableAxis axis);   // only read: the collection does not come out
VariableAxis Out(VariableAxis axis);  // only made: the collection does not go in

// Axes of arguments or results: {0, broadcast}, broadcast being none; or one for all, 0.
inline constexpr std::nullopt_t broadcast = std::nullopt;
class Axes : public std::vector<std::optional<std::int64_t>> {
 public:
  using vector::vector;
  template <std::integral T>
  requires(!std::same_as<T, bool>) Axes(T axis)
      : vector{static_cast<std::int64_t>(axis)} {}  // NOLINT: implicit by design
};
using VariableAxes = std::vector<std::pair<Filter, VariableAxis>>;
using SplitRngs = std::vector<std::pair<Filter, bool>>;

// Options of nn::scan.
struct LiftScanOptions {
  VariableAxes variable_axes = {};    // stacked: a slice for each step
  Filter variable_broadcast = false;  // shared by all steps
  Filter variable_carry = false;      // handed from step to step
  SplitRngs split_rngs = {};          // true: a key for each step; streams not listed are not seen
  // of the arguments after the carry: one for all or one each; broadcast: not cut
  Axes in_axes = {0};
  // of the arrays that a step returns beside the carry: one for all or one each
  Axes out_axes = {0};
  std::optional<std::int64_t> length = std::nullopt;  // if no argument has it
  bool reverse = false;
  std::int64_t unroll = 1;
  // Traces the body once more, before the loop, to find broadcast variables and results. That moves
  // the numbers that keys depend on, as in Flax.
  bool check_constancy_invariants = true;
  std::optional<reprise::Checkpoints> checkpoints = std::nullopt;  // as those of rp::scan
  std::optional<std::int64_t> checkpoint_bytes = std::nullopt;
  std::int64_t disk_checkpoints = 0;
};

// Options of nn::vmap.
struct LiftVmapOptions {
  VariableAxes variable_axes = {};
  SplitRngs split_rngs = {};
  Axes in_axes = {0};   // one for all arguments or one each; nullopt: not mapped
  Axes out_axes = {0};  // one for all arrays of the result or one each
  std::optional<std::int64_t> axis_size = std::nullopt;
};

// Options of nn::jit: which collections and random streams the inside sees.
struct LiftJitOptions {
  Filter variables = true, rngs = true;
};

// Options of nn::remat_scan: one nested loop for each of the lengths.
struct RematScanOptions {
  std::vector<std::int64_t> lengths = {};
  Policy policy = {};
  Filter variable_broadcast = false, variable_carry = false;
  VariableAxes variable_axes = {{true, 0}};
  SplitRngs split_rngs = {{true, true}};
};

}  // namespace reprise::nn
#pragma GCC visibility pop
