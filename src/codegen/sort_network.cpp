#include "base/dtype.h"
#include "codegen/sort_ir.h"
#include "codegen/turn_ir.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace reprise::codegen {
namespace {

using llvm::Value;
using Values = std::vector<Value*>;

// Batcher's merge exchange (Knuth, volume 3, 5.2.2, algorithm M), for any n. In one stage, places i
// and i + distance are compared for all i whose bit `period` is that of `phase`: the j-th such i
// has the bits of j around that bit.
struct Stage {
  std::int64_t period, phase, distance, count;
};
std::vector<Stage> stages_of(std::int64_t n) {
  std::int64_t highest = 1;
  while (2 * highest < n) highest *= 2;
  std::vector<Stage> stages;
  for (std::int64_t period = highest; period > 0; period /= 2) {
    std::int64_t phase = 0, distance = period;
    for (std::int64_t next = highest;; next /= 2) {
      // from the first i on
      const std::int64_t places = std::max<std::int64_t>(0, n - distance - phase);
      const std::int64_t count =
          places / (2 * period) * period + std::min(places % (2 * period), period);
      stages.push_back({period, phase, distance, count});
      if (next == period) break;
      distance = next - period;
      phase = period;
    }
  }
  return stages;
}

// Lanes are runs: neighbouring rows, turned in registers, or neighbouring columns. Vector i of a
// buffer has the i-th elements of all lanes.
class NetworkSort : SortCode {
 public:
  NetworkSort(llvm::Module& m, llvm::IRBuilderBase& b, const SortShape& shape, unsigned lanes)
      : SortCode(m, b, shape), lanes_(lanes) {}

  EmittedKernel emit(const std::string& name) {
    begin(name);
    // along which runs are neighbours
    const std::int64_t side = shape_.inner == 1 ? shape_.outer : shape_.inner;
    groups_ = (side + lanes_ - 1) / lanes_;
    const std::int64_t units = shape_.inner == 1 ? groups_ : groups_ * shape_.outer;
    EmittedKernel out;
    out.loops = unit_loops(units, shape_.n * lanes_);
    out.memory.scratch_bytes = place_buffers();
    code_.loop(args_.row_begin, args_.row_end, 1, [&](Value* unit) { sort(unit, side); });
    b_.CreateRetVoid();
    return out;
  }

 private:
  std::size_t place_buffers() {
    const std::size_t vectors = static_cast<std::size_t>(shape_.n) * lanes_;
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < shape_.keys; ++k) {
      buffers_.push_back({bytes, bits(shape_.dtypes[k]), align(shape_.dtypes[k])});
      bytes += vectors * std::max<std::size_t>(4, itemsize(shape_.dtypes[k]));
    }
    if (!shape_.is_alone()) {
      buffers_.push_back({bytes, b_.getInt32Ty(), llvm::Align(4)});
      bytes += vectors * 4;
    }
    return bytes;
  }

  // ---------------------------------------------------------------------------------------- groups
  void sort(Value* unit, std::int64_t side) {
    Value* const group = shape_.inner == 1 ? unit : b_.CreateURem(unit, code_.i64(groups_));
    Value* const begin = b_.CreateMul(group, code_.i64(lanes_));
    first_run_ = shape_.inner == 1
                     ? begin
                     : b_.CreateAdd(b_.CreateMul(b_.CreateUDiv(unit, code_.i64(groups_)),
                                                 code_.i64(shape_.inner)),
                                    begin);
    Value* const left = b_.CreateSub(code_.i64(side), begin);
    count_ = b_.CreateSelect(b_.CreateICmpSLT(left, code_.i64(lanes_)), left, code_.i64(lanes_));
    is_there_ = side % lanes_ == 0 ? nullptr
                                   : b_.CreateICmpSLT(code_.steps(lanes_, 1),
                                                      b_.CreateVectorSplat(lanes_, count_));
    Value* special = nullptr;
    for (std::size_t k = 0; k < shape_.keys; ++k) special = load_keys(k);
    if (!shape_.is_alone()) number_positions();
    run_stages();
    if (!shape_.is_alone()) return store_by_position();
    store_keys();
    if (!is_floating(shape_.dtypes[0])) return;
    code_.if_true(b_.CreateOrReduce(special),
                  [&] { each_run([&](Value*, Value* first) { restore_specials(first); }); });
  }
  void each_run(const std::function<void(Value* lane, Value* first)>& body) {
    code_.loop(code_.i64(0), count_, 1,
               [&](Value* lane) { body(lane, first_of(b_.CreateAdd(first_run_, lane))); });
  }

