// The forward program of a differentiated function.
#pragma once

#include "program/trace.h"
#include "reprise/remat.h"

namespace reprise::detail {

struct ForwardProgram {
  Traced traced;            // args -> (outputs, residuals)
  std::size_t outputs = 0;
};
ForwardProgram trace_forward(const Callee& f, const Arrays& args);

}  // namespace reprise::detail
