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
// `active`: the arguments that are differentiated; else all floating ones are.
ForwardProgram trace_forward(const Callee& f, const Arrays& args, const std::vector<bool>& active);
// (residuals in the order they are presented, cotangents of the outputs) -> cotangents of the
// arguments
Traced trace_backward(const LinearMapPtr& map);
ResidualReport residual_report(const Callee& f, const Arrays& args,
                               const std::vector<bool>& active);

}  // namespace reprise::detail
