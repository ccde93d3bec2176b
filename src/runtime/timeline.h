// The timeline of planned code.
//
//   timeline_of:  code  =>  steps in order, and values with the steps from which to which they live
#pragma once

#include "plan/timeline.h"
#include "runtime/code.h"

namespace reprise {

Timeline timeline_of(const Code&, const std::vector<std::string>& argument_names);

}  // namespace reprise
