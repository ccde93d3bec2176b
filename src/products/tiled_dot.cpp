#include "products/tiled_dot.h"

#include "base/machine.h"
#include "codegen/pool.h"
#include "codegen/tile_ir.h"
#include "plan/loops.h"
#include "products/matmul_calls.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace reprise::codegen {
namespace {

using plan::ceil_div;

constexpr std::int64_t widest_tile = 32;  // on any machine
constexpr std::int64_t most_strips = 4;   // that are copied together
constexpr std::int64_t block_columns = machine::tile_columns;

// c (+)= a b for pairs of matrices, by blocks:
//
//   for each part of c (rows, columns), on some thread
//     for each block_columns of it
//       for each tile_depth of k             the block of b is copied to panels of one tile's width
//         for each strip of rows             the strip of a is copied
//           for each panel: a tile
//
// What is copied, and in which order sums are formed, does not depend on the parts.
//
// Zeros at the ends of a strip of a are passed over: in causal attention half of all numbers are
// such. A sum starts with 0 and stays what it is when a 0 is added, so no bit changes; where b has
// an infinity or NaN, all of the sum is computed.
template <class T>
class TiledDot final : public Matmul {
 public:
  // `bias_by_row`: its numbers are for rows of c, not for columns.
  TiledDot(const MatmulSpec& s, int threads, bool bias_by_row)
      : s_(s),
        bias_by_row_(bias_by_row),
        tiles_(tiles_of(s.dtype)),
        width_(tile_vectors * static_cast<std::int64_t>(tiles_.lanes)),
        rank_(s.batch.size()),
        a_row_(s.a_strides[rank_]),
        a_column_(s.a_strides[rank_ + 1]),
        b_row_(s.b_strides[rank_]),
        b_column_(s.b_strides[rank_ + 1]),
        c_row_(s.c_strides[rank_]),
        c_column_(s.n == 1 ? 1 : s.c_strides[rank_ + 1]),
        depth_(std::min(tile_depth, s.k)),
        sums_apart_(c_column_ != 1 || (s.accumulate && (s.k > tile_depth || s.bias))) {
    for (const std::int64_t n : s.batch) matrices_ *= n;
    grid_ = tile_grid(s.m, s.n, matrices_, threads, sums_apart_);
    workers_ = static_cast<int>(std::min<std::int64_t>(threads, parts()));
    for (std::int64_t i = 0; i < grid_.down; ++i) {
      const std::int64_t rows = first_row(i + 1) - first_row(i),
                         strips = ceil_div(rows, tiles_.most_rows);
      for (const std::int64_t one : {rows / strips, ceil_div(rows, strips)}) {
        const auto number = static_cast<unsigned>(one);
        tile_[one] = tile_of(s.dtype, is_by_columns() ? Strip::by_columns : Strip::by_rows, number);
        if (is_by_columns()) copy_strips_[one] = copy_of(s.dtype, number);
      }
    }
    if (b_column_ == 1) copy_panels_ = copy_of(s.dtype, static_cast<unsigned>(width_));
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(worker_elements() * workers_) * sizeof(T);
  }
  bool run(const void* a, const void* b, const void* bias, void* c,
           void* scratch) const noexcept override {
    const Operands x{static_cast<const T*>(a), static_cast<const T*>(b),
                     static_cast<const T*>(bias), static_cast<T*>(c)};
    share_items(workers_, parts(), [&](std::int64_t worker, std::int64_t i) {
      multiply_part(x, i, static_cast<T*>(scratch) + worker * worker_elements());
    });
    return true;
  }

 private:
  struct Operands {
    const T *a, *b, *bias;
    T* c;
  };
  std::int64_t parts() const { return matrices_ * grid_.down * grid_.across; }
  std::int64_t first_row(std::int64_t down) const {
    return begin_of_part(down, grid_.down, s_.m, grid_row_step);
  }
  std::int64_t first_column(std::int64_t across) const {
    return begin_of_part(across, grid_.across, s_.n, grid_column_step);
  }
  std::int64_t rows_of_part() const { return size_of_part(grid_.down, s_.m, grid_row_step); }

