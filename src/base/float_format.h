// How the bits of floating numbers are divided, beside that of the sign.
#pragma once

#include "reprise/array.h"

namespace reprise {

struct FloatFormat {
  int exponent_bits, mantissa_bits;
};
constexpr FloatFormat float_format(Dtype d) {  // of a floating one
  if (d == Dtype::f16) return {5, 10};
  if (d == Dtype::bf16) return {8, 7};
  return d == Dtype::f64 ? FloatFormat{11, 52} : FloatFormat{8, 23};
}

}  // namespace reprise
