// Arithmetic on floating numbers and on integers, and comparisons.
#include "codegen/emit_rules.h"
#include "ops/lax.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <limits>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;
using llvm::CmpInst;
using llvm::Instruction;
namespace Intrinsic = llvm::Intrinsic;

template <Instruction::BinaryOps floating, Instruction::BinaryOps integral>
V arithmetic(const Emission& m) {
  return m.b.CreateBinOp(m.floating() ? floating : integral, m.x[0], m.x[1]);
}
template <CmpInst::Predicate floating, CmpInst::Predicate of_signed, CmpInst::Predicate of_unsigned>
V compare(const Emission& m) {
  if (m.floating()) return m.b.CreateFCmp(floating, m.x[0], m.x[1]);
  return m.b.CreateICmp(m.is_signed() ? of_signed : of_unsigned, m.x[0], m.x[1]);
}
template <Intrinsic::ID floating, Intrinsic::ID of_signed, Intrinsic::ID of_unsigned>
V extremum(const Emission& m) {
  const auto id = m.floating() ? floating : m.is_signed() ? of_signed : of_unsigned;
  return m.b.CreateBinaryIntrinsic(id, m.x[0], m.x[1]);
}
template <Intrinsic::ID id>
V intrinsic(const Emission& m) {
  return m.b.CreateUnaryIntrinsic(id, m.x[0]);
}

// By a power of two: the product with its inverse has the same bits, several times as fast.
V quotient(const Emission& m) {
  if (!m.floating()) return integer_quotient(m);
  const auto* divisor = llvm::dyn_cast<llvm::Constant>(m.x[1]);
  const auto* number_of_all =
      divisor != nullptr ? llvm::dyn_cast_or_null<llvm::ConstantFP>(divisor->getSplatValue())
                         : nullptr;
  llvm::APFloat inverse(0.0);
  if (number_of_all == nullptr || !number_of_all->getValueAPF().getExactInverse(&inverse))
    return m.b.CreateFDiv(m.x[0], m.x[1]);
  return m.b.CreateFMul(m.x[0], llvm::ConstantFP::get(m.x[0]->getType(), inverse));
}
V remainder(const Emission& m) {
  if (!m.floating()) return integer_remainder(m);
  return call_lanes(m, "fmod", compute_dtype(m.dtype()), m.x);
}
V product(const Emission& m, V x, V y) {
  return m.floating() ? rounded(m, m.b.CreateFMul(x, y), Rounding::arithmetic)
                      : m.b.CreateMul(x, y);
}

V negative(const Emission& m) {
  return m.floating() ? m.b.CreateFNeg(m.x[0]) : m.b.CreateNeg(m.x[0]);
}
V magnitude(const Emission& m) {
  if (m.floating()) return m.b.CreateUnaryIntrinsic(Intrinsic::fabs, m.x[0]);
  if (!m.is_signed()) return m.x[0];
  return m.b.CreateBinaryIntrinsic(Intrinsic::abs, m.x[0], m.b.getFalse());  // the least stays
}
V sign(const Emission& m) {  // NaN and zeros are their own sign
  const V x = m.x[0], zero = number(m, 0);
  const V above = m.floating()    ? m.b.CreateFCmpOGT(x, zero)
                  : m.is_signed() ? m.b.CreateICmpSGT(x, zero)
                                  : m.b.CreateICmpUGT(x, zero);
  if (!m.floating() && !m.is_signed()) return m.b.CreateZExt(above, x->getType());
  const V below = m.floating() ? m.b.CreateFCmpOLT(x, zero) : m.b.CreateICmpSLT(x, zero);
  return m.b.CreateSelect(above, number(m, 1), m.b.CreateSelect(below, number(m, -1), x));
}
V square(const Emission& m) { return product(m, m.x[0], m.x[0]); }
V rsqrt(const Emission& m) { return m.b.CreateFDiv(number(m, 1), intrinsic<Intrinsic::sqrt>(m)); }

