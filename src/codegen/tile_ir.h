// The innermost loops of matrix products that we generate ourselves: one tile of the result in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "codegen/emit_ops.h"

namespace llvm {
class Module;
}

namespace reprise::codegen {

inline constexpr unsigned tile_vectors = 2;   // columns of a tile: so many vectors
unsigned tile_rows(unsigned vector_bytes);    // at most, so that the sums stay in registers

// What a tile asks for while it computes, so that it is near when its turn comes: at each step of k one place to be read
// and one to be written, so many bytes from the start.
struct Fetch {
  const void* read;
  void* written;
  const std::int64_t* read_offsets;
  const std::int64_t* written_offsets;
};

// c[rows, columns] (+)= a[rows, k] panel[k, width], element by element
//
// Strides in elements; the columns of the panel and of c are neighbours. The panel has `width` of them even where c has
// fewer. Every sum runs over k in order and becomes c if `begins`, else it is added to c.
using TileCode = void (*)(std::int64_t k, const void* a, std::int64_t a_row, std::int64_t a_column, const void* panel,
                          std::int64_t panel_row, void* c, std::int64_t c_row, std::int64_t columns, std::int64_t begins,
                          const Fetch*);
void emit_tile(llvm::Module&, const std::string& name, Dtype, unsigned rows, const VectorTarget&);

// to[j * to_row + i] = from[i * from_row + j] for a square of one vector's lanes.
using TransposeCode = void (*)(const void* from, std::int64_t from_row, void* to, std::int64_t to_row);
void emit_transpose(llvm::Module&, const std::string& name, Dtype, const VectorTarget&);

// Whether a number among rows of up to one vector is not 0, or is an infinity or NaN.
enum class Search : std::int64_t { not_zero, not_finite };
using SearchCode = void (*)(const void* x, std::int64_t row, std::int64_t rows, std::int64_t columns, Search, std::int64_t* found);
void emit_search(llvm::Module&, const std::string& name, Dtype, const VectorTarget&);

struct Tiles {
  unsigned lanes = 0, most_rows = 0;
  TileCode rows[16] = {};  // by number of rows, from 1
  TransposeCode transpose = nullptr;
  SearchCode search = nullptr;
};
// For f32 and f64, compiled once for the process.
const Tiles& tiles_of(Dtype);

}  // namespace reprise::codegen
