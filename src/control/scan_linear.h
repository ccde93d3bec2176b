// Reverse differentiation of scan: the split into a primal and a linear loop, and its transpose.
#pragma once

#include "program/primitive.h"

namespace reprise {

class Split;

// What a loop body computes from its constants alone, taken out of the loop.
struct HoistPlan {
  ProgramPtr outside;           // consts -> (values the loop needs, invariant residuals)
  ProgramPtr loop;              // (needed values, carry, x) -> (primal outputs, other residuals)
  std::size_t needed = 0;       // how many values the loop needs
  std::vector<bool> invariant;  // per residual output of the body
};
HoistPlan plan_hoisting(const Program& body, std::size_t consts, std::size_t primal_outputs);

Duals scan_linearize(const Arrays& x, const Tangents& dx, const Params& params);
void scan_partial_eval(const Equation& e, Split& s);  // scan_split.cpp
Tangents scan_transpose(const Tangents& ct, const Primals& x, const Types& in,
                        const Params& params);

}  // namespace reprise