V round(const Emission& m) {
  const auto method = m.eqn.params.get<std::int64_t>("rounding_method");
  const bool away = static_cast<lax::RoundingMethod>(method) == lax::RoundingMethod::away_from_zero;
  return m.b.CreateUnaryIntrinsic(away ? Intrinsic::round : Intrinsic::nearbyint, m.x[0]);
}

// By repeated squaring in the order of the evaluator, every product rounded.
V integer_pow(const Emission& m) {
  const auto y = m.eqn.params.get<std::int64_t>("y");
  if (y == 0) return number(m, 1);
  V result = nullptr, x = m.x[0];
  for (auto e = y < 0 ? 0 - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y);;) {
    if (e & 1) result = result == nullptr ? x : product(m, result, x);
    e >>= 1;
    if (e == 0) break;
    x = product(m, x, x);
  }
  return y < 0 ? rounded(m, m.b.CreateFDiv(number(m, 1), result), Rounding::arithmetic) : result;
}

V one_minus_square(const Emission& m) {  // (1 + x) (1 - x); integers wrap
  const V one = number(m, 1);
  if (!m.floating()) return m.b.CreateSub(one, m.b.CreateMul(m.x[0], m.x[0]));
  const V sum = m.b.CreateFAdd(one, m.x[0]);
  return m.b.CreateFMul(sum, m.b.CreateFSub(one, m.x[0]));
}

V is_finite(const Emission& m) {
  const V infinity = number(m, std::numeric_limits<double>::infinity());
  return m.b.CreateFCmpOLT(intrinsic<Intrinsic::fabs>(m), infinity);
}

}  // namespace

std::span<const RuleRow> arithmetic_rules() {
  constexpr auto arithmetical = Rounding::arithmetic, exact = Rounding::exact;
  // clang-format off
  static constexpr RuleRow rows[] = {
      {&add_p, arithmetic<Instruction::FAdd, Instruction::Add>, arithmetical},
      {&add_any_p, arithmetic<Instruction::FAdd, Instruction::Add>, arithmetical},
      {&sub_p, arithmetic<Instruction::FSub, Instruction::Sub>, arithmetical},
      {&mul_p, arithmetic<Instruction::FMul, Instruction::Mul>, arithmetical},
      {&div_p, quotient, arithmetical},
      {&rem_p, remainder, exact},
      {&max_p, extremum<Intrinsic::maximum, Intrinsic::smax, Intrinsic::umax>, exact},
      {&min_p, extremum<Intrinsic::minimum, Intrinsic::smin, Intrinsic::umin>, exact},
      {&eq_p, compare<CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, CmpInst::ICMP_EQ>},
      {&ne_p, compare<CmpInst::FCMP_UNE, CmpInst::ICMP_NE, CmpInst::ICMP_NE>},
      {&lt_p, compare<CmpInst::FCMP_OLT, CmpInst::ICMP_SLT, CmpInst::ICMP_ULT>},
      {&le_p, compare<CmpInst::FCMP_OLE, CmpInst::ICMP_SLE, CmpInst::ICMP_ULE>},
      {&gt_p, compare<CmpInst::FCMP_OGT, CmpInst::ICMP_SGT, CmpInst::ICMP_UGT>},
      {&ge_p, compare<CmpInst::FCMP_OGE, CmpInst::ICMP_SGE, CmpInst::ICMP_UGE>},

      {&neg_p, negative, exact},
      {&sign_p, sign, exact},
      {&abs_p, magnitude, exact},
      {&floor_p, intrinsic<Intrinsic::floor>, exact},
      {&ceil_p, intrinsic<Intrinsic::ceil>, exact},
      {&round_p, round, exact},
      {&sqrt_p, intrinsic<Intrinsic::sqrt>, arithmetical},
      {&rsqrt_p, rsqrt, arithmetical},
      {&square_p, square, exact},            // rounded by the rule
      {&integer_pow_p, integer_pow, exact},  // so is this
      {&one_minus_square_p, one_minus_square, arithmetical},
      {&is_finite_p, is_finite}};
  // clang-format on
  return rows;
}

}  // namespace reprise::codegen
