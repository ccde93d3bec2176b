// Where values are stored: which variables are views, and how the storage of the others is laid
// out.
//
// Storage is row-major, with two exceptions that save copies. A matrix product or a concatenation
// whose result is only transposed and reshaped is written in the transposed order. A matrix product
// that is concatenated, transposed or not, is written to its part of the whole.
//
// A concatenation or padding of what is stored anyway, as rolls and the transposes of slices are,
// is not stored at all if elementwise operations alone read it: they read its pieces (pieces.h).
#pragma once

#include "plan/group.h"

namespace reprise::plan {

struct Origin {
  Source source = Source::memory;
  Literal number;
  std::vector<Piece> pieces = {};
};

struct Storage {
  // of every variable; its root is the variable whose storage it is in
  std::vector<View> view;
  std::vector<Origin> origin;  // of every root
  std::vector<bool> is_view;   // of every equation: nothing to compute
  // of every root: operands of equations that compute, pieces of these, and outputs
  std::vector<int> uses;
};
Storage find_storage(const Program&);

}  // namespace reprise::plan
