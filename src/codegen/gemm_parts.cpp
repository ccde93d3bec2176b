#include "codegen/gemm_parts.h"

#include <dnnl.h>

#include <algorithm>

#include "base/memory.h"
#include "codegen/dnnl_engine.h"
#include "codegen/matmul_calls.h"
#include "codegen/openmp.h"
#include "plan/loops.h"

namespace reprise::codegen {
namespace {

constexpr std::int64_t most_rows = 504;  // gemm copies blocks of operands for larger parts
constexpr std::int64_t least_side = 128, least_work = std::int64_t{1} << 23;  // multiply-adds
constexpr std::size_t bytes_per_thread = 80 << 10;  // gemm takes 73,984 for itself

bool has_avx512() {
  static_cast<void>(dnnl_cpu());
  static const bool has = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  return has;
}

bool is_transposed(const MatmulSpec& s) { return s.a_strides[1] != 1; }

// Rows of b and of c are dense, a is dense along one of its sides, and they do not begin at multiples of a page.
bool reads_in_place(const MatmulSpec& s) {
  constexpr std::int64_t page = 1024;  // elements
  const bool has_dense_rows = s.b_strides[1] == 1 && s.c_strides[1] == 1 && s.b_strides[0] >= s.n && s.c_strides[0] >= s.n;
  if (!has_dense_rows || s.b_strides[0] % page == 0) return false;
  if (is_transposed(s)) return s.a_strides[0] == 1 && s.a_strides[1] >= s.m && s.a_strides[1] % page != 0;
  return s.a_strides[0] >= s.k;
}
// brgemm copies a transposed left operand, and the right one for every part of the sum.
bool is_faster(const MatmulSpec& s) { return reads_in_place(s) && (is_transposed(s) || (s.n >= 384 && s.n <= 768)); }

// For a spec that reads in place. `bias_by_row`: its numbers are for rows of c, not for columns.
class GemmInParts final : public Matmul {
 public:
  GemmInParts(const MatmulSpec& s, int threads, bool bias_by_row)
      : s_(s), threads_(threads), bias_by_row_(bias_by_row),
        part_(gemm_part_size(s.m, s.n, threads, s.bias || s.accumulate ? in_cache : s.m * s.n)) {}

  std::size_t scratch_bytes() const override { return s_.accumulate ? block_bytes() * static_cast<std::size_t>(threads_) : 0; }
  std::size_t hidden_bytes() const override { return bytes_per_thread * static_cast<std::size_t>(threads_); }
  bool run(const void* a, const void* b, const void* bias, void* c, void* scratch) const noexcept override {
    const Operands x{static_cast<const float*>(a), static_cast<const float*>(b), static_cast<const float*>(bias), static_cast<float*>(c)};
    const std::int64_t across = column_parts();
    const LibraryMemory library(hidden_bytes());
    const TeamScope team(1);  // of a call
    return share_parts(threads_, row_parts() * across, [&](std::int64_t worker, std::int64_t i) {
      const std::int64_t row = i / across * part_.rows, column = i % across * part_.columns;
      const Block block{row, column, std::min(part_.rows, s_.m - row), std::min(part_.columns, s_.n - column)};
      return multiply(x, block, s_.accumulate ? static_cast<float*>(scratch) + worker * part_.rows * part_.columns : nullptr);
    });
  }

 private:
  static constexpr std::int64_t in_cache = 128 << 10;  // elements that are still near when the rest is added
  std::int64_t row_parts() const { return plan::ceil_div(s_.m, part_.rows); }
  std::int64_t column_parts() const { return plan::ceil_div(s_.n, part_.columns); }
  std::size_t block_bytes() const { return static_cast<std::size_t>(part_.rows * part_.columns) * sizeof(float); }

  struct Block {
    std::int64_t row, column, rows, columns;
  };
  struct Operands {
    const float *a, *b, *bias;
    float* c;
  };

  // c = a b + bias, or c = (a b + bias) + c
  bool multiply(const Operands& x, const Block& block, float* own) const noexcept {
    const std::int64_t c_row = s_.c_strides[0], to_row = own != nullptr ? block.columns : c_row;
    float* const c = x.c + block.row * c_row + block.column;
    float* const to = own != nullptr ? own : c;
    const bool turned = is_transposed(s_);
    const auto status = dnnl_sgemm(turned ? 'T' : 'N', 'N', block.rows, block.columns, s_.k, 1.0f,
                                   x.a + block.row * s_.a_strides[0], s_.a_strides[turned ? 1 : 0], x.b + block.column,
                                   s_.b_strides[0], 0.0f, to, to_row);
    for (std::int64_t i = 0; i < block.rows && s_.bias; ++i) add_bias(to + i * to_row, x.bias, block, i);
    for (std::int64_t i = 0; i < block.rows && own != nullptr; ++i) {
      for (std::int64_t j = 0; j < block.columns; ++j) c[i * c_row + j] += own[i * to_row + j];
    }
    return status == dnnl_success;
  }
  void add_bias(float* to, const float* bias, const Block& block, std::int64_t row) const noexcept {
    if (bias_by_row_) {
      const float same = bias[block.row + row];
      for (std::int64_t j = 0; j < block.columns; ++j) to[j] += same;
    } else {
      for (std::int64_t j = 0; j < block.columns; ++j) to[j] += bias[block.column + j];
    }
  }

  const MatmulSpec s_;
  const int threads_;
  const bool bias_by_row_;
  const PartSize part_;
};

}  // namespace

bool can_gemm_in_parts(const MatmulSpec& s) {
  if (s.dtype != Dtype::f32 || s.result != Dtype::f32 || !s.batch.empty()) return false;
  if (std::min({s.m, s.n, s.k}) < least_side || s.m * s.n * s.k < least_work) return false;
  return has_avx512() && (is_faster(s) || is_faster(swapped(s)));
}

std::shared_ptr<const Matmul> make_gemm_in_parts(const MatmulSpec& s, int threads) {
  if (is_faster(s)) return std::make_shared<const GemmInParts>(s, threads, false);
  return std::make_shared<const Swapped<GemmInParts>>(s, threads, true);
}

PartSize gemm_part_size(std::int64_t m, std::int64_t n, int threads, std::int64_t most_elements) {
  constexpr std::int64_t row_step = 8, column_step = 48;  // of gemm's registers
  constexpr std::int64_t least_rows = 64, least_columns = 192;
  const auto step_up = [](std::int64_t size, std::int64_t parts, std::int64_t step) {
    return std::min(size, plan::ceil_div(plan::ceil_div(size, parts), step) * step);
  };
  const std::int64_t least_parts = std::max(plan::ceil_div(m, most_rows), plan::ceil_div(m * n, most_elements));
  const std::int64_t for_all = plan::ceil_div(least_parts, threads) * threads;
  const std::int64_t down = std::max(least_parts, std::min(for_all, m / least_rows));
  const std::int64_t across = std::clamp<std::int64_t>(threads / down, 1, std::max<std::int64_t>(1, n / least_columns));
  return {step_up(m, down, row_step), step_up(n, across, column_step)};
}

}  // namespace reprise::codegen
