// The values that a backward pass reads, in the order of residual tables.
#pragma once

#include "api/inspect.h"

namespace reprise::detail {

struct ListedResidual {
  SavedResidual shown;
  Var var = -1;  // in the forward program; -1: a literal
  std::vector<std::size_t>
      positions;          // of this value among the residuals that the forward program returns
  bool computed = false;  // by an equation
};
// Literals, constants, arguments, then results of equations in program order.
std::vector<ListedResidual> list_residuals(const ForwardProgram& forward,
                                           const std::vector<std::string>& arg_names);

}  // namespace reprise::detail
