// Batched matrix products, planned once and run many times: of floats by generated code
// (tiled_dot.h), of halves by oneDNN where the processor multiplies them, else widened to floats
// (widened_dot.h).
//
//   c[batch..., m, n]  (+)=  sum_k a[batch..., m, k] * b[batch..., k, n]
//
// Operands are strided views. The library multiplies in place what is dense up to the order of its
// dimensions (transposed matrices, [batch, row, head, column] as well as [batch, head, row,
// column]); other views, such as columns of a wider matrix, are copied to planned scratch first.
// Results do not depend on the number of threads.
#pragma once

#include "plan/matmul_spec.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::codegen {

using plan::MatmulSpec;

// Immutable; run from many threads at once, each with its own scratch.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual std::size_t scratch_bytes() const = 0;
  // Scratch is 64-byte aligned. noexcept by contract of generated code: returns false when the
  // library reports an error.
  virtual bool run(const void* a, const void* b, const void* bias, void* c,
                   void* scratch) const noexcept = 0;
};

// False: nothing here takes these strides or types; the caller copies operands or evaluates.
// The number of threads does not matter for that: it is for who makes the product next.
bool can_matmul(const MatmulSpec&, int threads = 1);
// Of the library one object per spec and number of threads for the process. Throws RuntimeError
// when can_matmul is false or the library fails.
std::shared_ptr<const Matmul> make_matmul(const MatmulSpec&, int threads = 1);
// Drops those that nobody holds.
void release_unused_matmuls();

}  // namespace reprise::codegen
