// Cumulative sums, products and extremes.
//
// The order of operations is the evaluator's (ops/cumulative.cpp): along the axis, blocks of 64
// elements are accumulated one by one (`part`), and what the blocks before give together (`base`)
// is combined with every element's part. So long sums keep their digits, and blocks can be
// accumulated side by side:
//
//   other axes    lanes are neighbouring columns, and the axis is walked once
//   last axis     lanes are blocks of a row, or short rows: tiles of lanes x lanes elements are turned in registers
#include "base/dtype.h"
#include "base/machine.h"
#include "codegen/code_blocks.h"
#include "codegen/emit_rules.h"
#include "codegen/equation_code.h"
#include "codegen/turn_ir.h"
#include "ops/records.h"
#include "ops/reduce.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace reprise::codegen {
namespace {

using plan::ceil_div;

using llvm::Value;
using Values = std::vector<Value*>;

constexpr std::int64_t block = 64;  // steps, as the evaluator has it
// of neighbouring columns, walked together: what one read brings near is used
constexpr unsigned column_vectors = 4;

template <class R>
Literal neutral_of(Dtype d) {
  Literal out;
  visit_dtype(d, [&](auto tag) {
    using T = Compute<decltype(tag)>;
    const T value = R::template neutral<T>();
    out = load_literal(d, &value);
  });
  return out;
}

struct Monoid {
  const Primitive* prim;
  const Primitive* step;
  Literal (*neutral)(Dtype);
};
constexpr Monoid monoids[] = {{&cumsum_p, &add_p, neutral_of<Sum>},
                              {&cumprod_p, &mul_p, neutral_of<Product>},
                              {&cummax_p, &max_p, neutral_of<Largest>},
                              {&cummin_p, &min_p, neutral_of<Smallest>}};

// The operand as [outer, n, inner].
struct Axis {
  explicit Axis(const EquationKernel& k) {
    const Shape& shape = k.in[0].shape;
    const auto axis = static_cast<std::size_t>(k.eqn->params.get<std::int64_t>("axis"));
    n = shape[axis];
    inner = row_major_strides(shape)[axis];
    outer = k.in[0].size() / (n * inner);
    reverse = k.eqn->params.get<bool>("reverse");
  }
  std::int64_t outer, n, inner;
  bool reverse;
};

class CumulativeEmitter {
 public:
  CumulativeEmitter(llvm::Module& m, const EquationKernel& k, const VectorTarget& target)
      : m_(m),
        b_(m.getContext()),
        code_(b_),
        axis_(k),
        dtype_(k.in[0].dtype),
        sum_(compute_dtype(dtype_)),
        lanes_(target.vector_bytes /
               std::max<unsigned>(4, static_cast<unsigned>(itemsize(dtype_)))),
        op_(b_, lanes_, target) {
    const auto monoid = std::find_if(std::begin(monoids), std::end(monoids),
                                     [&](const Monoid& x) { return x.prim == k.eqn->prim; });
    step_.prim = monoid->step;
    neutral_ = op_.splat(monoid->neutral(sum_), sum_);
  }

  EmittedKernel emit(const std::string& name) {
    const KernelArguments args = begin_kernel(m_, b_, name);
    from_ = code_.pointer(args.pointers, 0);
    to_ = code_.pointer(args.pointers, 1);
    scratch_ = args.scratch;
    void (CumulativeEmitter::*unit)(Value*) = &CumulativeEmitter::long_row;
    EmittedKernel out;
    std::int64_t units = axis_.outer, elements = axis_.n;
    if (axis_.inner > 1) {
      const std::int64_t width = std::min<std::int64_t>(axis_.inner, column_vectors * lanes_);
      unit = &CumulativeEmitter::columns;
      units = axis_.outer * ceil_div(axis_.inner, column_vectors * lanes_);
      elements = axis_.n * width;
    } else if (axis_.n <= block) {
      unit = &CumulativeEmitter::short_rows;
      units = ceil_div(axis_.outer, lanes_);
      elements = axis_.n * lanes_;
    } else {
      out.memory.scratch_bytes = static_cast<std::size_t>(block * lanes_) * itemsize(sum_);
    }
    code_.loop(args.row_begin, args.row_end, 1, [&](Value* i) { (this->*unit)(i); });
    b_.CreateRetVoid();
    out.loops = unit_loops(units, elements);
    return out;
  }

