// Replaying a memory plan: do values that live at the same time keep to themselves?
#pragma once

#include "plan/memory.h"

#include <optional>
#include <string>

namespace reprise::plan {

// The first two that share a byte, as text; nullopt: the plan is sound. A value may take the place
// of an operand that ends with the kernel that makes it.
std::optional<std::string> overlap_in(const Schedule&, const MemoryPlan&);

// The first output that takes the memory of an argument that is still needed, or was not donated.
std::optional<std::string> lost_argument(const Schedule&, const MemoryPlan&);

// The first transfer that is out of order, as text: one that does not begin before it ends, a value
// that is read back before it is on the host, bytes that are used while they are still under way.
std::optional<std::string> misplaced_transfer(const Schedule&);

// In debug builds (REPRISE_CHECK) an InternalError for what the three find, naming the pass.
void check_after(const char* pass, const Schedule&);
void check_after(const char* pass, const Schedule&, const MemoryPlan&);

}  // namespace reprise::plan
