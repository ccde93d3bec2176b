// Programs that were traced a moment ago. A function that is differentiated again and again without
// jit is traced each time; when the trace says nothing new, the old program stands for it, and what
// was derived from that one (splits, derivatives, transposes) need not be derived anew.
#pragma once

#include "program/program.h"

namespace reprise {

// The program itself, or one of this thread's last few that no one can tell from it: same
// equations, names and source lines, in the programs inside too. Rules of the user's own
// (custom_jvp) are new with each call, so what they close over may change.
ProgramPtr recent(ProgramPtr);

}  // namespace reprise
