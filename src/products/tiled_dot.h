// Matrix products in generated code: f32 and f64, any strides of the operands, on as many threads
// as are given. Memory beyond operands and result is scratch, and the same on every machine: a
// block of the right operand and the sums of a block of the result for each thread. Bits do not
// depend on the number of threads.
#pragma once

#include "products/matmul.h"

namespace reprise::codegen {

// f32 or f64, and a sum that is not empty.
bool can_tile(const MatmulSpec&);
std::shared_ptr<const Matmul> make_tiled_dot(const MatmulSpec&, int threads = 1);

// The numbers of parts of an m by n result: several for each thread where they are large, at least
// one where that can be. Parts are as equal as steps allow, those of tiles.
struct PartGrid {
  std::int64_t down, across;
};
PartGrid tile_grid(std::int64_t m, std::int64_t n, std::int64_t matrices, int threads,
                   bool sums_apart);
inline constexpr std::int64_t grid_row_step = 12, grid_column_step = 64;
std::int64_t begin_of_part(std::int64_t i, std::int64_t parts, std::int64_t size,
                           std::int64_t step);
std::int64_t size_of_part(std::int64_t parts, std::int64_t size, std::int64_t step);  // at most

}  // namespace reprise::codegen
