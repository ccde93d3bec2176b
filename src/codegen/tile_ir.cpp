#include "codegen/tile_ir.h"

#include "codegen/code_blocks.h"
#include "codegen/turn_ir.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <vector>

namespace reprise::codegen {
namespace {

using llvm::Value;

llvm::Type* scalar_type(llvm::LLVMContext& context, Dtype d) {
  return d == Dtype::f64 ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
}

void fetch(llvm::IRBuilder<>& b, Value* at, bool for_write) {
  constexpr unsigned first_cache = 3, of_data = 1;
  b.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {b.getPtrTy()},
      {at, b.getInt32(for_write ? 1 : 0), b.getInt32(first_cache), b.getInt32(of_data)});
}

// One tile: its sums are values of the loop over k.
class TileEmitter {
 public:
  TileEmitter(llvm::IRBuilder<>& b, llvm::Function* function, Dtype d, Strip strip, unsigned rows,
              const VectorTarget& target)
      : b_(b),
        strip_(argument(function, 1)),
        panel_(argument(function, 2)),
        panel_row_(argument(function, 3)),
        c_(argument(function, 4)),
        c_row_(argument(function, 5)),
        begins_(argument(function, 6)),
        layout_(strip),
        rows_(rows),
        scalar_(scalar_type(b.getContext(), d)),
        lanes_(target.vector_bytes / static_cast<unsigned>(itemsize(d))),
        vector_(llvm::FixedVectorType::get(scalar_, lanes_)),
        align_(itemsize(d)),
        has_fma_(target.fma) {}

  // Several steps at a time: counting and addresses cost as much as some of the products.
  void emit(Value* depth) {
    constexpr std::int64_t together = 4;
    CodeBlocks code(b_);
    fetch_result();
    const Values zeros(rows_ * tile_vectors, llvm::ConstantAggregateZero::get(vector_));
    const auto many = code.loop(b_.getInt64(0), depth, together, zeros, [&](Value* k, Values sums) {
      for (std::int64_t i = 0; i < together; ++i)
        sums = multiply_add(b_.CreateAdd(k, b_.getInt64(i)), sums);
      return sums;
    });
    const auto all = code.loop(many.index, depth, 1, many.carried,
                               [&](Value* k, const Values& sums) { return multiply_add(k, sums); });
    store(all.carried);
    b_.CreateRetVoid();
  }

 private:
  using Values = std::vector<Value*>;
  static Value* argument(llvm::Function* f, unsigned i) { return f->getArg(i); }

  Value* result_at(unsigned row, unsigned vector) {
    Value* first = b_.CreateGEP(scalar_, c_, b_.CreateMul(c_row_, b_.getInt64(row)));
    return b_.CreateConstGEP1_64(vector_, first, vector);
  }
  // It is near when the sums are done.
  void fetch_result() {
    for (unsigned r = 0; r < rows_; ++r) {
      for (unsigned v = 0; v < tile_vectors; ++v) fetch(b_, result_at(r, v), true);
    }
  }

  Values multiply_add(Value* k, const Values& sums) {
    Value* row = b_.CreateGEP(scalar_, panel_, b_.CreateMul(k, panel_row_));
    Values columns;
    for (unsigned v = 0; v < tile_vectors; ++v) {
      columns.push_back(
          b_.CreateAlignedLoad(vector_, b_.CreateConstGEP1_64(vector_, row, v), align_));
    }
    const bool by_rows = layout_ == Strip::by_rows;
    const auto step = by_rows ? static_cast<std::uint64_t>(strip_row) : 1;
    Value* a = b_.CreateGEP(scalar_, strip_, by_rows ? k : b_.CreateMul(k, b_.getInt64(rows_)));
    Values next;
    for (unsigned r = 0; r < rows_; ++r) {
      Value* number =
          b_.CreateAlignedLoad(scalar_, b_.CreateConstGEP1_64(scalar_, a, r * step), align_);
      Value* splat = b_.CreateVectorSplat(lanes_, number);
      for (unsigned v = 0; v < tile_vectors; ++v)
        next.push_back(sum(splat, columns[v], sums[r * tile_vectors + v]));
    }
    return next;
  }
  Value* sum(Value* x, Value* y, Value* so_far) {
    if (has_fma_) return b_.CreateIntrinsic(vector_, llvm::Intrinsic::fma, {x, y, so_far});
    return b_.CreateFAdd(so_far, b_.CreateFMul(x, y));
  }

