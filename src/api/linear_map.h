// The content of what vjp and linearize return.
#pragma once

#include "program/primitive.h"
#include "reprise/autodiff.h"

namespace reprise::detail {

struct LinearMap {
  ProgramPtr linear;  // (residuals, active tangents) -> nonzero output tangents
  Arrays residuals;
  Types in, out;
  std::vector<bool> active, nonzero;
  std::vector<std::size_t> listed;  // residuals in the order they are presented
};

// Differentiates with respect to the active arguments, which must be floating; the others get
// zeros.
VjpOutputs vjp(const Callee& f, const Arrays& args, std::vector<bool> active);
std::vector<bool> floating_mask(const Arrays& args);

}  // namespace reprise::detail
