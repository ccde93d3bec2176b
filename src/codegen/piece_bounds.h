// Where the loads of a choice (plan/kernel.h) may be read, in generated code.
//
// Along rows that is one condition for all columns. Along columns it is a mask for each vector,
// except between the ends of a row, where all vectors of a choice come from one load.
#pragma once

#include "codegen/code_blocks.h"
#include "plan/loops.h"

#include <utility>
#include <vector>

namespace reprise::codegen {

class PieceBounds {
 public:
  PieceBounds(llvm::IRBuilderBase& b, const plan::Kernel& k, const plan::Loops& l, unsigned lanes);

  // Columns of which every load has all or none: those between the ends of a row, for stencils.
  // Empty: all columns are such, or too few.
  std::pair<std::int64_t, std::int64_t> interior() const { return interior_; }

  // The elements between the operand's own first one and where it would stand if the bounds began
  // at zero: part of every address.
  std::int64_t shift(std::size_t load) const;
  // Computes the conditions of a row.
  void begin_row(const std::vector<llvm::Value*>& row_index);
  // Loads of a choice that are read at some column; in the interior only those.
  std::vector<std::size_t> loads(const plan::Node& choice, bool in_interior) const;
  // Whether this row is inside; null: always.
  llvm::Value* in_row(std::size_t load) const { return in_row_[load]; }
  // Which of the columns are inside; null: all.
  llvm::Value* in_columns(std::size_t load, llvm::Value* column, bool in_interior);

 private:
  std::pair<std::int64_t, std::int64_t> columns_of(std::size_t load) const;
  bool covers_interior(std::size_t load) const;
  void find_interior();

  llvm::IRBuilderBase& b_;
  CodeBlocks code_{b_};
  const plan::Kernel& k_;
  const plan::Loops& l_;
  unsigned lanes_;
  std::pair<std::int64_t, std::int64_t> interior_{0, 0};
  std::vector<llvm::Value*> in_row_;
};

}  // namespace reprise::codegen
