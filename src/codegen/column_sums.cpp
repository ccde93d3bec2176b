#include "codegen/column_sums.h"

#include "base/dtype.h"

#include <llvm/IR/IRBuilder.h>

namespace reprise::codegen {

using llvm::Value;

std::int64_t padded_columns(const plan::Loops& l, unsigned lanes) {
  const std::int64_t n = lanes;
  return (l.columns + n - 1) / n * n;
}

ColumnSums::ColumnSums(llvm::IRBuilderBase& b, OpEmitter& op, unsigned lanes, const plan::Kernel& k,
                       const plan::Loops& l, const std::vector<std::size_t>& nodes)
    : b_(b),
      op_(op),
      lanes_(lanes),
      k_(k),
      l_(l),
      nodes_(nodes),
      columns_(padded_columns(l, lanes)) {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    at_.push_back(bytes_);
    bytes_ += static_cast<std::size_t>(l_.segments * l_.chunks * columns_) * 8;
  }
}

void ColumnSums::begin_row(Value* row) {
  if (nodes_.empty()) return;
  const std::int64_t per_segment = l_.rows / l_.segments;
  Value* within = b_.CreateURem(row, i64(per_segment));
  Value* segment = b_.CreateUDiv(row, i64(per_segment));
  chunk_ = b_.CreateAdd(b_.CreateMul(segment, i64(l_.chunks)),
                        b_.CreateUDiv(within, i64(l_.chunk_rows)));
  first_row_of_chunk_ = b_.CreateICmpEQ(b_.CreateURem(within, i64(l_.chunk_rows)), i64(0));
}

void ColumnSums::accumulate(Reducer& r, std::size_t node, Value* column, Value* x) {
  Value* to = place(node, chunk_, column);
  // The first row of a chunk finds no sum yet: what stands there is not used.
  Value* before = b_.CreateSelect(first_row_of_chunk_, r.neutral(), load(r, to));
  b_.CreateAlignedStore(op_.to_memory(r.combine(before, x), r.dtype()), to,
                        llvm::Align(itemsize(r.dtype())));
}

void ColumnSums::finish(Value* sums, std::size_t node, Dtype dtype, Value* to) {
  sums_ = sums;
  llvm::Type* element = op_.element_type(dtype);
  code_.loop(i64(0), i64(l_.segments), 1, [&](Value* segment) {
    code_.loop(i64(0), i64(columns_), lanes_, [&](Value* column) {
      Reducer r(b_, op_, lanes_, k_.nodes[nodes_[node]]);
      Value* first = b_.CreateMul(segment, i64(l_.chunks));
      Value* sum = load(r, place(node, first, column));
      const auto all = code_.loop(
          i64(1), i64(l_.chunks), 1, {sum}, [&](Value* chunk, const std::vector<Value*>& now) {
            Value* next = load(r, place(node, b_.CreateAdd(first, chunk), column));
            return std::vector<Value*>{r.combine(now[0], next)};
          });
      Value* at =
          b_.CreateGEP(element, to, b_.CreateAdd(b_.CreateMul(segment, i64(l_.columns)), column));
      Value* left = b_.CreateVectorSplat(lanes_, b_.CreateSub(i64(l_.columns), column));
      Value* v = op_.to_memory(r.finished(all.carried[0]), dtype);
      b_.CreateMaskedStore(v, at, llvm::Align(itemsize(dtype)),
                           b_.CreateICmpSLT(code_.steps(lanes_, 1), left));
    });
  });
}

Value* ColumnSums::place(std::size_t node, Value* chunk, Value* column) {
  Reducer r(b_, op_, lanes_, k_.nodes[nodes_[node]]);
  Value* base = b_.CreateGEP(b_.getInt8Ty(), sums_, i64(static_cast<std::int64_t>(at_[node])));
  Value* at = b_.CreateAdd(b_.CreateMul(chunk, i64(columns_)), column);
  return b_.CreateGEP(op_.element_type(r.dtype()), base, at);
}

Value* ColumnSums::load(Reducer& r, Value* from) {
  auto* type = llvm::FixedVectorType::get(op_.element_type(r.dtype()), lanes_);
  return op_.from_memory(b_.CreateAlignedLoad(type, from, llvm::Align(itemsize(r.dtype()))),
                         r.dtype());
}

}  // namespace reprise::codegen
