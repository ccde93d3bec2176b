// What budgets did to a compiled function, and curves of time against memory.
#include "reprise/budget.h"

#include "api/jit_entry.h"
#include "base/error.h"
#include "report/json.h"
#include "reprise/memory_curve.h"

#include <cstdio>
#include <ostream>

namespace reprise {
namespace {

template <class... A>
std::string formatted(const char* how, A... values) {
  char text[256];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}
std::string mebibytes(double bytes) { return formatted("%.1f MiB", bytes / (1 << 20)); }
double percent_over(double value, double base) { return base > 0 ? 100 * (value / base - 1) : 0; }

}  // namespace

namespace detail {

BudgetAnalysis budget_of(const JitEntry& entry) { return entry.planned()->budget_analysis(); }

std::vector<CurveData> curve_of(const JitEntry& entry) {
  constexpr int points = 12;
  return engine().curve(*entry.program, entry.options, points);
}

bool fits(const JitEntry& entry, std::int64_t budget) {
  CompileOptions options = entry.options;
  options.memory_budget = static_cast<std::size_t>(budget);
  return engine().fits(*entry.program, options);
}

void check_fitting(std::int64_t budget, std::int64_t most) {
  if (budget <= 0) fail<TypeError>("largest_fitting: a budget is at least 1 byte, got ", budget);
  if (most <= 0 || most > std::int64_t{1} << 40)
    fail<TypeError>("largest_fitting: numbers are from 1 to 2^40, got up to ", most);
}

void print_curve(std::ostream& out, const std::vector<CurveData>& points) {
  out << "     peak, beyond arguments     time    flops\n";
  for (const CurveData& p : points) {
    const CurveData& plain = points.back();
    out << formatted(
        "%15s  %9.1f %%  %+6.1f %%  %+6.1f %%\n",
        mebibytes(static_cast<double>(p.peak_bytes)).c_str(),
        100.0 * static_cast<double>(p.peak_bytes) / static_cast<double>(plain.peak_bytes),
        percent_over(p.seconds, plain.seconds), percent_over(p.flops, plain.flops));
  }
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const BudgetAnalysis& a) {
  const auto bytes = [](auto n) { return mebibytes(static_cast<double>(n)); };
  if (a.budget > 0) out << "budget " << bytes(a.budget) << ", ";
  out << "peak " << bytes(a.peak_bytes) << ", without a budget " << bytes(a.plain_peak_bytes)
      << ", at least " << bytes(a.least_peak_bound) << '\n';
  out << formatted(
      "predicted time %+.1f %%, flops %+.1f %%; at most %.1f %% above the least time that is "
      "proven\n",
      percent_over(a.seconds, a.plain_seconds), percent_over(a.flops, a.plain_flops),
      100 * a.gap());
  if (a.offloaded_bytes > 0) out << "offloaded " << bytes(a.offloaded_bytes) << '\n';
  if (a.repeated.empty()) return out;
  out << "repeated  times       freed   of the time  value\n";
  for (const RepeatedValue& r : a.repeated) {
    const std::string where = to_string(r.at);
    out << formatted("          %5lld  %10s  %9.2f %%   ", static_cast<long long>(r.times),
                     bytes(r.bytes_freed).c_str(), 100 * r.seconds / a.plain_seconds)
        << r.value << (where.empty() ? "" : " at ") << where << '\n';
  }
  return out;
}

std::string to_json(const BudgetAnalysis& a) {
  std::vector<std::string> repeated;
  for (const RepeatedValue& r : a.repeated) {
    repeated.push_back(
        str("{\"value\":", json_quoted(r.value), ",\"at\":", json_quoted(to_string(r.at)),
            ",\"bytes_freed\":", r.bytes_freed, ",\"seconds\":", formatted("%.9g", r.seconds),
            ",\"flops\":", formatted("%.0f", r.flops), ",\"times\":", r.times, "}"));
  }
  return str(
      "{\"budget\":", a.budget, ",\"peak_bytes\":", a.peak_bytes,
      ",\"plain_peak_bytes\":", a.plain_peak_bytes, ",\"least_peak_bound\":", a.least_peak_bound,
      ",\"seconds\":", formatted("%.9g", a.seconds),
      ",\"plain_seconds\":", formatted("%.9g", a.plain_seconds),
      ",\"lower_seconds\":", formatted("%.9g", a.lower_seconds),
      ",\"gap\":", formatted("%.6g", a.gap()), ",\"flops\":", formatted("%.0f", a.flops),
      ",\"plain_flops\":", formatted("%.0f", a.plain_flops),
      ",\"offloaded_bytes\":", a.offloaded_bytes, ",\"repeated\":", json_list(repeated), "}");
}

}  // namespace reprise
