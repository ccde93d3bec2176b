// How a kernel's code reads its operands and writes its results: a value per row, or a vector of
// columns, which may stand in memory side by side, apart, turned, or in several pieces.
#pragma once

#include "codegen/code_blocks.h"
#include "codegen/emit_ops.h"
#include "codegen/piece_bounds.h"

#include <vector>

namespace reprise::codegen {

class ElementAccess {
 public:
  // `scratch_bytes`: tiles of turned operands and results lie behind the memory that there is.
  ElementAccess(llvm::IRBuilderBase& b, OpEmitter& op, const plan::Kernel& k, const plan::Loops& l,
                unsigned lanes, std::size_t& scratch_bytes);

  void begin(const KernelArguments& given);
  void begin_row(llvm::Value* row);
  // Turns what is read before the rows, and what was written behind them.
  void turn_loads();
  void turn_stores();

  llvm::Value* load_row_value(std::size_t l);
  llvm::Value* load_columns(std::size_t l, llvm::Value* column, llvm::Value* mask);
  llvm::Value* choose(const plan::Node& choice, llvm::Value* column, llvm::Value* mask);
  void store_row_value(std::size_t s, llvm::Value* value);
  void store_columns(std::size_t s, llvm::Value* value, llvm::Value* column, llvm::Value* mask);

  llvm::Value* store_pointer(std::size_t s);
  std::size_t first_store() const { return first_store_; }  // of all pointers
  const PieceBounds& bounds() const { return bounds_; }
  void in_interior(bool is_inside) { in_interior_ = is_inside; }  // of these bounds

 private:
  llvm::Value* i64(std::int64_t v) { return code_.i64(v); }
  llvm::Value* steps(std::int64_t stride) { return code_.steps(lanes_, stride); }
  llvm::Value* load_pointer(std::size_t l);
  llvm::Value* load_row(std::size_t l);
  void find_row(llvm::Value* row);
  llvm::Value* row_offset(const Ints& strides);
  llvm::Value* index_value(const plan::Load& load, llvm::Value* index);
  llvm::Value* choose_place(const std::vector<std::size_t>& loads, llvm::Value* column,
                            llvm::Value* mask);
  llvm::Value* column_place(std::size_t l, llvm::Value* column);
  llvm::Value* load_from(llvm::Value* from, std::size_t l, llvm::Value* mask);

  void emit_turned(llvm::Value* memory, const Ints& strides, Dtype d, std::int64_t tile_at,
                   bool is_load);
  llvm::Value* tile(std::int64_t at);
  llvm::Value* in_tile(llvm::Value* tile, llvm::Type* element, llvm::Value* column);

  llvm::IRBuilderBase& b_;
  CodeBlocks code_{b_};
  OpEmitter& op_;
  const plan::Kernel& k_;
  const plan::Loops& l_;
  unsigned lanes_;
  PieceBounds bounds_;
  bool in_interior_ = false;
  std::vector<std::int64_t> load_tile_at_, store_tile_at_;
  std::vector<std::size_t> pointer_at_;  // of every load
  std::size_t first_store_ = 0;          // pointers of stores follow
  std::vector<llvm::Value*> load_pointers_, store_pointers_, load_rows_, row_index_;
  llvm::Value* row_ = nullptr;
  KernelArguments given_{};
};

}  // namespace reprise::codegen
