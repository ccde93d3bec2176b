// Where a value of a program is made and who reads it, looking into calls.
//
//   forward:   c = jit[name=g jaxpr={ lambda ; a. let b = sin a in (b,) }] x
//              made_by(c): sin, inside jit 'g'
//   backward:  d = remat2[jaxpr={ lambda ; a b. let ... cos a ... }] x ct
//              read_by(x): cos, inside checkpoint
#pragma once

#include "program/program.h"
#include "reprise/remat.h"

#include <functional>

namespace reprise::detail {

struct MadeBy {
  std::vector<EquationPlace> places;
  std::vector<std::int64_t> steps;  // of the scans that stack the value, outermost first
  // The first of the equations, for asking a policy about it; null when there is none.
  ProgramPtr program;
  const Equation* equation = nullptr;
};
MadeBy made_by(const ProgramPtr& p, Var v);

std::vector<EquationPlace> read_by(const Program& p, Var v);

// Why a value may be saved, told by who reads it: in the program that reads it checkpoints still
// are one equation, which tells the values that its policy saved from its inputs.
void explain(const Program& reading, Var v, const MadeBy& made, ResidualDetail& r);

std::string call_text(const Equation& e);  // "jit 'g'", "scan of 8 steps"

// Calls visit(equation, operand) for each equation that reads v. Returning true goes on inside the
// programs of a call.
using VisitReader = std::function<bool(const Equation&, std::size_t operand)>;
void for_each_reader(const Program& p, Var v, const VisitReader& visit);

}  // namespace reprise::detail
