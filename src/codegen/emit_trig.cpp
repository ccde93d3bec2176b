// sin and cos of f32 in place: where they are repeated by the dozen, as in a recomputed chain, a
// call for each would cost more than the function.
#include "codegen/emit_rules.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

V nearest(const Emission& m, V x) {
  return m.b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
}

// x - turns * pi. The first difference is exact: pi's upper part times a count below 2^14 shares
// x's last bit or a lower one. The parts add up to pi with 72 bits.
V reduced(const Emission& m, V x, V turns) {
  const V back = m.b.CreateFNeg(turns);
  for (const double part : {3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15})
    x = multiply_add(m, back, number(m, part, Dtype::f32), x);
  return x;
}

// sin on [-pi/2, pi/2], a little more: odd, of degree 9, at most 6.6e-9 of the value away (fitted
// for the least greatest relative error, coefficient by coefficient as the earlier ones were
// rounded).
V sin_near_zero(const Emission& m, V r) {
  const V square = m.b.CreateFMul(r, r);
  V sum = number(m, 2.6054585759993643e-06, Dtype::f32);
  for (const double c : {-0.00019809552759397775, 0.008333067409694195, -0.16666659712791443})
    sum = multiply_add(m, sum, square, number(m, c, Dtype::f32));
  return multiply_add(m, m.b.CreateFMul(r, square), sum, r);
}

// The sign changes where `turns` is odd.
V with_sign_of_turns(const Emission& m, V value, V turns) {
  auto* const bits = llvm::FixedVectorType::get(m.b.getInt32Ty(), m.lanes);
  const V sign = m.b.CreateShl(m.b.CreateFPToSI(turns, bits), llvm::ConstantInt::get(bits, 31));
  return m.b.CreateBitCast(m.b.CreateXor(m.b.CreateBitCast(value, bits), sign), value->getType());
}

// Where an argument is so large that the reduction fails, the library's function is called and
// taken for those lanes.
V or_of_library(const Emission& m, V x, V value, const char* name) {
  constexpr double largest = 32768;
  const V is_large = m.b.CreateFCmpOGT(m.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                                       number(m, largest, Dtype::f32));
  llvm::BasicBlock* const before = m.b.GetInsertBlock();
  auto& context = m.b.getContext();
  auto* const rare = llvm::BasicBlock::Create(context, "large", before->getParent());
  auto* const after = llvm::BasicBlock::Create(context, "reduced", before->getParent());
  llvm::MDNode* const unlikely = llvm::MDBuilder(context).createBranchWeights(1, 1000);
  m.b.CreateCondBr(m.b.CreateOrReduce(is_large), rare, after, unlikely);
  m.b.SetInsertPoint(rare);
  const V operands[] = {x};
  const V corrected = m.b.CreateSelect(is_large, call_function(m, name, operands), value);
  llvm::BasicBlock* const rare_end = m.b.GetInsertBlock();
  m.b.CreateBr(after);
  m.b.SetInsertPoint(after);
  llvm::PHINode* const result = m.b.CreatePHI(value->getType(), 2);
  result->addIncoming(value, before);
  result->addIncoming(corrected, rare_end);
  return result;
}

constexpr double turns_per_unit = 0.31830987334251404;  // 1 / pi

}  // namespace

llvm::Value* sin_in_place(const Emission& m) {
  const V x = m.x[0];
  const V turns = nearest(m, m.b.CreateFMul(x, number(m, turns_per_unit, Dtype::f32)));
  V y = with_sign_of_turns(m, sin_near_zero(m, reduced(m, x, turns)), turns);
  const V is_tiny = m.b.CreateFCmpOLT(m.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                                      number(m, 0x1p-13, Dtype::f32));
  y = m.b.CreateSelect(is_tiny, x, y);  // keeps the sign of zero
  return or_of_library(m, x, y, "sin");
}

// cos x = sin(x + pi/2), from the nearest odd multiple of pi/2.
llvm::Value* cos_in_place(const Emission& m) {
  const V x = m.x[0], half = number(m, 0.5, Dtype::f32);
  const V turns =
      nearest(m, multiply_add(m, x, number(m, turns_per_unit, Dtype::f32), m.b.CreateFNeg(half)));
  const V y = sin_near_zero(m, reduced(m, x, m.b.CreateFAdd(turns, half)));
  return or_of_library(m, x, with_sign_of_turns(m, m.b.CreateFNeg(y), turns), "cos");
}

}  // namespace reprise::codegen
