// Gradient checkpointing: which values are kept from the forward pass and which are played again.
//
//   auto g = rp::checkpoint(f, {.policy = rp::checkpoint_policies::dots_saveable});
//   rp::print_saved_residuals(f, RP_ARGS(W, x));     // "f32[5,4] from the argument W" ...
//   std::cout << rp::residual_report(g, RP_ARGS(W, x));   // ... with sizes, reasons and readers
//   rp::print_fwd_bwd(g, W, x);                       // the two programs, side by side
#pragma once

#include "reprise/autodiff.h"
#include "reprise/policies.h"

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// How a function is checkpointed.
struct CheckpointOptions {
  Policy policy = {};  // none: nothing is saved
  // Bytes that the forward pass may save for the backward pass, arguments not counted: what is
  // saved is chosen so that the rest costs least to compute again. With a policy, of what it saves.
  std::optional<std::int64_t> budget = {};
  // Forbid merging the recomputation with the forward pass: for all operands, or one flag per
  // argument.
  std::variant<bool, std::vector<bool>> prevent_cse = true;
  // a name in the policy that the function does not carry is an error, not a warning
  bool strict = false;
};

// Names the arrays of a tree, so that policies and residual tables can speak of them.
Array checkpoint_name(Operand x, const std::string& name);
template <class T>
requires(!std::is_convertible_v<T, Operand>) T
    checkpoint_name(const T& tree, const std::string& name) {
  return tree_map([&](const Array& x) { return checkpoint_name(x, name); }, tree);
}

// One value that the backward pass reads from the forward pass.
struct SavedResidual {
  Type type;
  std::size_t bytes = 0;
  // "from the argument W1", "output of sin from file:line (g)", "named 'a' from ..."
  std::string origin;
  std::string name;  // of a named value
  Location at;
};
std::ostream& operator<<(std::ostream&, const SavedResidual&);  // JAX's line

// An equation of the forward or backward pass.
struct EquationPlace {
  std::string what;  // "sin", "jit 'relu'", "named 'h'"
  Location at;
  // the calls around it, innermost first: "jit 'g'", "scan of 8 steps"
  std::vector<std::string> inside;
  bool operator==(const EquationPlace&) const;
};
std::ostream& operator<<(std::ostream&, const EquationPlace&);

// A saved value with all that is known about it.
struct ResidualDetail : SavedResidual {
  // Who makes it: the equations inside of jit, scan, checkpoint, one per branch of a cond. Empty
  // for arguments, constants and literals.
  std::vector<EquationPlace> made_by;
  std::vector<EquationPlace> read_by;  // equations of the backward pass
  std::string reason;                  // why it may be saved
  std::string policy;                  // that allowed it; empty when none did
  std::vector<std::int64_t> steps;     // of the scans that stack it, outermost first
  bool computed = false;               // by the forward pass: neither argument nor constant
};

// What the backward pass of a function reads, value by value, and the sum.
struct ResidualReport {
  std::vector<ResidualDetail> residuals;  // in the order of print_saved_residuals
  std::size_t bytes() const;
  std::size_t computed_bytes() const;  // without arguments and constants, which live anyway
};
std::ostream& operator<<(std::ostream&, const ResidualReport&);

// The two programs of a differentiated function. `forward` returns the outputs and then the
// residuals; `backward` takes the residuals and then the cotangents.
struct FwdBwd {
  Jaxpr forward, backward;
};
std::ostream& operator<<(std::ostream&, const FwdBwd&);  // side by side

namespace detail {
// `argument` tells for each leaf which of the arguments it belongs to.
Arrays checkpoint(const Callee& f, const Arrays& args, const std::vector<std::size_t>& argument,
                  std::size_t arguments, const CheckpointOptions& options);
std::vector<SavedResidual> saved_residuals(const Callee& f, const Arrays& args);
ResidualReport residual_report(const Callee& f, const Arrays& args);
FwdBwd fwd_bwd(const Callee& f, const Arrays& args);
void print(const std::vector<SavedResidual>&);
void print(const FwdBwd&);

template <class F>
struct Checkpoint : CallOperator<Checkpoint<F>, F> {
  F f;
  CheckpointOptions options;
  std::string identity;  // of this wrapper and its copies, when the function has none of its own
  Checkpoint(F fn, CheckpointOptions o)
      : f(std::move(fn)), options(std::move(o)), identity(identity_of(f)) {
    if (identity.empty()) identity = new_identity();
  }

  template <class... A>
  auto call(Location at, std::tuple<A...> args) const {
    const auto applied = apply_to(f, std::move(args), at);
    Callee callee = applied.callee();
    callee.identity = identity + applied.key();
    std::vector<std::size_t> argument;
    std::size_t i = 0;
    auto add = [&](const auto& a) {
      argument.insert(argument.end(), tree_leaves(a).size(), i);
      ++i;
    };
    std::apply([&](const auto&... a) { (add(a), ...); }, applied.args());
    return applied.result(checkpoint(callee, applied.leaves(), argument, sizeof...(A), options));
  }
};
}  // namespace detail

// f, whose intermediate values are recomputed in the backward pass as the policy says.
template <class F>
detail::Checkpoint<F> checkpoint(F f, CheckpointOptions options = {}) {
  return {std::move(f), std::move(options)};
}
template <class F>
detail::Checkpoint<F> remat(F f, CheckpointOptions options = {}) {
  return {std::move(f), std::move(options)};
}

template <class F, std::convertible_to<Policy> P>
REPRISE_UNAVAILABLE(
    "the policy is an option with a name: write rp::checkpoint(f, {.policy = policy})")
void checkpoint(F f, const P& policy);
template <class F, std::convertible_to<Policy> P>
REPRISE_UNAVAILABLE("the policy is an option with a name: write rp::remat(f, {.policy = policy})")
void remat(F f, const P& policy);

// What the backward pass of f reads from the forward pass, as a list or printed; nothing is
// computed.
template <class F, class... A>
std::vector<SavedResidual> saved_residuals(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  return detail::saved_residuals(applied.callee(), applied.leaves());
}
template <class F, class... A>
void print_saved_residuals(const F& f, const A&... args) {
  detail::print(saved_residuals(f, args...));
}
// The same values with sizes, the rule that lets each be saved, and the equations that make and
// read it, those inside of calls included. Nothing is computed.
template <class F, class... A>
ResidualReport residual_report(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  return detail::residual_report(applied.callee(), applied.leaves());
}
template <class F, class... A>
FwdBwd fwd_bwd(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  return detail::fwd_bwd(applied.callee(), applied.leaves());
}
template <class F, class... A>
void print_fwd_bwd(const F& f, const A&... args) {
  detail::print(fwd_bwd(f, args...));
}

}  // namespace reprise
#pragma GCC visibility pop
