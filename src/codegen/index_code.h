// Code that finds windows: from index vectors to places in the operand.
#pragma once

#include "codegen/code_blocks.h"
#include "codegen/equation_code.h"
#include "codegen/index_windows.h"

#include <span>

namespace reprise::codegen {

class IndexCode {
 public:
  // `pointers`: the list that the kernel gets. It is read here, at the builder's insertion point.
  IndexCode(llvm::IRBuilderBase&, const IndexedWindows&, llvm::Value* pointers);

  // Elements from the start of each array, for place `number` of these dimensions.
  struct Position {
    llvm::Value *windows, *operand, *indices;
  };
  Position position(llvm::Value* number, std::span<const WindowDim> dims);

  // Where a window starts in the operand, beside what its position says.
  struct Start {
    llvm::Value* operand;
    llvm::Value* is_inside;  // null: always
  };
  Start start(llvm::Value* indices);  // of the index vector there
  // Of `lanes` index vectors, each `step` elements behind the one before, plus `operand_step` for
  // each. Vectors of the smallest integers that count the operand's elements, and of i1.
  Start starts(llvm::Value* indices, std::int64_t step, std::int64_t operand_step, unsigned lanes);

  llvm::Type* element();  // integers of the elements' size: for what is only moved
  llvm::Value* at(llvm::Value* array, llvm::Value* elements);
  llvm::Value* load(llvm::Value* from, unsigned lanes);
  void store(llvm::Value* elements, llvm::Value* to);
  unsigned lanes(const VectorTarget&) const;

 private:
  struct Clamped {
    llvm::Value *given, *inside;
  };
  // in the integers of the index, at least 32 bits
  Clamped clamped(const IndexComponent&, llvm::Value* given);
  llvm::Type* index_type();
  bool index_is_signed() const;

  llvm::IRBuilderBase& b_;
  CodeBlocks code_;
  const IndexedWindows& w_;
  std::vector<llvm::Value*> index_pointers_;  // of each component
};

}  // namespace reprise::codegen
