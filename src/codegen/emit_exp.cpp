// exp of f32 in place: softmax spends most of its time there, and a call would put every value of the loop on the stack.
#include "codegen/emit_rules.h"

#include <llvm/IR/IRBuilder.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

// e^r on [-ln 2 / 2, ln 2 / 2], a little more: 1 + r + r^2 q(r), at most 3.2e-9 of the value away (fitted for the least
// greatest relative error, coefficient by coefficient as the earlier ones were rounded).
V exp_near_zero(const Emission& m, V r) {
  V q = number(m, 0.0013821468455716968, Dtype::f32);
  for (const double c : {0.008368662558495998, 0.041668254882097244, 0.1666652113199234, 0.4999999403953552}) {
    q = multiply_add(m, q, r, number(m, c, Dtype::f32));
  }
  const V one = number(m, 1, Dtype::f32);
  return m.b.CreateFAdd(multiply_add(m, m.b.CreateFMul(r, r), q, r), one);
}

// 2^n for n from -126 to 127.
V power_of_two(const Emission& m, V n, llvm::Type* type) {
  constexpr unsigned bias = 127, mantissa_bits = 23;
  const V biased = m.b.CreateAdd(n, llvm::ConstantInt::get(n->getType(), bias));
  return m.b.CreateBitCast(m.b.CreateShl(biased, llvm::ConstantInt::get(n->getType(), mantissa_bits)), type);
}

}  // namespace

// e^x = 2^n e^r with n the nearest whole number to x / ln 2. The power goes in in two halves, so that numbers below the
// smallest normal one are rounded once and those above the largest become infinite.
llvm::Value* exp_in_place(const Emission& m, llvm::Value* x) {
  constexpr double lowest = -104, highest = 89;  // the result is 0 or infinite from there on
  const auto at = [&](double c) { return number(m, c, Dtype::f32); };
  V inside = m.b.CreateSelect(m.b.CreateFCmpOGT(x, at(lowest)), x, at(lowest));  // NaN too
  inside = m.b.CreateSelect(m.b.CreateFCmpOLT(inside, at(highest)), inside, at(highest));
  const V n = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, m.b.CreateFMul(inside, at(1.4426950216293335)));
  V r = inside;
  for (const double part : {-0.6931471824645996, 1.9046542121259336e-09}) r = multiply_add(m, n, at(part), r);  // - n ln 2
  auto* const bits = llvm::FixedVectorType::get(m.b.getInt32Ty(), m.lanes);
  const V power = m.b.CreateFPToSI(n, bits);
  const V half = m.b.CreateAShr(power, llvm::ConstantInt::get(bits, 1));
  V y = m.b.CreateFMul(exp_near_zero(m, r), power_of_two(m, half, x->getType()));
  y = m.b.CreateFMul(y, power_of_two(m, m.b.CreateSub(power, half), x->getType()));
  return m.b.CreateSelect(m.b.CreateFCmpUNO(x, x), x, y);
}

}  // namespace reprise::codegen
