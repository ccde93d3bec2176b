// Which effects an equation or a program has: its own and those of the programs inside.
#pragma once

#include "program/primitive.h"

namespace reprise {

Effect effects_of(const Program&);
Effect effect_of(const Equation&);
bool does_something(const Equation&);  // it has results, or an effect that is not dropped

}  // namespace reprise
