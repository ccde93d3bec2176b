// The best policy over names for a budget, for any function whose plans can be asked for.
#pragma once

#include "api/jit_entry.h"
#include "reprise/memory_curve.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace reprise::detail {

// What is asked about: the gradient under a policy, without one if there is none.
using TraceGradient =
    std::function<std::shared_ptr<const JitEntry>(const std::optional<Policy>&, const JitOptions&)>;

PolicySuggestion suggest_among(const std::set<std::string>& names, const TraceGradient& trace,
                               std::int64_t budget);

}  // namespace reprise::detail