  void store(const Values& sums) {
    CodeBlocks code(b_);
    const auto each = [&](const std::function<Value*(Value * sum, Value * at)>& total) {
      for (unsigned i = 0; i < sums.size(); ++i) {
        Value* at = result_at(i / tile_vectors, i % tile_vectors);
        b_.CreateAlignedStore(total(sums[i], at), at, align_);
      }
    };
    code.if_else(
        b_.CreateICmpNE(begins_, b_.getInt64(0)),
        [&] { each([](Value* sum, Value*) { return sum; }); },
        [&] {
          each([&](Value* sum, Value* at) {
            return b_.CreateFAdd(b_.CreateAlignedLoad(vector_, at, align_), sum);
          });
        });
  }

  llvm::IRBuilder<>& b_;
  Value *strip_, *panel_, *panel_row_, *c_, *c_row_, *begins_;
  Strip layout_;
  unsigned rows_;
  llvm::Type* scalar_;
  unsigned lanes_;
  llvm::FixedVectorType* vector_;
  llvm::Align align_;
  bool has_fma_;
};

}  // namespace

// Of 32 registers (AVX-512, NEON) 24 hold sums, of 16 twelve; without a multiply-add one more holds
// a product.
unsigned tile_rows(const VectorTarget& target) {
  const bool has_32 = target.vector_bytes >= 64 || (target.vector_bytes == 16 && target.fma);
  return has_32 ? most_tile_rows : target.fma ? 6 : 5;
}

void emit_tile(llvm::Module& module, const std::string& name, Dtype d, Strip strip, unsigned rows,
               const VectorTarget& target) {
  auto& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function =
      new_function(module, b, name, {number, pointer, pointer, number, pointer, number, number});
  for (unsigned i : {1u, 2u, 4u}) function->addParamAttr(i, llvm::Attribute::NoAlias);
  TileEmitter(b, function, d, strip, rows, target).emit(function->getArg(0));
}

// Every row is on a page of its own, where the processor does not foresee what is read next.
void emit_copy(llvm::Module& module, const std::string& name, Dtype d, unsigned width,
               const VectorTarget& target) {
  auto& context = module.getContext();
  const unsigned lanes = target.vector_bytes / static_cast<unsigned>(itemsize(d));
  llvm::Type* scalar = scalar_type(context, d);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function =
      new_function(module, b, name, {pointer, number, number, pointer, number, number});
  for (unsigned i : {0u, 3u}) function->addParamAttr(i, llvm::Attribute::NoAlias);
  const llvm::Align align(itemsize(d));
  constexpr unsigned line = machine::cache_line;
  const unsigned line_count = (width * static_cast<unsigned>(itemsize(d)) + line - 1) / line;
  CodeBlocks code(b);
  code.loop(b.getInt64(0), function->getArg(2), 1, [&](Value* row) {
    Value* from = b.CreateGEP(scalar, function->getArg(0), b.CreateMul(row, function->getArg(1)));
    Value* to = b.CreateGEP(scalar, function->getArg(3), b.CreateMul(row, b.getInt64(width)));
    code.loop(b.getInt64(0), function->getArg(5), 1, [&](Value* group) {
      Value* source = b.CreateGEP(scalar, from, b.CreateMul(group, b.getInt64(width)));
      Value* target_at = b.CreateGEP(scalar, to, b.CreateMul(group, function->getArg(4)));
      Value* ahead = b.CreateGEP(scalar, source,
                                 b.CreateMul(function->getArg(1), b.getInt64(machine::rows_ahead)));
      for (unsigned i = 0; i < line_count; ++i)
        fetch(b, b.CreateConstGEP1_64(b.getInt8Ty(), ahead, i * line), false);
      for (unsigned j = 0; j < width;) {
        unsigned n = lanes;
        while (n > width - j) n /= 2;
        auto* vector = llvm::FixedVectorType::get(scalar, n);
        Value* x = b.CreateAlignedLoad(vector, b.CreateConstGEP1_64(scalar, source, j), align);
        b.CreateAlignedStore(x, b.CreateConstGEP1_64(scalar, target_at, j), align);
        j += n;
      }
    });
  });
  b.CreateRetVoid();
}

