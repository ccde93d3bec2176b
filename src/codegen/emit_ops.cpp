#include "codegen/emit_ops.h"

#include "codegen/emit_rules.h"

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>

#include <bit>
#include <unordered_map>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

llvm::FixedVectorType* vector_of(llvm::Type* element, V like) {
  return llvm::FixedVectorType::get(
      element, llvm::cast<llvm::FixedVectorType>(like->getType())->getNumElements());
}

// ---------------------------------------------------------------------------------- half precision
// Bits move as integers: signaling NaNs and payloads survive, on every machine.
V bf16_from_bits(llvm::IRBuilderBase& b, V bits) {
  const V wide = b.CreateZExt(bits, vector_of(b.getInt32Ty(), bits));
  return b.CreateBitCast(b.CreateShl(wide, 16), vector_of(b.getFloatTy(), bits));
}
V bf16_to_bits(llvm::IRBuilderBase& b, V value) {
  const V bits = b.CreateBitCast(value, vector_of(b.getInt32Ty(), value));
  return b.CreateTrunc(b.CreateLShr(bits, 16), vector_of(b.getInt16Ty(), value));
}

constexpr std::uint64_t sign_32 = 0x80000000, rest_32 = 0x7fffffff, infinity_32 = 0x7f800000;

V integer(V like, std::uint64_t value) { return llvm::ConstantInt::get(like->getType(), value); }
V real(V like, double value) { return llvm::ConstantFP::get(like->getType(), value); }

V f16_from_bits(llvm::IRBuilderBase& b, V bits) {
  const auto floats = vector_of(b.getFloatTy(), bits);
  const V wide = b.CreateZExt(bits, vector_of(b.getInt32Ty(), bits));
  const V sign = b.CreateShl(b.CreateAnd(wide, 0x8000), 16);
  const V rest = b.CreateShl(b.CreateAnd(wide, 0x7fff), 13);
  const V as_float = b.CreateBitCast(rest, floats);  // the exponent is too small by 112
  const V finite =
      b.CreateBitCast(b.CreateFMul(as_float, real(as_float, 0x1p112)), wide->getType());
  const V special = b.CreateOr(rest, integer(rest, infinity_32));
  const V is_special = b.CreateICmpUGE(rest, integer(rest, 0x0f800000));
  const V magnitude = b.CreateSelect(is_special, special, finite);
  return b.CreateBitCast(b.CreateOr(magnitude, sign), floats);
}
V f16_to_bits(llvm::IRBuilderBase& b, V value) {  // of a float that is a half-precision number
  const auto words = vector_of(b.getInt32Ty(), value);
  const V bits = b.CreateBitCast(value, words);
  const V sign = b.CreateAnd(b.CreateLShr(bits, 16), 0x8000);
  const V rest = b.CreateAnd(bits, rest_32);
  const V as_float = b.CreateBitCast(rest, value->getType());
  const V finite = b.CreateBitCast(b.CreateFMul(as_float, real(value, 0x1p-112)), words);
  const V is_special = b.CreateICmpUGE(rest, integer(rest, infinity_32));
  const V chosen = b.CreateLShr(b.CreateSelect(is_special, rest, finite), 13);
  const V half = b.CreateOr(b.CreateAnd(chosen, 0x7fff), sign);
  return b.CreateTrunc(half, vector_of(b.getInt16Ty(), value));
}

// The instructions for bf16 of some processors flush subnormal numbers, so this rounds by hand.
V rounded_to_bf16(llvm::IRBuilderBase& b, V value, Rounding rounding) {
  const V bits = b.CreateBitCast(value, vector_of(b.getInt32Ty(), value));
  const V odd = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  V nearest = b.CreateAdd(b.CreateAdd(bits, integer(bits, 0x7fff)), odd);
  if (rounding == Rounding::any) {
    const V quiet = b.CreateOr(bits, integer(bits, 0x400000));
    nearest = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, nearest);
  }
  return b.CreateBitCast(b.CreateAnd(nearest, 0xffff0000), value->getType());
}
V rounded_to_f16(llvm::IRBuilderBase& b, V value) {
  const auto words = vector_of(b.getInt32Ty(), value);
  const V bits = b.CreateBitCast(value, words);
  const V sign = b.CreateAnd(bits, sign_32);
  const V rest = b.CreateAnd(bits, rest_32);
  const V odd = b.CreateAnd(b.CreateLShr(rest, 13), 1);
  const V normal =
      b.CreateAnd(b.CreateAdd(b.CreateAdd(rest, integer(rest, 0xfff)), odd), 0xffffe000);
  // Subnormal: the sum with 1/2 is rounded at 2^-24.
  const V half = real(value, 0.5);
  const V sum = b.CreateFAdd(b.CreateBitCast(rest, value->getType()), half);
  const V subnormal = b.CreateBitCast(b.CreateFSub(sum, half), words);
  V r = b.CreateSelect(b.CreateICmpULT(rest, integer(rest, 0x38800000)), subnormal, normal);
  r = b.CreateSelect(b.CreateICmpUGE(rest, integer(rest, 0x477ff000)), integer(rest, infinity_32),
                     r);
  r = b.CreateSelect(b.CreateFCmpUNO(value, value), integer(rest, 0x7fc00000), r);
  return b.CreateBitCast(b.CreateOr(r, sign), value->getType());
}

