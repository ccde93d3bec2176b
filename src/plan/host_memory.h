// Places on the host for values that leave the arena: packed on their own, like the arena.
#pragma once

#include "plan/memory.h"

namespace reprise::plan {

// Adds them to a plan that is otherwise complete. A body's inputs and outputs on the host have
// places of its caller.
void plan_host_memory(const Schedule&, const MemoryRequest&, MemoryPlan&);

}  // namespace reprise::plan
