// Sorting along one axis: stable, NaN last, zeros of both signs equal, as the evaluator has it
// (ops/sort.cpp).
#include "codegen/sort_ir.h"

#include "base/dtype.h"
#include "base/machine.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace reprise::codegen {
namespace {

using llvm::Value;

bool is_signed_integer(Dtype d) { return d >= Dtype::i8 && d <= Dtype::i64; }

unsigned width_of(Value* v) { return v->getType()->getScalarSizeInBits(); }
llvm::Constant* number(Value* like, const llvm::APInt& value) {
  return llvm::ConstantInt::get(like->getType(), value);
}
llvm::Constant* sign_bit(Value* like) {
  return number(like, llvm::APInt::getSignMask(width_of(like)));
}
llvm::Constant* all_ones(Value* like) {
  return number(like, llvm::APInt::getAllOnes(width_of(like)));
}

llvm::APInt infinity(Dtype d) {
  if (d == Dtype::f16) return {16, 0x7c00};
  if (d == Dtype::bf16) return {16, 0x7f80};
  if (d == Dtype::f32) return {32, 0x7f800000};
  return {64, 0x7ff0000000000000};
}
Value* is_nan(llvm::IRBuilderBase& b, Value* bits, Dtype d) {
  Value* const magnitude = b.CreateAnd(bits, b.CreateNot(sign_bit(bits)));
  return b.CreateICmpUGT(magnitude, number(bits, infinity(d)));
}
Value* is_zero(llvm::IRBuilderBase& b, Value* bits) {
  return b.CreateICmpEQ(b.CreateAnd(bits, b.CreateNot(sign_bit(bits))),
                        llvm::Constant::getNullValue(bits->getType()));
}
// The bits of the element all the way: those of the sign.
Value* sign_of(llvm::IRBuilderBase& b, Value* bits) {
  return b.CreateAShr(bits, width_of(bits) - 1);
}

}  // namespace

SortShape::SortShape(const EquationKernel& k)
    : keys(static_cast<std::size_t>(k.eqn->params.get<std::int64_t>("num_keys"))) {
  const Shape& shape = k.in[0].shape;
  const auto axis = static_cast<std::size_t>(k.eqn->params.get<std::int64_t>("dimension"));
  n = shape[axis];
  inner = row_major_strides(shape)[axis];
  outer = k.in[0].size() / (n * inner);
  for (const Type& t : k.in) dtypes.push_back(t.dtype);
}

Value* sort_key(llvm::IRBuilderBase& b, Value* bits, Dtype d, bool zeros_equal) {
  if (is_signed_integer(d)) return b.CreateXor(bits, sign_bit(bits));
  if (!is_floating(d)) return bits;
  if (zeros_equal)
    bits = b.CreateSelect(b.CreateICmpEQ(bits, sign_bit(bits)),
                          llvm::Constant::getNullValue(bits->getType()), bits);
  Value* const key = b.CreateXor(bits, b.CreateOr(sign_of(b, bits), sign_bit(bits)));
  return b.CreateSelect(is_nan(b, bits, d), all_ones(bits), key);
}

Value* sort_element(llvm::IRBuilderBase& b, Value* key, Dtype d) {
  if (is_signed_integer(d)) return b.CreateXor(key, sign_bit(key));
  if (!is_floating(d)) return key;
  return b.CreateXor(key, b.CreateOr(b.CreateNot(sign_of(b, key)), sign_bit(key)));
}

Value* is_special(llvm::IRBuilderBase& b, Value* bits, Dtype d) {
  return b.CreateOr(is_nan(b, bits, d), b.CreateICmpEQ(bits, sign_bit(bits)));
}

// ------------------------------------------------------------------------------------------- code
void SortCode::begin(const std::string& name) {
  args_ = begin_kernel(m_, b_, name);
  const std::size_t operands = shape_.dtypes.size();
  for (std::size_t k = 0; k < operands; ++k) in_.push_back(code_.pointer(args_.pointers, k));
  for (std::size_t k = 0; k < operands; ++k)
    out_.push_back(code_.pointer(args_.pointers, operands + k));
}

llvm::Type* SortCode::bits(Dtype d) { return b_.getIntNTy(static_cast<unsigned>(8 * itemsize(d))); }
llvm::Align SortCode::align(Dtype d) { return llvm::Align(itemsize(d)); }