const RuleRow* row_of(const Primitive& prim) {
  static const auto& rules = *[] {
    auto& all = *new std::unordered_map<const Primitive*, RuleRow>;
    for (const auto& family : {arithmetic_rules(), integer_rules(), choice_rules(), convert_rules(),
                               math_rules(), random_rules()}) {
      for (const RuleRow& row : family) all.emplace(row.prim, row);
    }
    return &all;
  }();
  const auto found = rules.find(&prim);
  return found == rules.end() ? nullptr : &found->second;
}

RuleRow rule_of(const Primitive& prim) {
  if (const RuleRow* row = row_of(prim)) return *row;
  REPRISE_INVARIANT(prim.lanes != nullptr);
  return {&prim, function_of_record};
}

}  // namespace

bool has_vector_code(const Primitive& prim) {
  return prim.lanes != nullptr || row_of(prim) != nullptr;
}

OpEmitter::OpEmitter(llvm::IRBuilderBase& builder, unsigned lanes, const VectorTarget& target)
    : b_(builder), lanes_(lanes), target_(target) {}

llvm::Type* OpEmitter::vector_type(Dtype d) {
  llvm::Type* element = d == Dtype::bool_                ? b_.getInt1Ty()
                        : compute_dtype(d) == Dtype::f32 ? b_.getFloatTy()
                                                         : element_type(d);
  return llvm::FixedVectorType::get(element, lanes_);
}

llvm::Type* OpEmitter::element_type(Dtype d) {
  if (d == Dtype::f32) return b_.getFloatTy();
  if (d == Dtype::f64) return b_.getDoubleTy();
  return b_.getIntNTy(static_cast<unsigned>(8 * itemsize(d)));
}

llvm::Value* OpEmitter::splat(const Literal& literal, Dtype d) {
  std::uint64_t bits = 0;
  static_assert(std::endian::native == std::endian::little);
  store_literal(convert_literal(literal, d, literal.weak_type), &bits);
  if (d == Dtype::f16 || d == Dtype::bf16) {
    const auto value = static_cast<float>(load_literal(d, &bits).real);
    bits = std::bit_cast<std::uint32_t>(value);
  }
  llvm::Type* type = vector_type(d);
  const llvm::APInt element(type->getScalarSizeInBits(), bits);
  if (!is_floating(d)) return llvm::ConstantInt::get(type, element);
  return llvm::ConstantFP::get(type,
                               llvm::APFloat(type->getScalarType()->getFltSemantics(), element));
}

llvm::Value* OpEmitter::from_memory(llvm::Value* elements, Dtype d) {
  if (d == Dtype::bool_) return b_.CreateIsNotNull(elements);
  if (d == Dtype::f16) return f16_from_bits(b_, elements);
  if (d == Dtype::bf16) return bf16_from_bits(b_, elements);
  return elements;
}

llvm::Value* OpEmitter::to_memory(llvm::Value* value, Dtype d) {
  if (d == Dtype::bool_) return b_.CreateZExt(value, vector_of(b_.getInt8Ty(), value));
  if (d == Dtype::f16) return f16_to_bits(b_, value);
  if (d == Dtype::bf16) return bf16_to_bits(b_, value);
  return value;
}

llvm::Value* OpEmitter::rounded(llvm::Value* value, Dtype d) {
  if (d == Dtype::bf16) return rounded_to_bf16(b_, value, Rounding::any);
  if (d != Dtype::f16) return value;
  if (target_.vector_bytes < 32) return rounded_to_f16(b_, value);
  const V half = b_.CreateFPTrunc(value, vector_of(b_.getHalfTy(), value));
  return b_.CreateFPExt(half, value->getType());
}

llvm::Value* OpEmitter::emit(const Equation& e, std::span<llvm::Value* const> operands,
                             std::span<const Type> in, const Type& out) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  const RuleRow row = rule_of(*e.prim);
  const Emission m{*this, b_, target_, lanes_, e, operands, in, out.dtype};
  return codegen::rounded(m, row.rule(m), row.rounding);
}

llvm::Value* rounded(const Emission& m, llvm::Value* value, Rounding rounding) {
  if (rounding == Rounding::exact) return value;
  if (m.out == Dtype::bf16) return rounded_to_bf16(m.b, value, rounding);
  return m.op.rounded(value, m.out);
}

llvm::Value* multiply_add(const Emission& m, llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  llvm::Type* const type = x->getType();
  if (m.target.fma) return m.b.CreateIntrinsic(type, llvm::Intrinsic::fma, {x, y, z});
  llvm::Type* const wide = llvm::FixedVectorType::get(m.b.getDoubleTy(), m.lanes);
  const auto widened = [&](llvm::Value* v) { return m.b.CreateFPExt(v, wide); };
  const auto product = m.b.CreateFMul(widened(x), widened(y));
  return m.b.CreateFPTrunc(m.b.CreateFAdd(product, widened(z)), type);
}

llvm::Value* number(const Emission& m, double value, Dtype d) {
  return m.op.splat(make_literal(d, value), d);
}

}  // namespace reprise::codegen