void emit_add(llvm::Module& module, const std::string& name, Dtype d, Addend addend,
              const VectorTarget& target) {
  auto& context = module.getContext();
  const unsigned lanes = target.vector_bytes / static_cast<unsigned>(itemsize(d));
  llvm::Type* scalar = scalar_type(context, d);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function =
      new_function(module, b, name, {pointer, number, pointer, number, number, number});
  for (unsigned i : {0u, 2u}) function->addParamAttr(i, llvm::Attribute::NoAlias);
  const llvm::Align align(itemsize(d));
  CodeBlocks code(b);
  code.loop(b.getInt64(0), function->getArg(4), 1, [&](Value* row) {
    Value* to = b.CreateGEP(scalar, function->getArg(0), b.CreateMul(row, function->getArg(1)));
    Value* x = b.CreateGEP(scalar, function->getArg(2), b.CreateMul(row, function->getArg(3)));
    code.pieces(b.getInt64(0), function->getArg(5), lanes, lanes - 1, [&](Value* j, unsigned n) {
      auto* vector = llvm::FixedVectorType::get(scalar, n);
      Value* at = b.CreateGEP(scalar, to, j);
      Value* more = addend == Addend::numbers
                        ? b.CreateVectorSplat(n, b.CreateAlignedLoad(scalar, x, align))
                        : b.CreateAlignedLoad(vector, b.CreateGEP(scalar, x, j), align);
      b.CreateAlignedStore(b.CreateFAdd(b.CreateAlignedLoad(vector, at, align), more), at, align);
    });
  });
  b.CreateRetVoid();
}

void emit_transpose(llvm::Module& module, const std::string& name, Dtype d,
                    const VectorTarget& target) {
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
    Value* at =
        b.CreateGEP(scalar, function->getArg(0), b.CreateMul(function->getArg(1), b.getInt64(i)));
    rows.push_back(b.CreateAlignedLoad(vector, at, align));
  }
  rows = transposed(b, std::move(rows));
  for (unsigned i = 0; i < lanes; ++i) {
    Value* at =
        b.CreateGEP(scalar, function->getArg(2), b.CreateMul(function->getArg(3), b.getInt64(i)));
    b.CreateAlignedStore(rows[i], at, align);
  }
  b.CreateRetVoid();
}

// By the bits: without the sign, any is set for a number that is not 0; one added to an exponent of
// all ones is carried into the sign.
void emit_search(llvm::Module& module, const std::string& name, Dtype d,
                 const VectorTarget& target) {
  auto& context = module.getContext();
  const unsigned bits = static_cast<unsigned>(8 * itemsize(d)),
                 lanes = 8 * target.vector_bytes / bits;
  auto* word = llvm::IntegerType::get(context, bits);
  auto* vector = llvm::FixedVectorType::get(word, lanes);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  llvm::IRBuilder<> b(context);
  auto* function =
      new_function(module, b, name, {pointer, number, number, number, number, pointer});
  CodeBlocks code(b);
  const unsigned mantissa = d == Dtype::f64 ? 52 : 23;
  const auto sign = llvm::APInt::getSignMask(bits),
             exponent = llvm::APInt::getBitsSet(bits, mantissa, bits - 1);
  Value* for_zero =
      b.CreateICmpEQ(function->getArg(4), b.getInt64(static_cast<std::int64_t>(Search::not_zero)));
  const auto choice = [&](const llvm::APInt& x, const llvm::APInt& y) {
    return b.CreateVectorSplat(lanes, b.CreateSelect(for_zero, b.getInt(x), b.getInt(y)));
  };
  Value* const asked = choice(~sign, exponent);
  Value* const added =
      choice(llvm::APInt::getZero(bits), llvm::APInt::getOneBitSet(bits, mantissa));
  Value* const wanted = choice(~sign, sign);
  Value* const exists =
      b.CreateICmpSLT(code.steps(lanes, 1), b.CreateVectorSplat(lanes, function->getArg(3)));
  const auto end = code.loop(
      b.getInt64(0), function->getArg(2), 1, {llvm::ConstantAggregateZero::get(vector)},
      [&](Value* i, const std::vector<Value*>& so_far) {
        Value* at = b.CreateGEP(word, function->getArg(0), b.CreateMul(i, function->getArg(1)));
        Value* x = b.CreateMaskedLoad(vector, at, llvm::Align(itemsize(d)), exists,
                                      llvm::ConstantAggregateZero::get(vector));
        return std::vector<Value*>{
            b.CreateOr(so_far[0], b.CreateAdd(b.CreateAnd(x, asked), added))};
      });
  Value* const found = b.CreateOrReduce(b.CreateAnd(end.carried[0], wanted));
  b.CreateStore(b.CreateZExt(b.CreateICmpNE(found, b.getInt(llvm::APInt::getZero(bits))), number),
                function->getArg(5));
  b.CreateRetVoid();
}

}  // namespace reprise::codegen
