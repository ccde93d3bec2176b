#include "codegen/index_code.h"

#include "base/dtype.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <limits>

namespace reprise::codegen {

using llvm::Value;

namespace {

llvm::Type* like(llvm::Type* scalar, Value* v) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

}  // namespace

IndexCode::IndexCode(llvm::IRBuilderBase& b, const IndexedWindows& w, Value* pointers)
    : b_(b), code_(b), w_(w) {
  for (std::size_t k = 0; k < w.components.size(); ++k) {
    const bool same = k > 0 && w.components[k].operand == w.components[k - 1].operand;
    index_pointers_.push_back(same ? index_pointers_.back()
                                   : code_.pointer(pointers, w.components[k].operand));
  }
}

IndexCode::Position IndexCode::position(Value* number, std::span<const WindowDim> dims) {
  Position p{code_.i64(0), code_.i64(0), code_.i64(0)};
  for (std::size_t d = dims.size(); d-- > 0;) {
    Value* here = d == 0 ? number : b_.CreateURem(number, code_.i64(dims[d].size));
    if (d > 0) number = b_.CreateUDiv(number, code_.i64(dims[d].size));
    const auto walk = [&](Value*& sum, std::int64_t stride) {
      if (stride != 0) sum = b_.CreateAdd(sum, b_.CreateMul(here, code_.i64(stride)));
    };
    walk(p.windows, dims[d].windows);
    walk(p.operand, dims[d].operand);
    walk(p.indices, dims[d].indices);
  }
  return p;
}

bool IndexCode::index_is_signed() const {
  return w_.index_dtype >= Dtype::i8 && w_.index_dtype <= Dtype::i64;
}
llvm::Type* IndexCode::index_type() {
  return b_.getIntNTy(static_cast<unsigned>(8 * itemsize(w_.index_dtype)));
}

IndexCode::Clamped IndexCode::clamped(const IndexComponent& c, Value* given) {
  const unsigned bits = std::max(32u, given->getType()->getScalarSizeInBits());
  llvm::Type* wide = like(b_.getIntNTy(bits), given);
  const bool is_signed = index_is_signed();
  given = is_signed ? b_.CreateSExt(given, wide) : b_.CreateZExt(given, wide);
  const std::int64_t largest = bits == 32 ? (is_signed ? std::numeric_limits<std::int32_t>::max()
                                                       : std::numeric_limits<std::uint32_t>::max())
                                          : std::numeric_limits<std::int64_t>::max();
  Value* most = llvm::ConstantInt::get(wide, static_cast<std::uint64_t>(std::min(c.most, largest)));
  if (!is_signed) return {given, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, given, most)};
  Value* not_negative =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, given, llvm::ConstantInt::get(wide, 0));
  return {given, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, not_negative, most)};
}

IndexCode::Start IndexCode::start(Value* indices) {
  Start out{code_.i64(0), nullptr};
  for (std::size_t k = 0; k < w_.components.size(); ++k) {
    const IndexComponent& c = w_.components[k];
    if (c.known) {
      out.operand = b_.CreateAdd(out.operand, code_.i64(*c.known * c.stride));
      continue;
    }
    Value* from =
        b_.CreateGEP(index_type(), index_pointers_[k], b_.CreateAdd(indices, code_.i64(c.at)));
    const Clamped index =
        clamped(c, b_.CreateAlignedLoad(index_type(), from, llvm::Align(itemsize(w_.index_dtype))));
    Value* elements =
        b_.CreateMul(b_.CreateZExt(index.inside, b_.getInt64Ty()), code_.i64(c.stride));
    out.operand = b_.CreateAdd(out.operand, elements);
    if (w_.clamps) continue;
    Value* same = b_.CreateICmpEQ(index.given, index.inside);
    out.is_inside = out.is_inside == nullptr ? same : b_.CreateAnd(out.is_inside, same);
  }
  return out;
}

IndexCode::Start IndexCode::starts(Value* indices, std::int64_t step, std::int64_t operand_step,
                                   unsigned lanes) {
  const bool is_small = element_count(w_.operand) <= std::numeric_limits<std::int32_t>::max();
  auto* vector = llvm::FixedVectorType::get(is_small ? b_.getInt32Ty() : b_.getInt64Ty(), lanes);
  auto* given = llvm::FixedVectorType::get(index_type(), lanes);
  const llvm::Align align(itemsize(w_.index_dtype));
  Start out{b_.CreateTrunc(code_.steps(lanes, operand_step), vector), nullptr};
  for (std::size_t k = 0; k < w_.components.size(); ++k) {
    const IndexComponent& c = w_.components[k];
    Value* from =
        b_.CreateGEP(index_type(), index_pointers_[k], b_.CreateAdd(indices, code_.i64(c.at)));
    Value* loaded = nullptr;
    if (step == 1)
      loaded = b_.CreateAlignedLoad(given, from, align);
    else
      loaded = b_.CreateMaskedGather(
          given, b_.CreateGEP(index_type(), from, code_.steps(lanes, step)), align);
    const Clamped index = clamped(c, loaded);
    Value* stride = llvm::ConstantInt::get(vector, static_cast<std::uint64_t>(c.stride));
    out.operand =
        b_.CreateAdd(out.operand, b_.CreateMul(b_.CreateZExtOrTrunc(index.inside, vector), stride));
    if (w_.clamps) continue;
    Value* same = b_.CreateICmpEQ(index.given, index.inside);
    out.is_inside = out.is_inside == nullptr ? same : b_.CreateAnd(out.is_inside, same);
  }
  return out;
}

llvm::Type* IndexCode::element() {
  return b_.getIntNTy(static_cast<unsigned>(8 * itemsize(w_.dtype)));
}
Value* IndexCode::at(Value* array, Value* elements) {
  return b_.CreateGEP(element(), array, elements);
}
Value* IndexCode::load(Value* from, unsigned lanes) {
  return b_.CreateAlignedLoad(llvm::FixedVectorType::get(element(), lanes), from,
                              llvm::Align(itemsize(w_.dtype)));
}
void IndexCode::store(Value* elements, Value* to) {
  b_.CreateAlignedStore(elements, to, llvm::Align(itemsize(w_.dtype)));
}
unsigned IndexCode::lanes(const VectorTarget& target) const {
  return target.vector_bytes / static_cast<unsigned>(itemsize(w_.dtype));
}

}  // namespace reprise::codegen