  // A thread's memory: a block of b, and the sums of a block of c that come there when they are
  // whole.
  static std::int64_t aligned(std::int64_t elements) {
    constexpr auto line = machine::cache_line / static_cast<std::int64_t>(sizeof(T));
    return ceil_div(elements, line) * line;
  }
  std::int64_t block_elements() const {
    const bool copies = b_column_ != 1 || s_.n % widest_tile != 0 || !is_near(depth_);
    return copies ? depth_ * block_width() : 0;
  }
  std::int64_t block_width() const {
    return std::min(block_columns, ceil_div(s_.n, widest_tile) * widest_tile);
  }
  std::int64_t sum_elements() const {
    return sums_apart_ ? aligned(rows_of_part() * block_width()) : 0;
  }
  std::int64_t worker_elements() const { return aligned(block_elements()) + sum_elements(); }

  void multiply_part(Operands x, std::int64_t part, T* scratch) const {
    const std::int64_t across = part % grid_.across, down = part / grid_.across % grid_.down;
    std::int64_t matrix = part / (grid_.across * grid_.down);
    for (std::size_t d = rank_; d-- > 0; matrix /= s_.batch[d]) {
      const std::int64_t i = matrix % s_.batch[d];
      x.a += i * s_.a_strides[d];
      x.b += i * s_.b_strides[d];
      x.c += i * s_.c_strides[d];
    }
    const std::int64_t row = first_row(down), rows = first_row(down + 1) - row;
    const std::int64_t column = first_column(across), end = first_column(across + 1);
    for (std::int64_t j = column; j < end; j += block_columns) {
      multiply_block(x, {row, j, rows, std::min(block_columns, end - j)}, scratch);
    }
  }

  struct Block {
    std::int64_t row, column, rows, columns;
  };
  struct Panel {
    const T* numbers;
    std::int64_t row, columns;
  };
  struct Sum {
    std::int64_t first, depth;
  };
  struct Panels {
    Panel of[block_columns / (2 * tile_vectors)];  // vectors have at least two numbers
    std::int64_t count, depth;
    const T* b;
    std::int64_t columns;
    std::optional<bool> is_finite;  // b; once it is asked
  };

  void multiply_block(const Operands& x, const Block& block, T* scratch) const {
    T* const copied = scratch;
    T* const c = x.c + block.row * c_row_ + block.column * c_column_;
    T* const sums = sums_apart_ ? copied + aligned(block_elements()) : c;
    const std::int64_t sums_row = sums_apart_ ? block_width() : c_row_;
    for (std::int64_t k = 0; k < s_.k; k += tile_depth) {
      Panels panels = panels_at(x.b + k * b_row_ + block.column * b_column_,
                                std::min(tile_depth, s_.k - k), block, copied);
      const bool begins = k == 0 && (sums_apart_ || !s_.accumulate);
      multiply_strips(x.a + block.row * a_row_ + k * a_column_, block.rows, panels, sums, sums_row,
                      begins);
    }
    if (s_.bias) {
      const T* const bias = x.bias + (bias_by_row_ ? block.row : block.column);
      const AddCode add = bias_by_row_ ? tiles_.add_numbers : tiles_.add_rows;
      add(sums, sums_row, bias, bias_by_row_ ? 1 : 0, block.rows, block.columns);
    }
    if (sums_apart_) finish(sums, block, c);
  }
  void finish(const T* sums, const Block& block, T* c) const {
    if (s_.accumulate && c_column_ == 1)
      return tiles_.add_rows(c, c_row_, sums, block_width(), block.rows, block.columns);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      for (std::int64_t j = 0; j < block.columns; ++j) {
        T& x = c[i * c_row_ + j * c_column_];
        const T sum = sums[i * block_width() + j];
        x = s_.accumulate ? x + sum : sum;
      }
    }
  }

