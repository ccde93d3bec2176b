#include "codegen/code_blocks.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace reprise::codegen {

using llvm::Value;

Value* CodeBlocks::i64(std::int64_t v) { return b_.getInt64(static_cast<std::uint64_t>(v)); }

llvm::Type* CodeBlocks::pointer_type() { return llvm::PointerType::getUnqual(b_.getContext()); }

Value* CodeBlocks::pointer(Value* list, std::size_t k) {
  return b_.CreateLoad(pointer_type(), b_.CreateConstGEP1_64(pointer_type(), list, k));
}

Value* CodeBlocks::steps(unsigned lanes, std::int64_t stride) {
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes; ++i)
    numbers.push_back(b_.getInt64(static_cast<std::uint64_t>(stride * i)));
  return llvm::ConstantVector::get(numbers);
}

CodeBlocks::LoopEnd CodeBlocks::loop(Value* begin, Value* end, std::int64_t step,
                                     const std::vector<Value*>& carried, const Carrying& body) {
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::Function* f = before->getParent();
  auto* head = llvm::BasicBlock::Create(context, "head", f);
  auto* inside = llvm::BasicBlock::Create(context, "body", f);
  auto* after = llvm::BasicBlock::Create(context, "after", f);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  for (Value* v : carried) {
    phis.push_back(b_.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
  }
  Value* next = b_.CreateAdd(index, i64(step));
  b_.CreateCondBr(b_.CreateICmpSLE(next, end), inside, after);
  b_.SetInsertPoint(inside);
  const std::vector<Value*> now(phis.begin(), phis.end());
  const std::vector<Value*> results = body(index, now);
  for (std::size_t i = 0; i < phis.size(); ++i)
    phis[i]->addIncoming(results[i], b_.GetInsertBlock());
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
  return {index, now};
}

Value* CodeBlocks::loop(Value* begin, Value* end, std::int64_t step,
                        const std::function<void(Value*)>& body) {
  return loop(begin, end, step, {},
              [&](Value* i, const std::vector<Value*>&) {
                body(i);
                return std::vector<Value*>{};
              })
      .index;
}

void CodeBlocks::if_true(Value* condition, const std::function<void()>& body) {
  if_else(condition, body, [] {});
}

void CodeBlocks::if_else(Value* condition, const std::function<void()>& body,
                         const std::function<void()>& otherwise) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(b_.getContext(), "then", f);
  auto* outside = llvm::BasicBlock::Create(b_.getContext(), "else", f);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "endif", f);
  b_.CreateCondBr(condition, inside, outside);
  b_.SetInsertPoint(inside);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(outside);
  otherwise();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void CodeBlocks::apart(const std::vector<std::size_t>& items, Value* always,
                       const std::function<void(std::size_t)>& body) {
  constexpr std::size_t together = 64;
  const auto some = [&](std::size_t begin) {
    for (std::size_t i = begin; i < std::min(begin + together, items.size()); ++i) body(items[i]);
  };
  if (items.size() <= together) return some(0);
  for (std::size_t i = 0; i < items.size(); i += together) if_true(always, [&] { some(i); });
}

void CodeBlocks::pieces(Value* begin, Value* end, unsigned lanes, std::int64_t rest,
                        const std::function<void(Value*, unsigned)>& body) {
  constexpr unsigned together = 4;
  const auto four = [&](Value* i) {
    for (unsigned k = 0; k < together; ++k) body(b_.CreateAdd(i, i64(k * lanes)), lanes);
  };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(b_.CreateSub(end, begin));
  if (known == nullptr) {
    Value* i = loop(begin, end, together * lanes, four);
    i = loop(i, end, lanes, [&](Value* at) { body(at, lanes); });
    for (unsigned n = lanes / 2; n > 0; n /= 2) {
      if ((rest & n) != 0) i = loop(i, end, n, [&](Value* at) { body(at, n); });
    }
    return;
  }
  const std::int64_t length = known->getSExtValue(), step = together * lanes;
  const std::int64_t in_loop = length >= 2 * step ? length / step * step : 0;
  if (in_loop > 0) loop(begin, b_.CreateAdd(begin, i64(in_loop)), step, four);
  Value* i = b_.CreateAdd(begin, i64(in_loop));
  std::int64_t left = length - in_loop;
  for (unsigned n = lanes; n > 0; n /= 2) {
    for (; left >= n; left -= n) {
      body(i, n);
      i = b_.CreateAdd(i, i64(n));
    }
  }
}

llvm::Function* new_function(llvm::Module& module, llvm::IRBuilderBase& b, const std::string& name,
                             const std::vector<llvm::Type*>& parameters) {
  auto* type = llvm::FunctionType::get(b.getVoidTy(), parameters, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  f->setDoesNotThrow();
  f->addFnAttr("prefer-vector-width", "512");
  f->addFnAttr("min-legal-vector-width", "512");
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", f));
  return f;
}

KernelArguments begin_kernel(llvm::Module& module, llvm::IRBuilderBase& b,
                             const std::string& name) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(module.getContext());
  llvm::Type* number = b.getInt64Ty();
  llvm::Function* f =
      new_function(module, b, name, {pointer, number, number, number, number, pointer, pointer});
  return {f->getArg(0), f->getArg(1), f->getArg(2), f->getArg(3),
          f->getArg(4), f->getArg(5), f->getArg(6)};
}

}  // namespace reprise::codegen
