// Errors that name the user's line, for code built on top of this library: layers, files, ...
//
//   Array halves(Operand x) {
//     const AtUser at(x.at);  // errors and recorded operations name the line that called halves
//     if (x.array.size() % 2 != 0) fail<TypeError>("halves: odd size, got ", x.array.type());
//     ...
//
// Messages read `op: rule broken, got facts`; the place and a hint, if any, follow on own lines.
#pragma once

#include "reprise/array.h"

#include <sstream>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace reprise {

// ------------------------------------------------------------------------------ the user's place
// Which line of user code the library is working for right now. Public functions open an `AtUser`:
// the outermost one wins, so an operation built from others is reported where the user wrote it.
// Before the library calls user code again it opens an `InUserCode`, which forgets the place until
// the user calls back.
const Location& user_location();         // line 0 when unknown
std::string to_string(const Location&);  // "file:line:column (function)", "" when unknown

// Opened by public functions with the place that they were given.
class AtUser {
 public:
  explicit AtUser(const Location& at);
  ~AtUser();
  AtUser(const AtUser&) = delete;
  AtUser& operator=(const AtUser&) = delete;

 private:
  bool set_;
};

// Opened around calls of user code.
class InUserCode {
 public:
  InUserCode();
  ~InUserCode();
  InUserCode(const InUserCode&) = delete;
  InUserCode& operator=(const InUserCode&) = delete;

 private:
  Location saved_, saved_fallback_;
  bool saved_set_;
};

// ------------------------------------------------------------------------------------------ text
// str(a, b, c) joins anything that streams.
template <class... T>
std::string str(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// join({1, 2}, ", ") == "1, 2"
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

// ---------------------------------------------------------------------------------------- throw
// text + "\n  at file:line (function)" + "\n  hint: ..."; parts that are empty are left out.
std::string error_text(const std::string& message, const Location& at, const std::string& hint);

// Throws an E whose text is made of the parts, with the user's line: fail<TypeError>("op: rule, got
// ", x).
template <class E, class... T>
[[noreturn]] void fail(const T&... parts) {
  throw E(error_text(str(parts...), user_location(), ""));
}

// fail_with_hint<TraceError>("use select", "item: ...");
template <class E, class... T>
[[noreturn]] void fail_with_hint(const std::string& hint, const T&... parts) {
  throw E(error_text(str(parts...), user_location(), hint));
}

}  // namespace reprise
#pragma GCC visibility pop
