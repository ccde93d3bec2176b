// What the tests of nnx share: texts of errors, numbers of arrays.
#pragma once

#include "reprise/array.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

// The text of the error that f throws, which must be of kind E.
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
#define CHECK_MENTIONS(text, part)                                     \
  do {                                                                 \
    const std::string got_text = text;                                 \
    CHECK_MESSAGE(got_text.find(part) != std::string::npos, got_text); \
  } while (false)

inline std::vector<float> floats(const reprise::Array& a) { return a.to_vector<float>(); }
