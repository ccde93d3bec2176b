// The text of a program taken apart: words and their places, nothing looked up yet.
#pragma once

#include "program/params.h"

#include <optional>
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
struct UnknownWord {
  std::string_view name;
  std::size_t at;
};
struct ParsedText {
  std::vector<ParsedDefinition> definitions;
  ParsedProgram main;
  std::vector<UnknownWord> unknown_dtypes;  // their variables have another one
};

// Programs inside programs may be this deep.
inline constexpr int max_program_depth = 200;

ParsedText parse_tree(std::string_view text);

// A param as Python prints it, as the first of the forms that it can be read as. An object stays
// the text of it. Null: it has none of the forms.
std::optional<Attr> parse_attr(Forms, std::string_view text);
// np.int64(3) -> 3, and how many of them there were.
std::string without_numpy(std::string_view text, std::int64_t& count);

// Throws ParseError: "parse: <what> (line 2, column 7)".
[[noreturn]] void parse_error(std::string_view text, std::size_t at, const std::string& what);

}  // namespace reprise