 private:
  // ------------------------------------------------------------------------------------- elements
  Value* combine(Value* a, Value* b) {
    const Type t{sum_, {}};
    const Type types[] = {t, t};
    Value* operands[] = {a, b};
    return op_.emit(step_, operands, types, t);
  }
  Value* combined(Value* base, Value* part) {
    return op_.to_memory(op_.rounded(combine(base, part), dtype_), dtype_);
  }
  llvm::Type* element() { return op_.element_type(dtype_); }
  llvm::Type* elements() { return llvm::FixedVectorType::get(element(), lanes_); }
  llvm::Align align() const { return llvm::Align(itemsize(dtype_)); }
  Value* at(Value* base, Value* offset) { return b_.CreateGEP(element(), base, offset); }
  Value* load(Value* from, Value* mask) {
    Value* v = mask == nullptr
                   ? static_cast<Value*>(b_.CreateAlignedLoad(elements(), from, align()))
                   : b_.CreateMaskedLoad(elements(), from, align(), mask,
                                         llvm::Constant::getNullValue(elements()));
    return op_.from_memory(v, dtype_);
  }
  void store(Value* v, Value* to, Value* mask) {
    if (mask == nullptr)
      b_.CreateAlignedStore(v, to, align());
    else
      b_.CreateMaskedStore(v, to, align(), mask);
  }
  // The base of the first block, as the evaluator computes it.
  Value* first_base() { return combine(neutral_, neutral_); }

  // ------------------------------------------------------------------------------------ other axes
  void columns(Value* unit) {
    const std::int64_t width = column_vectors * lanes_, tiles = ceil_div(axis_.inner, width);
    Value* const tile = b_.CreateURem(unit, code_.i64(tiles));
    Value* const outer = b_.CreateUDiv(unit, code_.i64(tiles));
    Value* const column = b_.CreateMul(tile, code_.i64(width));
    Value* const first =
        b_.CreateAdd(b_.CreateMul(outer, code_.i64(axis_.n * axis_.inner)), column);
    if (axis_.inner < width) return walk(first, code_.i64(axis_.inner));
    if (axis_.inner % width == 0) return walk(first, nullptr);
    Value* const left = b_.CreateSub(code_.i64(axis_.inner), column);
    code_.if_true(b_.CreateICmpSGE(left, code_.i64(width)), [&] { walk(first, nullptr); });
    code_.if_true(b_.CreateICmpSLT(left, code_.i64(width)), [&] { walk(first, left); });
  }
  // Along the axis with `column_vectors` vectors, of which `count` columns are there; null: all.
  void walk(Value* first, Value* count) {
    Values masks(column_vectors, nullptr);
    for (unsigned v = 0; v < column_vectors && count != nullptr; ++v) {
      Value* const columns =
          b_.CreateAdd(code_.steps(lanes_, 1), b_.CreateVectorSplat(lanes_, code_.i64(v * lanes_)));
      masks[v] = b_.CreateICmpSLT(columns, b_.CreateVectorSplat(lanes_, count));
    }
    const auto used = static_cast<unsigned>(
        std::min<std::int64_t>(column_vectors, ceil_div(axis_.inner, lanes_)));
    const auto in_block = [&](Value* begin, std::int64_t steps, const Values& bases) {
      return code_
          .loop(code_.i64(0), code_.i64(steps), 1, Values(used, neutral_),
                [&](Value* s, const Values& parts) {
                  return step(first, b_.CreateAdd(begin, s), bases, parts, masks);
                })
          .carried;
    };
    const auto next_bases = [&](const Values& carried) {
      Values bases;
      for (unsigned v = 0; v < used; ++v) bases.push_back(combine(carried[v], carried[used + v]));
      return bases;
    };
    const std::int64_t whole = axis_.n / block;
    const Values start(2 * used, neutral_);  // bases, then the parts of the block before
    const auto blocks = code_.loop(
        code_.i64(0), code_.i64(whole), 1, start, [&](Value* number, const Values& carried) {
          Values bases = next_bases(carried);
          const Values parts = in_block(b_.CreateMul(number, code_.i64(block)), block, bases);
          bases.insert(bases.end(), parts.begin(), parts.end());
          return bases;
        });
    if (axis_.n % block != 0)
      in_block(code_.i64(whole * block), axis_.n % block, next_bases(blocks.carried));
  }
  Values step(Value* first, Value* number, const Values& bases, const Values& parts,
              const Values& masks) {
    Value* const row = axis_.reverse ? b_.CreateSub(code_.i64(axis_.n - 1), number) : number;
    Value* const offset = b_.CreateAdd(first, b_.CreateMul(row, code_.i64(axis_.inner)));
    Values next;
    for (unsigned v = 0; v < bases.size(); ++v) {
      Value* const place = b_.CreateAdd(offset, code_.i64(v * lanes_));
      next.push_back(combine(parts[v], load(at(from_, place), masks[v])));
      store(combined(bases[v], next[v]), at(to_, place), masks[v]);
    }
    return next;
  }

