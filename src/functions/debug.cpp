#include "reprise/debug.h"

#include "base/location.h"
#include "ops/debug_print.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise::debug::detail {

void print(const Format& format, std::vector<Printed> args) {
  const AtUser at(format.at);
  // By position first, then by name, as JAX orders them.
  std::stable_sort(args.begin(), args.end(),
                   [](const Printed& a, const Printed& b) { return a.name < b.name; });
  Arrays values;
  std::vector<std::string> names;
  for (Printed& p : args) {
    if (!p.name.empty()) names.push_back(p.name);
    values.push_back(std::move(p.value));
  }
  debug_print_p.bind(values, debug_print_params(format.text, values.size() - names.size(), names));
}

}  // namespace reprise::debug::detail
