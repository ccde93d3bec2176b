// The matrix product that evaluates dot_general and convolutions.
#pragma once

#include "base/cast.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace reprise {

struct MatrixSizes {
  std::int64_t m, k, n;
};

// out[n] += a[k] * b[k, n]. Four products are summed at a time: fast, and small rounding errors.
template <class P>
void add_block(const P* a, const P* b, P* out, std::int64_t k, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= k; i += 4, b += 4 * n) {
    const P a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3];
    const P *b0 = b, *b1 = b + n, *b2 = b + 2 * n, *b3 = b + 3 * n;
    for (std::int64_t j = 0; j < n; ++j) {
      out[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    }
  }
  for (; i < k; ++i, b += n) {
    for (std::int64_t j = 0; j < n; ++j) out[j] += a[i] * b[j];
  }
}

// out[m, n] = a[m, k] * b[k, n], in blocks of k whose sums are added at the end.
template <class P, class Out>
void multiply_matrices(const P* a, const P* b, Out* out, const MatrixSizes& s) {
  constexpr std::int64_t block = 128;
  std::vector<P> total(static_cast<std::size_t>(s.n)), part(static_cast<std::size_t>(s.n));
  for (std::int64_t i = 0; i < s.m; ++i) {
    std::fill(total.begin(), total.end(), P{0});
    for (std::int64_t k = 0; k < s.k; k += block) {
      std::fill(part.begin(), part.end(), P{0});
      add_block(a + i * s.k + k, b + k * s.n, part.data(), std::min(block, s.k - k), s.n);
      for (std::size_t j = 0; j < part.size(); ++j) total[j] += part[j];
    }
    for (const P sum : total) *out++ = cast_element<Out>(sum);
  }
}

}  // namespace reprise
