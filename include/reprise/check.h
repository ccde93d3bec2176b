// A check for gradients with recomputation: is what the backward pass computes again what the
// forward pass computed, bit for bit?
//
//   rp::RecomputeCheck check = rp::check_recompute(loss, params, x);
//   std::cout << check;      // recompute: 12 values computed again, all equal bit for bit
//   assert(check.ok);
#pragma once

#include "reprise/callable.h"

#include <cstddef>
#include <iosfwd>
#include <string>

#pragma GCC visibility push(default)
namespace reprise {

// What check_recompute found.
struct RecomputeCheck {
  bool ok = true;
  std::size_t compared = 0;  // values that were computed more than once
  // of those, stored by the compiled program: compared there too
  std::size_t compared_compiled = 0;
  std::string first_difference;  // the first equation that differs: what, where, both values
};
std::ostream& operator<<(std::ostream&, const RecomputeCheck&);

namespace detail {
RecomputeCheck check_recompute(const Callee& f, const Arrays& args);
}  // namespace detail

// Runs f and its backward pass, with ones as cotangents, by the plain evaluator and compiled, and
// compares every value that is computed more than once: inside checkpoints, jitted functions, the
// steps of loops and the branches taken. A difference means that an operation is not a function of
// its operands, or that the two passes do not evaluate it alike; gradients are then those of no
// function at all.
template <class F, class... A>
RecomputeCheck check_recompute(const F& f, const A&... args) {
  const auto applied = detail::inspect(f, Location{}, args...);
  return detail::check_recompute(applied.callee(), applied.leaves());
}

}  // namespace reprise
#pragma GCC visibility pop
