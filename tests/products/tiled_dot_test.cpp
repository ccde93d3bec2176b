#include "products/tiled_dot.h"

#include "base/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>

using namespace reprise;
using namespace reprise::codegen;

namespace {

using Ints = std::vector<std::int64_t>;

// Strides of [batch..., rows, columns] in a random order of dimensions, with a gap after each.
Ints random_strides(const Ints& dims, std::mt19937& engine, std::int64_t gap) {
  std::vector<std::size_t> order(dims.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), engine);
  Ints strides(dims.size());
  std::int64_t next = 1;
  for (std::size_t d : order) {
    strides[d] = next;
    next = next * dims[d] + gap;
  }
  return strides;
}

std::size_t extent(const Ints& dims, const Ints& strides) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return static_cast<std::size_t>(last + 1);
}

template <class T>
void check_against_sums(const MatmulSpec& s, std::mt19937& engine) {
  Ints a_dims = s.batch, b_dims = s.batch, c_dims = s.batch;
  a_dims.insert(a_dims.end(), {s.m, s.k});
  b_dims.insert(b_dims.end(), {s.k, s.n});
  c_dims.insert(c_dims.end(), {s.m, s.n});
  std::uniform_int_distribution<int> draw(-8, 8);  // sums are exact
  std::vector<T> a(extent(a_dims, s.a_strides)), b(extent(b_dims, s.b_strides)),
      c(extent(c_dims, s.c_strides), T(99));
  for (T& x : a) x = static_cast<T>(draw(engine));
  for (T& x : b) x = static_cast<T>(draw(engine));
  std::vector<T> expected = c;
  const std::int64_t batches = s.batch.empty() ? 1 : s.batch[0];
  const std::size_t r = s.batch.size();
  for (std::int64_t p = 0; p < batches; ++p) {
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        T sum = s.accumulate ? T(99) : T(0);
        for (std::int64_t k = 0; k < s.k; ++k) {
          const std::int64_t at_a =
              (r ? p * s.a_strides[0] : 0) + i * s.a_strides[r] + k * s.a_strides[r + 1];
          const std::int64_t at_b =
              (r ? p * s.b_strides[0] : 0) + k * s.b_strides[r] + j * s.b_strides[r + 1];
          sum += a[static_cast<std::size_t>(at_a)] * b[static_cast<std::size_t>(at_b)];
        }
        expected[static_cast<std::size_t>((r ? p * s.c_strides[0] : 0) + i * s.c_strides[r] +
                                          j * s.c_strides[r + 1])] = sum;
      }
    }
  }
  const auto dot = make_tiled_dot(s);
  std::vector<std::byte> scratch(dot->scratch_bytes() + 64);
  auto* aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  REQUIRE(dot->run(a.data(), b.data(), nullptr, c.data(), aligned));
  INFO("m=", s.m, " n=", s.n, " k=", s.k);
  CHECK(c == expected);
}

}  // namespace

TEST_CASE("tiled products of any shape and any strides are the sums, and write nothing else") {
  std::mt19937 engine(7);
  const Ints sizes{1, 2, 3, 5, 12, 13, 16, 17, 31, 32, 33, 40, 64, 65};
  int checked = 0;
  for (int round = 0; round < 600; ++round) {
    const auto pick = [&] { return sizes[engine() % sizes.size()]; };
    MatmulSpec s;
    s.dtype = s.result = round % 2 == 0 ? Dtype::f32 : Dtype::f64;
    if (round % 3 == 0) s.batch = {static_cast<std::int64_t>(1 + engine() % 3)};
    s.m = pick(), s.n = pick(), s.k = round % 20 == 0 ? 300 + pick() : pick();
    s.accumulate = engine() % 3 == 0;
    const std::int64_t gap = engine() % 2 == 0 ? 0 : 3;
    Ints dims = s.batch;
    dims.insert(dims.end(), {0, 0});
    dims.end()[-2] = s.m, dims.end()[-1] = s.k;
    s.a_strides = random_strides(dims, engine, gap);
    dims.end()[-2] = s.k, dims.end()[-1] = s.n;
    s.b_strides = random_strides(dims, engine, gap);
    dims.end()[-2] = s.m, dims.end()[-1] = s.n;
    s.c_strides = random_strides(dims, engine, gap);
    if (!can_tile(s)) continue;
    ++checked;
    if (s.dtype == Dtype::f32)
      check_against_sums<float>(s, engine);
    else
      check_against_sums<double>(s, engine);
  }
  CHECK(checked > 300);
}

