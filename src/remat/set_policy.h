// The checkpoints that a program contains, those inside of calls and loops included: asked for,
// opened, under another policy.
#pragma once

#include "program/program.h"
#include "reprise/policies.h"

#include <set>
#include <string>

namespace reprise {

bool has_checkpoints(const Program&);
std::set<std::string> checkpoint_names(const Program&);           // that checkpoint_name gave
ProgramPtr without_checkpoints(const ProgramPtr&);                // the same computation
ProgramPtr with_policy(const ProgramPtr&, const Policy& policy);  // of every checkpoint

}  // namespace reprise
