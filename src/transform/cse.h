// Common subexpressions: an equation equal to an earlier one is replaced by it.
#pragma once

#include "program/program.h"

namespace reprise {

// Every program inside params is treated on its own: nothing is merged across the border of a body.
Program cse(const Program&);

}  // namespace reprise
