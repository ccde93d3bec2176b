// The content of what vjp and linearize return.
#pragma once

#include "program/primitive.h"
#include "reprise/autodiff.h"

namespace reprise::detail {

struct LinearMap {
  ProgramPtr linear;    // (residuals, active tangents) -> nonzero output tangents
  Arrays residuals;
  Types in, out;
  std::vector<bool> active, nonzero;
  std::vector<std::size_t> listed;  // residuals in the order they are presented
};

}  // namespace reprise::detail
