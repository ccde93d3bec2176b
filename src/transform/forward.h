// Outputs that whoever calls a program has without their being returned.
//
//   p: a -> b   =>   p': a -> b',   each of b an input of p', an output of p' or a literal
#pragma once

#include "program/program.h"

#include <limits>

namespace reprise {

// Which outputs of a program need not be returned.
struct Forwarding {
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  std::size_t first_input = never;     // from this output on: those that are inputs
  std::size_t first_repeated = never;  // from this output on: those that an earlier one is
  bool literals = false;               // and literals
  std::vector<bool> inputs = {};       // which inputs may stand for outputs; empty: all
};

// Where an output of the program is found now.
struct OutputSource {
  enum class Kind : std::uint8_t { output, repeated, input, literal };
  Kind kind;
  std::size_t index = 0;  // among the outputs that are left, or among the inputs
  Literal literal = {};

  bool is_input() const { return kind == Kind::input; }
  bool is_returned() const { return kind == Kind::output; }
  // Of a call with these operands and results.
  Atom of(const std::vector<Atom>& in, const std::vector<Var>& out) const;
};

struct Forwarded {
  ProgramPtr program;
  std::vector<OutputSource> from;  // per output before
};
Forwarded forward_outputs(Program p, const Forwarding& which);

}  // namespace reprise
