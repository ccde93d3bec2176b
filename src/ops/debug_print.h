// debug_print: writes operands to standard output whenever it is evaluated. It has no results.
#pragma once

#include "program/primitive.h"

#include <string>
#include <vector>

namespace reprise {

// Operands by position, then those with names.
Params debug_print_params(std::string fmt, std::size_t positions,
                          const std::vector<std::string>& names);

}  // namespace reprise
