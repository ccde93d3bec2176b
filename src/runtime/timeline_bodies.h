// The bodies of a loop or condition, and what their inputs and outputs are outside.
//
//   step, instruction  ->  one InnerBody for each program that runs inside of it
#pragma once

#include "plan/loop_drawing.h"
#include "runtime/code.h"

#include <string>
#include <vector>

namespace reprise {

struct InnerBody {
  const Code* code = nullptr;
  std::string label;
  std::vector<Var> inputs;   // roots outside, one per input; -1: no value
  std::vector<Var> outputs;  // one per output
  LoopDrawing loop = {};
};
// None where the step is no loop.
std::vector<InnerBody> bodies_of(const plan::Step& step, const Instruction& i);

}  // namespace reprise
