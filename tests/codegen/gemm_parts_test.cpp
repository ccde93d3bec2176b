// Products that gemm computes in parts: right, with the same bits for any number of threads and with what is added.
#include "codegen/gemm_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/memory.h"
#include "codegen/matmul_calls.h"
#include "plan/loops.h"

namespace reprise::codegen {
namespace {

using Numbers = std::vector<float>;

Numbers random_numbers(std::int64_t n, unsigned seed) {
  Numbers x(static_cast<std::size_t>(n));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::generate(x.begin(), x.end(), [&] { return uniform(random); });
  return x;
}

// With rows of b and c dense and so much wider than they need be; a transposed or not. Swapped: the same for c^T = b^T a^T.
MatmulSpec spec_of(std::int64_t m, std::int64_t n, std::int64_t k, bool is_transposed, bool is_swapped, std::int64_t wider = 0) {
  MatmulSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a_strides = is_transposed ? std::vector<std::int64_t>{1, m + wider} : std::vector<std::int64_t>{k + wider, 1};
  s.b_strides = {n + wider, 1};
  s.c_strides = {n + wider, 1};
  return is_swapped ? swapped(s) : s;
}

struct Problem {
  MatmulSpec s;
  Numbers a, b, bias, c;
  explicit Problem(const MatmulSpec& spec)
      : s(spec), a(random_numbers(extent(s.a_strides, s.m, s.k), 1)), b(random_numbers(extent(s.b_strides, s.k, s.n), 2)),
        bias(random_numbers(s.n, 3)), c(random_numbers(extent(s.c_strides, s.m, s.n), 4)) {}
  static std::int64_t extent(const std::vector<std::int64_t>& strides, std::int64_t rows, std::int64_t columns) {
    return (rows - 1) * strides[0] + (columns - 1) * strides[1] + 1;
  }
  std::size_t at(std::int64_t i, std::int64_t j) const { return static_cast<std::size_t>(i * s.c_strides[0] + j * s.c_strides[1]); }
  Numbers result(int threads, bool with_bias, bool accumulates) const {
    MatmulSpec wanted = s;
    wanted.bias = with_bias;
    wanted.accumulate = accumulates;
    REQUIRE(can_gemm_in_parts(wanted));
    const auto product = make_matmul(wanted, threads);
    const auto scratch = allocate_buffer(product->scratch_bytes());
    Numbers out = c;
    REQUIRE(product->run(a.data(), b.data(), with_bias ? bias.data() : nullptr, out.data(), scratch.get()));
    return out;
  }
};

// Every element by the definition; what lies between the rows stays as it was.
void check_right(const Problem& p) {
  const Numbers got = p.result(2, false, false);
  double worst = 0;
  std::vector<bool> is_result(got.size(), false);
  for (std::int64_t i = 0; i < p.s.m; ++i) {
    for (std::int64_t j = 0; j < p.s.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.s.k; ++k) {
        sum += static_cast<double>(p.a[static_cast<std::size_t>(i * p.s.a_strides[0] + k * p.s.a_strides[1])]) *
               p.b[static_cast<std::size_t>(k * p.s.b_strides[0] + j * p.s.b_strides[1])];
      }
      is_result[p.at(i, j)] = true;
      worst = std::max(worst, std::abs(sum - static_cast<double>(got[p.at(i, j)])));
    }
  }
  CHECK(worst < 1e-6 * std::sqrt(static_cast<double>(p.s.k)) * 10);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!is_result[i] && got[i] != p.c[i]) FAIL("memory between rows was written at ", i);
  }
}