  // ------------------------------------------------------------------------------------- last axis
  // `lanes` steps of as many runs side by side. columns[j] is the element at place j of every run;
  // where fewer than `lanes` steps are left, the places at the end (reverse: at the beginning) are
  // not there.
  struct Tile {
    Values parts;  // one vector per run
    Value* total;  // lane i: of run i
  };
  Tile accumulate(Values runs, Value* part) {
    Values columns = transposed(b_, std::move(runs));
    for (unsigned s = 0; s < lanes_; ++s) {
      Value*& column = columns[axis_.reverse ? lanes_ - 1 - s : s];
      column = part = combine(part, column);
    }
    return {transposed(b_, std::move(columns)), part};
  }
  // The places of a tile that are there, of `count`; null: all.
  Value* places(std::int64_t count) {
    if (count >= static_cast<std::int64_t>(lanes_)) return nullptr;
    std::vector<llvm::Constant*> bits;
    for (unsigned j = 0; j < lanes_; ++j)
      bits.push_back(b_.getInt1((axis_.reverse ? lanes_ - 1 - j : j) < count));
    return llvm::ConstantVector::get(bits);
  }
  // Where tile number t of a run of `length` elements begins; may be before the run, where places
  // are not there.
  std::int64_t tile_begin(std::int64_t t, std::int64_t length) const {
    return axis_.reverse ? length - (t + 1) * lanes_ : t * lanes_;
  }

  // Rows of up to a block: lanes are rows. Those after the last row are the last row again.
  void short_rows(Value* unit) {
    Values rows;
    for (unsigned i = 0; i < lanes_; ++i) {
      Value* row = b_.CreateAdd(b_.CreateMul(unit, code_.i64(lanes_)), code_.i64(i));
      if (axis_.outer % lanes_ != 0) {
        Value* const last = code_.i64(axis_.outer - 1);
        row = b_.CreateSelect(b_.CreateICmpSLT(row, last), row, last);
      }
      rows.push_back(b_.CreateMul(row, code_.i64(axis_.n)));
    }
    Value* part = neutral_;
    Value* const base = first_base();
    for (std::int64_t t = 0; t * lanes_ < axis_.n; ++t) {
      Value* const begin = code_.i64(tile_begin(t, axis_.n));
      Value* const mask = places(axis_.n - t * lanes_);
      Values runs;
      for (Value* row : rows) runs.push_back(load(at(from_, b_.CreateAdd(row, begin)), mask));
      const Tile tile = accumulate(std::move(runs), part);
      for (unsigned i = 0; i < lanes_; ++i)
        store(combined(base, tile.parts[i]), at(to_, b_.CreateAdd(rows[i], begin)), mask);
      part = tile.total;
    }
  }

  // Lanes are blocks of a row. Their parts wait in scratch memory until the bases are known.
  void long_row(Value* unit) {
    Value* const row = b_.CreateMul(unit, code_.i64(axis_.n));
    const std::int64_t group = block * lanes_, groups = axis_.n / group;
    Values carried =
        code_
            .loop(code_.i64(0), code_.i64(groups), 1, {neutral_, neutral_},
                  [&](Value* g, const Values& before) {
                    Value* const done = b_.CreateMul(g, code_.i64(group));
                    Value* const first =
                        axis_.reverse ? b_.CreateSub(code_.i64(axis_.n - group), done) : done;
                    return whole_group(b_.CreateAdd(row, first), before);
                  })
            .carried;
    const std::int64_t left = axis_.n - groups * group;
    if (left > 0)
      last_group(axis_.reverse ? row : b_.CreateAdd(row, code_.i64(groups * group)), left, carried);
  }
  // Block number i of a group of `size` elements, in the order of the steps, counted from the
  // group's first element. A reversed group's last block may begin before the group.
  std::int64_t block_begin(std::int64_t i, std::int64_t size) const {
    return axis_.reverse ? size - (i + 1) * block : i * block;
  }

  Value* part_place(unsigned lane, Value* place) {
    Value* const index = b_.CreateAdd(code_.i64(lane * block), place);
    return b_.CreateGEP(op_.vector_type(sum_)->getScalarType(), scratch_, index);
  }
  llvm::Align part_align() const { return llvm::Align(itemsize(sum_)); }

