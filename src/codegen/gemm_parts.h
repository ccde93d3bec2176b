// Large products of two matrices by oneDNN's older gemm, cut into parts of one thread each.
//
// gemm reads operands where they are, unless their rows begin at multiples of 4 KiB; brgemm copies blocks of them first.
// Two threads of a Zen 4, 160 shapes of 128 to 3,072: with a transposed left operand gemm is 1 to 20 % faster, 7 % in the
// middle, with a straight one and 384 to 768 columns 0 to 11 %, 3 % in the middle; elsewhere they are equal. An element's
// bits depend on its row and column alone, not on the parts.
#pragma once

#include "codegen/matmul.h"

namespace reprise::codegen {

// What is added on the way out does not count: with it or without, sums have the same bits.
bool can_gemm_in_parts(const MatmulSpec&);
std::shared_ptr<const Matmul> make_gemm_in_parts(const MatmulSpec&, int threads);

// Sizes of the parts of an m by n result: enough for all threads, of at most so many elements.
struct PartSize {
  std::int64_t rows, columns;
};
PartSize gemm_part_size(std::int64_t m, std::int64_t n, int threads, std::int64_t most_elements);

}  // namespace reprise::codegen