  // Strips are as equal as can be; some are copied together, so that lines of the left operand are
  // read once.
  void multiply_strips(const T* a, std::int64_t all_rows, Panels& panels, T* c, std::int64_t c_row,
                       bool begins) const {
    alignas(64) T strip[most_strips * strip_elements];
    const std::int64_t strips = ceil_div(all_rows, tiles_.most_rows);
    std::int64_t first = 0, ready = 0;  // strips from first to ready are copied
    for (std::int64_t i = 0, row = 0; i < strips; ++i) {
      const std::int64_t left = strips - i, rows = (all_rows - row) / left,
                         alike = left - (all_rows - row) % left;
      const T* const from = a + row * a_row_;
      if (i == ready) {
        first = i;
        ready = i + copy_strips(from, rows, alike, panels.depth, strip);
      }
      const Sum sum = sum_without_zeros(from, rows, panels);
      const T* const own =
          strip + (i - first) * strip_elements + sum.first * (is_by_columns() ? rows : 1);
      for (std::int64_t p = 0; p < panels.count; ++p) {
        if (i + 1 == ready && i + 1 < strips) fetch_rows(from + rows * a_row_, rows, panels, p);
        multiply_tile(own, sum, rows, panels.of[p], c + row * c_row + p * width_, c_row, begins);
      }
      row += rows;
    }
  }
  // Of a panel with fewer columns than a tile the product goes to c by way of a whole one.
  void multiply_tile(const T* strip, const Sum& sum, std::int64_t rows, const Panel& panel, T* c,
                     std::int64_t c_row, bool begins) const {
    const T* const numbers = panel.numbers + sum.first * panel.row;
    if (panel.columns == width_) {
      tile_[rows](sum.depth, strip, numbers, panel.row, c, c_row, begins);
      return;
    }
    alignas(64) T whole[most_tile_rows * widest_tile];
    tile_[rows](sum.depth, strip, numbers, panel.row, whole, width_, true);
    if (!begins) return tiles_.add_rows(c, c_row, whole, width_, rows, panel.columns);
    for (std::int64_t i = 0; i < rows; ++i) copy(whole + i * width_, panel.columns, c + i * c_row);
  }
  // The lines of the strip that comes next, a share of them with every panel.
  void fetch_rows(const T* a, std::int64_t rows, const Panels& panels, std::int64_t p) const {
    if (a_column_ != 1) return;
    constexpr auto line = machine::cache_line / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t i = rows * p / panels.count; i < rows * (p + 1) / panels.count; ++i) {
      for (std::int64_t k = 0; k < panels.depth; k += line) __builtin_prefetch(a + i * a_row_ + k);
    }
  }
  Sum sum_without_zeros(const T* a, std::int64_t rows, Panels& panels) const {
    constexpr std::int64_t step = 16;
    const auto are_zero = [&](std::int64_t k) {
      return !has(Search::not_zero, a + k * a_column_, a_row_, rows, a_column_, step);
    };
    std::int64_t first = 0, last = panels.depth;
    while (last - first > step && are_zero(last - step)) last -= step;
    while (last - first > step && are_zero(first)) first += step;
    const bool has_some = last - first < panels.depth;
    if (has_some && !panels.is_finite) {
      panels.is_finite =
          !has(Search::not_finite, panels.b, b_row_, panels.depth, b_column_, panels.columns);
    }
    return has_some && *panels.is_finite ? Sum{first, last - first} : Sum{0, panels.depth};
  }
  // True also where it would take long to know.
  bool has(Search search, const T* x, std::int64_t row, std::int64_t rows, std::int64_t column,
           std::int64_t columns) const {
    if (column != 1) return row != 1 || has(search, x, column, columns, row, rows);
    for (std::int64_t j = 0; j < columns; j += tiles_.lanes) {
      std::int64_t found = 0;
      tiles_.search(x + j, row, rows, std::min<std::int64_t>(tiles_.lanes, columns - j), search,
                    &found);
      if (found != 0) return true;
    }
    return false;
  }

  bool is_by_columns() const { return a_row_ == 1 && a_column_ != 1; }
  // How many strips were copied.
  std::int64_t copy_strips(const T* a, std::int64_t rows, std::int64_t alike, std::int64_t depth,
                           T* to) const {
    if (is_by_columns()) {
      const std::int64_t strips = std::min(alike, most_strips);
      copy_strips_[rows](a, a_column_, depth, to, strip_elements, strips);
      return strips;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* const from = a + i * a_row_;
      T* const row = to + i * strip_row;
      if (a_column_ == 1)
        copy(from, depth, row);
      else
        for (std::int64_t k = 0; k < depth; ++k) row[k] = from[k * a_column_];
    }
    return 1;
  }
  static void copy(const T* from, std::int64_t n, T* to) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  }

  Panels panels_at(const T* b, std::int64_t depth, const Block& block, T* to) const {
    Panels out;
    out.count = ceil_div(block.columns, width_);
    out.depth = depth;
    out.b = b;
    out.columns = block.columns;
    const bool in_place = b_column_ == 1 && is_near(depth);
    const std::int64_t whole = block.columns / width_;
    if (b_column_ == 1 && !in_place) copy_panels_(b, b_row_, depth, to, depth * width_, whole);
    for (std::int64_t p = 0; p < out.count; ++p) {
      const T* const from = b + p * width_ * b_column_;
      const std::int64_t columns = std::min(width_, block.columns - p * width_);
      if (in_place && p < whole) {
        out.of[p] = {from, b_row_, columns};
        continue;
      }
      if (b_column_ != 1 || p >= whole) copy_panel(from, depth, columns, to);
      out.of[p] = {to, width_, columns};
      to += depth * width_;
    }
    return out;
  }
  // The right operand can be read where it is: without a page for every row, unless few rows of a
  // read it.
  bool is_near(std::int64_t depth) const {
    const std::int64_t bytes = depth * b_row_ * static_cast<std::int64_t>(sizeof(T));
    return s_.m <= machine::rows_read_in_place || bytes <= machine::first_cache;
  }
  void copy_panel(const T* from, std::int64_t depth, std::int64_t columns, T* to) const {
    if (columns < width_) std::fill(to, to + depth * width_, T{0});
    if (b_column_ == 1) {
      for (std::int64_t k = 0; k < depth; ++k) copy(from + k * b_row_, columns, to + k * width_);
      return;
    }
    const std::int64_t lanes = tiles_.lanes;
    const std::int64_t whole_k = b_row_ == 1 ? depth / lanes * lanes : 0,
                       whole_j = columns / lanes * lanes;
    for (std::int64_t j = 0; j < whole_j; j += lanes) {
      for (std::int64_t k = 0; k < whole_k; k += lanes)
        tiles_.transpose(from + j * b_column_ + k, b_column_, to + k * width_ + j, width_);
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t j = k < whole_k ? whole_j : 0; j < columns; ++j)
        to[k * width_ + j] = from[k * b_row_ + j * b_column_];
    }
  }

  const MatmulSpec s_;
  const bool bias_by_row_;
  const Tiles& tiles_;
  const std::int64_t width_;
  const std::size_t rank_;
  const std::int64_t a_row_, a_column_, b_row_, b_column_, c_row_, c_column_;
  const std::int64_t depth_;  // of a block, at most
  const bool sums_apart_;     // they come to c when they are whole
  std::int64_t matrices_ = 1;
  PartGrid grid_{1, 1};
  int workers_ = 1;
  TileCode tile_[most_tile_rows + 1] = {};  // by number of rows
  CopyCode copy_strips_[most_tile_rows + 1] = {}, copy_panels_ = nullptr;
};

