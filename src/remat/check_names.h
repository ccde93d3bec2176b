// Names that policies speak of and programs do not know.
#pragma once

#include "program/program.h"
#include "reprise/policies.h"

namespace reprise {

// A name in the policy that no value in the program carries is probably misspelt: a warning, once,
// or with `strict` a TypeError. Both tell the nearest name.
void check_names(const Policy& policy, const Program& program, bool strict);

}  // namespace reprise
