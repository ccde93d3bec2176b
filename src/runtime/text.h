// The planned program as text: one line per instruction.
#pragma once

#include "runtime/code.h"

#include <string>

namespace reprise {

std::string place_text(const plan::Place&);      // "arena+64"
std::string product_text(const plan::DotStep&);  // "matmul + row"
const char* transfer_text(plan::Transfer);
std::string step_text(const Code&, std::size_t instruction);
std::string to_text(const Code&);

}  // namespace reprise