  Values whole_group(Value* first, const Values& before) {
    const std::int64_t size = block * lanes_;
    Value* const total =
        code_
            .loop(code_.i64(0), code_.i64(block / lanes_), 1, {neutral_},
                  [&](Value* t, const Values& part) {
                    Value* const done = b_.CreateMul(t, code_.i64(lanes_));
                    Value* const place =
                        axis_.reverse ? b_.CreateSub(code_.i64(block - lanes_), done) : done;
                    Values runs;
                    for (unsigned i = 0; i < lanes_; ++i) {
                      Value* const start = b_.CreateAdd(first, code_.i64(block_begin(i, size)));
                      runs.push_back(load(at(from_, b_.CreateAdd(start, place)), nullptr));
                    }
                    const Tile tile = accumulate(std::move(runs), part[0]);
                    for (unsigned i = 0; i < lanes_; ++i)
                      b_.CreateAlignedStore(tile.parts[i], part_place(i, place), part_align());
                    return Values{tile.total};
                  })
            .carried[0];
    Values state = before;
    for (unsigned i = 0; i < lanes_; ++i)
      state = finish_block(i, b_.CreateAdd(first, code_.i64(block_begin(i, size))), block, total,
                           state);
    return state;
  }
  // Fewer blocks than lanes, and the last of them may be shorter.
  void last_group(Value* first, std::int64_t size, const Values& before) {
    Value* total = neutral_;
    const auto steps_left = [&](unsigned i, std::int64_t t) {
      return std::clamp<std::int64_t>(size - static_cast<std::int64_t>(i) * block, 0, block) -
             t * static_cast<std::int64_t>(lanes_);
    };
    for (std::int64_t t = 0; t < block / lanes_ && steps_left(0, t) > 0; ++t) {
      Value* const place = code_.i64(tile_begin(t, block));
      Values runs;
      for (unsigned i = 0; i < lanes_; ++i) {
        Value* const start = b_.CreateAdd(first, code_.i64(block_begin(i, size)));
        runs.push_back(steps_left(i, t) > 0
                           ? load(at(from_, b_.CreateAdd(start, place)), places(steps_left(i, t)))
                           : neutral_);
      }
      const Tile tile = accumulate(std::move(runs), total);
      for (unsigned i = 0; i < lanes_; ++i) {
        if (steps_left(i, t) > 0)
          b_.CreateAlignedStore(tile.parts[i], part_place(i, place), part_align());
      }
      total = tile.total;
    }
    Values state = before;
    for (unsigned i = 0; steps_left(i, 0) > 0; ++i) {
      state = finish_block(i, b_.CreateAdd(first, code_.i64(block_begin(i, size))),
                           steps_left(i, 0), total, state);
      if (i + 1 == lanes_) break;
    }
  }
  // before: the base of the block before, and what that block gave.
  Values finish_block(unsigned lane, Value* first, std::int64_t steps, Value* totals,
                      const Values& before) {
    Value* const base = combine(before[0], before[1]);
    for (std::int64_t t = 0; t * lanes_ < steps; ++t) {
      Value* const place = code_.i64(tile_begin(t, block));
      Value* const part =
          b_.CreateAlignedLoad(op_.vector_type(sum_), part_place(lane, place), part_align());
      store(combined(base, part), at(to_, b_.CreateAdd(first, place)), places(steps - t * lanes_));
    }
    return {base, b_.CreateShuffleVector(
                      totals, llvm::SmallVector<int, 32>(lanes_, static_cast<int>(lane)))};
  }

  llvm::Module& m_;
  llvm::IRBuilder<> b_;
  CodeBlocks code_;
  Axis axis_;
  Dtype dtype_, sum_;
  unsigned lanes_;
  OpEmitter op_;
  Equation step_;
  Value *neutral_ = nullptr, *from_ = nullptr, *to_ = nullptr, *scratch_ = nullptr;
};

bool can_emit(const EquationKernel& k) {
  return k.in[0].size() >= machine::elements_worth_code && k.eqn->in[0].is_var();
}
EmittedKernel emit(llvm::Module& m, const std::string& name, const EquationKernel& k,
                   const VectorTarget& target) {
  return CumulativeEmitter(m, k, target).emit(name);
}

constexpr EquationRow rows[] = {{&cumsum_p, can_emit, emit},
                                {&cumprod_p, can_emit, emit},
                                {&cummax_p, can_emit, emit},
                                {&cummin_p, can_emit, emit}};

}  // namespace

std::span<const EquationRow> cumulative_rows() { return rows; }

}  // namespace reprise::codegen
