// Batched matrix products by oneDNN, planned once and run many times.
//
//   c[batch..., m, n]  (+)=  sum_k a[batch..., m, k] * b[batch..., k, n]
//
// Operands are strided views. The library multiplies in place what is dense up to the order of its
// dimensions (transposed matrices, [batch, row, head, column] as well as [batch, head, row,
// column]); other views, such as columns of a wider matrix, are copied to planned scratch first.
// Results do not depend on the number of threads.
#pragma once

#include "base/dtype.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::codegen {

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

// Immutable; run from many threads at once, each with its own scratch.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual std::size_t scratch_bytes() const = 0;
  // At most what the library allocates and frees by itself during a run: nothing where brgemm
  // computes.
  virtual std::size_t hidden_bytes() const { return 0; }
  // Scratch is 64-byte aligned. noexcept by contract of generated code: returns false when the
  // library reports an error.
  virtual bool run(const void* a, const void* b, const void* bias, void* c,
                   void* scratch) const noexcept = 0;
};

// False: the library cannot take these strides or types; the caller copies operands or evaluates.
bool can_matmul(const MatmulSpec&);
// One object per spec and number of threads for the process; 0: as many as libgomp starts for this
// thread. Throws RuntimeError when can_matmul is false or the library fails.
std::shared_ptr<const Matmul> make_matmul(const MatmulSpec&, int threads = 0);

}  // namespace reprise::codegen
