// Splitting a program by what is known.
//
//   p: (a, b) -> (c, d), a known   =>   known: a -> (c, res)     unknown: (res, b) -> d
//
// As in JAX: calls of jit are split themselves, also when nothing in them is known (which leaves an
// empty call on the known side), and functions with a forward rule of their own are opened.
#pragma once

#include "program/program.h"

namespace reprise {

struct SplitProgram {
  Program known, unknown;      // inputs and outputs not set; variables numbered alike
  std::vector<bool> is_known;  // per variable
  std::vector<Atom> out;       // of the program, in terms of those variables
};
SplitProgram split_known(const Program&, const std::vector<bool>& known_inputs);

}  // namespace reprise
