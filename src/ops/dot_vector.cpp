#include "ops/dot_vector.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reprise {
namespace {

constexpr std::int64_t lanes = 8;
constexpr std::int64_t window = 32;

// Windows of 32 summed in sequence, until one is left; the padding is split between both ends.
float windowed_sum(std::vector<float> x) {
  while (static_cast<std::int64_t>(x.size()) > window) {
    const auto size = static_cast<std::int64_t>(x.size());
    const std::int64_t windows = (size + window - 1) / window;
    const std::int64_t low = (windows * window - size) / 2;
    std::vector<float> sums(static_cast<std::size_t>(windows), 0.0f);
    for (std::int64_t i = 0; i < size; ++i) {
      sums[static_cast<std::size_t>((i + low) / window)] += x[static_cast<std::size_t>(i)];
    }
    x = std::move(sums);
  }
  float sum = 0;
  for (const float value : x) sum += value;
  return sum;
}

[[gnu::always_inline]] inline float single_product(const float* a, const float* b, std::int64_t k) {
  if (k <= window) {
    float sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum = std::fma(a[i], b[i], sum);
    return sum;
  }
  std::vector<float> products(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < k; ++i) products[static_cast<std::size_t>(i)] = a[i] * b[i];
  return windowed_sum(std::move(products));
}

// The column that XLA's vectoriser leaves over starts with rounded products.
float rounded_start(const float* v, const float* m, std::int64_t k, std::int64_t n,
                    std::int64_t column) {
  const std::int64_t rounded = std::min(lanes, k);
  float sum = v[0] * m[column];
  std::int64_t i = 1;
  for (; i < rounded; ++i) sum += v[i] * m[i * n + column];
  for (; i < k; ++i) sum = std::fma(m[i * n + column], v[i], sum);
  return sum;
}

[[gnu::always_inline]] inline void columns(const float* v, const float* m, float* out,
                                           std::int64_t k, std::int64_t n) {
  std::fill(out, out + n, 0.0f);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < n; ++j) out[j] = std::fma(m[i * n + j], v[i], out[j]);
  }
}

[[gnu::always_inline]] inline void rows(const float* m, const float* v, float* out, std::int64_t n,
                                        std::int64_t k) {
  const std::int64_t vectors = k / lanes * lanes, grouped = n / lanes * lanes;
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = m + i * k;
    float s[lanes] = {}, tail = 0;
    for (std::int64_t j = 0; j < vectors; j += lanes) {
      for (std::int64_t l = 0; l < lanes; ++l) s[l] = std::fma(row[j + l], v[j + l], s[l]);
    }
    for (std::int64_t j = vectors; j < k; ++j) tail = std::fma(row[j], v[j], tail);
    const float sum = i < grouped
                          ? ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
                          : ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    out[i] = sum + tail;
  }
}

// The same arithmetic with and without the instruction; std::fma is exact either way.
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void columns_fma(const float* v, const float* m, float* out,
                                             std::int64_t k, std::int64_t n) {
  columns(v, m, out, k, n);
}
[[gnu::target("avx2,fma")]] void rows_fma(const float* m, const float* v, float* out,
                                          std::int64_t n, std::int64_t k) {
  rows(m, v, out, n, k);
}
bool has_fma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
void columns_fma(const float* v, const float* m, float* out, std::int64_t k, std::int64_t n) {
  columns(v, m, out, k, n);
}
void rows_fma(const float* m, const float* v, float* out, std::int64_t n, std::int64_t k) {
  rows(m, v, out, n, k);
}
bool has_fma() { return false; }
#endif

}  // namespace

void vector_times_matrix(const float* v, const float* m, float* out, std::int64_t k,
                         std::int64_t n) {
  if (n == 1) {
    *out = single_product(m, v, k);
    return;
  }
  static const bool fma = has_fma();
  (fma ? columns_fma : columns)(v, m, out, k, n);
  if (k <= 2) return;
  if (n > lanes && n % lanes == 1) out[n - 1] = rounded_start(v, m, k, n, n - 1);
  if (n == 2) out[0] = rounded_start(v, m, k, n, 0);
}

void matrix_times_vector(const float* m, const float* v, float* out, std::int64_t n,
                         std::int64_t k) {
  if (n == 1) {
    *out = single_product(m, v, k);
    return;
  }
  static const bool fma = has_fma();
  (fma ? rows_fma : rows)(m, v, out, n, k);
}

}  // namespace reprise
