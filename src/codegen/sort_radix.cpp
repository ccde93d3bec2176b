#include "base/dtype.h"
#include "base/machine.h"
#include "codegen/sort_ir.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <optional>

namespace reprise::codegen {
namespace {

using llvm::Value;
using Values = std::vector<Value*>;

// For each digit of the keys, the lowest first: counts its values, gives each a range of places,
// and moves the keys (and with them positions) there. Digits that all keys share are passed over.
class RadixSort : SortCode {
 public:
  RadixSort(llvm::Module& m, llvm::IRBuilderBase& b, const SortShape& shape)
      : SortCode(m, b, shape), digit_bits_(shape.n >= long_run ? 11 : 8) {
    for (std::size_t k = 0; k < shape.keys; ++k)
      key_bytes_ = std::max(key_bytes_, itemsize(shape.dtypes[k]));
  }

  EmittedKernel emit(const std::string& name) {
    begin(name);
    EmittedKernel out;
    out.loops = unit_loops(shape_.runs(), shape_.n * work_per_element);
    // One run has one thread.
    (shape_.runs() == 1 ? out.memory.sums_bytes : out.memory.scratch_bytes) = place_buffers();
    scratch_ = shape_.runs() == 1 ? args_.sums : args_.scratch;
    code_.loop(args_.row_begin, args_.row_end, 1, [&](Value* run) {
      if (shape_.is_alone())
        sort_alone(first_of(run));
      else
        sort_positions(first_of(run));
    });
    b_.CreateRetVoid();
    return out;
  }

 private:
  // from here on fewer passes are worth longer tables
  static constexpr std::int64_t long_run = 1 << 15;
  static constexpr std::int64_t work_per_element = 8;

  struct Buffers {
    Value *keys, *positions;  // positions: of several operands
  };
  struct KeyBuffer {
    std::optional<std::size_t> lender;  // the result whose place it takes
    std::size_t offset = 0;             // in scratch memory, without one
  };
  std::size_t place_buffers() {
    const auto n = static_cast<std::size_t>(shape_.n);
    std::size_t bytes = 0;
    const auto reserve = [&](std::size_t more) {
      constexpr auto line = static_cast<std::size_t>(machine::cache_line);
      const std::size_t here = bytes;
      bytes += (more + line - 1) / line * line;
      return here;
    };
    tables_ = reserve(static_cast<std::size_t>(most_digits()) * table() * 4);
    find_lenders();
    for (KeyBuffer& k : keys_) {
      if (!k.lender) k.offset = reserve(n * key_bytes_);
    }
    if (!shape_.is_alone()) {
      positions_[0] = reserve(n * 4);
      positions_[1] = reserve(n * 4);
    }
    return bytes;
  }
  // Results that are dense along the run are written last: until then keys may stand there. One
  // operand reads its keys from there in the end, so that they must lie as the result does.
  void find_lenders() {
    if (shape_.inner != 1) return;
    if (shape_.is_alone()) {
      keys_[1].lender = 0;
      return;
    }
    std::size_t next = 0;
    for (std::size_t k = 0; k < shape_.dtypes.size() && next < std::size(keys_); ++k) {
      if (itemsize(shape_.dtypes[k]) >= key_bytes_) keys_[next++].lender = k;
    }
  }
  std::int64_t digits(Dtype d) const {
    return (static_cast<std::int64_t>(8 * itemsize(d)) + digit_bits_ - 1) / digit_bits_;
  }
  std::int64_t most_digits() const {
    return (static_cast<std::int64_t>(8 * key_bytes_) + digit_bits_ - 1) / digit_bits_;
  }
  std::size_t table() const { return std::size_t{1} << digit_bits_; }

  Value* buffer(std::size_t offset) {
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), scratch_, offset);
  }
  Value* keys_at(const KeyBuffer& k, Value* first) {
    return k.lender ? b_.CreateGEP(bits(shape_.dtypes[*k.lender]), out_[*k.lender], first)
                    : buffer(k.offset);
  }
  Value* key_place(Value* keys, Dtype d, Value* i) { return b_.CreateGEP(bits(d), keys, i); }
  Value* position_place(Value* positions, Value* i) {
    return b_.CreateGEP(b_.getInt32Ty(), positions, i);
  }
  Value* load_position(Value* positions, Value* i) {
    return b_.CreateZExt(
        b_.CreateAlignedLoad(b_.getInt32Ty(), position_place(positions, i), llvm::Align(4)),
        b_.getInt64Ty());
  }

