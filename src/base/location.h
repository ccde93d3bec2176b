// The user's place in the source: which line of user code the library is working for right now.
//
// Public functions open an `AtUser`: the outermost one wins, so an operation built from others is
// reported where the user wrote it. Walks over programs open an `AtEquation`. Before the library
// calls user code again it opens an `InUserCode`, which forgets the place until the user calls back.
#pragma once

#include <string>

#include "reprise/array.h"

namespace reprise {

const Location& user_location();          // line 0 when unknown
std::string to_string(const Location&);   // "file:line:column (function)", "" when unknown
bool is_library_file(const char* file);   // the standard library or a public header of ours

class AtUser {
 public:
  explicit AtUser(const Location& at);
  ~AtUser();
  AtUser(const AtUser&) = delete;
  AtUser& operator=(const AtUser&) = delete;

 private:
  bool set_;
};

class AtEquation {
 public:
  explicit AtEquation(const Location& at);
  ~AtEquation();
  AtEquation(const AtEquation&) = delete;
  AtEquation& operator=(const AtEquation&) = delete;

 private:
  Location saved_;
  bool saved_set_;
};

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

}  // namespace reprise
