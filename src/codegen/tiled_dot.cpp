#include "codegen/tiled_dot.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "codegen/matmul_calls.h"
#include "codegen/tile_ir.h"
#include "plan/loops.h"

namespace reprise::codegen {
namespace {

constexpr std::int64_t k_block = 256;     // of a sum at a time
constexpr std::int64_t block_panels = 8;  // of columns at a time: they stay in the second cache, rows of a in the first

// c (+)= a b for pairs of matrices. The right operand is read in panels of one tile's width; a panel whose numbers lie far
// apart or are transposed is copied to scratch memory once for all rows of a.
//
// Zeros at the ends of a strip of a are passed over: in causal attention half of all numbers are such. A sum starts with 0
// and stays what it is when a 0 is added, so no bit changes; where b has an infinity or NaN, all of the sum is computed.
template <class T>
class TiledDot final : public Matmul {
 public:
  explicit TiledDot(const MatmulSpec& s)
      : s_(s), tiles_(tiles_of(s.dtype)), width_(tile_vectors * static_cast<std::int64_t>(tiles_.lanes)),
        rank_(s.batch.size()), a_row_(s.a_strides[rank_]), a_column_(s.a_strides[rank_ + 1]), b_row_(s.b_strides[rank_]),
        b_column_(s.b_strides[rank_ + 1]), c_row_(s.c_strides[rank_]),
        depth_(std::min(k_block, s.k)), panels_(std::min(block_panels, plan::ceil_div(s.n, width_))) {
    const std::int64_t strips = plan::ceil_div(s.m, tiles_.most_rows);
    for (std::int64_t i = 0; i < strips; ++i) strip_rows_.push_back((s.m - first_row(i)) / (strips - i));
    plan_fetches();
  }

  std::size_t scratch_bytes() const override {
    const bool copies = !is_near(depth_, width_) || s_.n % width_ != 0;
    return copies ? static_cast<std::size_t>(depth_ * width_ * panels_) * sizeof(T) : 0;
  }
  bool run(const void* a, const void* b, const void*, void* c, void* scratch) const noexcept override {
    multiply_batches(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), static_cast<T*>(scratch), 0);
    return true;
  }

