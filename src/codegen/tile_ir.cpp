#include "codegen/tile_ir.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "codegen/code_blocks.h"
#include "codegen/turn_ir.h"

namespace reprise::codegen {
namespace {

using llvm::Value;

llvm::Type* scalar_type(llvm::LLVMContext& context, Dtype d) {
  return d == Dtype::f64 ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
}

// One tile: its sums are values of the loop over k.
class TileEmitter {
 public:
  TileEmitter(llvm::Module& module, llvm::Function* function, Dtype d, unsigned rows, const VectorTarget& target)
      : b_(module.getContext()), function_(function), rows_(rows), scalar_(scalar_type(module.getContext(), d)),
        lanes_(target.vector_bytes / static_cast<unsigned>(itemsize(d))),
        vector_(llvm::FixedVectorType::get(scalar_, lanes_)), align_(itemsize(d)),
        has_fma_(target.fma) {}

  void emit() {
    auto& context = b_.getContext();
    auto* entry = &function_->getEntryBlock();
    auto* loop = llvm::BasicBlock::Create(context, "loop", function_);
    auto* done = llvm::BasicBlock::Create(context, "done", function_);
    b_.SetInsertPoint(entry);
    for (unsigned r = 0; r < rows_; ++r) row_offsets_.push_back(b_.CreateMul(argument(2), b_.getInt64(r)));
    for (unsigned i = 0; i < 4; ++i) fetch_.push_back(member_of_fetch(i));
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    auto* k = b_.CreatePHI(b_.getInt64Ty(), 2);
    std::vector<llvm::PHINode*> sums;
    for (unsigned i = 0; i < rows_ * tile_vectors; ++i) {
      sums.push_back(b_.CreatePHI(vector_, 2));
      sums.back()->addIncoming(llvm::ConstantAggregateZero::get(vector_), entry);
    }
    fetch(k, 0);
    fetch(k, 1);
    const std::vector<Value*> next = multiply_add(k, sums);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i]->addIncoming(next[i], loop);
    Value* following = b_.CreateAdd(k, b_.getInt64(1));
    k->addIncoming(b_.getInt64(0), entry);
    k->addIncoming(following, loop);
    b_.CreateCondBr(b_.CreateICmpSLT(following, argument(0)), loop, done);
    b_.SetInsertPoint(done);
    store(next);
  }

 private:
  Value* argument(unsigned i) { return function_->getArg(i); }

  Value* member_of_fetch(unsigned i) {
    llvm::Type* pointer = b_.getPtrTy();
    return b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, argument(10), i));
  }
  // 0: to be read, 1: to be written; into the second cache.
  void fetch(Value* k, unsigned use) {
    Value* offset = b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), fetch_[2 + use], k));
    Value* place = b_.CreateGEP(b_.getInt8Ty(), fetch_[use], offset);
    constexpr unsigned second_cache = 2, of_data = 1;
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, {place, b_.getInt32(use), b_.getInt32(second_cache), b_.getInt32(of_data)});
  }

  std::vector<Value*> multiply_add(Value* k, const std::vector<llvm::PHINode*>& sums) {
    Value* row = b_.CreateGEP(scalar_, argument(4), b_.CreateMul(k, argument(5)));
    std::vector<Value*> columns;
    for (unsigned v = 0; v < tile_vectors; ++v) {
      columns.push_back(b_.CreateAlignedLoad(vector_, b_.CreateConstGEP1_64(vector_, row, v), align_));
    }
    Value* a = b_.CreateGEP(scalar_, argument(1), b_.CreateMul(k, argument(3)));
    std::vector<Value*> next;
    for (unsigned r = 0; r < rows_; ++r) {
      Value* number = b_.CreateAlignedLoad(scalar_, b_.CreateGEP(scalar_, a, row_offsets_[r]), align_);
      Value* splat = b_.CreateVectorSplat(lanes_, number);
      for (unsigned v = 0; v < tile_vectors; ++v) next.push_back(sum(splat, columns[v], sums[r * tile_vectors + v]));
    }
    return next;
  }
  Value* sum(Value* x, Value* y, Value* so_far) {
    if (has_fma_) return b_.CreateIntrinsic(vector_, llvm::Intrinsic::fma, {x, y, so_far});
    return b_.CreateFAdd(so_far, b_.CreateFMul(x, y));
  }

  // Columns that do not exist are masked.
  void store(const std::vector<Value*>& sums) {
    Value* is_first = b_.CreateICmpNE(argument(9), b_.getInt64(0));
    Value* count = b_.CreateVectorSplat(lanes_, argument(8));
    for (unsigned v = 0; v < tile_vectors; ++v) {
      std::vector<llvm::Constant*> numbers;
      for (unsigned i = 0; i < lanes_; ++i) numbers.push_back(b_.getInt64(v * lanes_ + i));
      Value* exists = b_.CreateICmpSLT(llvm::ConstantVector::get(numbers), count);
      Value* is_read = b_.CreateAnd(exists, b_.CreateVectorSplat(lanes_, b_.CreateNot(is_first)));
      for (unsigned r = 0; r < rows_; ++r) {
        Value* row = b_.CreateGEP(scalar_, argument(6), b_.CreateMul(argument(7), b_.getInt64(r)));
        Value* at = b_.CreateConstGEP1_64(vector_, row, v);
        Value* before = b_.CreateMaskedLoad(vector_, at, align_, is_read, llvm::ConstantAggregateZero::get(vector_));
        Value* total = sums[r * tile_vectors + v];
        total = b_.CreateSelect(is_first, total, b_.CreateFAdd(before, total));
        b_.CreateMaskedStore(total, at, align_, exists);
      }
    }
    b_.CreateRetVoid();
  }

  llvm::IRBuilder<> b_;
  llvm::Function* function_;
  unsigned rows_;
  llvm::Type* scalar_;
  unsigned lanes_;
  llvm::FixedVectorType* vector_;
  llvm::Align align_;
  bool has_fma_;
  std::vector<Value*> row_offsets_, fetch_;
};

}  // namespace

