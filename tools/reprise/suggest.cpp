// reprise suggest: the best policy over names for a budget.
#include "api/suggest.h"

#include "commands.h"
#include "gradient.h"
#include "json.h"
#include "remat/set_policy.h"

#include <cmath>
#include <iterator>
#include <ostream>

namespace reprise::cli {
namespace {

struct Unit {
  const char* name;
  double bytes;
};

std::int64_t bytes_in(const std::string& text) {
  constexpr Unit units[] = {{"", 1},         {"KiB", 0x1p10}, {"MiB", 0x1p20},
                            {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
                            {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
  std::size_t end = 0;
  double number = -1;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  for (const Unit& unit : units) {
    const double bytes = number * unit.bytes;
    if (end > 0 && text.substr(end) == unit.name && bytes >= 1 && bytes <= 0x1p57)
      return static_cast<std::int64_t>(std::llround(bytes));
  }
  throw UsageError(
      str("--budget: a size such as 8GiB or 500MB is expected, up to 2^57 bytes, got ", text));
}

std::string policy_text(const PolicySuggestion& s) {
  if (s.saved.empty() && s.offloaded.empty()) return "nothing_saveable";
  return s.offloaded.empty() ? "save_only_these_names:" + join(s.saved, ",")
                             : "save_and_offload_only_these_names:" + join(s.saved, ",") + ":" +
                                   join(s.offloaded, ",");
}

}  // namespace

void suggest(const SuggestOptions& options, std::ostream& out) {
  const std::int64_t budget = bytes_in(options.budget);
  const Input input = read_input(options.file);
  const std::vector<bool> wrt = wrt_mask(input, options.wrt);
  const std::set<std::string> names = checkpoint_names(*input.program);
  if (names.empty()) {
    throw InputError(str(input.file, ": error: the program names no values (name[name=h]) that a ",
                         "policy could speak of"));
  }
  const PolicySuggestion s = detail::suggest_among(
      names,
      [&](const std::optional<Policy>& policy, const JitOptions& jit_options) {
        const PolicyChoice choice = policy
                                        ? PolicyChoice{PolicyChoice::given, policy->str(), *policy}
                                        : PolicyChoice{PolicyChoice::none, "none", {}};
        return traced_entry(with_gradients(input, choice, wrt), jit_options);
      },
      budget);
  if (!options.json) {
    out << s;
    return;
  }
  Json json{{"file", input.file},
            {"wrt", names_in(input, wrt)},
            {"budget", s.budget},
            {"fits", s.fits},
            {"jax", s.jax()},
            {"policy", policy_text(s)},
            {"saved", s.saved},
            {"offloaded", s.offloaded},
            {"peak_bytes", s.peak_bytes},
            {"seconds", s.seconds},
            {"best", nullptr},
            {"plain", {{"peak_bytes", s.plain_peak_bytes}, {"seconds", s.plain_seconds}}}};
  if (s.best_peak_bytes > 0)
    json["best"] = {{"peak_bytes", s.best_peak_bytes}, {"seconds", s.best_seconds}};
  write_json(json, out);
}

}  // namespace reprise::cli
