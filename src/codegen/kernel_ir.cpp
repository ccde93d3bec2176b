#include "codegen/kernel_ir.h"

#include "base/dtype.h"
#include "base/work.h"
#include "codegen/code_blocks.h"
#include "codegen/column_sums.h"
#include "codegen/element_access.h"
#include "codegen/kernel_parts.h"
#include "codegen/kernel_passes.h"
#include "codegen/reduce_ir.h"
#include "plan/memory.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace reprise::codegen {
namespace {

using llvm::Value;
using plan::Node;
using plan::NodeKind;
using plan::Source;

// One function body. Rows are walked one by one; the columns of a row in as many passes as its
// reductions ask for. Values of a pass that a later pass needs wait in scratch memory.
class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& m, const plan::Kernel& k, const plan::Loops& l, unsigned lanes,
                const VectorTarget& target)
      : m_(m),
        c_(m.getContext()),
        b_(c_),
        k_(k),
        l_(l),
        passes_(k),
        lanes_(lanes),
        target_(target),
        op_(b_, lanes, target),
        slot_bytes_(static_cast<std::size_t>(padded_columns(l, lanes)) * 8),
        scratch_bytes_(passes_.spills * slot_bytes_),
        access_(b_, op_, k, l, lanes, scratch_bytes_),
        sums_(b_, op_, lanes, k, l, column_nodes_) {}

  KernelMemory emit(const std::string& name) {
    parts_ = emit_parts(m_, name, passes_, lanes_, target_, scratch_bytes_);
    emit_rows(name);
    const bool has_finish = !column_nodes_.empty();
    if (has_finish) emit_finish(name + "_finish");
    return {scratch_bytes_, sums_.bytes(), has_finish};
  }

 private:
  // ------------------------------------------------------------------------------- what, when
  bool is_full(std::size_t n) const { return passes_.is_full(n); }

  // ------------------------------------------------------------------------------------ helpers
  using LoopEnd = CodeBlocks::LoopEnd;
  Value* i64(std::int64_t v) { return code_.i64(v); }
  LoopEnd loop(Value* begin, Value* end, std::int64_t step, const std::vector<Value*>& carried,
               const CodeBlocks::Carrying& body) {
    return code_.loop(begin, end, step, carried, body);
  }

  // --------------------------------------------------------------------------------------- rows
  void emit_rows(const std::string& name) {
    const KernelArguments given = begin_kernel(m_, b_, name);
    access_.begin(given);
    row_begin_ = given.row_begin;
    // Where rows are cut into pieces, but not the work by columns, the columns are known.
    const bool has_whole_rows = k_.has_bounds() && !l_.by_columns;
    column_begin_ = has_whole_rows ? i64(0) : given.column_begin;
    column_end_ = has_whole_rows ? i64(l_.columns) : given.column_end;
    scratch_ = given.scratch;
    sums_.begin(given.sums);
    access_.turn_loads();
    code_.loop(row_begin_, given.row_end, 1, [&](Value* row) { emit_row(row); });
    access_.turn_stores();
    b_.CreateRetVoid();
  }
  void emit_row(Value* row) {
    row_ = row;
    access_.begin_row(row);
    row_values_.assign(k_.nodes.size(), nullptr);
    sums_.begin_row(row_);
    for (std::size_t pass = 0; pass < passes_.count; ++pass) {
      emit_row_values(pass);
      emit_pass(pass);
    }
    store_row_values();
  }
  // Values per row whose stage has come, in order; reductions got theirs from their pass.
  void emit_row_values(std::size_t pass) {
    for (std::size_t n = 0; n < k_.nodes.size(); ++n) {
      const Node& node = k_.nodes[n];
      if (is_full(n) || stage_[n] != pass || node.kind == NodeKind::row_reduce ||
          node.kind == NodeKind::column_reduce)
        continue;
      if (node.kind == NodeKind::load)
        row_values_[n] = access_.load_row_value(node.load);
      else if (!parts_.of_row[pass])
        row_values_[n] = compute(node, [&](std::size_t i) { return row_value(i); });
    }
    if (parts_.of_row[pass])
      parts_.of_row[pass]->run(b_, op_, scratch_, b_.CreateICmpSLE(row_begin_, row_),
                               [&](std::size_t i) { return row_value(i); });
  }
  Value* row_value(std::size_t n) {
    const bool in_parts = k_.nodes[n].kind == NodeKind::op && parts_.of_row[stage_[n]];
    return in_parts ? parts_.of_row[stage_[n]]->get(b_, op_, scratch_, n) : row_values_[n];
  }
  Value* compute(const Node& node, const std::function<Value*(std::size_t)>& value) {
    std::vector<Value*> x;
    for (std::size_t i : node.in) x.push_back(value(i));
    if (node.eqn == nullptr) return x[0];
    count_work();
    return op_.emit(*node.eqn, x, node.in_types, node.type);
  }
  static llvm::Align align(Dtype d) { return llvm::Align(itemsize(d)); }
  void store_row_values() {
    for (std::size_t s = 0; s < k_.stores.size(); ++s) {
      const plan::Store& store = k_.stores[s];
      if (is_full(store.node) || k_.nodes[store.node].kind == NodeKind::column_reduce) continue;
      access_.store_row_value(s, row_value(store.node));
    }
  }

  // ------------------------------------------------------------------------------------- passes
  void emit_pass(std::size_t pass) {
    const std::vector<std::size_t> wanted = passes_.sinks(pass);
    if (wanted.empty()) return;
    std::vector<std::size_t> reduces;
    std::vector<Value*> start;
    for (std::size_t n = 0; n < k_.nodes.size(); ++n) {
      if (k_.nodes[n].kind != NodeKind::row_reduce || stage_[n] != pass) continue;
      reduces.push_back(n);
      start.push_back(Reducer(b_, op_, lanes_, k_.nodes[n]).neutral());
    }
    auto body = [&](Value* mask) {
      return [&, mask](Value* column, const std::vector<Value*>& sums) {
        return columns(pass, reduces, column, mask, sums);
      };
    };
    LoopEnd end{column_begin_, start};
    if (!reduces.empty())
      end = in_blocks(reduces, start, body(nullptr));
    else if (access_.bounds().interior().second > 0 && !parts_.of_pass[pass])
      end = up_to_interior_end(end, body(nullptr));
    end = reduces.empty() ? vectors(end, column_end_, body(nullptr))
                          : loop(end.index, column_end_, lanes_, end.carried, body(nullptr));
    if (l_.columns % lanes_ != 0) end.carried = tail(end, body);
    for (std::size_t i = 0; i < reduces.size(); ++i) {
      Reducer r(b_, op_, lanes_, k_.nodes[reduces[i]]);
      row_values_[reduces[i]] = r.finished(r.across_lanes(end.carried[i]));
    }
  }
  // Vectors of columns up to `end`, without a loop where few are left of a known number: masks of
  // a row's ends are then constants.
  template <class Body>
  LoopEnd vectors(LoopEnd at, Value* end, const Body& body) {
    const auto* const from = llvm::dyn_cast<llvm::ConstantInt>(at.index);
    const auto* const to = llvm::dyn_cast<llvm::ConstantInt>(end);
    if (from == nullptr || to == nullptr) return loop(at.index, end, lanes_, at.carried, body);
    const std::int64_t begin = from->getSExtValue(), lanes = lanes_;
    const std::int64_t count = std::max<std::int64_t>(0, (to->getSExtValue() - begin) / lanes);
    if (count > 2)
      return {i64(begin + count * lanes), loop(at.index, end, lanes, at.carried, body).carried};
    for (std::int64_t i = 0; i < count; ++i) at.carried = body(i64(begin + i * lanes), at.carried);
    return {i64(begin + count * lanes), at.carried};
  }
  // Vectors before those columns where every choice has one load, then these, without masks.
  template <class Body>
  LoopEnd up_to_interior_end(const LoopEnd& begin, const Body& body) {
    const auto smaller = [&](Value* a, Value* b) {
      return b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
    };
    const auto [first_inside, end_inside] = access_.bounds().interior();
    Value* const before = b_.CreateSub(i64(first_inside), begin.index);
    Value* const count = b_.CreateSDiv(b_.CreateAdd(before, i64(lanes_ - 1)), i64(lanes_));
    Value* const first = b_.CreateAdd(begin.index, b_.CreateMul(count, i64(lanes_)));
    const LoopEnd end = vectors(begin, smaller(first, column_end_), body);
    access_.in_interior(true);
    const LoopEnd inner = vectors(end, smaller(i64(end_inside), column_end_), body);
    access_.in_interior(false);
    return inner;
  }
  // Long rows are summed in blocks, and those in blocks again: one sum after the other would lose
  // digits.
  std::int64_t block_columns(int level) const {
    return level == 0 ? 64 * lanes_ : 64 * block_columns(level - 1);
  }
  template <class Body>
  LoopEnd in_blocks(const std::vector<std::size_t>& reduces, const std::vector<Value*>& neutral,
                    const Body& body) {
    const auto combined = [&](const std::vector<Value*>& totals, const std::vector<Value*>& sums) {
      std::vector<Value*> out;
      for (std::size_t i = 0; i < reduces.size(); ++i)
        out.push_back(Reducer(b_, op_, lanes_, k_.nodes[reduces[i]]).combine(totals[i], sums[i]));
      return out;
    };
    const std::function<std::vector<Value*>(int, Value*)> block = [&](int level, Value* first) {
      Value* const last = b_.CreateAdd(first, i64(block_columns(level)));
      if (level == 0) return loop(first, last, lanes_, neutral, body).carried;
      return loop(first, last, block_columns(level - 1), neutral,
                  [&](Value* inner, const std::vector<Value*>& totals) {
                    return combined(totals, block(level - 1, inner));
                  })
          .carried;
    };
    int levels = 0;
    while (levels < 2 && 2 * block_columns(levels) <= l_.columns) ++levels;
    LoopEnd end{column_begin_, neutral};
    for (int level = levels; level-- > 0;) {
      end = loop(end.index, column_end_, block_columns(level), end.carried,
                 [&](Value* first, const std::vector<Value*>& totals) {
                   return combined(totals, block(level, first));
                 });
    }
    return end;
  }
  // The last columns, fewer than a vector: the same code with the other lanes switched off.
  template <class Body>
  std::vector<Value*> tail(const LoopEnd& end, const Body& body) {
    llvm::Function* f = b_.GetInsertBlock()->getParent();
    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* inside = llvm::BasicBlock::Create(c_, "tail", f);
    auto* after = llvm::BasicBlock::Create(c_, "done", f);
    b_.CreateCondBr(b_.CreateICmpSLT(end.index, column_end_), inside, after);
    b_.SetInsertPoint(inside);
    Value* left = b_.CreateVectorSplat(lanes_, b_.CreateSub(column_end_, end.index));
    Value* mask = b_.CreateICmpSLT(code_.steps(lanes_, 1), left);
    const std::vector<Value*> results = body(mask)(end.index, end.carried);
    llvm::BasicBlock* last = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    std::vector<Value*> out;
    for (std::size_t i = 0; i < results.size(); ++i) {
      llvm::PHINode* phi = b_.CreatePHI(results[i]->getType(), 2);
      phi->addIncoming(end.carried[i], before);
      phi->addIncoming(results[i], last);
      out.push_back(phi);
    }
    return out;
  }

  // One vector of columns: computes, accumulates, then stores (an output may take the place of an
  // input that is read at the same element).
  std::vector<Value*> columns(std::size_t pass, const std::vector<std::size_t>& reduces,
                              Value* column, Value* mask, const std::vector<Value*>& sums) {
    values_.assign(k_.nodes.size(), nullptr);
    const auto& parts = parts_.of_pass[pass];
    const auto made = [&](std::size_t n) { return value(n, pass, column, mask); };
    Value* const always = b_.CreateICmpSLT(column, column_end_);
    for (std::size_t n : passes_.sinks(pass)) {
      if (!parts || is_read(k_.nodes[n])) made(n);
    }
    // What is made in a block of its own is not there for the next.
    const auto fresh = [&](std::size_t n) {
      Value* const before = values_[n];
      Value* const v = made(n);
      values_[n] = before;
      return v;
    };
    if (parts) parts->run(b_, op_, scratch_, always, fresh);
    std::vector<Value*> next;
    for (std::size_t i = 0; i < reduces.size(); ++i) {
      const Node& node = k_.nodes[reduces[i]];
      Reducer r(b_, op_, lanes_, node);
      Value* x = r.entered(made(node.in[0]));
      if (mask != nullptr) x = b_.CreateSelect(mask, x, r.neutral());
      next.push_back(r.combine(sums[i], x));
    }
    for (std::size_t c = 0; c < column_nodes_.size(); ++c) {
      const Node& node = k_.nodes[column_nodes_[c]];
      if (stage_[column_nodes_[c]] != pass) continue;
      Reducer r(b_, op_, lanes_, node);
      sums_.accumulate(r, c, column, r.entered(made(node.in[0])));
    }
    code_.apart(passes_.spilled(pass), always, [&](std::size_t n) {
      const Dtype d = k_.nodes[n].type.dtype;
      b_.CreateAlignedStore(op_.to_memory(fresh(n), d), spill_place(n, column), align(d));
    });
    code_.apart(passes_.stores(pass), always, [&](std::size_t s) {
      access_.store_columns(s, fresh(k_.stores[s].node), column, mask);
    });
    return next;
  }
  Value* value(std::size_t n, std::size_t pass, Value* column, Value* mask) {
    if (!is_full(n)) return row_value(n);
    if (values_[n] != nullptr) return values_[n];
    const Node& node = k_.nodes[n];
    if (node.kind == NodeKind::load)
      return values_[n] = access_.load_columns(node.load, column, mask);
    if (node.kind == NodeKind::choice) return values_[n] = access_.choose(node, column, mask);
    if (passes_.first[n] != pass) {
      llvm::Type* type = llvm::FixedVectorType::get(op_.element_type(node.type.dtype), lanes_);
      Value* kept = b_.CreateAlignedLoad(type, spill_place(n, column), align(node.type.dtype));
      return values_[n] = op_.from_memory(kept, node.type.dtype);
    }
    if (parts_.of_pass[pass]) return parts_.of_pass[pass]->get(b_, op_, scratch_, n);
    return values_[n] = compute(node, [&](std::size_t i) { return value(i, pass, column, mask); });
  }
  Value* spill_place(std::size_t n, Value* column) {
    Value* slot = b_.CreateGEP(b_.getInt8Ty(), scratch_,
                               i64(static_cast<std::int64_t>(passes_.spill[n] * slot_bytes_)));
    return b_.CreateGEP(op_.element_type(k_.nodes[n].type.dtype), slot, column);
  }

  void emit_finish(const std::string& name) {
    llvm::Function* f = new_function(m_, b_, name, {code_.pointer_type(), code_.pointer_type()});
    for (std::size_t s = 0; s < k_.stores.size(); ++s) {
      const auto at = std::find(column_nodes_.begin(), column_nodes_.end(), k_.stores[s].node);
      if (at == column_nodes_.end()) continue;
      sums_.finish(f->getArg(1), static_cast<std::size_t>(at - column_nodes_.begin()),
                   k_.stores[s].dtype, code_.pointer(f->getArg(0), access_.first_store() + s));
    }
    b_.CreateRetVoid();
  }

  llvm::Module& m_;
  llvm::LLVMContext& c_;
  llvm::IRBuilder<> b_;
  CodeBlocks code_{b_};
  const plan::Kernel& k_;
  const plan::Loops& l_;
  const KernelPasses passes_;
  const std::vector<std::size_t>&stage_ = passes_.stage, &column_nodes_ = passes_.column_nodes;
  unsigned lanes_;
  const VectorTarget& target_;
  OpEmitter op_;
  std::size_t slot_bytes_, scratch_bytes_;
  ElementAccess access_;
  ColumnSums sums_;
  PassParts parts_;
  std::vector<Value*> row_values_, values_;
  Value *row_ = nullptr, *row_begin_ = nullptr, *column_begin_ = nullptr, *column_end_ = nullptr,
        *scratch_ = nullptr;
};

}  // namespace

KernelMemory emit_kernel(llvm::Module& m, const std::string& name, const plan::Kernel& k,
                         const plan::Loops& l, unsigned lanes, const VectorTarget& target) {
  return KernelEmitter(m, k, l, lanes, target).emit(name);
}

}  // namespace reprise::codegen
