// When values travel between arena and host.
//
//   begin_write, end_write at once; begin_read, end_read at once   =>   the same with steps in between
//
// The rule. A transfer takes bytes / speed, a step takes the larger of its bytes and its products
// over theirs; a step hides as much of the transfers beside it as it takes itself. A value that is
// read back is awaited right before its first reader; reading begins as many steps earlier as it
// takes to hide it. The end of a write is awaited as many steps after its begin, and not before the
// last reader of the value, which keeps it alive anyway. No transfer is drawn out over a step where
// the bytes alive would then exceed the peak that the program has when nothing is drawn out.
#pragma once

#include "plan/memory.h"

namespace reprise::plan {

bool has_transfers(const Schedule&);

// The steps in their new order, for a schedule that begins and ends every transfer at once. Bytes
// alive may reach `allowed` times the peak; 0: nothing is drawn out.
std::vector<std::size_t> transfer_order(const Schedule&, const MemoryRequest&, double allowed);

}  // namespace reprise::plan