template <class T>
std::shared_ptr<const Matmul> make(const MatmulSpec& s, int threads) {
  const bool has_dense_rows = s.c_strides.back() == 1,
             has_dense_columns = s.m == 1 || s.c_strides.end()[-2] == 1;
  if (s.n > 1 ? has_dense_rows || !has_dense_columns : !has_dense_columns)
    return std::make_shared<const TiledDot<T>>(s, threads, false);
  return std::make_shared<const Swapped<TiledDot<T>>>(s, threads, true);
}

}  // namespace

bool can_tile(const MatmulSpec& s) {
  return (s.dtype == Dtype::f32 || s.dtype == Dtype::f64) && s.result == s.dtype && s.k > 0;
}

std::shared_ptr<const Matmul> make_tiled_dot(const MatmulSpec& s, int threads) {
  const MatmulSpec simple = simplified(s);
  return s.dtype == Dtype::f64 ? make<double>(simple, threads) : make<float>(simple, threads);
}

std::int64_t begin_of_part(std::int64_t i, std::int64_t parts, std::int64_t size,
                           std::int64_t step) {
  return std::min(size, ceil_div(size, step) * i / parts * step);
}
std::int64_t size_of_part(std::int64_t parts, std::int64_t size, std::int64_t step) {
  return std::min(size, ceil_div(ceil_div(size, step), parts) * step);
}

PartGrid tile_grid(std::int64_t m, std::int64_t n, std::int64_t matrices, int threads,
                   bool sums_apart) {
  const std::int64_t wanted =
      threads > 1 ? ceil_div(threads * machine::parts_per_thread, matrices) : 1;
  const std::int64_t least = ceil_div(threads, matrices);
  std::int64_t down = ceil_div(m, sums_apart ? machine::good_part_rows : machine::most_part_rows),
               across = 1;
  const auto cut_rows = [&](std::int64_t parts, std::int64_t size) {
    down = std::max(down, std::min(parts, m / size));
  };
  const auto cut_columns = [&](std::int64_t parts, std::int64_t size) {
    across = std::max(across, std::min(parts, n / size));
  };
  cut_rows(wanted, machine::good_part_rows);
  cut_columns(ceil_div(wanted, down), machine::good_part_columns);
  cut_rows(ceil_div(least, across), machine::least_part_rows);
  cut_columns(ceil_div(least, down), machine::least_part_columns);
  return {down, across};
}

}  // namespace reprise::codegen