  // ------------------------------------------------------------------------------------------ runs
  void sort_alone(Value* first) {
    const Dtype d = shape_.dtypes[0];
    const Buffers a{keys_at(keys_[0], first), nullptr}, b{keys_at(keys_[1], first), nullptr};
    clear_tables(d);
    const auto read = code_.loop(
        code_.i64(0), code_.i64(shape_.n), 1, {b_.getFalse()},
        [&](Value* i, const Values& special) {
          Value* const x = b_.CreateAlignedLoad(bits(d), place(in_[0], d, first, i), align(d));
          add_key(a.keys, d, i, sort_key(b_, x, d, false));
          return Values{is_floating(d) ? b_.CreateOr(special[0], is_special(b_, x, d))
                                       : special[0]};
        });
    const Buffers sorted = sort_digits(d, a, b);
    code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
      Value* const key = b_.CreateAlignedLoad(bits(d), key_place(sorted.keys, d, i), align(d));
      b_.CreateAlignedStore(sort_element(b_, key, d), place(out_[0], d, first, i), align(d));
    });
    if (is_floating(d)) code_.if_true(read.carried[0], [&] { restore_specials(first); });
  }

  // By the last key, then by the one before, and so on: equal ones keep their order.
  void sort_positions(Value* first) {
    Buffers a{keys_at(keys_[0], first), buffer(positions_[0])},
        b{keys_at(keys_[1], first), buffer(positions_[1])};
    for (std::size_t k = shape_.keys; k-- > 0;) {
      const Dtype d = shape_.dtypes[k];
      const bool is_first = k + 1 == shape_.keys;
      clear_tables(d);
      code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
        Value* const position = is_first ? i : load_position(a.positions, i);
        Value* const x = b_.CreateAlignedLoad(bits(d), place(in_[k], d, first, position), align(d));
        add_key(a.keys, d, i, sort_key(b_, x, d, true));
        if (is_first)
          b_.CreateAlignedStore(b_.CreateTrunc(i, b_.getInt32Ty()), position_place(a.positions, i),
                                llvm::Align(4));
      });
      const Buffers sorted = sort_digits(d, a, b);
      Value* const is_a = b_.CreateICmpEQ(sorted.positions, a.positions);
      b.positions = b_.CreateSelect(is_a, b.positions, a.positions);
      a.positions = sorted.positions;
    }
    for (std::size_t k = 0; k < shape_.dtypes.size(); ++k) {
      const Dtype d = shape_.dtypes[k];
      code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
        Value* const from = place(in_[k], d, first, load_position(a.positions, i));
        b_.CreateAlignedStore(b_.CreateAlignedLoad(bits(d), from, align(d)),
                              place(out_[k], d, first, i), align(d));
      });
    }
  }

  // ---------------------------------------------------------------------------------------- digits
  Value* counter(Value* digit, Value* value) {
    Value* const index =
        b_.CreateAdd(b_.CreateMul(digit, code_.i64(static_cast<std::int64_t>(table()))), value);
    return b_.CreateGEP(b_.getInt32Ty(), buffer(tables_), index);
  }
  Value* load_counter(Value* at) {
    return b_.CreateAlignedLoad(b_.getInt32Ty(), at, llvm::Align(4));
  }
  Value* digit_of(Value* key, Value* digit) {
    Value* const shift = b_.CreateMul(digit, code_.i64(digit_bits_));
    Value* const value = b_.CreateLShr(key, b_.CreateZExtOrTrunc(shift, key->getType()));
    return b_.CreateAnd(b_.CreateZExt(value, b_.getInt64Ty()),
                        code_.i64(static_cast<std::int64_t>(table()) - 1));
  }
  void clear_tables(Dtype d) {
    const std::size_t bytes = static_cast<std::size_t>(digits(d)) * table() * 4;
    auto* const vector = llvm::FixedVectorType::get(b_.getInt32Ty(), 16);
    code_.loop(code_.i64(0), code_.i64(static_cast<std::int64_t>(bytes / 64)), 1, [&](Value* i) {
      b_.CreateAlignedStore(llvm::Constant::getNullValue(vector),
                            b_.CreateGEP(vector, buffer(tables_), i), llvm::Align(4));
    });
  }
  void add_key(Value* keys, Dtype d, Value* i, Value* key) {
    b_.CreateAlignedStore(key, key_place(keys, d, i), align(d));
    for (std::int64_t p = 0; p < digits(d); ++p) {
      Value* const at = counter(code_.i64(p), digit_of(key, code_.i64(p)));
      b_.CreateAlignedStore(b_.CreateAdd(load_counter(at), b_.getInt32(1)), at, llvm::Align(4));
    }
  }
  // Keys and positions in a, sorted into one of the two.
  Buffers sort_digits(Dtype d, const Buffers& a, const Buffers& b) {
    Values carried{a.keys, b.keys};
    if (a.positions != nullptr) carried.insert(carried.end(), {a.positions, b.positions});
    const auto all = code_.loop(
        code_.i64(0), code_.i64(digits(d)), 1, carried, [&](Value* digit, const Values& now) {
          Value* const key = b_.CreateAlignedLoad(bits(d), now[0], align(d));
          Value* const same = load_counter(counter(digit, digit_of(key, digit)));
          Value* const differ =
              b_.CreateICmpNE(same, b_.getInt32(static_cast<std::uint32_t>(shape_.n)));
          code_.if_true(differ, [&] {
            add_up(digit);
            move(d, digit, now);
          });
          Values next;
          for (std::size_t k = 0; k < now.size(); k += 2) {
            next.push_back(b_.CreateSelect(differ, now[k + 1], now[k]));
            next.push_back(b_.CreateSelect(differ, now[k], now[k + 1]));
          }
          return next;
        });
    return {all.carried[0], a.positions != nullptr ? all.carried[2] : nullptr};
  }
  // Counts become the first places of their values.
  void add_up(Value* digit) {
    code_.loop(code_.i64(0), code_.i64(static_cast<std::int64_t>(table())), 1, {b_.getInt32(0)},
               [&](Value* value, const Values& before) {
                 Value* const at = counter(digit, value);
                 Value* const count = load_counter(at);
                 b_.CreateAlignedStore(before[0], at, llvm::Align(4));
                 return Values{b_.CreateAdd(before[0], count)};
               });
  }
  void move(Dtype d, Value* digit, const Values& buffers) {
    code_.loop(code_.i64(0), code_.i64(shape_.n), 1, [&](Value* i) {
      Value* const key = b_.CreateAlignedLoad(bits(d), key_place(buffers[0], d, i), align(d));
      Value* const at = counter(digit, digit_of(key, digit));
      Value* const count = load_counter(at);
      b_.CreateAlignedStore(b_.CreateAdd(count, b_.getInt32(1)), at, llvm::Align(4));
      Value* const to = b_.CreateZExt(count, b_.getInt64Ty());
      b_.CreateAlignedStore(key, key_place(buffers[1], d, to), align(d));
      if (buffers.size() == 2) return;
      Value* const position =
          b_.CreateAlignedLoad(b_.getInt32Ty(), position_place(buffers[2], i), llvm::Align(4));
      b_.CreateAlignedStore(position, position_place(buffers[3], to), llvm::Align(4));
    });
  }

  std::int64_t digit_bits_;
  std::size_t key_bytes_ = 1, tables_ = 0, positions_[2] = {0, 0};
  KeyBuffer keys_[2];
  Value* scratch_ = nullptr;
};

}  // namespace

EmittedKernel emit_radix_sort(llvm::Module& m, const std::string& name, const SortShape& shape) {
  llvm::IRBuilder<> b(m.getContext());
  return RadixSort(m, b, shape).emit(name);
}

}  // namespace reprise::codegen
