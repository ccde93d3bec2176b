// Numbers as Python and numpy print them.
#pragma once

#include "base/half.h"

#include <string>

namespace reprise {

// repr of a Python float: the shortest text that reads back, "1.0", "1e-05", "1e+16", "inf", "nan".
std::string python_float(double);

// str of a numpy scalar: as above with the digits of its own type; large numbers of small types
// are scientific sooner: "0.1", "1e+06".
std::string numpy_scalar(double);
std::string numpy_scalar(float);
std::string numpy_scalar(Float16);
std::string numpy_scalar(BFloat16);

// A finite number in pieces, so that numbers can be aligned: "-12" "25" or "1" "5" "e+06".
struct NumberParts {
  std::string whole, fraction, exponent;
};
// The shortest digits of the type, or if there are more than `max_fraction` after the point, the
// nearest number with that many, without trailing zeros.
template <class T>
NumberParts positional_parts(T value, int max_fraction);
// As above; if these are fewer than `min_fraction`, the nearest number with that many.
template <class T>
NumberParts scientific_parts(T value, int min_fraction, int max_fraction);

}  // namespace reprise
