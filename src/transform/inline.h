// Calls opened in place.
//
//   inline_calls:  { ... b = jit[f] a ... }   =>   { ... body of f on a ... }
#pragma once

#include "program/program.h"

namespace reprise {

// Opens every call whose record names a body that may stand for it (jit, custom rules), at any
// depth; loops and branches stay, with calls inside their bodies opened. A call with the param
// `contracts` stays too: its body alone does not say how it rounds.
inline constexpr const char* contracts = "contracts";
Program inline_calls(const Program&);

}  // namespace reprise
