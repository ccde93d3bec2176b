// Replaying a memory plan: do values that live at the same time keep to themselves?
#pragma once

#include <optional>
#include <string>

#include "plan/memory.h"

namespace reprise::plan {

// The first two that share a byte, as text; nullopt: the plan is sound. A value may take the place of an
// operand that ends with the kernel that makes it.
std::optional<std::string> overlap_in(const Schedule&, const MemoryPlan&);

}  // namespace reprise::plan
