// The programs of a differentiated function.
#pragma once

#include "program/trace.h"
#include "reprise/remat.h"

namespace reprise::detail {

struct ForwardProgram {
  Traced traced;  // args -> (outputs, residuals)
  std::size_t outputs = 0;
  LinearMapPtr map;  // its residuals belong to the trace that ended
};
ForwardProgram trace_forward(const Callee& f, const Arrays& args);
// (residuals in the order they are presented, cotangents of the outputs) -> cotangents of the
// arguments
Traced trace_backward(const LinearMapPtr& map);

}  // namespace reprise::detail
