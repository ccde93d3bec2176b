// What calls that must fail say.
#pragma once

#include "reprise/array.h"

#include <doctest/doctest.h>

#include <string>

// The text of the error of kind E that f throws, or "no error".
template <class E = reprise::Error, class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

// The same where no error, or one of another kind, fails the test.
template <class E, class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    FAIL("another kind of error: " << std::string(e.what()));
  }
  FAIL("no error");
  return {};
}

inline bool begins(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

#define CHECK_MENTIONS(text, part)                                     \
  do {                                                                 \
    const std::string got_text = text;                                 \
    CHECK_MESSAGE(got_text.find(part) != std::string::npos, got_text); \
  } while (false)
