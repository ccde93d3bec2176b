// Every primitive of the library, for the parser and the table of rules.
#pragma once

#include "program/primitive.h"

#include <span>

namespace reprise {

std::span<const Primitive* const> all_primitives();

}  // namespace reprise
