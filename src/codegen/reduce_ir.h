// Vector code of reductions: the operation, its neutral element, lanes to one number.
#pragma once

#include "codegen/emit_ops.h"
#include "plan/kernel.h"

namespace reprise::codegen {

class Reducer {
 public:
  Reducer(llvm::IRBuilderBase& b, OpEmitter& op, unsigned lanes, const plan::Node& node);
  // of partial results: halves are summed in f32, extrema of floats are whole numbers
  Dtype dtype() const { return dtype_; }
  llvm::Value* entered(llvm::Value* x);  // an element as a partial result
  llvm::Value* neutral();
  llvm::Value* combine(llvm::Value* a, llvm::Value* b);
  llvm::Value* across_lanes(llvm::Value* v);  // the result in every lane; a fixed tree
  llvm::Value* finished(llvm::Value* v);      // rounded to the node's dtype

 private:
  bool is_ordered() const { return dtype_ != element_; }
  llvm::IRBuilderBase& b_;
  OpEmitter& op_;
  unsigned lanes_;
  const plan::Node& node_;
  Dtype element_;  // in which elements are computed
  Dtype dtype_;
  Equation step_;  // a binary primitive that does one step
};

}  // namespace reprise::codegen
