// Code of single operations on large arrays outside of jit: the last ones used are kept.
#pragma once

#include "program/primitive.h"

#include <cstddef>

namespace reprise {

// Small operations by the primitive's plain evaluator, large ones by compiled code that is kept for
// the next time. Which of the two depends on the types alone: an operation that is repeated gives
// the same bits.
Arrays evaluate_eagerly(const Primitive&, const Arrays& x, const Params&, const Types& out);

void release_eager_code();
std::size_t eager_code_count();

}  // namespace reprise
