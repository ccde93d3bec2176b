// Ranks that run one program see that it is the same one.
#pragma once

#include "program/program.h"

namespace reprise {

// The first time that a program with collectives runs: its text, which has their order, is the same
// on all ranks, or each of them throws a RuntimeError with the first difference.
void agree_about(const Program&);

}  // namespace reprise
