// Every primitive of the library, for the parser and the table of rules.
#pragma once

#include <span>

#include "program/primitive.h"

namespace reprise {

std::span<const Primitive* const> all_primitives();

}  // namespace reprise
