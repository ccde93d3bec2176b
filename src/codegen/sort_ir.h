// What the two ways of sorting share: runs, keys as unsigned numbers, and the elements that a key
// does not tell apart.
#pragma once

#include "codegen/code_blocks.h"
#include "codegen/equation_code.h"

namespace llvm {
struct Align;
}

namespace reprise::codegen {

// Operands as [outer, n, inner], sorted along n: outer * inner runs.
struct SortShape {
  explicit SortShape(const EquationKernel&);
  std::int64_t runs() const { return outer * inner; }
  // One operand: its sorted keys are the result. Else positions are sorted, and operands read by
  // them.
  bool is_alone() const { return dtypes.size() == 1; }
  std::int64_t outer, n, inner;
  std::size_t keys;           // the leading operands
  std::vector<Dtype> dtypes;  // of all operands
};

// Unsigned numbers in the order of the elements, of as many bits: NaN is last. With zeros_equal
// both zeros have one key; without, sort_element gives the element back, apart from NaNs. Of
// numbers or vectors of them.
llvm::Value* sort_key(llvm::IRBuilderBase&, llvm::Value* bits, Dtype, bool zeros_equal);
llvm::Value* sort_element(llvm::IRBuilderBase&, llvm::Value* key, Dtype);
// The element is not told by its key: a NaN, or a zero that must stay among the zeros where it was.
llvm::Value* is_special(llvm::IRBuilderBase&, llvm::Value* bits, Dtype);

// A sorting function that is being written.
class SortCode {
 public:
  SortCode(llvm::Module& m, llvm::IRBuilderBase& b, const SortShape& shape)
      : m_(m), b_(b), code_(b), shape_(shape) {}

 protected:
  void begin(const std::string& name);
  llvm::Type* bits(Dtype);
  static llvm::Align align(Dtype);
  llvm::Value* first_of(llvm::Value* run);  // the run's first element
  // Element i of the run that begins at `first`.
  llvm::Value* place(llvm::Value* base, Dtype d, llvm::Value* first, llvm::Value* i);
  // Zeros and NaNs of the one operand, in the order they came in.
  void restore_specials(llvm::Value* first);

  llvm::Module& m_;
  llvm::IRBuilderBase& b_;
  CodeBlocks code_;
  const SortShape& shape_;
  KernelArguments args_{};
  std::vector<llvm::Value*> in_, out_;
};

// A few bits of the keys at a time, the lowest first, for one run after the other (sort_radix.cpp).
EmittedKernel emit_radix_sort(llvm::Module&, const std::string& name, const SortShape&);
// A fixed network of comparisons, lanes are runs (sort_network.cpp).
EmittedKernel emit_network_sort(llvm::Module&, const std::string& name, const SortShape&,
                                unsigned lanes);
// Comparisons of the network per element.
double network_depth(std::int64_t n);

}  // namespace reprise::codegen
