// The checker: a program is well formed and every equation has the types its primitive says.
#pragma once

#include "program/program.h"

namespace reprise {

// Throws InternalError with the program as text. Programs inside are checked, too, each once.
void check(const Program&);

// Runs the checker in debug builds (REPRISE_CHECK), naming the pass that made the program.
void check_after(const char* pass, const Program&);

}  // namespace reprise
