// Steps that pass slices on to each other.
//
//   p = dot q k; s = softmax p; y = dot s v   =>   for each matrix: p', s' of this matrix in a thread's own memory, then its y
//
// Found among neighbouring kernels and batched products of our own code. An element is computed as
// it would be without.
#pragma once

#include "plan/capabilities.h"
#include "plan/schedule.h"

namespace reprise::plan {

// The same schedule where there are none.
std::shared_ptr<const Schedule> with_relays(std::shared_ptr<const Schedule>, const Capabilities&);

}  // namespace reprise::plan