  // --------------------------------------------------------------------------------------- buffers
  struct Buffer {
    std::size_t offset;
    llvm::Type* element;
    llvm::Align align;
  };
  Value* vector_place(const Buffer& buffer, Value* i) {
    Value* const base = b_.CreateConstGEP1_64(b_.getInt8Ty(), args_.scratch, buffer.offset);
    return b_.CreateGEP(buffer.element, base, b_.CreateMul(i, code_.i64(lanes_)));
  }
  Value* load_vector(const Buffer& buffer, Value* i) {
    return b_.CreateAlignedLoad(llvm::FixedVectorType::get(buffer.element, lanes_),
                                vector_place(buffer, i), buffer.align);
  }
  void store_vector(const Buffer& buffer, Value* i, Value* v) {
    b_.CreateAlignedStore(v, vector_place(buffer, i), buffer.align);
  }

  // ----------------------------------------------------------------------- between memory and keys
  // tile(first place, how many) for all squares of a group of rows; the last one may be narrower.
  template <class Tile>
  Values each_tile(const Values& start, const Tile& tile) {
    const std::int64_t whole = shape_.n / lanes_ * lanes_;
    const auto end =
        code_.loop(code_.i64(0), code_.i64(whole), lanes_, start,
                   [&](Value* i, const Values& carried) { return tile(i, lanes_, carried); });
    return whole == shape_.n
               ? end.carried
               : tile(code_.i64(whole), static_cast<unsigned>(shape_.n - whole), end.carried);
  }
  Value* first_places(unsigned count) {
    return count == lanes_ ? nullptr
                           : b_.CreateICmpSLT(code_.steps(lanes_, 1),
                                              b_.CreateVectorSplat(lanes_, code_.i64(count)));
  }
  // Rows after the last one are the last one again.
  Value* row_place(Value* base, Dtype d, unsigned lane, Value* i) {
    Value* here = code_.i64(lane);
    if (is_there_ != nullptr) {
      Value* const last = b_.CreateSub(count_, code_.i64(1));
      here = b_.CreateSelect(b_.CreateICmpSLT(here, last), here, last);
    }
    return place(base, d, first_of(b_.CreateAdd(first_run_, here)), i);
  }
  Value* load(Value* from, llvm::FixedVectorType* type, Dtype d, Value* mask) {
    if (mask == nullptr) return b_.CreateAlignedLoad(type, from, align(d));
    return b_.CreateMaskedLoad(type, from, align(d), mask, llvm::Constant::getNullValue(type));
  }
  void store(Value* v, Value* to, Dtype d, Value* mask) {
    if (mask == nullptr)
      b_.CreateAlignedStore(v, to, align(d));
    else
      b_.CreateMaskedStore(v, to, align(d), mask);
  }

