// Reverse differentiation of scan: the split into a primal and a linear loop, and its transpose.
#pragma once

#include "program/primitive.h"

namespace reprise {

Duals scan_linearize(const Arrays& x, const Tangents& dx, const Params& params);
Tangents scan_transpose(const Tangents& ct, const Primals& x, const Types& in, const Params& params);

}  // namespace reprise
