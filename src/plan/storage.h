// Where values are stored: which variables are views, and how the storage of the others is laid
// out.
//
// Storage is row-major, with two exceptions that save copies. A matrix product or a concatenation
// whose result is only transposed and reshaped is written in the transposed order. A matrix product
// that is concatenated, transposed or not, is written to its part of the whole.
#pragma once

#include "plan/kernel.h"

namespace reprise::plan {

struct Origin {
  Source source = Source::memory;
  Literal number;
};

struct Storage {
  // of every variable; its root is the variable whose storage it is in
  std::vector<View> view;
  std::vector<Origin> origin;  // of every root
  std::vector<bool> is_view;   // of every equation: nothing to compute
  std::vector<int> uses;       // of every root: operands of equations that compute, and outputs
};
Storage find_storage(const Program&);

}  // namespace reprise::plan
