#include "codegen/element_access.h"

#include "base/dtype.h"
#include "codegen/kernel_parts.h"
#include "codegen/turn_ir.h"

#include <llvm/IR/IRBuilder.h>

namespace reprise::codegen {

using llvm::Value;
using plan::Source;

namespace {

llvm::Align align(Dtype d) { return llvm::Align(itemsize(d)); }

Value* both(llvm::IRBuilderBase& b, Value* x, Value* y) {  // null: always
  return x == nullptr || y == nullptr ? (x == nullptr ? y : x) : b.CreateAnd(x, y);
}

}  // namespace

ElementAccess::ElementAccess(llvm::IRBuilderBase& b, OpEmitter& op, const plan::Kernel& k,
                             const plan::Loops& l, unsigned lanes, std::size_t& scratch_bytes)
    : b_(b), op_(op), k_(k), l_(l), lanes_(lanes), bounds_(b, k, l, lanes) {
  const auto place = [&](bool is_turned, Dtype d) {
    const std::size_t at = scratch_bytes;
    if (is_turned)
      scratch_bytes += static_cast<std::size_t>(l_.tile_rows * l_.tile_columns) * itemsize(d);
    return static_cast<std::int64_t>(at);
  };
  for (std::size_t i = 0; i < k_.loads.size(); ++i)
    load_tile_at_.push_back(place(l_.turned_loads[i], k_.loads[i].dtype));
  for (std::size_t s = 0; s < k_.stores.size(); ++s)
    store_tile_at_.push_back(place(l_.turned_stores[s], k_.stores[s].dtype));
}

void ElementAccess::begin(const KernelArguments& given) {
  given_ = given;
  for (const plan::Load& l : k_.loads) {
    pointer_at_.push_back(l.source == Source::memory ? first_store_++
                                                     : static_cast<std::size_t>(-1));
  }
  // Few are read once; of many each where it is used, there are not so many registers.
  if (k_.loads.size() + k_.stores.size() > large_pass) return;
  for (std::size_t l = 0; l < k_.loads.size(); ++l)
    load_pointers_.push_back(k_.loads[l].source == Source::memory ? load_pointer(l) : nullptr);
  for (std::size_t s = 0; s < k_.stores.size(); ++s) store_pointers_.push_back(store_pointer(s));
}
Value* ElementAccess::load_pointer(std::size_t l) {
  return l < load_pointers_.size() ? load_pointers_[l]
                                   : code_.pointer(given_.pointers, pointer_at_[l]);
}
Value* ElementAccess::store_pointer(std::size_t s) {
  return s < store_pointers_.size() ? store_pointers_[s]
                                    : code_.pointer(given_.pointers, first_store_ + s);
}

// ------------------------------------------------------------------------------------------- rows
void ElementAccess::begin_row(Value* row) {
  find_row(row);
  load_rows_.clear();
  if (!load_pointers_.empty()) {
    for (std::size_t l = 0; l < k_.loads.size(); ++l) load_rows_.push_back(load_row(l));
  }
  bounds_.begin_row(row_index_);
}
void ElementAccess::find_row(Value* row) {
  row_ = row;
  row_index_.assign(l_.outer.size(), nullptr);
  Value* rest = row;
  for (std::size_t d = l_.outer.size(); d-- > 0;) {
    row_index_[d] = d == 0 ? rest : b_.CreateURem(rest, i64(l_.outer[d]));
    rest = b_.CreateUDiv(rest, i64(l_.outer[d]));
  }
}
// The element offset of a row for these strides; index numbers of the outer loops are shared.
Value* ElementAccess::row_offset(const Ints& strides) {
  Value* sum = i64(0);
  for (std::size_t d = 0; d < l_.outer.size(); ++d) {
    if (strides[d] != 0) sum = b_.CreateAdd(sum, b_.CreateMul(row_index_[d], i64(strides[d])));
  }
  return sum;
}
Value* ElementAccess::load_row(std::size_t l) {
  if (l < load_rows_.size()) return load_rows_[l];
  return b_.CreateSub(row_offset(l_.load_strides[l]), i64(bounds_.shift(l)));
}
Value* ElementAccess::load_row_value(std::size_t l) {
  const plan::Load& load = k_.loads[l];
  if (load.source == Source::number) return op_.splat(load.number, load.dtype);
  if (load.source == Source::index)
    return index_value(load, b_.CreateVectorSplat(lanes_, load_row(l)));
  llvm::Type* type = op_.element_type(load.dtype);
  Value* element = b_.CreateAlignedLoad(type, b_.CreateGEP(type, load_pointer(l), load_row(l)),
                                        align(load.dtype));
  return op_.from_memory(b_.CreateVectorSplat(lanes_, element), load.dtype);
}
Value* ElementAccess::index_value(const plan::Load& load, Value* index) {
  index = b_.CreateAdd(index, b_.CreateVectorSplat(lanes_, i64(load.offset)));
  llvm::Type* type = op_.vector_type(load.dtype);
  if (!is_floating(load.dtype)) return b_.CreateTrunc(index, type);
  return op_.rounded(b_.CreateSIToFP(index, type), load.dtype);
}
void ElementAccess::store_row_value(std::size_t s, Value* value) {
  const plan::Store& store = k_.stores[s];
  Value* v = b_.CreateExtractElement(op_.to_memory(value, store.dtype), std::uint64_t{0});
  Value* to = b_.CreateGEP(op_.element_type(store.dtype), store_pointer(s),
                           row_offset(l_.store_strides[s]));
  b_.CreateAlignedStore(v, to, align(store.dtype));
}

// ---------------------------------------------------------------------------------------- columns
Value* ElementAccess::load_columns(std::size_t l, Value* column, Value* mask) {
  const plan::Load& load = k_.loads[l];
  const std::int64_t stride = l_.load_strides[l].back();
  if (stride == 0 && (load.bounds.empty() || load.source == Source::number))
    return load_row_value(l);
  if (load.source == Source::index) {
    Value* first = b_.CreateAdd(load_row(l), b_.CreateMul(column, i64(stride)));
    return index_value(load, b_.CreateAdd(b_.CreateVectorSplat(lanes_, first), steps(stride)));
  }
  return load_from(column_place(l, column), l, mask);
}
Value* ElementAccess::column_place(std::size_t l, Value* column) {
  llvm::Type* element = op_.element_type(k_.loads[l].dtype);
  if (l_.turned_loads[l]) return in_tile(tile(load_tile_at_[l]), element, column);
  Value* first = b_.CreateAdd(load_row(l), b_.CreateMul(column, i64(l_.load_strides[l].back())));
  return b_.CreateGEP(element, load_pointer(l), first);
}
Value* ElementAccess::load_from(Value* from, std::size_t l, Value* mask) {
  const plan::Load& load = k_.loads[l];
  const std::int64_t stride = l_.load_strides[l].back();
  llvm::Type* element = op_.element_type(load.dtype);
  auto* type = llvm::FixedVectorType::get(element, lanes_);
  Value* v = nullptr;
  if (stride != 1 && !l_.turned_loads[l]) {
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
void ElementAccess::store_columns(std::size_t s, Value* value, Value* column, Value* mask) {
  const plan::Store& store = k_.stores[s];
  Value* v = op_.to_memory(value, store.dtype);
  const std::int64_t stride = l_.store_strides[s].back();
  llvm::Type* element = op_.element_type(store.dtype);
  Value* first = b_.CreateAdd(row_offset(l_.store_strides[s]), b_.CreateMul(column, i64(stride)));
  const bool turned = l_.turned_stores[s];
  Value* to = turned ? in_tile(tile(store_tile_at_[s]), element, column)
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

// ----------------------------------------------------------------------------------------- pieces
Value* ElementAccess::choose(const plan::Node& choice, Value* column, Value* mask) {
  const std::vector<std::size_t> loads = bounds_.loads(choice, in_interior_);
  if (Value* const one = choose_place(loads, column, mask)) return one;
  Value* chosen = nullptr;
  for (std::size_t i = loads.size(); i-- > 0;) {
    const std::size_t l = loads[i];
    Value* inside = bounds_.in_columns(l, column, in_interior_);
    if (Value* const row = bounds_.in_row(l))
      inside = both(b_, b_.CreateVectorSplat(lanes_, row), inside);
    Value* const v = load_columns(l, column, both(b_, inside, mask));
    const bool is_all = chosen == nullptr || inside == nullptr;
    chosen = is_all ? v : b_.CreateSelect(inside, v, chosen);
  }
  return chosen;
}
// Where the row alone decides which operand is read: one address is chosen, not its elements.
Value* ElementAccess::choose_place(const std::vector<std::size_t>& loads, Value* column,
                                   Value* mask) {
  const std::size_t last = loads.back();
  const std::int64_t stride = l_.load_strides[last].back();
  for (std::size_t l : loads) {
    if (k_.loads[l].source != Source::memory || l_.load_strides[l].back() != stride ||
        stride == 0 || bounds_.in_columns(l, column, in_interior_) != nullptr)
      return nullptr;
  }
  Value* place = column_place(last, column);
  for (std::size_t i = loads.size() - 1; i-- > 0;)
    place = b_.CreateSelect(bounds_.in_row(loads[i]), column_place(loads[i], column), place);
  return load_from(place, last, mask);
}

// ----------------------------------------------------------------------------------------- tiles
// Operands and results that lie close together along rows wait in scratch memory, turned.
void ElementAccess::turn_loads() {
  for (std::size_t l = 0; l < k_.loads.size(); ++l) {
    if (l_.turned_loads[l])
      emit_turned(load_pointer(l), l_.load_strides[l], k_.loads[l].dtype, load_tile_at_[l], true);
  }
}
void ElementAccess::turn_stores() {
  for (std::size_t s = 0; s < k_.stores.size(); ++s) {
    if (l_.turned_stores[s])
      emit_turned(store_pointer(s), l_.store_strides[s], k_.stores[s].dtype, store_tile_at_[s],
                  false);
  }
}
void ElementAccess::emit_turned(Value* memory, const Ints& strides, Dtype d, std::int64_t tile_at,
                                bool is_load) {
  find_row(given_.row_begin);
  llvm::Type* element = op_.element_type(d);
  Value* first =
      b_.CreateAdd(row_offset(strides), b_.CreateMul(given_.column_begin, i64(strides.back())));
  const TurnedTile turned{element,
                          itemsize(d),
                          b_.CreateGEP(element, memory, first),
                          tile(tile_at),
                          strides.back(),
                          l_.tile_columns,
                          b_.CreateSub(given_.row_end, given_.row_begin),
                          b_.CreateSub(given_.column_end, given_.column_begin)};
  if (is_load)
    emit_turned_load(b_, turned, lanes_);
  else
    emit_turned_store(b_, turned, lanes_);
}
Value* ElementAccess::tile(std::int64_t at) {
  return b_.CreateGEP(b_.getInt8Ty(), given_.scratch, i64(at));
}
Value* ElementAccess::in_tile(Value* tile, llvm::Type* element, Value* column) {
  Value* row = b_.CreateMul(b_.CreateSub(row_, given_.row_begin), i64(l_.tile_columns));
  return b_.CreateGEP(element, tile, b_.CreateAdd(row, b_.CreateSub(column, given_.column_begin)));
}

}  // namespace reprise::codegen
