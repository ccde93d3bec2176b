// Division, bits and shifts of integers, defined for every operand.
#include "codegen/emit_rules.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;
using llvm::Instruction;

unsigned width(const Emission& m) { return static_cast<unsigned>(8 * itemsize(m.dtype())); }

// Processors have no vector division of integers. Up to 32 bits the floating quotient is never
// rounded across an integer: with p bits more than the operands have, q (1 + 2^-p) < q + 1 / y.
V whole_quotient(const Emission& m, V x, V y) {
  if (width(m) == 64) return m.is_signed() ? m.b.CreateSDiv(x, y) : m.b.CreateUDiv(x, y);
  const Dtype wide = width(m) == 32 ? Dtype::f64 : Dtype::f32;
  const auto to = m.is_signed() ? Instruction::SIToFP : Instruction::UIToFP;
  const auto from = m.is_signed() ? Instruction::FPToSI : Instruction::FPToUI;
  const V dividend = m.b.CreateCast(to, x, m.op.vector_type(wide));
  const V divisor = m.b.CreateCast(to, y, m.op.vector_type(wide));
  return m.b.CreateCast(from, m.b.CreateFDiv(dividend, divisor), x->getType());
}

// Divisors without a defined quotient are replaced by 1; what they give is put in afterwards.
struct Division {
  V by_zero, by_minus_one, divisor, quotient;
};
Division divide(const Emission& m) {
  const V x = m.x[0], y = m.x[1];
  Division d{};
  d.by_zero = m.b.CreateIsNull(y);
  V undefined = d.by_zero;
  if (m.is_signed()) {
    d.by_minus_one = m.b.CreateICmpEQ(y, number(m, -1));
    undefined = m.b.CreateOr(undefined, d.by_minus_one);
  }
  d.divisor = m.b.CreateSelect(undefined, number(m, 1), y);
  d.quotient = whole_quotient(m, x, d.divisor);
  return d;
}

V too_long(const Emission& m) {
  return m.b.CreateICmpUGE(m.x[1], number(m, static_cast<double>(width(m))));
}
template <Instruction::BinaryOps shift>
V shifted(const Emission& m) {
  return m.b.CreateSelect(too_long(m), number(m, 0), m.b.CreateBinOp(shift, m.x[0], m.x[1]));
}
V shifted_with_sign(const Emission& m) {
  const V most = number(m, static_cast<double>(width(m) - 1));
  return m.b.CreateAShr(m.x[0], m.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, m.x[1], most));
}

template <Instruction::BinaryOps op>
V bitwise(const Emission& m) {
  return m.b.CreateBinOp(op, m.x[0], m.x[1]);
}
V complement(const Emission& m) { return m.b.CreateNot(m.x[0]); }

}  // namespace

llvm::Value* integer_quotient(const Emission& m) {
  const Division d = divide(m);
  V q = d.quotient;
  if (m.is_signed()) q = m.b.CreateSelect(d.by_minus_one, m.b.CreateNeg(m.x[0]), q);
  return m.b.CreateSelect(d.by_zero, llvm::Constant::getAllOnesValue(q->getType()), q);
}

llvm::Value* integer_remainder(const Emission& m) {
  const Division d = divide(m);
  const V rest = m.b.CreateSub(m.x[0], m.b.CreateMul(d.quotient, d.divisor));
  return m.b.CreateSelect(d.by_zero, m.x[0], rest);  // by -1: the rest by 1, which is 0
}

std::span<const RuleRow> integer_rules() {
  static constexpr RuleRow rows[] = {{&and_p, bitwise<Instruction::And>},
                                     {&or_p, bitwise<Instruction::Or>},
                                     {&xor_p, bitwise<Instruction::Xor>},
                                     {&not_p, complement},
                                     {&shift_left_p, shifted<Instruction::Shl>},
                                     {&shift_right_logical_p, shifted<Instruction::LShr>},
                                     {&shift_right_arithmetic_p, shifted_with_sign}};
  return rows;
}

}  // namespace reprise::codegen
