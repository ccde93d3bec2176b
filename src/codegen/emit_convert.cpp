// Other views of the same values: conversion, reinterpretation, the next number, less precision.
#include "codegen/emit_rules.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>

#include <limits>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

bool is_signed(Dtype d) { return d >= Dtype::i8 && d <= Dtype::i64; }

V integer(V like, std::uint64_t value) { return llvm::ConstantInt::get(like->getType(), value); }

// From floating numbers to integers. (LLVM's saturating conversions go lane by lane on x86.)
V saturated(const Emission& m, V x, Dtype from, Dtype to) {
  llvm::Type* const type = m.op.vector_type(to);
  const bool with_sign = is_signed(to);
  const unsigned bits = type->getScalarSizeInBits();
  const auto least =
      with_sign ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits);
  const auto most =
      with_sign ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  const V low = number(m, least.roundToDouble(with_sign), from);
  const V high = number(m, most.roundToDouble(with_sign), from);
  const V inside = m.b.CreateAnd(m.b.CreateFCmpOGT(x, low), m.b.CreateFCmpOLT(x, high));
  const V safe = m.b.CreateSelect(inside, x, number(m, 0, from));  // 0 for NaN
  V y = with_sign ? m.b.CreateFPToSI(safe, type) : m.b.CreateFPToUI(safe, type);
  y = m.b.CreateSelect(m.b.CreateFCmpOLE(x, low), llvm::ConstantInt::get(type, least), y);
  return m.b.CreateSelect(m.b.CreateFCmpOGE(x, high), llvm::ConstantInt::get(type, most), y);
}

V convert(const Emission& m) { return converted(m, m.x[0], m.dtype(), m.out); }

// ------------------------------------------------------------------------------- bits of a number
V to_bits(const Emission& m, V x, Dtype d) {
  const V stored = m.op.to_memory(x, d);
  const auto type =
      llvm::FixedVectorType::get(m.b.getIntNTy(static_cast<unsigned>(8 * itemsize(d))), m.lanes);
  return m.b.CreateBitCast(stored, type);
}
V from_bits(const Emission& m, V bits, Dtype d) {
  const auto type = llvm::FixedVectorType::get(m.op.element_type(d), m.lanes);
  return m.op.from_memory(m.b.CreateBitCast(bits, type), d);
}
V bitcast(const Emission& m) {
  return m.out == m.dtype() ? m.x[0] : from_bits(m, to_bits(m, m.x[0], m.dtype()), m.out);
}

// The bits of numbers of one sign are ordered as the numbers are.
V nextafter(const Emission& m) {
  const V x = m.x[0], y = m.x[1];
  const V bits = to_bits(m, x, m.dtype()), target = to_bits(m, y, m.dtype());
  const V zero = number(m, 0), one = integer(bits, 1);
  const V sign = integer(bits, std::uint64_t{1} << (bits->getType()->getScalarSizeInBits() - 1));
  const V least = m.b.CreateOr(m.b.CreateAnd(target, sign), one);
  const V grows = m.b.CreateICmpEQ(m.b.CreateFCmpOLT(x, y), m.b.CreateFCmpOGT(x, zero));
  const V step = m.b.CreateSelect(grows, one, llvm::Constant::getAllOnesValue(bits->getType()));
  V next = m.b.CreateSelect(m.b.CreateFCmpOEQ(x, zero), least, m.b.CreateAdd(bits, step));
  next = m.b.CreateSelect(m.b.CreateFCmpOEQ(x, y), target, next);
  const V nan = number(m, std::numeric_limits<double>::quiet_NaN());
  return m.b.CreateSelect(m.b.CreateFCmpUNO(x, y), nan, from_bits(m, next, m.dtype()));
}

