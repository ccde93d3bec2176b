// A counted loop in LLVM's language.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace reprise::codegen {

struct LoopEnd {
  llvm::Value* index;
  std::vector<llvm::Value*> carried;
};
using LoopBody = std::function<std::vector<llvm::Value*>(llvm::Value* index, const std::vector<llvm::Value*>& carried)>;

// for (i = begin; i + step <= end; i += step) carried = body(i, carried);
// gives the first i that is not run, and what was carried. Code goes on after the loop.
LoopEnd emit_loop(llvm::IRBuilderBase&, llvm::Value* begin, llvm::Value* end, std::int64_t step,
                  const std::vector<llvm::Value*>& carried, const LoopBody& body);
// The same with nothing carried.
llvm::Value* emit_loop(llvm::IRBuilderBase&, llvm::Value* begin, llvm::Value* end, std::int64_t step,
                       const std::function<void(llvm::Value* index)>& body);

}  // namespace reprise::codegen
