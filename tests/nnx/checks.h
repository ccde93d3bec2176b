// What the tests of nnx share: texts of errors, numbers of arrays.
#pragma once

#include "error_text.h"
#include "reprise/array.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

inline std::vector<float> floats(const reprise::Array& a) { return a.to_vector<float>(); }
