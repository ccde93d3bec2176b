// tanh of f32 in place, operation for operation what xla_tanh computes: gelu is made of it, and a
// call would put every value of the loop on the stack.
#include "codegen/emit_rules.h"
#include "ops/tanh.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;

template <std::size_t N>
V even_polynomial(const Emission& m, V x, const std::uint32_t (&c)[N]) {
  const auto coefficient = [&](std::size_t i) {
    return number(m, std::bit_cast<float>(c[i]), Dtype::f32);
  };
  V p = coefficient(0);
  for (std::size_t i = 1; i < N; ++i) p = multiply_add(m, p, x, coefficient(i));
  return p;
}

}  // namespace

llvm::Value* tanh_in_place(const Emission& m) {
  const auto at = [&](double c) { return number(m, c, Dtype::f32); };
  const auto like_x = [&](V size) {
    return m.b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, size, m.x[0]);
  };
  const V x = m.x[0], size = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  const V limit = at(std::bit_cast<float>(tanh_f32::clamp));
  // NaN stays
  const V inside = m.b.CreateSelect(m.b.CreateFCmpOGT(size, limit), like_x(limit), x);
  const V square = m.b.CreateFMul(inside, inside);
  const V quotient =
      m.b.CreateFDiv(m.b.CreateFMul(inside, even_polynomial(m, square, tanh_f32::num)),
                     even_polynomial(m, square, tanh_f32::den));
  const V y = m.b.CreateSelect(m.b.CreateFCmpOLT(size, at(tanh_f32::small)), x, quotient);
  return m.b.CreateSelect(m.b.CreateFCmpOGE(size, at(tanh_f32::large)), like_x(at(1)), y);
}

}  // namespace reprise::codegen
