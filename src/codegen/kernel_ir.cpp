#include "codegen/kernel_ir.h"

#include "base/dtype.h"
#include "base/work.h"
#include "codegen/code_blocks.h"
#include "codegen/column_sums.h"
#include "codegen/kernel_parts.h"
#include "codegen/kernel_passes.h"
#include "codegen/reduce_ir.h"
#include "codegen/turn_ir.h"
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
        sums_(b_, op_, lanes, k, l, column_nodes_) {
    find_scratch();
    find_tiles();
  }

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
  void find_scratch() {
    slot_bytes_ = static_cast<std::size_t>(padded_columns(l_, lanes_)) * 8;
    scratch_bytes_ = passes_.spills * slot_bytes_;
  }
  void find_tiles() {
    const auto place = [&](bool is_turned, Dtype d) {
      const std::size_t at = scratch_bytes_;
      if (is_turned)
        scratch_bytes_ += static_cast<std::size_t>(l_.tile_rows * l_.tile_columns) * itemsize(d);
      return static_cast<std::int64_t>(at);
    };
    for (std::size_t l = 0; l < k_.loads.size(); ++l)
      load_tile_at_.push_back(place(l_.turned_loads[l], k_.loads[l].dtype));
    for (std::size_t s = 0; s < k_.stores.size(); ++s)
      store_tile_at_.push_back(place(l_.turned_stores[s], k_.stores[s].dtype));
  }

  // ------------------------------------------------------------------------------------ helpers
  using LoopEnd = CodeBlocks::LoopEnd;
  Value* i64(std::int64_t v) { return code_.i64(v); }
  Value* steps(std::int64_t stride) { return code_.steps(lanes_, stride); }
  LoopEnd loop(Value* begin, Value* end, std::int64_t step, const std::vector<Value*>& carried,
               const CodeBlocks::Carrying& body) {
    return code_.loop(begin, end, step, carried, body);
  }

  // --------------------------------------------------------------------------------------- rows
  void emit_rows(const std::string& name) {
    const KernelArguments given = begin_kernel(m_, b_, name);
    pointers_ = given.pointers;
    for (const plan::Load& l : k_.loads)
      pointer_at_.push_back(l.source == Source::memory ? first_store_++ : none);
    if (k_.loads.size() + k_.stores.size() <= large_pass) {
      for (std::size_t l = 0; l < k_.loads.size(); ++l) {
        load_pointers_.push_back(pointer_at_[l] == none ? nullptr : load_pointer(l));
      }
      for (std::size_t s = 0; s < k_.stores.size(); ++s)
        store_pointers_.push_back(store_pointer(s));
    }
    row_begin_ = given.row_begin;
    column_begin_ = given.column_begin;
    column_end_ = given.column_end;
    scratch_ = given.scratch;
    sums_.begin(given.sums);
    for (std::size_t l = 0; l < k_.loads.size(); ++l) {
      if (l_.turned_loads[l]) emit_turned_load(b_, turned_load(l, given.row_end), lanes_);
    }
    code_.loop(row_begin_, given.row_end, 1, [&](Value* row) { emit_row(row); });
    for (std::size_t s = 0; s < k_.stores.size(); ++s) {
      if (l_.turned_stores[s]) emit_turned_store(b_, turned_store(s, given.row_end), lanes_);
    }
    b_.CreateRetVoid();
  }
  // Few are read once; of many each where it is used, there are not so many registers.
  Value* load_pointer(std::size_t l) {
    return l < load_pointers_.size() ? load_pointers_[l] : code_.pointer(pointers_, pointer_at_[l]);
  }
  Value* store_pointer(std::size_t s) {
    return s < store_pointers_.size() ? store_pointers_[s]
                                      : code_.pointer(pointers_, first_store_ + s);
  }
  Value* load_row(std::size_t l) {
    return l < load_rows_.size() ? load_rows_[l] : row_offset(l_.load_strides[l]);
  }
  // Operands and results that lie close together along rows wait in scratch memory, turned.
  TurnedTile turned_load(std::size_t l, Value* row_end) {
    return turned_tile(load_pointer(l), l_.load_strides[l], k_.loads[l].dtype, load_tile(l),
                       row_end);
  }
  TurnedTile turned_store(std::size_t s, Value* row_end) {
    return turned_tile(store_pointer(s), l_.store_strides[s], k_.stores[s].dtype, store_tile(s),
                       row_end);
  }
  TurnedTile turned_tile(Value* memory, const Ints& strides, Dtype d, Value* tile, Value* row_end) {
    find_row(row_begin_);
    llvm::Type* element = op_.element_type(d);
    Value* first =
        b_.CreateAdd(row_offset(strides), b_.CreateMul(column_begin_, i64(strides.back())));
    return {element,
            itemsize(d),
            b_.CreateGEP(element, memory, first),
            tile,
            strides.back(),
            l_.tile_columns,
            b_.CreateSub(row_end, row_begin_),
            b_.CreateSub(column_end_, column_begin_)};
  }
  Value* load_tile(std::size_t l) {
    return b_.CreateGEP(b_.getInt8Ty(), scratch_, i64(load_tile_at_[l]));
  }
  Value* store_tile(std::size_t s) {
    return b_.CreateGEP(b_.getInt8Ty(), scratch_, i64(store_tile_at_[s]));
  }
  Value* in_tile(Value* tile, llvm::Type* element, Value* column) {
    Value* row = b_.CreateMul(b_.CreateSub(row_, row_begin_), i64(l_.tile_columns));
    return b_.CreateGEP(element, tile, b_.CreateAdd(row, b_.CreateSub(column, column_begin_)));
  }

  // The element offset of a row for these strides; index numbers of the outer loops are shared.
  Value* row_offset(const Ints& strides) {
    Value* sum = i64(0);
    for (std::size_t d = 0; d < l_.outer.size(); ++d) {
      if (strides[d] != 0) sum = b_.CreateAdd(sum, b_.CreateMul(row_index_[d], i64(strides[d])));
    }
    return sum;
  }
  void find_row(Value* row) {
    row_ = row;
    row_index_.assign(l_.outer.size(), nullptr);
    Value* rest = row;
    for (std::size_t d = l_.outer.size(); d-- > 0;) {
      row_index_[d] = d == 0 ? rest : b_.CreateURem(rest, i64(l_.outer[d]));
      rest = b_.CreateUDiv(rest, i64(l_.outer[d]));
    }
  }
  void emit_row(Value* row) {
    find_row(row);
    load_rows_.clear();
    if (!load_pointers_.empty()) {
      for (std::size_t l = 0; l < k_.loads.size(); ++l)
        load_rows_.push_back(row_offset(l_.load_strides[l]));
    }
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
        row_values_[n] = load_row_value(node.load);
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
  Value* load_row_value(std::size_t l) {
    const plan::Load& load = k_.loads[l];
    if (load.source == Source::number) return op_.splat(load.number, load.dtype);
    if (load.source == Source::index)
      return index_value(load, b_.CreateVectorSplat(lanes_, load_row(l)));
    llvm::Type* type = op_.element_type(load.dtype);
    Value* element = b_.CreateAlignedLoad(type, b_.CreateGEP(type, load_pointer(l), load_row(l)),
                                          align(load.dtype));
    return op_.from_memory(b_.CreateVectorSplat(lanes_, element), load.dtype);
  }
  static llvm::Align align(Dtype d) { return llvm::Align(itemsize(d)); }
  Value* index_value(const plan::Load& load, Value* index) {
    index = b_.CreateAdd(index, b_.CreateVectorSplat(lanes_, i64(load.offset)));
    llvm::Type* type = op_.vector_type(load.dtype);
    if (!is_floating(load.dtype)) return b_.CreateTrunc(index, type);
    return op_.rounded(b_.CreateSIToFP(index, type), load.dtype);
  }
  void store_row_values() {
    for (std::size_t s = 0; s < k_.stores.size(); ++s) {
      const plan::Store& store = k_.stores[s];
      if (is_full(store.node) || k_.nodes[store.node].kind == NodeKind::column_reduce) continue;
      Value* v = b_.CreateExtractElement(op_.to_memory(row_value(store.node), store.dtype),
                                         std::uint64_t{0});
      Value* to = b_.CreateGEP(op_.element_type(store.dtype), store_pointer(s),
                               row_offset(l_.store_strides[s]));
      b_.CreateAlignedStore(v, to, align(store.dtype));
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
    if (!reduces.empty()) end = in_blocks(reduces, start, body(nullptr));
    end = loop(end.index, column_end_, lanes_, end.carried, body(nullptr));
    if (l_.columns % lanes_ != 0) end.carried = tail(end, body);
    for (std::size_t i = 0; i < reduces.size(); ++i) {
      Reducer r(b_, op_, lanes_, k_.nodes[reduces[i]]);
      row_values_[reduces[i]] = r.finished(r.across_lanes(end.carried[i]));
    }
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
    Value* mask = b_.CreateICmpSLT(steps(1), left);
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
      if (!parts || k_.nodes[n].kind == NodeKind::load) made(n);
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
    code_.apart(passes_.stores(pass), always,
                [&](std::size_t s) { store_columns(s, fresh(k_.stores[s].node), column, mask); });
    return next;
  }
  Value* value(std::size_t n, std::size_t pass, Value* column, Value* mask) {
    if (!is_full(n)) return row_value(n);
    if (values_[n] != nullptr) return values_[n];
    const Node& node = k_.nodes[n];
    if (node.kind == NodeKind::load) return values_[n] = load_columns(node.load, column, mask);
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
  Value* load_columns(std::size_t l, Value* column, Value* mask) {
    const plan::Load& load = k_.loads[l];
    const std::int64_t stride = l_.load_strides[l].back();
    if (stride == 0) return load_row_value(l);
    Value* first = b_.CreateAdd(load_row(l), b_.CreateMul(column, i64(stride)));
    if (load.source == Source::index)
      return index_value(load, b_.CreateAdd(b_.CreateVectorSplat(lanes_, first), steps(stride)));
    llvm::Type* element = op_.element_type(load.dtype);
    auto* type = llvm::FixedVectorType::get(element, lanes_);
    const bool turned = l_.turned_loads[l];
    Value* from = turned ? in_tile(load_tile(l), element, column)
                         : b_.CreateGEP(element, load_pointer(l), first);
    Value* v = nullptr;
    if (stride != 1 && !turned) {
      Value* all = mask != nullptr ? mask : b_.CreateVectorSplat(lanes_, b_.getTrue());
      v = b_.CreateMaskedGather(type, b_.CreateGEP(element, from, steps(stride)), align(load.dtype),
                                all, llvm::Constant::getNullValue(type));
    } else if (mask != nullptr) {
      v = b_.CreateMaskedLoad(type, from, align(load.dtype), mask,
                              llvm::Constant::getNullValue(type));
    } else {
      v = b_.CreateAlignedLoad(type, from, align(load.dtype));
    }
    return op_.from_memory(v, load.dtype);
  }
  void store_columns(std::size_t s, Value* value, Value* column, Value* mask) {
    const plan::Store& store = k_.stores[s];
    Value* v = op_.to_memory(value, store.dtype);
    const std::int64_t stride = l_.store_strides[s].back();
    llvm::Type* element = op_.element_type(store.dtype);
    Value* first = b_.CreateAdd(row_offset(l_.store_strides[s]), b_.CreateMul(column, i64(stride)));
    const bool turned = l_.turned_stores[s];
    Value* to = turned ? in_tile(store_tile(s), element, column)
                       : b_.CreateGEP(element, store_pointer(s), first);
    if (stride != 1 && l_.columns != 1 && !turned) {
      Value* all = mask != nullptr ? mask : b_.CreateVectorSplat(lanes_, b_.getTrue());
      b_.CreateMaskedScatter(v, b_.CreateGEP(element, to, steps(stride)), align(store.dtype), all);
    } else if (mask != nullptr) {
      b_.CreateMaskedStore(v, to, align(store.dtype), mask);
    } else {
      b_.CreateAlignedStore(v, to, align(store.dtype));
    }
  }

  void emit_finish(const std::string& name) {
    llvm::Function* f = new_function(m_, b_, name, {code_.pointer_type(), code_.pointer_type()});
    for (std::size_t s = 0; s < k_.stores.size(); ++s) {
      const auto at = std::find(column_nodes_.begin(), column_nodes_.end(), k_.stores[s].node);
      if (at == column_nodes_.end()) continue;
      sums_.finish(f->getArg(1), static_cast<std::size_t>(at - column_nodes_.begin()),
                   k_.stores[s].dtype, code_.pointer(f->getArg(0), first_store_ + s));
    }
    b_.CreateRetVoid();
  }

  static constexpr std::size_t none = KernelPasses::none;
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
  ColumnSums sums_;
  std::size_t slot_bytes_ = 0, scratch_bytes_ = 0;
  std::vector<std::int64_t> load_tile_at_, store_tile_at_;
  PassParts parts_;
  std::vector<std::size_t> pointer_at_;  // of every load
  std::size_t first_store_ = 0;          // pointers of stores follow
  std::vector<Value*> load_pointers_, store_pointers_, load_rows_, row_index_, row_values_, values_;
  Value *row_ = nullptr, *row_begin_ = nullptr, *column_begin_ = nullptr, *column_end_ = nullptr,
        *scratch_ = nullptr, *pointers_ = nullptr;
};

}  // namespace

KernelMemory emit_kernel(llvm::Module& m, const std::string& name, const plan::Kernel& k,
                         const plan::Loops& l, unsigned lanes, const VectorTarget& target) {
  return KernelEmitter(m, k, l, lanes, target).emit(name);
}

}  // namespace reprise::codegen
