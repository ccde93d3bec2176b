// Programs from text: the inverse of the printer.
//
//   to_text(parse_program(text, all_primitives())) == text
//
// What the text does not say is rebuilt by the primitive (`parsed_params`); what a text cannot say
// (a function given as `jvp=f`, a policy of one's own) stays a name, and only using it fails.
// Constants, before the `;`, become the leading inputs.
// White space is free, except that operands which go on in the next line are indented more than
// their equation.
#pragma once

#include "program/primitive.h"

#include <span>
#include <string_view>

namespace reprise {

// A text that is no program: `what()` tells the place too.
struct ParseError : TypeError {
  ParseError(const std::string& rule_broken, std::size_t line, std::size_t column);
  std::string reason;
  std::size_t line, column;  // from 1
};

// Throws ParseError when the text is malformed, names a primitive that is not in `primitives`, or
// gives a variable another type than its equation computes. With a `file`, which must live as long
// as the program, equations know their lines in it.
Program parse_program(std::string_view text, std::span<const Primitive* const> primitives,
                      const char* file = nullptr);

}  // namespace reprise
