// A convolution equation as oneDNN sees it.
#pragma once

#include "products/conv.h"
#include "program/program.h"

#include <optional>

namespace reprise::codegen {

// Operands and result lie dense in memory.
ConvSpec conv_spec(const Params&, const Type& lhs, const Type& rhs, const Type& out);
// nullopt: there is no fast code for it.
std::optional<ConvSpec> library_spec(const Params&, const Type& lhs, const Type& rhs,
                                     const Type& out);

}  // namespace reprise::codegen
