// The scatters and dynamic_update_slice: the operand is copied unless the result lies in its place,
// then the windows of updates are combined with it, in the order of the indices.
//
// Several windows may hit the same element, so work is divided by elements of the result, never by
// updates:
//
//   parts     the operand's first dimensions, where each update belongs to one place along them
//   columns   its last ones, where each window covers all of them
//   ranges    of its elements; every item looks at all index vectors and leaves out what is not its own
//
// Each element then has its updates in the evaluator's order, whoever computes it.
#include "base/dtype.h"
#include "base/machine.h"
#include "codegen/index_code.h"
#include "codegen/index_ir.h"
#include "ops/records.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace reprise::codegen {
namespace {

using plan::ceil_div;

using llvm::Value;

// What two numbers are combined with; null: the update takes the place of the old one.
const Primitive* combination(const Primitive* scatter) {
  if (scatter == &scatter_add_p) return &add_p;
  if (scatter == &scatter_mul_p) return &mul_p;
  if (scatter == &scatter_min_p) return &min_p;
  return scatter == &scatter_max_p ? &max_p : nullptr;
}

// ------------------------------------------------------------------------------------ dividing
enum class Split : std::uint8_t { parts, columns, ranges };

struct ScatterPlan {
  ScatterPlan(const IndexedWindows&, unsigned lanes);
  plan::Loops loops(bool in_place) const;

  std::vector<WindowDim> parts;            // where each update belongs to one place
  std::vector<WindowDim> windows;          // numbering, the others
  std::vector<WindowDim> rows;             // of a window
  WindowDim run;                           // of a row
  std::int64_t elements = 0, updates = 0;  // of the result, of all windows
  Split split = Split::ranges;
  std::int64_t unit = 1;   // ranges: elements of their smallest step
  bool cuts_runs = false;  // ranges: a run may lie in two of them
  unsigned lanes = 1;
  std::size_t width = 4;

  bool is_dense() const { return run.operand == 1 && run.windows == 1; }

 private:
  void find_parts(const IndexedWindows&);
  void choose_split(const IndexedWindows&);
  bool covers_columns(const IndexedWindows&) const;
};

ScatterPlan::ScatterPlan(const IndexedWindows& w, unsigned vector_lanes)
    : elements(element_count(w.operand)),
      updates(size_of(w.dims)),
      lanes(vector_lanes),
      width(itemsize(w.dtype)) {
  find_parts(w);
  parts = merged(parts);
  windows = merged(windows);
  rows = merged(rows);
  run = {.windows = 1, .operand = 1};
  if (!rows.empty()) {
    run = rows.back();
    rows.pop_back();
  }
  if (!is_dense()) lanes = 1;
  choose_split(w);
}

void ScatterPlan::find_parts(const IndexedWindows& w) {
  std::vector<bool> is_part(w.dims.size(), false);
  std::size_t d = 0;
  for (; d < w.operand.size(); ++d) {
    const auto walks = [&](const WindowDim& x) {
      return x.operand_dim == static_cast<std::int64_t>(d);
    };
    const auto dim = std::find_if(w.dims.begin(), w.dims.end(), walks);
    // not all of it, or moved by an index
    if (dim == w.dims.end() ? w.operand[d] != 1 : dim->size != w.operand[d]) break;
    if (dim == w.dims.end()) continue;
    is_part[static_cast<std::size_t>(dim - w.dims.begin())] = true;
    parts.push_back(*dim);
  }
  for (std::size_t i = 0; i < w.dims.size(); ++i) {
    if (!is_part[i]) (w.dims[i].is_inside ? rows : windows).push_back(w.dims[i]);
  }
  // Where windows cover the operand to its end, the last dimension is what vectors walk along.
  if (d == w.operand.size() && !parts.empty() && parts.back().is_inside) {
    rows.push_back(parts.back());
    parts.pop_back();
  }
}

bool ScatterPlan::covers_columns(const IndexedWindows& w) const {
  if (!is_dense() || run.operand_dim < 0) return false;
  const auto first = static_cast<std::size_t>(run.operand_dim);
  return run.size == row_major_strides(w.operand)[first] * w.operand[first];
}

void ScatterPlan::choose_split(const IndexedWindows& w) {
  constexpr std::int64_t many_parts = 8, many_units = 32, wide = 512;  // bytes
  const std::int64_t part_count = size_of(parts);
  if (part_count >= many_parts) {
    split = Split::parts;
  } else if (covers_columns(w) && run.size * static_cast<std::int64_t>(width) >= wide) {
    split = Split::columns;
  } else if (part_count > 1) {
    split = Split::parts;
  } else {
    split = Split::ranges;
    // A row of a window never leaves these dimensions of the operand.
    if (run.operand_dim >= 0) {
      const auto first = static_cast<std::size_t>(run.operand_dim);
      unit = row_major_strides(w.operand)[first] * w.operand[first];
    }
    cuts_runs = is_dense() && elements / unit < many_units;
    if (cuts_runs) unit = 64;
  }
}

plan::Loops ScatterPlan::loops(bool in_place) const {
  // elements that are combined in the time an index vector is read
  constexpr std::int64_t look = 8;
  constexpr std::int64_t least_columns = 256;  // bytes
  plan::Loops l;
  const std::int64_t work = (in_place ? 0 : elements) + updates;
  std::int64_t extent = 0, step = 1, most = 1;
  const std::int64_t looks = look * std::max<std::int64_t>(size_of(windows), 1);
  switch (split) {
    case Split::parts: extent = most = l.rows = size_of(parts); break;
    case Split::columns:
      l.by_columns = true;
      extent = l.columns = run.size;
      step = least_columns / static_cast<std::int64_t>(width);
      most = std::min(work / looks, ceil_div(extent, step));
      break;
    case Split::ranges:
      extent = l.rows = ceil_div(elements, unit);
      most = std::min(work / looks, extent);
      break;
  }
  const auto block = [&](std::int64_t items) {
    return ceil_div(ceil_div(extent, std::max<std::int64_t>(items, 1)), step) * step;
  };
  l.block = block(std::min(work / machine::item_elements, most));
  l.items = ceil_div(extent, l.block);
  l.fine_block = std::min(
      l.block, block(std::min({work / machine::fine_operations, most, machine::most_fine_parts})));
  l.fine_items = ceil_div(extent, l.fine_block);
  l.is_worth_a_team = work >= machine::operations_worth_threads;
  return l;
}

// ------------------------------------------------------------------------------------- writing
class ScatterEmitter {
 public:
  ScatterEmitter(llvm::Module& m, const std::string& name, const EquationKernel& k,
                 const VectorTarget& target)
      : b_(m.getContext()),
        code_(b_),
        target_(target),
        w_(indexed_windows(k)),
        args_(begin_kernel(m, b_, name)),
        index_(b_, w_, args_.pointers),
        plan_(w_, index_.lanes(target)) {
    step_.prim = combination(k.eqn->prim);
    const bool is_update = k.eqn->prim == &dynamic_update_slice_p;
    operand_ = code_.pointer(args_.pointers, 0);
    updates_ = code_.pointer(args_.pointers, is_update ? 1 : 2);
    result_ = code_.pointer(args_.pointers, k.in.size());
  }

