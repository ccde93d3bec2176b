// Throwing errors with the user's place and an optional hint.
//   fail<TypeError>("add: shapes differ, got ", a, " and ", b);
//   fail_with_hint<TraceError>("use select", "item: ...");
#pragma once

#include "base/location.h"
#include "base/text.h"

namespace reprise {

// text + "\n  at file:line (function)" + "\n  hint: ..."; parts that are empty are left out.
std::string error_text(const std::string& message, const Location& at, const std::string& hint);

template <class E, class... T>
[[noreturn]] void fail(const T&... parts) {
  throw E(error_text(str(parts...), user_location(), ""));
}

template <class E, class... T>
[[noreturn]] void fail_with_hint(const std::string& hint, const T&... parts) {
  throw E(error_text(str(parts...), user_location(), hint));
}

// A condition that only a defect of this library can break.
#define REPRISE_INVARIANT(condition)                                                     \
  do {                                                                                   \
    if (!(condition)) ::reprise::invariant_broken(#condition, __FILE__, __LINE__);        \
  } while (false)
[[noreturn]] void invariant_broken(const char* condition, const char* file, int line);

}  // namespace reprise
