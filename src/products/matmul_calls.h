// Which calls of the library make up a product: the algebra of specs, without the library.
#pragma once

#include "products/matmul.h"

namespace reprise::codegen {

// Sizes, types and strides that mean a product at all.
bool is_well_formed(const MatmulSpec&);
bool result_is_empty(const MatmulSpec&);

// With as few batch dimensions as can be: folded into each other and into m or n.
MatmulSpec simplified(MatmulSpec);
// c^T = b^T a^T
MatmulSpec swapped(MatmulSpec);
template <class Product>
class Swapped final : public Matmul {
 public:
  template <class... More>
  explicit Swapped(const MatmulSpec& s, More... more) : product_(swapped(s), more...) {}
  std::size_t scratch_bytes() const override { return product_.scratch_bytes(); }
  bool run(const void* a, const void* b, const void* bias, void* c,
           void* scratch) const noexcept override {
    return product_.run(b, a, bias, c, scratch);
  }

 private:
  Product product_;
};

// Strides of a dense copy, by rows; it stays where the operand does not move.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& batch,
                                        const std::vector<std::int64_t>& strides, std::int64_t rows,
                                        std::int64_t columns);

// One call of the library: a spec that it can take, and where its operands start.
struct MatmulCall {
  MatmulSpec spec;
  std::int64_t a = 0, b = 0, c = 0, bias = 0;  // elements
};

// For one thread each, in any order: batch dimensions folded into each other and into m or n,
// broadcasts that the library gets wrong unrolled, and what is large cut along its first dimension.
// The spec alone decides, so that bits are the same with any number of threads.
std::vector<MatmulCall> library_calls(const MatmulSpec&);

// The product in at most `most` parts of rows, columns or matrices, none with fewer than `least`
// multiply-adds if that can be; in any order.
std::vector<MatmulCall> parts_of(const MatmulSpec&, std::int64_t most, std::int64_t least);

}  // namespace reprise::codegen
