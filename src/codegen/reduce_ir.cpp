#include "codegen/reduce_ir.h"

#include "base/dtype.h"
#include "codegen/emit_rules.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>

#include <limits>
#include <numeric>

namespace reprise::codegen {
namespace {

struct Step {
  const Primitive* reduction;
  const Primitive* binary;
};
constexpr Step steps[] = {{&reduce_sum_p, &add_p}, {&reduce_prod_p, &mul_p},
                          {&reduce_max_p, &max_p}, {&reduce_min_p, &min_p},
                          {&reduce_and_p, &and_p}, {&reduce_or_p, &or_p}};

const Primitive* binary_of(const Primitive* reduction) {
  for (const Step& s : steps) {
    if (s.reduction == reduction) return s.binary;
  }
  REPRISE_INVARIANT(false);
  return nullptr;
}

Literal lowest(Dtype d, bool highest) {
  Literal out;
  visit_dtype(d, [&](auto tag) {
    using T = Compute<decltype(tag)>;
    if constexpr (std::is_floating_point_v<T>) {
      const double inf = std::numeric_limits<double>::infinity();
      out = make_literal(d, highest ? inf : -inf);
    } else {
      const T value = highest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
      out = load_literal(d, &value);
    }
  });
  return out;
}

Literal all_ones(Dtype d) {
  const std::uint64_t bits = d == Dtype::bool_ ? 1 : ~std::uint64_t{0};
  return load_literal(d, &bits);
}

// The bits of a float as a whole number, ordered as the numbers are: -0 below 0, NaN at the end
// that its sign says. Its own inverse. An extremum of floats compares, blends and compares again
// for NaN, one waiting for the other; of these it is one step.
llvm::Value* in_order(llvm::IRBuilderBase& b, llvm::Value* bits) {
  const unsigned sign = bits->getType()->getScalarSizeInBits() - 1;
  const auto all_but_sign = llvm::APInt::getSignedMaxValue(sign + 1);
  llvm::Value* const is_negative =
      b.CreateAShr(bits, llvm::ConstantInt::get(bits->getType(), sign));
  return b.CreateXor(
      bits, b.CreateAnd(is_negative, llvm::ConstantInt::get(bits->getType(), all_but_sign)));
}

}  // namespace

Reducer::Reducer(llvm::IRBuilderBase& b, OpEmitter& op, unsigned lanes, const plan::Node& node)
    : b_(b),
      op_(op),
      lanes_(lanes),
      node_(node),
      element_(compute_dtype(node.type.dtype)),
      dtype_(element_) {
  step_.prim = binary_of(node.eqn->prim);
  const bool is_extremum = step_.prim == &max_p || step_.prim == &min_p;
  if (is_extremum && is_floating(element_))
    dtype_ = element_ == Dtype::f64 ? Dtype::i64 : Dtype::i32;
}

llvm::Value* Reducer::entered(llvm::Value* x) {
  if (!is_ordered()) return x;
  // beyond infinity
  llvm::Value* const nan = llvm::ConstantFP::getQNaN(x->getType(), step_.prim == &min_p);
  llvm::Value* const number = b_.CreateSelect(b_.CreateFCmpUNO(x, x), nan, x);
  return in_order(b_, b_.CreateBitCast(number, op_.vector_type(dtype_)));
}

llvm::Value* Reducer::neutral() {
  if (step_.prim == &mul_p) return op_.splat(make_literal(dtype_, 1), dtype_);
  if (step_.prim == &max_p) return entered(op_.splat(lowest(element_, false), element_));
  if (step_.prim == &min_p) return entered(op_.splat(lowest(element_, true), element_));
  if (step_.prim == &and_p) return op_.splat(all_ones(dtype_), dtype_);
  return op_.splat(make_literal(dtype_, 0), dtype_);
}

llvm::Value* Reducer::combine(llvm::Value* a, llvm::Value* b) {
  const Type t{dtype_, {}};
  const Type types[] = {t, t};
  llvm::Value* operands[] = {a, b};
  return op_.emit(step_, operands, types, t);
}

llvm::Value* Reducer::across_lanes(llvm::Value* v) {
  for (unsigned half = lanes_ / 2; half > 0; half /= 2) {
    llvm::SmallVector<int, 32> order(lanes_);
    for (unsigned i = 0; i < lanes_; ++i) order[i] = static_cast<int>(i ^ half);
    v = combine(v, b_.CreateShuffleVector(v, order));
  }
  return v;
}

llvm::Value* Reducer::finished(llvm::Value* v) {
  if (is_ordered()) v = b_.CreateBitCast(in_order(b_, v), op_.vector_type(element_));
  return op_.rounded(v, node_.type.dtype);
}

}  // namespace reprise::codegen