void check_bits(const Problem& p) {
  const Numbers bare = p.result(1, false, false);
  for (const int threads : {2, 5, 16}) CHECK(p.result(threads, false, false) == bare);
  for (const int threads : {1, 3}) {
    const Numbers biased = p.result(threads, true, false), summed = p.result(threads, false, true), both = p.result(threads, true, true);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < p.s.m; ++i) {
      for (std::int64_t j = 0; j < p.s.n; ++j) {
        const std::size_t at = p.at(i, j);
        const float with_bias = bare[at] + p.bias[static_cast<std::size_t>(j)];
        wrong += biased[at] != with_bias || summed[at] != bare[at] + p.c[at] || both[at] != with_bias + p.c[at];
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("products in parts are right, and adding to them changes no bit of the sum") {
  struct Sizes {
    std::int64_t m, n, k, wider;
    bool is_transposed;
  };
  if (!can_gemm_in_parts(spec_of(512, 512, 128, true, false))) return;  // the machine has no brgemm to be faster than
  for (const Sizes z : {Sizes{300, 400, 129, 0, false}, Sizes{129, 384, 513, 5, false}, Sizes{520, 700, 150, 1, false}, Sizes{300, 400, 129, 0, true},
                        Sizes{513, 130, 400, 3, true}, Sizes{140, 1100, 200, 0, true}, Sizes{1030, 128, 128, 7, true}}) {
    for (const bool is_swapped : {false, true}) {
      INFO(z.m, " x ", z.n, " x ", z.k, " wider by ", z.wider, z.is_transposed ? " transposed" : "", is_swapped ? " swapped" : "");
      const Problem p(spec_of(z.m, z.n, z.k, z.is_transposed, is_swapped, z.wider));
      check_right(p);
      check_bits(p);
    }
  }
}

TEST_CASE("what gemm would copy or computes no faster is left to brgemm") {
  CHECK_FALSE(can_gemm_in_parts(spec_of(512, 2048, 512, true, false)));   // rows of b begin at pages
  CHECK_FALSE(can_gemm_in_parts(spec_of(1024, 512, 512, true, false)));   // those of a
  CHECK_FALSE(can_gemm_in_parts(spec_of(512, 1536, 512, false, false)));  // straight and wide
  CHECK_FALSE(can_gemm_in_parts(spec_of(100, 512, 512, true, false)));
  CHECK_FALSE(can_gemm_in_parts(spec_of(130, 130, 130, true, false)));
  MatmulSpec s = spec_of(512, 512, 512, true, false);
  s.dtype = s.result = Dtype::bf16;
  CHECK_FALSE(can_gemm_in_parts(s));
  s = spec_of(512, 512, 512, true, false);
  s.batch = {1};
  for (auto* strides : {&s.a_strides, &s.b_strides, &s.c_strides}) strides->insert(strides->begin(), 0);
  CHECK_FALSE(can_gemm_in_parts(s));
  s = spec_of(512, 512, 512, true, false);
  s.b_strides = {1, 600};
  CHECK_FALSE(can_gemm_in_parts(s));
}

TEST_CASE("parts are small enough to be read in place and enough for all threads") {
  for (const std::int64_t m : {128, 500, 512, 1000, 1536, 5000}) {
    for (const std::int64_t n : {128, 384, 512, 1500, 4000}) {
      for (const int threads : {1, 2, 3, 5, 16, 64}) {
        for (const std::int64_t most : {m * n, std::int64_t{128 << 10}}) {
          INFO(m, " x ", n, " for ", threads, ", at most ", most);
          const PartSize part = gemm_part_size(m, n, threads, most);
          CHECK(part.rows > 0);
          CHECK(part.rows <= std::min<std::int64_t>(m, 504));
          CHECK(part.columns > 0);
          CHECK(part.columns <= n);
          CHECK(part.rows * part.columns <= most + 8 * n);  // whole rows of registers
          const std::int64_t parts = plan::ceil_div(m, part.rows) * plan::ceil_div(n, part.columns);
          const std::int64_t possible = std::max<std::int64_t>(1, m / 64) * std::max<std::int64_t>(1, n / 192);
          CHECK(parts >= std::min<std::int64_t>(threads, possible) / 2);
        }
      }
    }
  }
}

}  // namespace reprise::codegen
