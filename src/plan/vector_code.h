// Which equations have vector code (codegen/emit_ops.cpp has the code itself).
#pragma once

#include "program/program.h"

#include <span>

namespace reprise::plan {

// True for every elementwise equation on numbers whose primitive has code (Capabilities), and for identities (name, device_put). Not for a
// bitcast that changes the number of elements.
bool has_vector_code(const Equation& e, std::span<const Type> in, const Type& out);

}  // namespace reprise::plan
