// Programs from text: the inverse of the printer.
//
//   to_text(parse_program(text, all_primitives())) == text
//
// What the text does not say is rebuilt by the primitive (`parsed_params`); what a text cannot say
// (a function given as `jvp=f`, a policy) stays a name, and only using it fails. Constants, before
// the `;`, become the leading inputs.
// White space is free, except that operands which go on in the next line are indented more than
// their equation.
#pragma once

#include "program/primitive.h"

#include <span>
#include <string_view>

namespace reprise {

// Throws TypeError with line and column when the text is malformed, names a primitive that is not
// in `primitives`, or gives a variable another type than its equation computes.
Program parse_program(std::string_view text, std::span<const Primitive* const> primitives);

}  // namespace reprise
