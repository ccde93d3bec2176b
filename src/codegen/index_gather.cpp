// gather and dynamic_slice: the result is written from front to back.
//
// Rows are all its dimensions but the last. Where the last one lies inside a window, a row is a run
// of one window, copied as vectors; where it numbers windows, each lane of a vector has a window of
// its own.
#include "base/dtype.h"
#include "codegen/index_code.h"
#include "codegen/index_ir.h"
#include "ops/gather.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace reprise::codegen {
namespace {

using llvm::Value;

class GatherEmitter {
 public:
  GatherEmitter(llvm::Module& m, const std::string& name, const EquationKernel& k,
                const VectorTarget& target)
      : b_(m.getContext()),
        code_(b_),
        target_(target),
        w_(indexed_windows(k)),
        outer_(merged(w_.dims)),
        args_(begin_kernel(m, b_, name)),
        index_(b_, w_, args_.pointers) {
    if (!outer_.empty()) {
      columns_ = outer_.back();
      outer_.pop_back();
    }
    operand_ = code_.pointer(args_.pointers, 0);
    result_ = code_.pointer(args_.pointers, k.in.size());
    std::uint64_t fill = 0;
    if (!w_.clamps) store_fill(k.eqn->params, w_.dtype, reinterpret_cast<std::byte*>(&fill));
    fill_ = llvm::ConstantInt::get(index_.element(), fill);
  }

  EmittedKernel emit() {
    const plan::Loops loops = plan::loops_over(size_of(outer_), columns_.size);
    first_ = loops.by_columns ? args_.column_begin : code_.i64(0);
    last_ = loops.by_columns ? args_.column_end : code_.i64(columns_.size);
    if (columns_.indices == 0)
      emit_runs();
    else
      emit_lanes();
    b_.CreateRetVoid();
    return {loops, {}, {}};
  }

 private:
  // ------------------------------------------------------------------------------------ runs
  // Rows of one window follow each other: its place is found once for those of an item.
  void emit_runs() {
    std::size_t leading = outer_.size();
    while (leading > 0 && outer_[leading - 1].indices == 0) --leading;
    const std::vector<WindowDim> numbering(outer_.begin(),
                                           outer_.begin() + static_cast<std::ptrdiff_t>(leading));
    inside_.assign(outer_.begin() + static_cast<std::ptrdiff_t>(leading), outer_.end());
    Value* per_window = code_.i64(size_of(inside_));
    Value* end =
        b_.CreateUDiv(b_.CreateAdd(args_.row_end, code_.i64(size_of(inside_) - 1)), per_window);
    code_.loop(b_.CreateUDiv(args_.row_begin, per_window), end, 1, [&](Value* n) {
      const IndexCode::Position p = index_.position(n, numbering);
      const IndexCode::Start start = index_.start(p.indices);
      Value* from = index_.at(operand_, b_.CreateAdd(p.operand, start.operand));
      Value* first_row = b_.CreateMul(n, per_window);
      if (start.is_inside == nullptr) return copy_rows(first_row, from);
      code_.if_else(
          start.is_inside, [&] { copy_rows(first_row, from); }, [&] { fill_rows(first_row); });
    });
  }
  void copy_rows(Value* first_row, Value* window) {
    for_rows(first_row, [&](Value* w, Value* to) {
      Value* from = index_.at(window, index_.position(w, inside_).operand);
      columns(index_.lanes(target_), [&](Value* column, unsigned lanes) {
        index_.store(run(from, column, lanes), index_.at(to, column));
      });
    });
  }
  void fill_rows(Value* first_row) {
    for_rows(first_row, [&](Value*, Value* to) {
      columns(index_.lanes(target_), [&](Value* column, unsigned lanes) {
        index_.store(b_.CreateVectorSplat(lanes, fill_), index_.at(to, column));
      });
    });
  }
  // Those rows of a window that this item has: body(number inside the window, where the row is
  // written).
  void for_rows(Value* first_row, const std::function<void(Value*, Value*)>& body) {
    Value* begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax,
                                            b_.CreateSub(args_.row_begin, first_row), code_.i64(0));
    Value* end = b_.CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, b_.CreateSub(args_.row_end, first_row), code_.i64(size_of(inside_)));
    code_.loop(begin, end, 1, [&](Value* w) {
      body(w,
           index_.at(result_, b_.CreateMul(b_.CreateAdd(first_row, w), code_.i64(columns_.size))));
    });
  }
  void columns(unsigned lanes, const std::function<void(Value*, unsigned)>& body) {
    code_.pieces(first_, last_, lanes, columns_.size % lanes, body);
  }
  Value* run(Value* from, Value* column, unsigned lanes) {
    if (columns_.operand == 1) return index_.load(index_.at(from, column), lanes);
    Value* first = index_.at(from, b_.CreateMul(column, code_.i64(columns_.operand)));
    auto* type = llvm::FixedVectorType::get(index_.element(), lanes);
    return b_.CreateMaskedGather(type, index_.at(first, code_.steps(lanes, columns_.operand)),
                                 llvm::Align(itemsize(w_.dtype)));
  }

  // ----------------------------------------------------------------------------------- lanes
  void emit_lanes() {
    const unsigned lanes =
        target_.vector_bytes / std::max(4u, static_cast<unsigned>(itemsize(w_.dtype)));
    code_.loop(args_.row_begin, args_.row_end, 1, [&](Value* row) {
      const IndexCode::Position p = index_.position(row, outer_);
      Value* to = index_.at(result_, b_.CreateMul(row, code_.i64(columns_.size)));
      columns(lanes, [&](Value* column, unsigned n) {
        Value* indices = b_.CreateAdd(p.indices, b_.CreateMul(column, code_.i64(columns_.indices)));
        Value* from = index_.at(
            operand_, b_.CreateAdd(p.operand, b_.CreateMul(column, code_.i64(columns_.operand))));
        index_.store(windows(from, indices, n), index_.at(to, column));
      });
    });
  }
  Value* windows(Value* from, Value* indices, unsigned lanes) {
    const IndexCode::Start starts =
        index_.starts(indices, columns_.indices, columns_.operand, lanes);
    auto* type = llvm::FixedVectorType::get(index_.element(), lanes);
    return b_.CreateMaskedGather(type, index_.at(from, starts.operand),
                                 llvm::Align(itemsize(w_.dtype)), starts.is_inside,
                                 b_.CreateVectorSplat(lanes, fill_));
  }

  llvm::IRBuilder<> b_;
  CodeBlocks code_;
  VectorTarget target_;
  IndexedWindows w_;
  std::vector<WindowDim> outer_, inside_;
  WindowDim columns_;
  KernelArguments args_;
  IndexCode index_;
  Value *operand_ = nullptr, *result_ = nullptr, *fill_ = nullptr, *first_ = nullptr,
        *last_ = nullptr;
};

}  // namespace

EmittedKernel emit_gather(llvm::Module& m, const std::string& name, const EquationKernel& k,
                          const VectorTarget& target) {
  return GatherEmitter(m, name, k, target).emit();
}

}  // namespace reprise::codegen
