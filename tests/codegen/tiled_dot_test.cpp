#include "codegen/tiled_dot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
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
  std::vector<T> a(extent(a_dims, s.a_strides)), b(extent(b_dims, s.b_strides)), c(extent(c_dims, s.c_strides), T(99));
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
          const std::int64_t at_a = (r ? p * s.a_strides[0] : 0) + i * s.a_strides[r] + k * s.a_strides[r + 1];
          const std::int64_t at_b = (r ? p * s.b_strides[0] : 0) + k * s.b_strides[r] + j * s.b_strides[r + 1];
          sum += a[static_cast<std::size_t>(at_a)] * b[static_cast<std::size_t>(at_b)];
        }
        expected[static_cast<std::size_t>((r ? p * s.c_strides[0] : 0) + i * s.c_strides[r] + j * s.c_strides[r + 1])] = sum;
      }
    }
  }
  const auto dot = make_tiled_dot(s);
  std::vector<std::byte> scratch(dot->scratch_bytes() + 64);
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
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
    if (s.dtype == Dtype::f32) check_against_sums<float>(s, engine);
    else check_against_sums<double>(s, engine);
  }
  CHECK(checked > 300);
}

TEST_CASE("what has a bias, other types, scattered results or sums in parts to add to is not tiled") {
  MatmulSpec s;
  s.m = s.n = s.k = 4;
  s.a_strides = s.b_strides = s.c_strides = {4, 1};
  CHECK(can_tile(s));
  s.c_strides = {8, 2};
  CHECK_FALSE(can_tile(s));
  s.c_strides = {1, 4};
  CHECK(can_tile(s));
  s.accumulate = true;
  CHECK(can_tile(s));
  s.k = 1000;
  CHECK_FALSE(can_tile(s));
  s.accumulate = false;
  CHECK(can_tile(s));
  s.bias = true;
  CHECK_FALSE(can_tile(s));
  s.bias = false;
  s.dtype = s.result = Dtype::bf16;
  CHECK_FALSE(can_tile(s));
}
