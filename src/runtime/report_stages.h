// Which part of a training step each equation of a program belongs to.
#pragma once

#include "plan/cost.h"
#include "runtime/report_timeline.h"

namespace reprise {

// Per equation of the program of a call in this stage. What the user wrote counts as 'after' when
// it depends on the backward pass and nothing of the backward pass depends on it.
std::vector<Stage> stages_of(const Program&, Stage call);
bool has_backward(const Program&);  // bodies included

plan::Cost recomputed_cost(const Program&);  // the part of cost_of that is spent on playing again

}  // namespace reprise
