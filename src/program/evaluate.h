// One operation on concrete arrays, outside any trace.
#pragma once

#include "program/primitive.h"

namespace reprise {

// Small ones by the primitive's plain evaluator, large ones by compiled code that is kept for the
// next time (runtime/eager.cpp). Which of the two depends on the types alone: an operation that is
// repeated gives the same bits.
Arrays evaluate(const Primitive&, const Arrays& x, const Params&, const Types& out);

}  // namespace reprise
