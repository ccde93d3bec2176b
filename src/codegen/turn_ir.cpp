#include "codegen/turn_ir.h"

#include "codegen/code_blocks.h"

#include <llvm/IR/IRBuilder.h>

namespace reprise::codegen {
namespace {

using llvm::Value;

class TurnedCopy {
 public:
  TurnedCopy(llvm::IRBuilderBase& b, const TurnedTile& t, unsigned lanes, bool to_tile)
      : b_(b),
        code_(b),
        t_(t),
        lanes_(lanes),
        to_tile_(to_tile),
        vector_(llvm::FixedVectorType::get(t.element, lanes)),
        align_(t.element_bytes) {}

  // Whole squares; then what is left of the columns, and of the rows, with steps through memory.
  void emit() {
    Value* whole = b_.CreateAnd(t_.columns, code_.i64(-static_cast<std::int64_t>(lanes_)));
    Value* rest = code_.loop(code_.i64(0), t_.rows, lanes_, [&](Value* row) {
      code_.loop(code_.i64(0), t_.columns, lanes_, [&](Value* column) { square(row, column); });
      code_.loop(row, b_.CreateAdd(row, code_.i64(lanes_)), 1,
                 [&](Value* r) { row_from(r, whole); });
    });
    code_.loop(rest, t_.rows, 1, [&](Value* r) { row_from(r, code_.i64(0)); });
  }

 private:
  Value* in_memory(Value* row, Value* column) {
    return b_.CreateGEP(t_.element, t_.memory,
                        b_.CreateAdd(row, b_.CreateMul(column, code_.i64(t_.stride))));
  }
  Value* in_tile(Value* row, Value* column) {
    return b_.CreateGEP(t_.element, t_.tile,
                        b_.CreateAdd(b_.CreateMul(row, code_.i64(t_.tile_columns)), column));
  }
  void square(Value* row, Value* column) {
    const auto side = [&](bool is_tile, unsigned i) {
      return is_tile ? in_tile(b_.CreateAdd(row, code_.i64(i)), column)
                     : in_memory(row, b_.CreateAdd(column, code_.i64(i)));
    };
    std::vector<Value*> vectors;
    for (unsigned i = 0; i < lanes_; ++i)
      vectors.push_back(b_.CreateAlignedLoad(vector_, side(!to_tile_, i), align_));
    vectors = transposed(b_, std::move(vectors));
    for (unsigned i = 0; i < lanes_; ++i)
      b_.CreateAlignedStore(vectors[i], side(to_tile_, i), align_);
  }
  // The columns of a row from `first` on, some of the lanes switched off at the end.
  void row_from(Value* row, Value* first) {
    code_.loop(first, b_.CreateAdd(t_.columns, code_.i64(lanes_ - 1)), lanes_, [&](Value* column) {
      Value* left = b_.CreateVectorSplat(lanes_, b_.CreateSub(t_.columns, column));
      Value* mask = b_.CreateICmpSLT(code_.steps(lanes_, 1), left);
      Value* memory =
          b_.CreateGEP(t_.element, in_memory(row, column), code_.steps(lanes_, t_.stride));
      Value* tile = in_tile(row, column);
      if (to_tile_) {
        b_.CreateAlignedStore(b_.CreateMaskedGather(vector_, memory, align_, mask,
                                                    llvm::Constant::getNullValue(vector_)),
                              tile, align_);
      } else {
        b_.CreateMaskedScatter(b_.CreateAlignedLoad(vector_, tile, align_), memory, align_, mask);
      }
    });
  }

  llvm::IRBuilderBase& b_;
  CodeBlocks code_;
  const TurnedTile& t_;
  unsigned lanes_;
  bool to_tile_;
  llvm::FixedVectorType* vector_;
  llvm::Align align_;
};

}  // namespace

// Step `side` exchanges the off-diagonal blocks of all squares with sides of 2 * side.
std::vector<Value*> transposed(llvm::IRBuilderBase& b, std::vector<Value*> rows) {
  const auto lanes = static_cast<unsigned>(rows.size());
  for (unsigned side = 1; side < lanes; side *= 2) {
    std::vector<int> upper, lower;
    for (unsigned j = 0; j < lanes; ++j) {
      const bool first = (j & side) == 0;
      upper.push_back(static_cast<int>(first ? j : lanes + j - side));
      lower.push_back(static_cast<int>(first ? j + side : lanes + j));
    }
    for (unsigned i = 0; i < lanes; ++i) {
      if ((i & side) != 0) continue;
      Value *x = rows[i], *y = rows[i + side];
      rows[i] = b.CreateShuffleVector(x, y, upper);
      rows[i + side] = b.CreateShuffleVector(x, y, lower);
    }
  }
  return rows;
}

void emit_turned_load(llvm::IRBuilderBase& b, const TurnedTile& t, unsigned lanes) {
  TurnedCopy(b, t, lanes, true).emit();
}
void emit_turned_store(llvm::IRBuilderBase& b, const TurnedTile& t, unsigned lanes) {
  TurnedCopy(b, t, lanes, false).emit();
}

}  // namespace reprise::codegen
