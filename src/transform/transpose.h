// Reverse differentiation of a linear program.
//
//   backward:  linear: (res, ȧ) -> ḃ   =>   (res, b̄) -> ā        in the current context
#pragma once

#include "program/trace.h"

namespace reprise {

// args[i] == nullopt: a linear input. Returns the cotangents of the linear inputs, in order;
// nullopt is a symbolic zero. Equations without a linear operand run first, in order; then the
// linear ones in exact reverse order, cotangents accumulating in order of arrival (add_any).
// `initial`: cotangents already accumulated, one per linear input.
Tangents backward(const Program& linear, Primals args, Tangents cts, Tangents initial = {});

// The transpose as a program: nonlinear inputs, then the cotangents of the outputs that `given`
// marks; outputs are the cotangents of the linear inputs that are not symbolic zeros.
struct TransposedProgram {
  ProgramPtr program;
  Arrays consts;
  std::vector<bool> nonzero;  // per linear input
};
std::shared_ptr<const TransposedProgram> transposed_program(
    const Program& linear, const std::vector<bool>& is_linear, const std::vector<bool>& given,
    const std::vector<bool>& instantiate = {});

}  // namespace reprise
