// Equations that change nothing are removed, those on literals are computed.
//
// Only what gives the same bits for every input: x * 1, x / 1, pow 1, conversions to the same
// dtype, two transposes or reshapes in a row, a select between equal cases, labels, scalar
// constants.
#pragma once

#include "program/program.h"

namespace reprise {

Program simplify(const Program&);

}  // namespace reprise