// Round to nearest even; too large becomes inf; subnormal numbers of a narrower exponent become 0.
struct Format {
  std::int64_t exponent, mantissa;
  std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent) - 1) << mantissa; }
  std::uint64_t sign() const { return std::uint64_t{1} << (exponent + mantissa); }
};
Format format_of(Dtype d) {
  if (d == Dtype::f64) return {11, 52};
  if (d == Dtype::f32) return {8, 23};
  return d == Dtype::f16 ? Format{5, 10} : Format{8, 7};
}
V with_mantissa(const Emission& m, V rest, std::int64_t dropped) {
  const auto shift = static_cast<std::uint64_t>(dropped);
  const std::uint64_t last_kept = std::uint64_t{1} << shift;
  const V odd = m.b.CreateAnd(m.b.CreateLShr(rest, integer(rest, shift)), integer(rest, 1));
  const V sum = m.b.CreateAdd(m.b.CreateAdd(rest, integer(rest, (last_kept >> 1) - 1)), odd);
  return m.b.CreateAnd(sum, m.b.CreateNot(integer(rest, last_kept - 1)));
}
V with_exponent(const Emission& m, V rest, const Format& f, std::int64_t exponent_bits) {
  const std::int64_t bias = (1ll << (f.exponent - 1)) - 1;
  const std::int64_t new_bias = (1ll << (exponent_bits - 1)) - 1;
  const auto shift = static_cast<std::uint64_t>(f.mantissa);
  const V e = m.b.CreateLShr(rest, integer(rest, shift));
  const V large = m.b.CreateICmpUGT(e, integer(rest, static_cast<std::uint64_t>(bias + new_bias)));
  const V small = m.b.CreateICmpULE(e, integer(rest, static_cast<std::uint64_t>(bias - new_bias)));
  rest = m.b.CreateSelect(large, integer(rest, f.infinity()), rest);
  return m.b.CreateSelect(small, integer(rest, 0), rest);
}
V reduce_precision(const Emission& m) {
  const Format f = format_of(m.dtype());
  const auto exponent_bits = m.eqn.params.get<std::int64_t>("exponent_bits");
  const auto mantissa_bits = m.eqn.params.get<std::int64_t>("mantissa_bits");
  const V bits = to_bits(m, m.x[0], m.dtype());
  const V sign = m.b.CreateAnd(bits, integer(bits, f.sign()));
  const V magnitude = m.b.CreateAnd(bits, integer(bits, f.sign() - 1));
  V rest = magnitude;
  if (mantissa_bits < f.mantissa) rest = with_mantissa(m, rest, f.mantissa - mantissa_bits);
  if (exponent_bits < f.exponent) rest = with_exponent(m, rest, f, exponent_bits);
  const V special = m.b.CreateICmpUGE(magnitude, integer(bits, f.infinity()));
  rest = m.b.CreateSelect(special, magnitude, rest);
  return from_bits(m, m.b.CreateOr(rest, sign), m.dtype());
}

}  // namespace

llvm::Value* converted(const Emission& m, llvm::Value* x, Dtype from, Dtype to) {
  if (from == to) return x;
  llvm::Type* type = m.op.vector_type(to);
  if (to == Dtype::bool_) {
    return is_floating(from) ? m.b.CreateFCmpUNE(x, number(m, 0, from)) : m.b.CreateIsNotNull(x);
  }
  if (is_floating(from) && is_floating(to)) return m.op.rounded(m.b.CreateFPCast(x, type), to);
  if (is_floating(to)) {
    const V value = is_signed(from) ? m.b.CreateSIToFP(x, type) : m.b.CreateUIToFP(x, type);
    return m.op.rounded(value, to);
  }
  if (!is_floating(from)) return m.b.CreateIntCast(x, type, is_signed(from));
  return saturated(m, x, compute_dtype(from), to);
}

std::span<const RuleRow> convert_rules() {
  constexpr auto exact = Rounding::exact;
  static constexpr RuleRow rows[] = {{&convert_element_type_p, convert, exact},
                                     {&bitcast_convert_type_p, bitcast, exact},
                                     {&nextafter_p, nextafter, exact},
                                     {&reduce_precision_p, reduce_precision, exact}};
  return rows;
}

}  // namespace reprise::codegen