  EmittedKernel emit() {
    if (plan_.split == Split::ranges) {
      first_ = b_.CreateMul(args_.row_begin, code_.i64(plan_.unit));
      last_ =
          smaller(b_.CreateMul(args_.row_end, code_.i64(plan_.unit)), code_.i64(plan_.elements));
    }
    code_.if_true(b_.CreateICmpNE(operand_, result_), [&] { copy(); });
    if (plan_.updates > 0) update();
    b_.CreateRetVoid();
    return {plan_.loops(false), {}, plan_.loops(true)};
  }

 private:
  Value* smaller(Value* a, Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  }
  Value* larger(Value* a, Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
  }

  // This item's elements of the operand.
  void copy() {
    const unsigned lanes = index_.lanes(target_);
    const auto move = [&](Value* i, unsigned n) {
      index_.store(index_.load(index_.at(operand_, i), n), index_.at(result_, i));
    };
    if (plan_.split == Split::ranges) return code_.pieces(first_, last_, lanes, lanes - 1, move);
    if (plan_.split == Split::parts) {
      Value* part = code_.i64(plan_.elements / size_of(plan_.parts));
      return code_.pieces(b_.CreateMul(args_.row_begin, part), b_.CreateMul(args_.row_end, part),
                          lanes, lanes - 1, move);
    }
    code_.loop(code_.i64(0), code_.i64(plan_.elements / plan_.run.size), 1, [&](Value* row) {
      Value* begin = b_.CreateMul(row, code_.i64(plan_.run.size));
      code_.pieces(args_.column_begin, args_.column_end, lanes, plan_.run.size % lanes,
                   [&](Value* column, unsigned n) { move(b_.CreateAdd(begin, column), n); });
    });
  }

