#include "codegen/piece_bounds.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>

namespace reprise::codegen {

using llvm::Value;
using plan::Bound;
using plan::Node;

PieceBounds::PieceBounds(llvm::IRBuilderBase& b, const plan::Kernel& k, const plan::Loops& l,
                         unsigned lanes)
    : b_(b), k_(k), l_(l), lanes_(lanes), in_row_(k.loads.size(), nullptr) {
  find_interior();
}

std::pair<std::int64_t, std::int64_t> PieceBounds::columns_of(std::size_t load) const {
  for (const Bound& b : l_.load_bounds[load]) {
    if (b.loop == l_.outer.size()) return {b.begin, b.end};
  }
  return {0, l_.columns};
}

// The widest part of a row in which no bound begins or ends.
void PieceBounds::find_interior() {
  std::vector<std::int64_t> cuts{0, l_.columns};
  for (std::size_t l = 0; l < k_.loads.size(); ++l) {
    const auto [begin, end] = columns_of(l);
    cuts.insert(cuts.end(), {begin, end});
  }
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i] - cuts[i - 1] > interior_.second - interior_.first)
      interior_ = {cuts[i - 1], cuts[i]};
  }
  const bool is_all = interior_.first == 0 && interior_.second == l_.columns;
  if (is_all || interior_.second - interior_.first < 2 * static_cast<std::int64_t>(lanes_))
    interior_ = {0, 0};
}

bool PieceBounds::covers_interior(std::size_t load) const {
  const auto [begin, end] = columns_of(load);
  return begin <= interior_.first && end >= interior_.second;
}

std::int64_t PieceBounds::shift(std::size_t load) const {
  std::int64_t sum = 0;
  for (const Bound& b : l_.load_bounds[load]) sum += b.begin * l_.load_strides[load][b.loop];
  return sum;
}

void PieceBounds::begin_row(const std::vector<Value*>& row_index) {
  for (std::size_t l = 0; l < k_.loads.size(); ++l) {
    Value* inside = nullptr;
    for (const Bound& b : l_.load_bounds[l]) {
      if (b.loop >= l_.outer.size()) continue;
      // One comparison: what is less than the beginning is a large number without a sign.
      Value* const from = b_.CreateSub(row_index[b.loop], code_.i64(b.begin));
      Value* const is_in = b_.CreateICmpULT(from, code_.i64(b.end - b.begin));
      inside = inside == nullptr ? is_in : b_.CreateAnd(inside, is_in);
    }
    in_row_[l] = inside;
  }
}

std::vector<std::size_t> PieceBounds::loads(const Node& choice, bool in_interior) const {
  std::vector<std::size_t> out;
  for (std::size_t i : choice.in) {
    const std::size_t l = k_.nodes[i].load;
    const auto [begin, end] = columns_of(l);
    if (in_interior && (end <= interior_.first || begin >= interior_.second)) continue;
    out.push_back(l);
  }
  return out;
}

Value* PieceBounds::in_columns(std::size_t load, Value* column, bool in_interior) {
  const auto [begin, end] = columns_of(load);
  if ((begin == 0 && end == l_.columns) || (in_interior && covers_interior(load))) return nullptr;
  // One comparison again, of 32 bits where they hold the number of a column.
  const bool is_short = l_.columns < (std::int64_t{1} << 31) - lanes_;
  llvm::Type* const type = is_short ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* const from = b_.CreateTrunc(b_.CreateSub(column, code_.i64(begin)), type);
  std::vector<llvm::Constant*> numbers;
  for (unsigned lane = 0; lane < lanes_; ++lane)
    numbers.push_back(llvm::ConstantInt::get(type, lane));
  Value* const index =
      b_.CreateAdd(b_.CreateVectorSplat(lanes_, from), llvm::ConstantVector::get(numbers));
  Value* const size = llvm::ConstantInt::get(type, static_cast<std::uint64_t>(end - begin));
  return b_.CreateICmpULT(index, b_.CreateVectorSplat(lanes_, size));
}

}  // namespace reprise::codegen
