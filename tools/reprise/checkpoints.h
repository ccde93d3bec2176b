// The checkpoints that the text of a program contains, those inside of calls and loops included.
#pragma once

#include "program/program.h"
#include "reprise/policies.h"

namespace reprise::cli {

bool has_checkpoints(const Program&);
ProgramPtr without_checkpoints(const ProgramPtr&);                // the same computation
ProgramPtr with_policy(const ProgramPtr&, const Policy& policy);  // of every checkpoint

}  // namespace reprise::cli
