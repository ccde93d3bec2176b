// How deep functions may nest: each level of a program is one of the stack, in the user's function
// and in every pass.
#pragma once

namespace reprise {

// A RuntimeError when a quarter of this thread's stack or less is left: the passes that come after
// need some for each level too.
void check_nesting(const char* op);

}  // namespace reprise
