// Dead code: equations whose outputs nobody needs are dropped, calls lose unused outputs.
//
//   dce:  p: a -> b, wanted outputs   =>   p': a -> wanted b,  which inputs p' still reads
#pragma once

#include "program/trace.h"

#include <functional>

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
Equation with_only(const Equation& e, const std::vector<bool>& operands,
                   const std::vector<bool>& results);

// dce of a call's body, shared per (body, wanted), so that each body of a nest is walked once. A
// body that has nothing dead is its own result: what was shrunk in a body is not walked again
// around it.
struct DceBody {
  ProgramPtr program;
  std::vector<bool> used_inputs;  // of the body
};
DceBody dce_body(const ProgramPtr& body,
                 const std::vector<bool>& wanted);  // unread inputs are dropped
// Inputs are dropped where `keep` is false; it may keep some that are not read.
ProgramPtr dce_body(const ProgramPtr& body, const std::vector<bool>& wanted,
                    const std::vector<bool>& keep);
// Nothing in the program is dead, and it reads all its inputs; as_live: by the word of who made it.
bool is_live(const Program&);
ProgramPtr as_live(Program);
std::vector<bool> live_inputs(const ProgramPtr& body, const std::vector<bool>& wanted);

}  // namespace reprise
