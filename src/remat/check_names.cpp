#include "remat/check_names.h"

#include "base/error.h"
#include "base/nearest.h"
#include "control/records.h"
#include "ops/records.h"

#include <algorithm>
#include <iostream>
#include <mutex>
#include <set>

namespace reprise {
namespace {

// False if there may be more: the forward function of a custom_vjp is traced when it is
// differentiated.
bool collect_names(const Program& p, std::set<std::string>& names) {
  bool all = true;
  for (const Equation& e : p.eqns) {
    if (e.prim == &name_p) names.insert(e.params.get<std::string>("name"));
    all = all && e.prim != &custom_vjp_call_p;
    for_each_program(e.params,
                     [&](const ProgramPtr& inner) { all = collect_names(*inner, names) && all; });
  }
  return all;
}

}  // namespace

void check_names(const Policy& policy, const Program& body, bool strict) {
  const std::vector<std::string> wanted = policy.names();
  if (wanted.empty()) return;
  std::set<std::string> there;
  if (!collect_names(body, there)) return;
  for (const std::string& name : wanted) {
    if (there.count(name)) continue;
    const auto nearest =
        std::min_element(there.begin(), there.end(), [&](const auto& a, const auto& b) {
          return edit_distance(name, a) < edit_distance(name, b);
        });
    const std::string hint = nearest == there.end()
                                 ? "the function names no value with checkpoint_name"
                                 : "the nearest name in the function is '" + *nearest + "'";
    if (strict)
      fail_with_hint<TypeError>(
          hint, "checkpoint: the policy names a value that does not exist, got '", name, "'");
    static std::mutex mutex;
    static auto& warned = *new std::set<std::string>;
    const std::lock_guard lock(mutex);
    if (warned.insert(policy.key() + "/" + name).second) {
      std::cerr << "reprise: warning: checkpoint: the policy names '" << name
                << "', which no checkpoint_name in the function carries; " << hint << "\n";
    }
  }
}

}  // namespace reprise
