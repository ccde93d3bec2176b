// Time against memory: the plans of a function from the least peak to the plain one, and the
// largest problem that fits. Nothing is run, and types do in the place of arrays.
//
//   std::cout << rp::memory_curve(rp::grad(loss), rp::types_of(params), x);
//   auto make = [&](std::int64_t n) { return rp::jit(step).lower(params, rp::Type{rp::float32, {n, 64}}); };
//   std::int64_t batch = rp::largest_fitting(make, 64_MiB);
#pragma once

#include "reprise/jit.h"
#include "reprise/policies.h"

#include <functional>
#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// One plan of a function.
template <class F>
struct CurvePoint : detail::CurveData {
  std::function<Compiled<F>()> compile;  // on demand: jit with this peak as budget
};
template <class F>
struct MemoryCurve {
  std::vector<CurvePoint<F>> points;  // peaks rise, seconds fall
};

namespace detail {
void print_curve(std::ostream&, const std::vector<CurveData>&);
void check_fitting(std::int64_t budget, std::int64_t most);
}  // namespace detail

// A table: peaks, predicted time and operations, each also against the plain plan.
template <class F>
std::ostream& operator<<(std::ostream& out, const MemoryCurve<F>& curve) {
  detail::print_curve(out,
                      std::vector<detail::CurveData>(curve.points.begin(), curve.points.end()));
  return out;
}

// The plans that budgets of jit choose from.
template <class F, class... A>
MemoryCurve<F> memory_curve(const F& f, const A&... args) {
  MemoryCurve<F> curve;
  for (const detail::CurveData& data : detail::curve_of(*jit(f).lower(args...).entry())) {
    JitOptions options;
    options.memory_budget = static_cast<std::int64_t>(data.peak_bytes);
    curve.points.push_back(
        {data, [f, options, args...] { return jit(f, options).lower(args...).compile(); }});
  }
  return curve;
}

// What a policy over names can do with a budget: advice for programs of other compilers.
struct PolicySuggestion {
  std::int64_t budget = 0;
  Policy policy;                              // over the names of the program
  std::vector<std::string> saved, offloaded;  // what the policy names
  std::size_t peak_bytes = 0;                 // with the policy, beyond the arguments
  double seconds = 0;
  bool fits = false;  // within the budget; otherwise the policy is that of the least peak
  // jit with the budget and no policy: the least time for this memory. 0: no plan was found.
  std::size_t best_peak_bytes = 0;
  double best_seconds = 0;
  std::size_t plain_peak_bytes = 0;  // nothing is checkpointed
  double plain_seconds = 0;
  std::string jax() const;  // the policy as Python writes it
};
std::ostream& operator<<(std::ostream&, const PolicySuggestion&);  // a table

namespace detail {
PolicySuggestion suggest_policy(const Callee& f, const Arrays& args, std::size_t differentiated,
                                std::int64_t budget);
}  // namespace detail

// The policy over the names that f gives, for its checkpoints or for f as one checkpoint, whose
// gradient by the first argument takes least time within so many bytes. Values are offloaded only
// where nothing else fits. Nothing is run, and types do.
template <class F, class... A>
PolicySuggestion suggest_policy(const F& f, std::int64_t budget, const A&... args) {
  static_assert(sizeof...(A) > 0, "a function without arguments has no gradient");
  const auto applied = detail::inspect(f, Location{}, args...);
  const std::size_t differentiated = tree_leaves(std::get<0>(applied.args())).size();
  return detail::suggest_policy(applied.callee(), applied.leaves(), differentiated, budget);
}

// The largest n from 1 to `most` for which make(n), a lowered function, has a plan within the
// budget; 0: not even 1 has. What fits for n is taken to fit for less.
template <class Make>
std::int64_t largest_fitting(const Make& make, std::int64_t budget,
                             std::int64_t most = std::int64_t{1} << 40) {
  detail::check_fitting(budget, most);
  const auto is_small = [&](std::int64_t n) { return detail::fits(*make(n).entry(), budget); };
  std::int64_t fits = 0, over = 1;
  while (over <= most && is_small(over)) {
    fits = over;
    over *= 2;
  }
  over = over > most ? most + 1 : over;
  while (over - fits > 1) {
    const std::int64_t middle = fits + (over - fits) / 2;
    (is_small(middle) ? fits : over) = middle;
  }
  return fits;
}

}  // namespace reprise
#pragma GCC visibility pop
