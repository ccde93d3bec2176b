// Sums that a product makes on the way out instead of a kernel behind it.
//
//   d = dot a b; y = d + row   =>   y = (dot a b) + row
//   d = dot a b; y = d + x     =>   y = x; y = y + (dot a b)       where x ends here: y takes its place
//
// Only where nothing else reads d, and where the bits are those of the two steps.
#pragma once

#include "plan/capabilities.h"
#include "plan/schedule.h"

namespace reprise::plan {

Schedule with_epilogues(Schedule, const Capabilities&, bool is_body = false);

}  // namespace reprise::plan
