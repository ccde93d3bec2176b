// Which variables of a program hold the same value because they are computed the same way.
//
//   { a. let b = sin a; c = name b; d = sin c; e = sin b in (d, e) }   numbers   b c: 1   d e: 2
//
// Two variables with one number are equal bit for bit in every run of the program, if its
// operations are functions of their operands. The second one is a recomputation of the first.
#pragma once

#include "program/program.h"

#include <vector>

namespace reprise {

struct ValueNumbers {
  std::vector<std::size_t> of;  // per variable
  std::vector<bool> computed;   // per variable: by an operation, not another name, copy or part
  std::size_t count = 0;        // numbers are below it
};

// Labels, copies, moves between memories and rounding to the own precision keep the number of their
// operand; taking apart what was stacked gives the numbers of the parts. Literals are equal by
// value, and so are constants whose values are given. An equation that holds programs is equal to
// another one only if it holds the same objects: make a straight line first
// (remat/straight_line.h).
ValueNumbers value_numbers(const Program& p, const Arrays& consts = {});

}  // namespace reprise
