// The text of a program taken apart: words and their places, nothing looked up yet.
#pragma once

#include "program/params.h"

#include <string_view>
#include <vector>

namespace reprise {

struct ParsedBinder {  // a:f32[3]
  std::string_view name;
  Type type;
  std::size_t at;  // offset in the text
};
struct ParsedAtom {       // a, 2.0:f32[]
  std::string_view text;  // of the name or the number
  bool is_literal = false;
  Type type = {};  // of a literal
  std::size_t at = 0;
};

struct ParsedProgram;
struct ParsedProgramUse {  // { lambda ... } or the name of a shared one
  std::string_view name;
  std::vector<ParsedProgram> body;  // empty when named
  std::size_t at;
};
struct ParsedParam {
  std::string_view key;
  std::string_view text;                   // of an ordinary value
  std::vector<ParsedProgramUse> programs;  // of jaxpr=..., branches=(...)
  bool is_program = false;                 // one program
  bool is_program_tuple = false;
  std::size_t at = 0;
};
struct ParsedEquation {
  std::vector<ParsedBinder> out;
  std::string_view primitive;
  std::vector<ParsedParam> params;
  std::vector<ParsedAtom> in;
  std::size_t at = 0;
  std::size_t params_begin = 0, params_end = 0;  // of the text in brackets
};
struct ParsedProgram {
  std::vector<ParsedBinder> consts, args;
  std::vector<ParsedEquation> eqns;
  std::vector<ParsedAtom> out;
  std::size_t at = 0;
};
struct ParsedDefinition {  // let f = { lambda ... } in
  std::string_view name;
  ParsedProgram program;
};
struct ParsedText {
  std::vector<ParsedDefinition> definitions;
  ParsedProgram main;
};

// Programs inside programs may be this deep.
inline constexpr int max_program_depth = 200;

ParsedText parse_tree(std::string_view text);

// A param as Python prints it: numbers, tuples, None, dtypes; anything else stays text.
Attr parse_attr(std::string_view key, std::string_view text);

// Throws ParseError: "parse: <what> (line 2, column 7)".
[[noreturn]] void parse_error(std::string_view text, std::size_t at, const std::string& what);

}  // namespace reprise
