// Copies between memory spaces.
#pragma once

#include "program/primitive.h"

namespace reprise {

// The equation that moves `from` to a memory space; it carries no source location, as in JAX.
Equation device_put_equation(const Atom& from, Var to, MemorySpace space);
MemorySpace space_of(const Equation& device_put);  // where it moves its operand to

}  // namespace reprise
