// Dead code: equations whose outputs nobody needs are dropped, calls lose unused outputs.
//
//   dce:  p: a -> b, wanted outputs   =>   p': a -> wanted b,  which inputs p' still reads
#pragma once

#include <functional>

#include "program/trace.h"

namespace reprise {

struct DceProgram {
  Program program;                // all inputs still there
  std::vector<bool> used_inputs;  // of program.in
};
DceProgram dce(const Program& p, const std::vector<bool>& wanted_outputs);

// The program with all its outputs and inputs, without equations that none of them needs.
Program drop_dead(const Program& p);

// Drops inputs for which keep(index, used) is false.
Program keep_inputs(DceProgram live, const std::function<bool(std::size_t, bool)>& keep);

// The equation with some of its operands and results; params as they were.
Equation with_only(const Equation& e, const std::vector<bool>& operands, const std::vector<bool>& results);

// dce of a call's body, shared per (body, wanted); inputs that are not read are dropped.
struct DceBody {
  ProgramPtr program;
  std::vector<bool> used_inputs;
};
std::shared_ptr<const DceBody> dce_body(const Program& body, const std::vector<bool>& wanted);

}  // namespace reprise
