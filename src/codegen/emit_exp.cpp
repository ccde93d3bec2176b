// exp of f32 in place: softmax spends most of its time there, and a call would put every value of
// the loop on the stack.
#include "codegen/emit_rules.h"

#include <llvm/IR/IRBuilder.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

// e^r - 1 on [-ln 2 / 2, ln 2 / 2], a little more: r + r^2 q(r), at most 3.2e-9 of e^r away (fitted
// for the least greatest relative error, coefficient by coefficient as the earlier ones were
// rounded).
V exp_minus_one(const Emission& m, V r) {
  V q = number(m, 0.0013821468455716968, Dtype::f32);
  for (const double c :
       {0.008368662558495998, 0.041668254882097244, 0.1666652113199234, 0.4999999403953552}) {
    q = multiply_add(m, q, r, number(m, c, Dtype::f32));
  }
  return multiply_add(m, m.b.CreateFMul(r, r), q, r);
}

// x = n ln 2 + r with n a whole number nearest to x / ln 2: the sum with a large number has n in
// its last bits.
struct Reduced {
  V n, r;  // whole numbers, floats
};
Reduced reduced(const Emission& m, V x) {
  const auto at = [&](double c) { return number(m, c, Dtype::f32); };
  constexpr double large = 12582912;  // 1.5 * 2^23: its last bit is worth 1
  auto* const bits = llvm::FixedVectorType::get(m.b.getInt32Ty(), m.lanes);
  const V sum = multiply_add(m, x, at(1.4426950216293335), at(large));
  const V n = m.b.CreateFSub(sum, at(large));
  V r = x;
  // - n ln 2
  for (const double part : {-0.6931471824645996, 1.9046542121259336e-09})
    r = multiply_add(m, n, at(part), r);
  return {m.b.CreateSub(m.b.CreateBitCast(sum, bits), m.b.CreateBitCast(at(large), bits)), r};
}

// 2^n for n from -126 to 127.
V power_of_two(const Emission& m, V n, llvm::Type* type) {
  constexpr unsigned bias = 127, mantissa_bits = 23;
  const V biased = m.b.CreateAdd(n, llvm::ConstantInt::get(n->getType(), bias));
  return m.b.CreateBitCast(
      m.b.CreateShl(biased, llvm::ConstantInt::get(n->getType(), mantissa_bits)), type);
}

}  // namespace

// e^x = 2^n e^r. The power goes in in two halves, so that numbers below the smallest normal one are
// rounded once and those above the largest become infinite. Where the result is 0 nothing may
// underflow on the way: that takes the processor several times as long, and masked attention scores
// are full of them.
llvm::Value* exp_in_place(const Emission& m, llvm::Value* x) {
  constexpr double lowest = -104, highest = 89;  // the result is 0 or infinite from there on
  const auto at = [&](double c) { return number(m, c, Dtype::f32); };
  const V is_some = m.b.CreateFCmpOGT(x, at(lowest));  // neither 0 nor NaN
  V inside = m.b.CreateSelect(is_some, x, at(0));
  inside = m.b.CreateSelect(m.b.CreateFCmpOLT(inside, at(highest)), inside, at(highest));
  const Reduced parts = reduced(m, inside);
  const V half = m.b.CreateAShr(parts.n, llvm::ConstantInt::get(parts.n->getType(), 1));
  V y = m.b.CreateFMul(m.b.CreateFAdd(exp_minus_one(m, parts.r), at(1)),
                       power_of_two(m, half, x->getType()));
  y = m.b.CreateFMul(y, power_of_two(m, m.b.CreateSub(parts.n, half), x->getType()));
  const V zero_or_nan = m.b.CreateSelect(m.b.CreateFCmpOLT(x, at(0)), at(0), x);
  return m.b.CreateSelect(is_some, y, zero_or_nan);
}

}  // namespace reprise::codegen
