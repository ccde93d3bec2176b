#include "codegen/loop_ir.h"

namespace reprise::codegen {

using llvm::Value;

LoopEnd emit_loop(llvm::IRBuilderBase& b, Value* begin, Value* end, std::int64_t step, const std::vector<Value*>& carried,
                  const LoopBody& body) {
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* f = before->getParent();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "head", f);
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "body", f);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "after", f);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* index = b.CreatePHI(b.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  for (Value* v : carried) {
    phis.push_back(b.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
  }
  Value* next = b.CreateAdd(index, b.getInt64(static_cast<std::uint64_t>(step)));
  b.CreateCondBr(b.CreateICmpSLE(next, end), inside, after);
  b.SetInsertPoint(inside);
  const std::vector<Value*> now(phis.begin(), phis.end());
  const std::vector<Value*> results = body(index, now);
  for (std::size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(results[i], b.GetInsertBlock());
  index->addIncoming(next, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return {index, now};
}

Value* emit_loop(llvm::IRBuilderBase& b, Value* begin, Value* end, std::int64_t step,
                 const std::function<void(Value*)>& body) {
  return emit_loop(b, begin, end, step, {}, [&](Value* index, const std::vector<Value*>&) {
           body(index);
           return std::vector<Value*>{};
         }).index;
}

}  // namespace reprise::codegen
