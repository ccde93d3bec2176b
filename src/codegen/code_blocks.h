// Loops and branches of generated functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace llvm {
class Function;
class IRBuilderBase;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace reprise::codegen {

class CodeBlocks {
 public:
  // Code goes to the builder's insertion point.
  explicit CodeBlocks(llvm::IRBuilderBase& builder) : b_(builder) {}

  llvm::Value* i64(std::int64_t v);
  llvm::Type* pointer_type();
  // The k-th pointer of a list.
  llvm::Value* pointer(llvm::Value* list, std::size_t k);
  // 0, stride, 2 * stride, ...
  llvm::Value* steps(unsigned lanes, std::int64_t stride);

  struct LoopEnd {
    llvm::Value* index;
    std::vector<llvm::Value*> carried;
  };
  using Carrying = std::function<std::vector<llvm::Value*>(
      llvm::Value* i, const std::vector<llvm::Value*>& carried)>;
  // for (i = begin; i + step <= end; i += step) carried = body(i, carried); the i that did not fit,
  // and carried.
  LoopEnd loop(llvm::Value* begin, llvm::Value* end, std::int64_t step,
               const std::vector<llvm::Value*>& carried, const Carrying& body);
  llvm::Value* loop(llvm::Value* begin, llvm::Value* end, std::int64_t step,
                    const std::function<void(llvm::Value* i)>& body);
  void if_true(llvm::Value* condition, const std::function<void()>& body);
  void if_else(llvm::Value* condition, const std::function<void()>& body,
               const std::function<void()>& otherwise);
  // body(item) for all items; many of them in blocks of some each, behind a condition that `always`
  // holds: what orders memory operations within a block takes the square of their number.
  void apart(const std::vector<std::size_t>& items, llvm::Value* always,
             const std::function<void(std::size_t)>& body);
  // body(i, n) for all of [begin, end), n elements at a time: `lanes` in a loop, what is left in
  // halves, quarters and so on. `rest`: the sum of those that may be left; lanes - 1 if nothing is
  // known of the length.
  void pieces(llvm::Value* begin, llvm::Value* end, unsigned lanes, std::int64_t rest,
              const std::function<void(llvm::Value* i, unsigned n)>& body);

 private:
  llvm::IRBuilderBase& b_;
};

// A function without a result; code goes to its entry.
llvm::Function* new_function(llvm::Module&, llvm::IRBuilderBase&, const std::string& name,
                             const std::vector<llvm::Type*>& parameters);

// The arguments of a KernelCode.
struct KernelArguments {
  llvm::Value *pointers, *row_begin, *row_end, *column_begin, *column_end, *scratch, *sums;
};
// A new function of this type; code goes to its entry.
KernelArguments begin_kernel(llvm::Module&, llvm::IRBuilderBase&, const std::string& name);

}  // namespace reprise::codegen
