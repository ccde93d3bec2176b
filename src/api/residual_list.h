// The values that a backward pass reads, in the order of residual tables.
#pragma once

#include "api/inspect.h"

#include <unordered_map>

namespace reprise::detail {

struct ListedResidual {
  SavedResidual shown;
  Var var = -1;  // in the forward program; -1: a literal
  std::vector<std::size_t>
      positions;          // of this value among the residuals that the forward program returns
  bool computed = false;  // by an equation
};
// JAX's words for an input and for a result.
SavedResidual given_as(const Program& p, std::size_t input,
                       const std::vector<std::string>& arg_names);
SavedResidual produced_by(const Equation& e, Var result, const Type& type);
// reduce_precision: what it rounds is what the reader knows. From results to operands.
std::unordered_map<Var, Var> rounded_values(const Program& p);

// Literals, constants, arguments, then results of equations in program order.
std::vector<ListedResidual> list_residuals(const ForwardProgram& forward,
                                           const std::vector<std::string>& arg_names);

// What the backward part of a traced program reads from its forward part, such as the program of a
// compiled value_and_grad; bodies of calls included.
std::vector<ResidualDetail> residuals_inside(const ProgramPtr& p);

}  // namespace reprise::detail
