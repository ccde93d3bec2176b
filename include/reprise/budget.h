// Sizes of memory as one writes them, and what a memory budget did to a program.
//
//   auto step = rp::jit(rp::value_and_grad(loss), {.memory_budget = 512_MiB});
//   std::cout << step.lower(params, x).compile().budget_analysis();
#pragma once

#include "reprise/errors.h"

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// 512_MiB, 2_GB, 1.5_GiB: bytes.
inline namespace literals {
#define REPRISE_BYTES(suffix, bytes)                                              \
  constexpr std::int64_t operator""_##suffix(unsigned long long n) {              \
    return static_cast<std::int64_t>(n) * (bytes);                                \
  }                                                                               \
  constexpr std::int64_t operator""_##suffix(long double n) {                     \
    return static_cast<std::int64_t>(n * static_cast<long double>(bytes) + 0.5L); \
  }
REPRISE_BYTES(KiB, std::int64_t{1} << 10)
REPRISE_BYTES(MiB, std::int64_t{1} << 20)
REPRISE_BYTES(GiB, std::int64_t{1} << 30)
REPRISE_BYTES(TiB, std::int64_t{1} << 40)
REPRISE_BYTES(KB, std::int64_t{1000})
REPRISE_BYTES(MB, std::int64_t{1000000})
REPRISE_BYTES(GB, std::int64_t{1000000000})
REPRISE_BYTES(TB, std::int64_t{1000000000000})
#undef REPRISE_BYTES
}  // namespace literals

// A value that is computed more than once so that it need not be kept.
struct RepeatedValue {
  std::string value;  // "dot_general f32[4,256,512]", behind it the loop that it stands in
  Location at;
  std::size_t bytes_freed = 0;  // its size
  double seconds = 0;           // of all its repetitions, predicted, on one thread
  double flops = 0;
  std::int64_t times = 0;  // beyond the first
};

// What a budget asked for, what the plan needs, and what is known about how good it is. Seconds
// are those of a model for one thread: good for comparing plans of one program.
struct BudgetAnalysis {
  std::int64_t budget = 0;           // 0: none was given
  std::size_t peak_bytes = 0;        // of the plan
  std::size_t plain_peak_bytes = 0;  // without a budget
  std::size_t least_peak_bound = 0;  // no plan holds less: its outputs
  double seconds = 0, plain_seconds = 0;
  double lower_seconds = 0;  // no schedule of the graph that was solved takes less, docs/budget.md
  double flops = 0, plain_flops = 0;
  std::vector<RepeatedValue> repeated;  // the dearest first
  std::size_t offloaded_bytes = 0;
  double extra_seconds() const { return seconds - plain_seconds; }
  double extra_flops() const { return flops - plain_flops; }
  double gap() const { return lower_seconds > 0 ? seconds / lower_seconds - 1 : 0; }
};
std::ostream& operator<<(std::ostream&, const BudgetAnalysis&);  // a table
std::string to_json(const BudgetAnalysis&);

namespace detail {
// A plan of a program: what it holds at most beyond the arguments, what it costs.
struct CurveData {
  std::size_t peak_bytes = 0;
  double seconds = 0, flops = 0;  // seconds as in BudgetAnalysis
};
}  // namespace detail

}  // namespace reprise
#pragma GCC visibility pop
