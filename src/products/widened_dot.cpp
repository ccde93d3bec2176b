#include "products/widened_dot.h"

#include "base/half.h"
#include "base/machine.h"
#include "codegen/pool.h"
#include "plan/loops.h"
#include "products/matmul_calls.h"
#include "products/tiled_dot.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace reprise::codegen {
namespace {

using plan::ceil_div;

constexpr std::int64_t block_columns = machine::tile_columns, block_depth = machine::tile_depth;

// to[i, j] = from[i, j], rows of `to` have `to_row` numbers. Along the neighbours in memory, in
// runs whose length the compiler knows.
template <class Half>
void widen(const Half* from, std::int64_t row, std::int64_t column, std::int64_t rows,
           std::int64_t columns, float* to, std::int64_t to_row) {
  constexpr std::int64_t run = 16;
  if (column != 1 && row == 1) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i)
        to[i * to_row + j] = static_cast<float>(from[i + j * column]);
    }
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const Half* const x = from + i * row;
    float* const y = to + i * to_row;
    std::int64_t j = 0;
    if (column == 1) {
      for (; j + run <= columns; j += run) {
        for (std::int64_t t = 0; t < run; ++t) y[j + t] = static_cast<float>(x[j + t]);
      }
    }
    for (; j < columns; ++j) y[j] = static_cast<float>(x[j * column]);
  }
}

// c (+)= a b by parts of c as TiledDot has them:
//
//   for each part of c (rows, columns), on some thread
//     for each block_columns of it
//       for each block_depth of k           blocks of a and b are widened
//         sums += a b
//       c (+)= sums
//
// How k is cut does not depend on the parts.
template <class Half, class Out>
class WidenedDot final : public Matmul {
 public:
  WidenedDot(const MatmulSpec& s, int threads)
      : s_(s),
        rank_(s.batch.size()),
        depth_(std::min(block_depth, s.k)),
        width_(std::min(block_columns, s.n)) {
    for (const std::int64_t n : s.batch) matrices_ *= n;
    grid_ = tile_grid(s.m, s.n, matrices_, threads, true);
    workers_ = static_cast<int>(std::min<std::int64_t>(threads, parts()));
    make_products();
  }

  std::size_t scratch_bytes() const override {
    return worker_bytes() * static_cast<std::size_t>(workers_);
  }
  bool run(const void* a, const void* b, const void* bias, void* c,
           void* scratch) const noexcept override {
    const Operands x{static_cast<const Half*>(a), static_cast<const Half*>(b),
                     static_cast<const Out*>(bias), static_cast<Out*>(c)};
    return share_parts(workers_, parts(), [&](std::int64_t worker, std::int64_t i) {
      const auto own = static_cast<std::size_t>(worker) * worker_bytes();
      return multiply_part(x, i, static_cast<std::byte*>(scratch) + own);
    });
  }

 private:
  struct Operands {
    const Half *a, *b;
    const Out* bias;
    Out* c;
  };
  struct Block {
    std::int64_t row, column, rows, columns;
  };
  using Sizes = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // rows, columns, depth

  std::int64_t parts() const { return matrices_ * grid_.down * grid_.across; }
  std::int64_t first_row(std::int64_t down) const {
    return begin_of_part(down, grid_.down, s_.m, grid_row_step);
  }
  std::int64_t first_column(std::int64_t across) const {
    return begin_of_part(across, grid_.across, s_.n, grid_column_step);
  }

  // Blocks have few sizes: each has a product.
  void make_products() {
    std::set<std::int64_t> rows, columns, depths{depth_};
    for (std::int64_t i = 0; i < grid_.down; ++i) rows.insert(first_row(i + 1) - first_row(i));
    for (std::int64_t i = 0; i < grid_.across; ++i) {
      const std::int64_t size = first_column(i + 1) - first_column(i);
      if (size >= block_columns) columns.insert(block_columns);
      if (size % block_columns != 0) columns.insert(size % block_columns);
    }
    if (s_.k % depth_ != 0) depths.insert(s_.k % depth_);
    for (const std::int64_t m : rows) {
      most_rows_ = std::max(most_rows_, m);
      for (const std::int64_t n : columns) {
        for (const std::int64_t k : depths) make_product(m, n, k);
      }
    }
  }
  void make_product(std::int64_t m, std::int64_t n, std::int64_t k) {
    MatmulSpec s;
    s.m = m, s.n = n, s.k = k;
    s.a_strides = {depth_, 1};
    s.b_strides = s.c_strides = {width_, 1};
    s.accumulate = true;
    const auto& made = products_[{m, n, k}] = make_tiled_dot(s);
    product_bytes_ = std::max(product_bytes_, aligned(made->scratch_bytes()));
  }

