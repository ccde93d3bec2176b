// Gather, scatter, dynamic_slice and dynamic_update_slice in numbers: windows of an operand, one
// for each index vector, and the array of all windows (the result of a gather, the updates of a
// scatter).
#pragma once

#include "codegen/kernel.h"

#include <optional>

namespace reprise::codegen {

// A dimension of the array of all windows.
struct WindowDim {
  std::int64_t size = 1;
  std::int64_t windows = 0, operand = 0, indices = 0;  // elements to the next place along it
  bool is_inside = false;                              // a window; else it numbers windows
  std::int64_t operand_dim = -1;                       // that it walks along; -1: none
};
// Without those of size 1, and one dimension where the outer one walks on where the inner one
// stops.
std::vector<WindowDim> merged(const std::vector<WindowDim>&);
std::int64_t size_of(const std::vector<WindowDim>&);

// One number of an index vector.
struct IndexComponent {
  std::size_t operand = 0;  // of the equation: where it is read
  std::int64_t at = 0;      // element of the index vector
  // elements of the operand for each one; the largest with the window inside
  std::int64_t stride = 0, most = 0;
  std::optional<std::int64_t> known;  // a literal, moved inside
};

struct IndexedWindows {
  Dtype dtype = Dtype::f32, index_dtype = Dtype::i32;
  Shape operand;
  std::vector<WindowDim> dims;  // in the order of memory
  std::vector<IndexComponent> components;
  // windows that reach outside are moved inside; else they are filled or dropped
  bool clamps = true;
};
// Of one of these equations.
IndexedWindows indexed_windows(const EquationKernel&);

}  // namespace reprise::codegen
