// What running a program costs, counted from its equations.
#pragma once

#include "program/program.h"

namespace reprise::plan {

struct Cost {
  double flops = 0;         // multiplications and additions of products, one per element elsewhere
  double matmul_flops = 0;  // products and convolutions alone
  double bytes = 0;         // operands read and results written, as if nothing were fused
  double communicated = 0;  // bytes that a rank gets from others in collectives
};
Cost cost_of(const Program&);  // loops count all their steps; of branches the dearest
Cost cost_of(const Program&, const Equation&);

}  // namespace reprise::plan