  // A thread's memory: what its products need, then blocks of a, b and the sums.
  static std::size_t aligned(std::size_t bytes) {
    constexpr auto line = static_cast<std::size_t>(machine::cache_line);
    return (bytes + line - 1) / line * line;
  }
  static std::size_t bytes_of(std::int64_t rows, std::int64_t columns) {
    return aligned(static_cast<std::size_t>(rows * columns) * sizeof(float));
  }
  std::size_t worker_bytes() const {
    return product_bytes_ + bytes_of(most_rows_, depth_) + bytes_of(depth_, width_) +
           bytes_of(most_rows_, width_);
  }

  bool multiply_part(Operands x, std::int64_t part, std::byte* scratch) const {
    const std::int64_t across = part % grid_.across, down = part / grid_.across % grid_.down;
    std::int64_t matrix = part / (grid_.across * grid_.down);
    for (std::size_t d = rank_; d-- > 0; matrix /= s_.batch[d]) {
      const std::int64_t i = matrix % s_.batch[d];
      x.a += i * s_.a_strides[d];
      x.b += i * s_.b_strides[d];
      x.c += i * s_.c_strides[d];
    }
    const std::int64_t row = first_row(down), rows = first_row(down + 1) - row;
    const std::int64_t end = first_column(across + 1);
    for (std::int64_t j = first_column(across); j < end; j += block_columns) {
      if (!multiply_block(x, {row, j, rows, std::min(block_columns, end - j)}, scratch))
        return false;
    }
    return true;
  }
  bool multiply_block(const Operands& x, const Block& block, std::byte* scratch) const {
    auto* const a = reinterpret_cast<float*>(scratch + product_bytes_);
    auto* const b = a + bytes_of(most_rows_, depth_) / sizeof(float);
    float* const sums = b + bytes_of(depth_, width_) / sizeof(float);
    const std::int64_t a_row = s_.a_strides[rank_], a_column = s_.a_strides[rank_ + 1];
    const std::int64_t b_row = s_.b_strides[rank_], b_column = s_.b_strides[rank_ + 1];
    std::fill(sums, sums + block.rows * width_, 0.0f);
    for (std::int64_t k = 0; k < s_.k; k += depth_) {
      const std::int64_t depth = std::min(depth_, s_.k - k);
      widen(x.a + block.row * a_row + k * a_column, a_row, a_column, block.rows, depth, a, depth_);
      widen(x.b + k * b_row + block.column * b_column, b_row, b_column, depth, block.columns, b,
            width_);
      const auto& product = products_.at({block.rows, block.columns, depth});
      if (!product->run(a, b, nullptr, sums, scratch)) return false;
    }
    finish(x, block, sums);
    return true;
  }
  void finish(const Operands& x, const Block& block, const float* sums) const {
    const std::int64_t c_row = s_.c_strides[rank_], c_column = s_.c_strides[rank_ + 1];
    for (std::int64_t i = 0; i < block.rows; ++i) {
      for (std::int64_t j = 0; j < block.columns; ++j) {
        Out& c = x.c[(block.row + i) * c_row + (block.column + j) * c_column];
        float sum = sums[i * width_ + j];
        if (s_.bias) sum += static_cast<float>(x.bias[block.column + j]);
        if (s_.accumulate) sum += static_cast<float>(c);
        c = Out(sum);
      }
    }
  }

  const MatmulSpec s_;
  const std::size_t rank_;
  const std::int64_t depth_, width_;  // of a block, at most
  std::int64_t matrices_ = 1, most_rows_ = 1;
  PartGrid grid_{1, 1};
  int workers_ = 1;
  std::map<Sizes, std::shared_ptr<const Matmul>> products_;
  std::size_t product_bytes_ = 0;
};

template <class Half>
std::shared_ptr<const Matmul> make(const MatmulSpec& s, int threads) {
  if (s.result == Dtype::f32) return std::make_shared<const WidenedDot<Half, float>>(s, threads);
  return std::make_shared<const WidenedDot<Half, Half>>(s, threads);
}

}  // namespace

bool can_widen(const MatmulSpec& s) {
  const bool is_half = s.dtype == Dtype::bf16 || s.dtype == Dtype::f16;
  return is_half && (s.result == s.dtype || s.result == Dtype::f32) && s.k > 0;
}

std::shared_ptr<const Matmul> make_widened_dot(const MatmulSpec& s, int threads) {
  return s.dtype == Dtype::bf16 ? make<BFloat16>(s, threads) : make<Float16>(s, threads);
}

}  // namespace reprise::codegen
