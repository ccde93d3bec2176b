// What a matrix product is, as plain data: which code computes it is for an engine to say.
//
//   c[batch..., m, n]  (+)=  sum_k a[batch..., m, k] * b[batch..., k, n]
#pragma once

#include "base/dtype.h"

#include <cstdint>
#include <vector>

namespace reprise::plan {

struct Schedule;
struct Step;

struct MatmulSpec {
  Dtype dtype = Dtype::f32;  // of a and b
  Dtype result = Dtype::f32;
  std::vector<std::int64_t> batch;
  std::int64_t m = 0, n = 0, k = 0;
  // Strides in elements: batch dimensions, then rows, then columns. 0: broadcast (batch dimensions
  // of a and b only).
  std::vector<std::int64_t> a_strides, b_strides, c_strides;
  bool accumulate = false;  // c += instead of c =
  // Added to every row of c (n numbers of the result's type) after the product, when set.
  bool bias = false;
  bool operator==(const MatmulSpec&) const = default;
};

std::int64_t work_of(const MatmulSpec&);  // multiply-adds

// Of a DotStep.
MatmulSpec matmul_spec(const Schedule&, const Step&);

// One slice of a product whose outermost batch dimensions are cut into so many.
MatmulSpec slice_of(MatmulSpec, std::int64_t slices);
// Where a slice begins: elements from the start of each operand.
struct SliceStart {
  std::int64_t a = 0, b = 0, c = 0;
};
std::vector<SliceStart> slice_starts(const MatmulSpec&, std::int64_t slices);
// Whether whole batch dimensions, from the outermost on, make up the slices.
bool has_slices(const MatmulSpec&, std::int64_t slices);

}  // namespace reprise::plan
