// The order in which a program lists what it closes over: from its results back to its inputs, as
// JAX sorts the values of a program that it made while it evaluated another part. It shows in the
// operands of loops and calls.
#pragma once

#include "program/program.h"

namespace reprise {

// The variables for which `is_closed_over` holds that the outputs of p depend on. Each reader
// counts for itself, so the order is not that of first use.
std::vector<Var> closure_order(const Program& p, const std::vector<bool>& is_closed_over);

}  // namespace reprise
