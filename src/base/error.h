// Errors of our own making; those of the user are thrown with reprise/errors.h.
#pragma once

#include "base/location.h"

namespace reprise {

// A condition that only a defect of this library can break.
#define REPRISE_INVARIANT(condition)                                               \
  do {                                                                             \
    if (!(condition)) ::reprise::invariant_broken(#condition, __FILE__, __LINE__); \
  } while (false)
[[noreturn]] void invariant_broken(const char* condition, const char* file, int line);

}  // namespace reprise
