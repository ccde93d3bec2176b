// Steps that pass slices on to each other.
//
//   p = dot q k; s = softmax p; y = dot s v   =>   for each matrix: p', s' of this matrix in a thread's own memory, then its y
//
// Found among neighbouring kernels and batched products of our own code. An element is computed as
// it would be without.
#pragma once

#include "products/matmul_calls.h"
#include "plan/schedule.h"

namespace reprise {

// The same schedule where there are none.
std::shared_ptr<const plan::Schedule> with_relays(std::shared_ptr<const plan::Schedule>);

// One slice of a product whose outermost batch dimensions are cut into so many.
codegen::MatmulSpec slice_of(codegen::MatmulSpec, std::int64_t slices);
// Where a slice begins: elements from the start of each operand.
struct SliceStart {
  std::int64_t a = 0, b = 0, c = 0;
};
std::vector<SliceStart> slice_starts(const codegen::MatmulSpec&, std::int64_t slices);

}  // namespace reprise