  // Whether there are elements that their keys do not tell, per lane.
  Value* load_keys(std::size_t k) {
    const Dtype d = shape_.dtypes[k];
    auto* const type = llvm::FixedVectorType::get(bits(d), lanes_);
    const bool watches = shape_.is_alone() && is_floating(d);
    const auto key = [&](Value* x) { return sort_key(b_, x, d, !shape_.is_alone()); };
    const Values none{
        llvm::Constant::getNullValue(llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_))};
    if (shape_.inner > 1) {
      Value* const first = first_of(first_run_);
      return code_
          .loop(
              code_.i64(0), code_.i64(shape_.n), 1, none,
              [&](Value* i, const Values& special) {
                Value* const x = load(place(in_[k], d, first, i), type, d, is_there_);
                store_vector(buffers_[k], i, key(x));
                return Values{watches ? b_.CreateOr(special[0], is_special(b_, x, d)) : special[0]};
              })
          .carried[0];
    }
    return each_tile(none, [&](Value* i, unsigned count, const Values& special) {
      Values rows;
      Value* any = special[0];
      for (unsigned lane = 0; lane < lanes_; ++lane) {
        Value* const x = load(row_place(in_[k], d, lane, i), type, d, first_places(count));
        if (watches) any = b_.CreateOr(any, is_special(b_, x, d));
        rows.push_back(key(x));
      }
      const Values columns = transposed(b_, std::move(rows));
      for (unsigned j = 0; j < count; ++j)
        store_vector(buffers_[k], b_.CreateAdd(i, code_.i64(j)), columns[j]);
      return Values{any};
    })[0];
  }
  void store_keys() {
    const Dtype d = shape_.dtypes[0];
    if (shape_.inner > 1) {
      Value* const first = first_of(first_run_);
      code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
        store(sort_element(b_, load_vector(buffers_[0], i), d), place(out_[0], d, first, i), d,
              is_there_);
      });
      return;
    }
    each_tile({}, [&](Value* i, unsigned count, const Values&) {
      Values columns;
      for (unsigned j = 0; j < lanes_; ++j) {
        columns.push_back(
            j < count ? sort_element(b_, load_vector(buffers_[0], b_.CreateAdd(i, code_.i64(j))), d)
                      : columns[0]);
      }
      const Values rows = transposed(b_, std::move(columns));
      for (unsigned lane = 0; lane < lanes_; ++lane)
        store(rows[lane], row_place(out_[0], d, lane, i), d, first_places(count));
      return Values{};
    });
  }

  // ------------------------------------------------------------------------------------- positions
  void number_positions() {
    code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
      store_vector(buffers_.back(), i,
                   b_.CreateVectorSplat(lanes_, b_.CreateTrunc(i, b_.getInt32Ty())));
    });
  }
  void store_by_position() {
    each_run([&](Value* lane, Value* first) {
      for (std::size_t k = 0; k < shape_.dtypes.size(); ++k) {
        const Dtype d = shape_.dtypes[k];
        code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
          Value* const at = b_.CreateGEP(b_.getInt32Ty(), vector_place(buffers_.back(), i), lane);
          Value* const position = b_.CreateZExt(
              b_.CreateAlignedLoad(b_.getInt32Ty(), at, llvm::Align(4)), b_.getInt64Ty());
          Value* const x =
              b_.CreateAlignedLoad(bits(d), place(in_[k], d, first, position), align(d));
          b_.CreateAlignedStore(x, place(out_[k], d, first, i), align(d));
        });
      }
    });
  }

  // --------------------------------------------------------------------------------------- network
  void run_stages() {
    const std::vector<Stage> stages = stages_of(shape_.n);
    std::vector<std::uint64_t> numbers;
    for (const Stage& s : stages) {
      for (std::int64_t v : {s.period, s.phase, s.distance, s.count})
        numbers.push_back(static_cast<std::uint64_t>(v));
    }
    llvm::Constant* const data = llvm::ConstantDataArray::get(m_.getContext(), numbers);
    auto* const table = new llvm::GlobalVariable(m_, data->getType(), true,
                                                 llvm::GlobalValue::PrivateLinkage, data);
    code_.loop(code_.i64(0), code_.i64(static_cast<std::int64_t>(stages.size())), 1, [&](Value* s) {
      const auto number = [&](std::int64_t k) {
        Value* const at = b_.CreateAdd(b_.CreateMul(s, code_.i64(4)), code_.i64(k));
        return b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), table, at));
      };
      Value *const period = number(0), *const phase = number(1), *const distance = number(2),
                   *const count = number(3);
      Value* const below = b_.CreateSub(period, code_.i64(1));
      Value* const above = b_.CreateNot(below);
      code_.loop(code_.i64(0), count, 1, [&](Value* j) {
        Value* const high = b_.CreateShl(b_.CreateAnd(j, above), 1);
        Value* const i = b_.CreateAdd(b_.CreateOr(high, b_.CreateAnd(j, below)), phase);
        exchange(i, b_.CreateAdd(i, distance));
      });
    });
  }
  void exchange(Value* i, Value* j) {
    Values a, b;
    for (const Buffer& buffer : buffers_) {
      a.push_back(load_vector(buffer, i));
      b.push_back(load_vector(buffer, j));
    }
    if (shape_.is_alone()) {
      store_vector(buffers_[0], i, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a[0], b[0]));
      store_vector(buffers_[0], j, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a[0], b[0]));
      return;
    }
    // Positions, which come last, are all different.
    Value* swaps = b_.CreateICmpUGT(a.back(), b.back());
    for (std::size_t k = shape_.keys; k-- > 0;) {
      swaps = b_.CreateOr(b_.CreateICmpUGT(a[k], b[k]),
                          b_.CreateAnd(b_.CreateICmpEQ(a[k], b[k]), swaps));
    }
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      store_vector(buffers_[k], i, b_.CreateSelect(swaps, b[k], a[k]));
      store_vector(buffers_[k], j, b_.CreateSelect(swaps, a[k], b[k]));
    }
  }

  unsigned lanes_;
  std::int64_t groups_ = 1;
  std::vector<Buffer> buffers_;  // of keys, then positions
  Value *first_run_ = nullptr, *count_ = nullptr, *is_there_ = nullptr;
};

}  // namespace

double network_depth(std::int64_t n) {
  double comparisons = 0;
  for (const Stage& s : stages_of(n)) comparisons += static_cast<double>(s.count);
  return comparisons / static_cast<double>(n);
}

EmittedKernel emit_network_sort(llvm::Module& m, const std::string& name, const SortShape& shape,
                                unsigned lanes) {
  llvm::IRBuilder<> b(m.getContext());
  return NetworkSort(m, b, shape, lanes).emit(name);
}

}  // namespace reprise::codegen
