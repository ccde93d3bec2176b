// erf_inv of f32 in place, operation for operation what inverse_erf computes: normal numbers are
// drawn by it.
#include "codegen/emit_rules.h"
#include "ops/erf_inv.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <limits>

namespace reprise::codegen {
namespace {

using V = llvm::Value*;
using namespace erf_inv_f32;  // NOLINT: the numbers of the formulas

class InverseErf {
 public:
  explicit InverseErf(const Emission& m)
      : m_(m), b_(m.b), words_(llvm::FixedVectorType::get(m.b.getInt32Ty(), m.lanes)) {}

  V of(V x) {
    const V size = absolute(x);
    const V log = log_of_one_plus(b_.CreateFMul(x, b_.CreateFNeg(x)));
    const V w = b_.CreateFNeg(log);
    const V near = polynomial(b_.CreateFSub(real(-2.5), log), central);
    const V far =
        polynomial(b_.CreateFSub(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, w), real(3)), tail);
    const V inside = b_.CreateFMul(x, b_.CreateSelect(b_.CreateFCmpOLT(w, real(5)), near, far));
    const V infinite = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                                real(std::numeric_limits<double>::infinity()), x);
    const V outside = b_.CreateSelect(b_.CreateFCmpOEQ(size, real(1)), infinite,
                                      real(std::numeric_limits<double>::quiet_NaN()));
    return b_.CreateSelect(b_.CreateFCmpOLT(size, real(1)), inside, outside);
  }

 private:
  V real(double value) { return number(m_, value, Dtype::f32); }
  V constant(std::uint32_t bits) { return real(std::bit_cast<float>(bits)); }
  V word(std::uint32_t value) { return llvm::ConstantInt::get(words_, value); }
  V fma(V x, V y, V z) { return b_.CreateIntrinsic(x->getType(), llvm::Intrinsic::fma, {x, y, z}); }
  V absolute(V x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  template <std::size_t N>
  V polynomial(V x, const std::uint32_t (&c)[N]) {
    V p = constant(c[0]);
    for (std::size_t i = 1; i < N; ++i) p = fma(p, x, constant(c[i]));
    return p;
  }

  V log_of_normal(V x) {
    const V bits = b_.CreateBitCast(x, words_);
    const V exponent = b_.CreateSub(b_.CreateLShr(bits, word(23)), word(127));
    const V above = b_.CreateFAdd(b_.CreateSIToFP(exponent, x->getType()), real(1));
    const V fraction = b_.CreateOr(b_.CreateAnd(bits, word(0x007fffff)), word(0x3f000000));
    const V f = b_.CreateBitCast(fraction, x->getType());
    const V low = b_.CreateFCmpOLT(f, constant(sqrt_half));
    const V e = b_.CreateSelect(low, b_.CreateFSub(above, real(1)), above);
    const V less = b_.CreateFSub(f, real(1));
    const V z = b_.CreateSelect(low, b_.CreateFAdd(less, f), less);
    const V z2 = b_.CreateFMul(z, z), z3 = b_.CreateFMul(z2, z);
    const V p1 = fma(polynomial(z, log_p0), z3, polynomial(z, log_p1));
    const V p2 = fma(p1, z3, polynomial(z, log_p2));
    const V q = fma(z3, p2, b_.CreateFMul(e, constant(ln2_low)));
    const V w = fma(z2, real(-0.5), z);
    return fma(e, constant(ln2_high), b_.CreateFAdd(w, q));
  }
  V log_of_one_plus(V x) {
    const V x2 = b_.CreateFMul(x, x);
    const V quotient = b_.CreateFDiv(polynomial(x, log1p_num), polynomial(x, log1p_den));
    const V y = b_.CreateFMul(b_.CreateFMul(x, x2), quotient);
    const V near = b_.CreateFAdd(x, fma(x2, real(-0.5), y));
    const V is_small = b_.CreateFCmpOLT(absolute(x), constant(small));
    return b_.CreateSelect(is_small, near, log_of_normal(b_.CreateFAdd(x, real(1))));
  }

  const Emission& m_;
  llvm::IRBuilderBase& b_;
  llvm::Type* words_;
};

}  // namespace

llvm::Value* erf_inv_in_place(const Emission& m) { return InverseErf(m).of(m.x[0]); }

}  // namespace reprise::codegen