 private:
  std::int64_t first_row(std::int64_t strip) const {
    std::int64_t rows = 0;
    for (std::int64_t i = 0; i < strip; ++i) rows += strip_rows_[static_cast<std::size_t>(i)];
    return rows;
  }
  void multiply_batches(const T* a, const T* b, T* c, T* scratch, std::size_t d) const {
    if (d == rank_) return multiply(a, b, c, scratch);
    for (std::int64_t i = 0; i < s_.batch[d]; ++i) {
      multiply_batches(a + i * s_.a_strides[d], b + i * s_.b_strides[d], c + i * s_.c_strides[d], scratch, d + 1);
    }
  }
  struct Panel {
    const T* numbers;
    std::int64_t row, columns;
  };
  void multiply(const T* a, const T* b, T* c, T* scratch) const {
    for (std::int64_t k = 0; k < s_.k; k += k_block) {
      const std::int64_t depth = std::min(k_block, s_.k - k);
      for (std::int64_t j = 0; j < s_.n; j += block_panels * width_) {
        Panel panels[block_panels];
        const std::int64_t count = std::min(block_panels, plan::ceil_div(s_.n - j, width_));
        for (std::int64_t p = 0; p < count; ++p) {
          const std::int64_t first = j + p * width_;
          panels[p] = panel_at(b + k * b_row_ + first * b_column_, depth, std::min(width_, s_.n - first), scratch, p);
        }
        Block block{panels, count, depth, b + k * b_row_ + j * b_column_, std::min(block_panels * width_, s_.n - j), {}};
        multiply_block(a + k * a_column_, block, c + j, k == 0 && !s_.accumulate);
      }
    }
  }
  struct Block {
    const Panel* panels;
    std::int64_t count, depth;
    const T* b;
    std::int64_t columns;
    std::optional<bool> is_finite;  // b; once it is asked
  };
  void multiply_block(const T* a, Block& block, T* c, bool begins) const {
    const std::int64_t depth = block.depth;
    for (const std::int64_t rows : strip_rows_) {
      const Sum sum = sum_without_zeros(a, rows, block);
      Fetch fetch{a + rows * a_row_, c + rows * c_row_, read_ahead_.data(), written_ahead_.data()};
      for (std::int64_t p = 0; p < block.count; ++p) {
        const Panel& panel = block.panels[p];
        tiles_.rows[rows](sum.depth, a + sum.first * a_column_, a_row_, a_column_, panel.numbers + sum.first * panel.row, panel.row,
                          c + p * width_, c_row_, panel.columns, begins, &fetch);
        fetch.read_offsets += depth;
        fetch.written_offsets += depth;
      }
      a += rows * a_row_;
      c += rows * c_row_;
    }
  }
  struct Sum {
    std::int64_t first, depth;
  };
  Sum sum_without_zeros(const T* a, std::int64_t rows, Block& block) const {
    constexpr std::int64_t step = 16;
    const auto are_zero = [&](std::int64_t k) { return !has(Search::not_zero, a + k * a_column_, a_row_, rows, a_column_, step); };
    std::int64_t first = 0, last = block.depth;
    while (last - first > step && are_zero(last - step)) last -= step;
    while (last - first > step && are_zero(first)) first += step;
    const bool has_some = last - first < block.depth;
    if (has_some && !block.is_finite) block.is_finite = !has(Search::not_finite, block.b, b_row_, block.depth, b_column_, block.columns);
    return has_some && *block.is_finite ? Sum{first, last - first} : Sum{0, block.depth};
  }
  // True also where it would take long to know.
  bool has(Search search, const T* x, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) const {
    if (column != 1) return row != 1 || has(search, x, column, columns, row, rows);
    for (std::int64_t j = 0; j < columns; j += tiles_.lanes) {
      std::int64_t found = 0;
      tiles_.search(x + j, row, rows, std::min<std::int64_t>(tiles_.lanes, columns - j), search, &found);
      if (found != 0) return true;
    }
    return false;
  }
  // Of a strip's work on a block: the lines of the rows of a and c that come next, spread over the steps.
  void plan_fetches() {
    constexpr std::int64_t line = 64 / sizeof(T);
    const std::int64_t rows = strip_rows_.back();
    std::vector<std::int64_t> read, written;
    if (a_column_ == 1) {
      for (std::int64_t k = 0; k < depth_; k += line) {
        for (std::int64_t i = 0; i < rows; ++i) read.push_back(i * a_row_ + k);
      }
    } else if (a_row_ == 1) {
      for (std::int64_t k = 0; k < depth_; ++k) read.push_back(k * a_column_ + rows - 1);
    }
    for (std::int64_t j = 0; j < panels_ * width_; j += line) {
      for (std::int64_t i = 0; i < rows; ++i) written.push_back(i * c_row_ + j);
    }
    read_ahead_ = spread(read, panels_ * depth_);
    written_ahead_ = spread(written, panels_ * depth_);
  }
  // In bytes.
  static std::vector<std::int64_t> spread(const std::vector<std::int64_t>& lines, std::int64_t steps) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(steps), 0);
    if (lines.empty()) return out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = lines[i * lines.size() / out.size()] * static_cast<std::int64_t>(sizeof(T));
    return out;
  }
  // Where none is copied, there is no scratch memory.
  Panel panel_at(const T* from, std::int64_t depth, std::int64_t columns, T* scratch, std::int64_t number) const {
    if (is_near(depth, columns)) return {from, b_row_, columns};
    T* const to = scratch + number * depth * width_;
    copy_panel(from, depth, columns, to);
    return {to, width_, columns};
  }
  // The panel can be read where it is: whole, and without a page for every row unless few rows of a read it.
  bool is_near(std::int64_t depth, std::int64_t columns) const {
    constexpr std::int64_t near_bytes = 16 << 10, few_strips = 2;
    if (b_column_ != 1 || columns < width_) return false;
    return static_cast<std::int64_t>(strip_rows_.size()) <= few_strips ||
           depth * b_row_ * static_cast<std::int64_t>(sizeof(T)) <= near_bytes;
  }
  void copy_panel(const T* from, std::int64_t depth, std::int64_t columns, T* to) const {
    if (columns < width_) std::fill(to, to + depth * width_, T{0});
    if (b_column_ == 1) {
      for (std::int64_t k = 0; k < depth; ++k) {
        std::memcpy(to + k * width_, from + k * b_row_, static_cast<std::size_t>(columns) * sizeof(T));
      }
      return;
    }
    const std::int64_t lanes = tiles_.lanes;
    const std::int64_t whole_k = b_row_ == 1 ? depth / lanes * lanes : 0, whole_j = columns / lanes * lanes;
    for (std::int64_t j = 0; j < whole_j; j += lanes) {
      for (std::int64_t k = 0; k < whole_k; k += lanes) tiles_.transpose(from + j * b_column_ + k, b_column_, to + k * width_ + j, width_);
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t j = k < whole_k ? whole_j : 0; j < columns; ++j) to[k * width_ + j] = from[k * b_row_ + j * b_column_];
    }
  }

  const MatmulSpec s_;
  const Tiles& tiles_;
  const std::int64_t width_;
  const std::size_t rank_;
  const std::int64_t a_row_, a_column_, b_row_, b_column_, c_row_;
  const std::int64_t depth_, panels_;     // of a block, at most
  std::vector<std::int64_t> strip_rows_;  // as equal as can be
  std::vector<std::int64_t> read_ahead_, written_ahead_;
};

template <class T>
std::shared_ptr<const Matmul> make(const MatmulSpec& s) {
  const bool has_dense_rows = s.n == 1 || s.c_strides.back() == 1, has_dense_columns = s.m == 1 || s.c_strides.end()[-2] == 1;
  if (has_dense_rows && (s.n > 1 || !has_dense_columns)) return std::make_shared<const TiledDot<T>>(s);
  return std::make_shared<const Swapped<TiledDot<T>>>(s);
}

}  // namespace

bool can_tile(const MatmulSpec& s) {
  if ((s.dtype != Dtype::f32 && s.dtype != Dtype::f64) || s.result != s.dtype) return false;
  if (s.bias || s.k == 0 || (s.accumulate && s.k > k_block)) return false;  // the sum is added whole
  return s.n == 1 || s.m == 1 || s.c_strides.back() == 1 || s.c_strides.end()[-2] == 1;
}

std::shared_ptr<const Matmul> make_tiled_dot(const MatmulSpec& s) {
  return s.dtype == Dtype::f64 ? make<double>(s) : make<float>(s);
}

}  // namespace reprise::codegen