unsigned tile_rows(unsigned vector_bytes) { return vector_bytes >= 64 ? 12 : vector_bytes >= 32 ? 6 : 5; }

void emit_tile(llvm::Module& module, const std::string& name, Dtype d, unsigned rows, const VectorTarget& target) {
  auto& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function = new_function(module, b, name, {number, pointer, number, number, pointer, number, pointer, number, number, number, pointer});
  for (unsigned i : {1u, 4u, 6u}) function->addParamAttr(i, llvm::Attribute::NoAlias);
  TileEmitter(module, function, d, rows, target).emit();
}

void emit_transpose(llvm::Module& module, const std::string& name, Dtype d, const VectorTarget& target) {
  auto& context = module.getContext();
  const unsigned lanes = target.vector_bytes / static_cast<unsigned>(itemsize(d));
  llvm::Type* scalar = scalar_type(context, d);
  auto* vector = llvm::FixedVectorType::get(scalar, lanes);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function = new_function(module, b, name, {pointer, number, pointer, number});
  const llvm::Align align(itemsize(d));
  std::vector<Value*> rows;
  for (unsigned i = 0; i < lanes; ++i) {
    Value* at = b.CreateGEP(scalar, function->getArg(0), b.CreateMul(function->getArg(1), b.getInt64(i)));
    rows.push_back(b.CreateAlignedLoad(vector, at, align));
  }
  rows = transposed(b, std::move(rows));
  for (unsigned i = 0; i < lanes; ++i) {
    Value* at = b.CreateGEP(scalar, function->getArg(2), b.CreateMul(function->getArg(3), b.getInt64(i)));
    b.CreateAlignedStore(rows[i], at, align);
  }
  b.CreateRetVoid();
}

// By the bits: without the sign, any is set for a number that is not 0; one added to an exponent of all ones is carried into
// the sign.
void emit_search(llvm::Module& module, const std::string& name, Dtype d, const VectorTarget& target) {
  auto& context = module.getContext();
  const unsigned bits = static_cast<unsigned>(8 * itemsize(d)), lanes = 8 * target.vector_bytes / bits;
  auto* word = llvm::IntegerType::get(context, bits);
  auto* vector = llvm::FixedVectorType::get(word, lanes);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function = new_function(module, b, name, {pointer, number, number, number, number, pointer});
  CodeBlocks code(b);
  const unsigned mantissa = d == Dtype::f64 ? 52 : 23;
  const auto sign = llvm::APInt::getSignMask(bits), exponent = llvm::APInt::getBitsSet(bits, mantissa, bits - 1);
  Value* for_zero = b.CreateICmpEQ(function->getArg(4), b.getInt64(static_cast<std::int64_t>(Search::not_zero)));
  const auto choice = [&](const llvm::APInt& x, const llvm::APInt& y) {
    return b.CreateVectorSplat(lanes, b.CreateSelect(for_zero, b.getInt(x), b.getInt(y)));
  };
  Value* const asked = choice(~sign, exponent);
  Value* const added = choice(llvm::APInt::getZero(bits), llvm::APInt::getOneBitSet(bits, mantissa));
  Value* const wanted = choice(~sign, sign);
  Value* const exists = b.CreateICmpSLT(code.steps(lanes, 1), b.CreateVectorSplat(lanes, function->getArg(3)));
  const auto end = code.loop(b.getInt64(0), function->getArg(2), 1, {llvm::ConstantAggregateZero::get(vector)},
                             [&](Value* i, const std::vector<Value*>& so_far) {
                               Value* at = b.CreateGEP(word, function->getArg(0), b.CreateMul(i, function->getArg(1)));
                               Value* x = b.CreateMaskedLoad(vector, at, llvm::Align(itemsize(d)), exists, llvm::ConstantAggregateZero::get(vector));
                               return std::vector<Value*>{b.CreateOr(so_far[0], b.CreateAdd(b.CreateAnd(x, asked), added))};
                             });
  Value* const found = b.CreateOrReduce(b.CreateAnd(end.carried[0], wanted));
  b.CreateStore(b.CreateZExt(b.CreateICmpNE(found, b.getInt(llvm::APInt::getZero(bits))), number), function->getArg(5));
  b.CreateRetVoid();
}

}  // namespace reprise::codegen