  void update() {
    const bool by_parts = plan_.split == Split::parts;
    Value* const zero = code_.i64(0);
    for_each(by_parts ? args_.row_begin : zero,
             by_parts ? args_.row_end : code_.i64(size_of(plan_.parts)), plan_.parts,
             {zero, zero, zero}, [&](const IndexCode::Position& part) {
               for_each(zero, code_.i64(size_of(plan_.windows)), plan_.windows, part,
                        [&](const IndexCode::Position& window) {
                          const IndexCode::Start start = index_.start(window.indices);
                          const IndexCode::Position first{
                              window.windows, b_.CreateAdd(window.operand, start.operand),
                              window.indices};
                          const auto rows = [&] {
                            for_each(zero, code_.i64(size_of(plan_.rows)), plan_.rows, first,
                                     [&](const IndexCode::Position& row) { update_row(row); });
                          };
                          if (start.is_inside == nullptr)
                            rows();
                          else
                            code_.if_true(start.is_inside, rows);
                        });
             });
  }
  // body(position) for places [begin, end) of these dimensions, beyond `base`.
  void for_each(Value* begin, Value* end, const std::vector<WindowDim>& dims,
                const IndexCode::Position& base,
                const std::function<void(const IndexCode::Position&)>& body) {
    if (dims.empty()) return body(base);
    code_.loop(begin, end, 1, [&](Value* number) {
      const IndexCode::Position p = index_.position(number, dims);
      body({b_.CreateAdd(base.windows, p.windows), b_.CreateAdd(base.operand, p.operand),
            b_.CreateAdd(base.indices, p.indices)});
    });
  }

  void update_row(const IndexCode::Position& row) {
    Value* const size = code_.i64(plan_.run.size);
    switch (plan_.split) {
      case Split::parts: return combine_run(row, code_.i64(0), size, plan_.run.size);
      case Split::columns:
        return combine_run(row, args_.column_begin, args_.column_end, plan_.run.size);
      case Split::ranges: break;
    }
    if (plan_.cuts_runs) {
      Value* begin = larger(b_.CreateSub(first_, row.operand), code_.i64(0));
      return combine_run(row, begin, smaller(b_.CreateSub(last_, row.operand), size),
                         plan_.lanes - 1);
    }
    Value* is_ours =
        b_.CreateAnd(b_.CreateICmpSGE(row.operand, first_), b_.CreateICmpSLT(row.operand, last_));
    code_.if_true(is_ours, [&] { combine_run(row, code_.i64(0), size, plan_.run.size); });
  }
  void combine_run(const IndexCode::Position& row, Value* begin, Value* end, std::int64_t rest) {
    Value* to = index_.at(result_, row.operand);
    Value* from = index_.at(updates_, row.windows);
    code_.pieces(begin, end, plan_.lanes, rest % plan_.lanes, [&](Value* i, unsigned lanes) {
      combine(index_.at(to, b_.CreateMul(i, code_.i64(plan_.run.operand))),
              index_.at(from, b_.CreateMul(i, code_.i64(plan_.run.windows))), lanes);
    });
  }
  void combine(Value* to, Value* from, unsigned lanes) {
    if (step_.prim == nullptr) return index_.store(index_.load(from, lanes), to);
    OpEmitter op(b_, lanes, target_);
    const auto number = [&](Value* place) {
      auto* type = llvm::FixedVectorType::get(op.element_type(w_.dtype), lanes);
      return op.from_memory(b_.CreateAlignedLoad(type, place, llvm::Align(itemsize(w_.dtype))),
                            w_.dtype);
    };
    Value* const old = number(to);
    Value* const update = number(from);
    const bool is_extreme = step_.prim == &min_p || step_.prim == &max_p;
    Value* combined = nullptr;
    if (is_extreme && is_floating(w_.dtype)) {
      combined = extreme(old, update);
    } else {
      Value* const operands[] = {old, update};
      const Type types[] = {Type{w_.dtype}, Type{w_.dtype}};
      combined = op.emit(step_, operands, types, types[0]);
    }
    index_.store(op.to_memory(combined, w_.dtype), to);
  }
  // A NaN wins, the old one before the new; of two zeros the old one stays.
  Value* extreme(Value* old, Value* update) {
    Value* is_beyond =
        step_.prim == &max_p ? b_.CreateFCmpULT(old, update) : b_.CreateFCmpUGT(old, update);
    return b_.CreateSelect(b_.CreateAnd(is_beyond, b_.CreateFCmpORD(old, old)), update, old);
  }

  llvm::IRBuilder<> b_;
  CodeBlocks code_;
  VectorTarget target_;
  IndexedWindows w_;
  KernelArguments args_;
  IndexCode index_;
  ScatterPlan plan_;
  Equation step_;  // combines two numbers
  Value *operand_ = nullptr, *updates_ = nullptr, *result_ = nullptr;
  Value *first_ = nullptr, *last_ = nullptr;  // ranges: this item's elements
};

}  // namespace

EmittedKernel emit_scatter(llvm::Module& m, const std::string& name, const EquationKernel& k,
                           const VectorTarget& target) {
  return ScatterEmitter(m, name, k, target).emit();
}

}  // namespace reprise::codegen
