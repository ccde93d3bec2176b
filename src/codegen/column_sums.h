// Vector code of reductions over rows: a sum for every column of every chunk of rows, in memory of
// the kernel's own, and from these the results.
//
//   rows of a chunk  =>  sums[node][segment, chunk, column]  =>  result[segment, column]
//
// Chunks do not depend on the number of threads, so neither do the bits.
#pragma once

#include "codegen/code_blocks.h"
#include "codegen/reduce_ir.h"
#include "plan/loops.h"

#include <vector>

namespace reprise::codegen {

// The columns of a row as whole vectors.
std::int64_t padded_columns(const plan::Loops& l, unsigned lanes);

class ColumnSums {
 public:
  // `nodes`: the kernel's reductions over rows; these, kernel and loops outlive this.
  ColumnSums(llvm::IRBuilderBase& b, OpEmitter& op, unsigned lanes, const plan::Kernel& k,
             const plan::Loops& l, const std::vector<std::size_t>& nodes);
  std::size_t bytes() const { return bytes_; }

  void begin(llvm::Value* sums) { sums_ = sums; }
  void begin_row(llvm::Value* row);
  void accumulate(Reducer& r, std::size_t node, llvm::Value* column, llvm::Value* x);
  // Writes the results of a node from all sums.
  void finish(llvm::Value* sums, std::size_t node, Dtype dtype, llvm::Value* to);

 private:
  llvm::Value* place(std::size_t node, llvm::Value* chunk, llvm::Value* column);
  llvm::Value* load(Reducer& r, llvm::Value* from);
  llvm::Value* i64(std::int64_t v) { return code_.i64(v); }

  llvm::IRBuilderBase& b_;
  CodeBlocks code_{b_};
  OpEmitter& op_;
  unsigned lanes_;
  const plan::Kernel& k_;
  const plan::Loops& l_;
  const std::vector<std::size_t>& nodes_;
  std::int64_t columns_;
  std::vector<std::size_t> at_;  // of every node
  std::size_t bytes_ = 0;
  llvm::Value *sums_ = nullptr, *chunk_ = nullptr, *first_row_of_chunk_ = nullptr;
};

}  // namespace reprise::codegen
