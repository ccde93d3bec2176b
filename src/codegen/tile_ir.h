// The innermost loops of matrix products that we generate ourselves: one tile of the result in
// registers.
#pragma once

#include "base/dtype.h"
#include "base/machine.h"
#include "codegen/emit_ops.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace llvm {
class Module;
}

namespace reprise::codegen {

using machine::tile_depth;                          // terms of a sum at a time, at most
inline constexpr unsigned tile_vectors = 2;         // columns of a tile: so many vectors
inline constexpr std::int64_t most_tile_rows = 12;  // on any machine
unsigned tile_rows(const VectorTarget&);            // at most, so that the sums stay in registers

// The rows of the left operand that a tile multiplies, copied so that they lie close together:
//
//   by_rows     strip[i * strip_row + k]
//   by_columns  strip[k * rows + i]
//
// strip_row is no power of two, so that rows do not fight for the same lines of the cache.
enum class Strip { by_rows, by_columns };
inline constexpr std::int64_t strip_row = tile_depth + 16;
inline constexpr std::int64_t strip_elements = most_tile_rows * strip_row;

// c[rows, width] (+)= strip[rows, k] panel[k, width], element by element
//
// Steps in elements; the columns of the panel and of c are neighbours. Every sum runs over k in
// order and becomes c if `begins`, else it is added to c.
using TileCode = void (*)(std::int64_t k, const void* strip, const void* panel,
                          std::int64_t panel_row, void* c, std::int64_t c_row, std::int64_t begins);
void emit_tile(llvm::Module&, const std::string& name, Dtype, Strip, unsigned rows,
               const VectorTarget&);

// to[g * group_step + i * width + j] = from[i * from_row + g * width + j]   for j < width
using CopyCode = void (*)(const void* from, std::int64_t from_row, std::int64_t rows, void* to,
                          std::int64_t group_step, std::int64_t groups);
void emit_copy(llvm::Module&, const std::string& name, Dtype, unsigned width, const VectorTarget&);

// to[i, j] += x[i * x_row + j], or x[i * x_row] for all columns
enum class Addend { rows, numbers };
using AddCode = void (*)(void* to, std::int64_t to_row, const void* x, std::int64_t x_row,
                         std::int64_t rows, std::int64_t columns);
void emit_add(llvm::Module&, const std::string& name, Dtype, Addend, const VectorTarget&);

// to[j * to_row + i] = from[i * from_row + j] for a square of one vector's lanes.
using TransposeCode = void (*)(const void* from, std::int64_t from_row, void* to,
                               std::int64_t to_row);
void emit_transpose(llvm::Module&, const std::string& name, Dtype, const VectorTarget&);

// Whether a number among rows of up to one vector is not 0, or is an infinity or NaN.
enum class Search : std::int64_t { not_zero, not_finite };
using SearchCode = void (*)(const void* x, std::int64_t row, std::int64_t rows,
                            std::int64_t columns, Search, std::int64_t* found);
void emit_search(llvm::Module&, const std::string& name, Dtype, const VectorTarget&);

// For f32 and f64; each is compiled once for the process, when it is first asked for.
struct Tiles {
  unsigned lanes = 0, most_rows = 0;
  AddCode add_rows = nullptr, add_numbers = nullptr;
  TransposeCode transpose = nullptr;
  SearchCode search = nullptr;
};
const Tiles& tiles_of(Dtype);
TileCode tile_of(Dtype, Strip, unsigned rows);
CopyCode copy_of(Dtype, unsigned width);  // of a tile's rows, or of a panel

}  // namespace reprise::codegen