// With NaN in one more column of b no zero is passed over: the other columns tell what the bits
// must be.
template <class T>
void check_zeros(MatmulSpec s, const std::function<bool(std::int64_t i, std::int64_t k)>& is_zero,
                 bool is_transposed) {
  std::mt19937 engine(11);
  std::normal_distribution<double> draw;
  s.a_strides = is_transposed ? Ints{1, s.m} : Ints{s.k, 1};
  s.b_strides = {s.n + 1, 1};
  s.c_strides = {s.n + 1, 1};
  std::vector<T> a(static_cast<std::size_t>(s.m * s.k)),
      b(static_cast<std::size_t>(s.k * (s.n + 1))), c(static_cast<std::size_t>(s.m * (s.n + 1)));
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t k = 0; k < s.k; ++k) {
      const T zero = (i + k) % 3 == 0 ? T(-0.0) : T(0);
      a[static_cast<std::size_t>(i * s.a_strides[0] + k * s.a_strides[1])] =
          is_zero(i, k) ? zero : static_cast<T>(draw(engine));
    }
  }
  for (T& x : b) x = static_cast<T>(draw(engine));
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = i % 2 == 0 ? T(-0.0) : static_cast<T>(draw(engine));
  const auto product = [&](std::int64_t columns, const std::vector<T>& right) {
    MatmulSpec wanted = s;
    wanted.n = columns;
    const auto dot = make_tiled_dot(wanted);
    const auto scratch = allocate_buffer(dot->scratch_bytes() + 64);
    std::vector<T> out = c;
    REQUIRE(dot->run(a.data(), right.data(), nullptr, out.data(), scratch.get()));
    return out;
  };
  std::vector<T> with_nan = b;
  for (std::int64_t k = 0; k < s.k; ++k)
    with_nan[static_cast<std::size_t>((k + 1) * (s.n + 1) - 1)] =
        std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> got = product(s.n, b), expected = product(s.n + 1, with_nan);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (static_cast<std::int64_t>(i) % (s.n + 1) == s.n) continue;
    wrong += got[i] != expected[i] || std::signbit(got[i]) != std::signbit(expected[i]);
  }
  INFO("m=", s.m, " n=", s.n, " k=", s.k, is_transposed ? " transposed" : "");
  CHECK(wrong == 0);
  // An infinity where a is 0 makes NaN, as it does in the definition.
  if (!is_zero(0, s.k - 1)) return;
  std::vector<T> with_infinity = b;
  with_infinity[static_cast<std::size_t>((s.k - 1) * (s.n + 1))] =
      std::numeric_limits<T>::infinity();
  CHECK(std::isnan(product(s.n, with_infinity)[0]));
}

TEST_CASE("zeros at the ends of sums change no bit, and infinities beside them are not lost") {
  for (const bool is_transposed : {false, true}) {
    for (const std::int64_t k : {5, 16, 33, 100, 256, 300}) {
      MatmulSpec s;
      s.m = 100, s.n = 40, s.k = k;
      s.accumulate = k == 33 || k == 256;
      for (const int pattern : {0, 1, 2, 3, 4}) {
        INFO("pattern ", pattern);
        const auto is_zero = [&](std::int64_t i, std::int64_t at) {
          if (pattern == 0) return at > i;  // causal
          if (pattern == 1) return at < i;
          if (pattern == 2) return at < i - 20 || at > i + 20;  // a band
          if (pattern == 3) return at >= k / 2 || i % 7 == 0;   // padding, and rows of zeros
          return true;
        };
        s.dtype = s.result = Dtype::f32;
        check_zeros<float>(s, is_zero, is_transposed);
        s.dtype = s.result = Dtype::f64;
        check_zeros<double>(s, is_zero, is_transposed);
      }
    }
  }
}

TEST_CASE("floats of any strides are tiled, other types and empty sums are not") {
  MatmulSpec s;
  s.m = s.n = s.k = 4;
  s.a_strides = s.b_strides = {4, 1};
  for (const Ints& strides : {Ints{4, 1}, Ints{1, 4}, Ints{8, 2}}) {
    s.c_strides = strides;
    CHECK(can_tile(s));
  }
  s.accumulate = s.bias = true;
  s.k = 1000;
  CHECK(can_tile(s));
  s.k = 0;
  CHECK_FALSE(can_tile(s));
  s.k = 4;
  s.result = Dtype::f64;
  CHECK_FALSE(can_tile(s));
  s.dtype = s.result = Dtype::bf16;
  CHECK_FALSE(can_tile(s));
}
