// Transposing copies: squares of one vector's lanes change sides in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace reprise::codegen {

// Element j of vector i becomes element i of vector j; as many vectors as lanes, a power of two.
std::vector<llvm::Value*> transposed(llvm::IRBuilderBase&, std::vector<llvm::Value*> rows);

// A part of memory whose neighbours lie along rows, and its copy whose neighbours lie along
// columns:
//
//   tile[r * tile_columns + c]  ~  memory[r + c * stride]    for r < rows, c < columns
//
// The tile has room for whole vectors of columns.
struct TurnedTile {
  llvm::Type* element;
  std::size_t element_bytes;
  llvm::Value *memory, *tile;
  std::int64_t stride, tile_columns;
  llvm::Value *rows, *columns;
};
void emit_turned_load(llvm::IRBuilderBase&, const TurnedTile&, unsigned lanes);   // tile = memory
void emit_turned_store(llvm::IRBuilderBase&, const TurnedTile&, unsigned lanes);  // memory = tile

}  // namespace reprise::codegen
