// Which part of a training step each equation of a program belongs to.
#pragma once

#include "plan/cost.h"

namespace reprise {

// Phases of equations, and what follows the backward pass: the update of an optimiser.
enum class Stage : std::uint8_t { forward, recompute, backward, after };

// Per equation of the program of a call in this stage. What the user wrote counts as 'after' when
// it depends on the backward pass and nothing of the backward pass depends on it.
std::vector<Stage> stages_of(const Program&, Stage call);
bool has_backward(const Program&);  // bodies included

plan::Cost recomputed_cost(const Program&);  // the part of cost_of that is spent on playing again

}  // namespace reprise
