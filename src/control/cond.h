// One residual list for all branches of a cond: the k-th residual of a type shares a slot.
#pragma once

#include "program/primitive.h"

namespace reprise {

class Split;

struct Slots {
  Types types;
  std::vector<std::vector<std::size_t>> of_branch;  // where each branch's residuals sit
};
Slots merge_residuals(const std::vector<Types>& branches);
// The branch returning all slots: its own residuals, empty2 for the others.
ProgramPtr with_all_residuals(const Program& known, std::size_t outputs, const Types& slots,
                              const std::vector<std::size_t>& mine);
// The branch taking all slots before its other inputs; it reads only its own.
ProgramPtr taking_all_residuals(const Program& linear, const Types& slots,
                                const std::vector<std::size_t>& mine);

void cond_partial_eval(const Equation& e, Split& s);  // branch_split.cpp
void while_partial_eval(const Equation& e, Split& s);

}  // namespace reprise