Value* SortCode::first_of(Value* run) {
  if (shape_.inner == 1) return b_.CreateMul(run, code_.i64(shape_.n));
  Value* const outer = b_.CreateUDiv(run, code_.i64(shape_.inner));
  Value* const column = b_.CreateURem(run, code_.i64(shape_.inner));
  return b_.CreateAdd(b_.CreateMul(outer, code_.i64(shape_.n * shape_.inner)), column);
}

Value* SortCode::place(Value* base, Dtype d, Value* first, Value* i) {
  return b_.CreateGEP(bits(d), base, b_.CreateAdd(first, b_.CreateMul(i, code_.i64(shape_.inner))));
}

void SortCode::restore_specials(Value* first) {
  const Dtype d = shape_.dtypes[0];
  const auto element = [&](Value* i) {
    return b_.CreateAlignedLoad(bits(d), place(in_[0], d, first, i), align(d));
  };
  const auto count = [&](Value* before, Value* bit) {
    return b_.CreateAdd(before, b_.CreateZExt(bit, b_.getInt64Ty()));
  };
  // Zeros come after what is below, NaNs at the end.
  const auto counted = code_.loop(
      code_.i64(0), code_.i64(shape_.n), 1, {code_.i64(0), code_.i64(0)},
      [&](Value* i, const std::vector<Value*>& c) {
        Value* const x = element(i);
        Value* const nan = is_nan(b_, x, d);
        Value* const minus = b_.CreateICmpSLT(x, llvm::Constant::getNullValue(x->getType()));
        Value* const below = b_.CreateAnd(minus, b_.CreateNot(b_.CreateOr(nan, is_zero(b_, x))));
        return std::vector<Value*>{count(c[0], below), count(c[1], nan)};
      });
  Value* const nans = b_.CreateSub(code_.i64(shape_.n), counted.carried[1]);
  code_.loop(code_.i64(0), code_.i64(shape_.n), 1, {counted.carried[0], nans},
             [&](Value* i, const std::vector<Value*>& at) {
               Value* const x = element(i);
               Value* const nan = is_nan(b_, x, d);
               Value* const zero = is_zero(b_, x);
               code_.if_true(b_.CreateOr(nan, zero), [&] {
                 b_.CreateAlignedStore(
                     x, place(out_[0], d, first, b_.CreateSelect(nan, at[1], at[0])), align(d));
               });
               return std::vector<Value*>{count(at[0], zero), count(at[1], nan)};
             });
}

// ------------------------------------------------------------------------------------------- rows
namespace {

bool can_emit(const EquationKernel& k) {
  constexpr std::int64_t longest = std::int64_t{1} << 31;
  const SortShape shape(k);
  return k.in[0].size() >= machine::elements_worth_code && shape.n > 1 && shape.n < longest &&
         std::all_of(k.eqn->in.begin(), k.eqn->in.end(), [](const Atom& a) { return a.is_var(); });
}

// The network compares every pair it might have to, but many runs at once. Measured: a comparison
// costs about as much as three steps of a digit's pass over one run.
EmittedKernel emit(llvm::Module& m, const std::string& name, const EquationKernel& k,
                   const VectorTarget& target) {
  const SortShape shape(k);
  std::size_t widest = 4;
  for (std::size_t i = 0; i < shape.keys; ++i) widest = std::max(widest, itemsize(shape.dtypes[i]));
  const auto lanes = static_cast<unsigned>(target.vector_bytes / widest);
  constexpr std::int64_t longest = 4096;
  constexpr std::size_t most_keys = 2;
  const bool fills_lanes = (shape.inner == 1 ? shape.outer : shape.inner) >= lanes;
  const double per_element =
      network_depth(shape.n) * (shape.is_alone() ? 1 : 2 + static_cast<double>(shape.keys)) / lanes;
  constexpr double radix_passes = 5;
  const bool by_network =
      fills_lanes && shape.n <= longest && shape.keys <= most_keys && per_element < radix_passes;
  return by_network ? emit_network_sort(m, name, shape, lanes) : emit_radix_sort(m, name, shape);
}

constexpr EquationRow rows[] = {{&sort_p, can_emit, emit}};

}  // namespace

std::span<const EquationRow> sort_rows() { return rows; }

}  // namespace reprise::codegen
