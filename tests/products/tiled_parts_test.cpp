// Products in parts for threads: right, with the same bits for any number of threads and with what
// is added.
#include "base/memory.h"
#include "plan/loops.h"
#include "products/matmul_calls.h"
#include "products/tiled_dot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

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

// With rows of b and c dense and so much wider than they need be; a transposed or not. Swapped: the
// same for c^T = b^T a^T.
MatmulSpec spec_of(std::int64_t m, std::int64_t n, std::int64_t k, bool is_transposed,
                   bool is_swapped, std::int64_t wider = 0) {
  MatmulSpec s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a_strides = is_transposed ? std::vector<std::int64_t>{1, m + wider}
                              : std::vector<std::int64_t>{k + wider, 1};
  s.b_strides = {n + wider, 1};
  s.c_strides = {n + wider, 1};
  return is_swapped ? swapped(s) : s;
}

struct Problem {
  MatmulSpec s;
  Numbers a, b, bias, c;
  explicit Problem(const MatmulSpec& spec)
      : s(spec),
        a(random_numbers(extent(s.a_strides, s.m, s.k), 1)),
        b(random_numbers(extent(s.b_strides, s.k, s.n), 2)),
        bias(random_numbers(s.n, 3)),
        c(random_numbers(extent(s.c_strides, s.m, s.n), 4)) {}
  static std::int64_t extent(const std::vector<std::int64_t>& strides, std::int64_t rows,
                             std::int64_t columns) {
    return (rows - 1) * strides[0] + (columns - 1) * strides[1] + 1;
  }
  std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * s.c_strides[0] + j * s.c_strides[1]);
  }
  Numbers result(int threads, bool with_bias, bool accumulates) const {
    MatmulSpec wanted = s;
    wanted.bias = with_bias;
    wanted.accumulate = accumulates;
    REQUIRE(can_tile(wanted));
    const auto product = make_matmul(wanted, threads);
    const auto scratch = allocate_buffer(product->scratch_bytes());
    Numbers out = c;
    REQUIRE(product->run(a.data(), b.data(), with_bias ? bias.data() : nullptr, out.data(),
                         scratch.get()));
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
        sum += static_cast<double>(
                   p.a[static_cast<std::size_t>(i * p.s.a_strides[0] + k * p.s.a_strides[1])]) *
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
    const Numbers biased = p.result(threads, true, false), summed = p.result(threads, false, true),
                  both = p.result(threads, true, true);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < p.s.m; ++i) {
      for (std::int64_t j = 0; j < p.s.n; ++j) {
        const std::size_t at = p.at(i, j);
        const float with_bias = bare[at] + p.bias[static_cast<std::size_t>(j)];
        wrong += biased[at] != with_bias || summed[at] != bare[at] + p.c[at] ||
                 both[at] != with_bias + p.c[at];
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
  for (const Sizes z : {Sizes{300, 400, 129, 0, false}, Sizes{129, 384, 513, 5, false},
                        Sizes{520, 700, 150, 1, false}, Sizes{300, 400, 129, 0, true},
                        Sizes{513, 130, 400, 3, true}, Sizes{140, 1100, 200, 0, true},
                        Sizes{1030, 128, 128, 7, true}, Sizes{200, 1100, 400, 0, false},
                        Sizes{70, 2000, 130, 0, false}, Sizes{20, 600, 300, 0, false},
                        Sizes{25, 33, 1030, 2, true}}) {
    for (const bool is_swapped : {false, true}) {
      INFO(z.m, " x ", z.n, " x ", z.k, " wider by ", z.wider, z.is_transposed ? " transposed" : "",
           is_swapped ? " swapped" : "");
      const Problem p(spec_of(z.m, z.n, z.k, z.is_transposed, is_swapped, z.wider));
      check_right(p);
      check_bits(p);
    }
  }
}

TEST_CASE("a result whose rows and columns both have gaps is written where it belongs") {
  for (const bool is_transposed : {false, true}) {
    MatmulSpec s = spec_of(130, 70, 300, is_transposed, false);
    s.c_strides = {3 * 75, 3};
    const Problem p(s);
    check_right(p);
    check_bits(p);
  }
}

TEST_CASE(
    "memory beside operands and result is the same for all vectors and grows with threads alone") {
  constexpr std::size_t block = 256 * 256 * sizeof(float);
  MatmulSpec s = spec_of(2000, 2000, 2000, false, false);
  for (const int threads : {1, 2, 16, 64}) {
    CHECK(make_matmul(s, threads)->scratch_bytes() == block * static_cast<std::size_t>(threads));
  }
  s.accumulate = true;
  CHECK(make_matmul(s, 2)->scratch_bytes() <= 2 * (block + block));
  CHECK(make_matmul(spec_of(8, 64, 100, false, false), 2)->scratch_bytes() ==
        0);  // few rows read b in place
}

TEST_CASE("parts are as large as the cache and enough for all threads") {
  for (const std::int64_t m : {128, 500, 512, 1000, 1536, 5000}) {
    for (const std::int64_t n : {128, 384, 512, 1500, 4000}) {
      for (const int threads : {1, 2, 3, 5, 16, 64}) {
        for (const bool sums_apart : {false, true}) {
          INFO(m, " x ", n, " for ", threads, sums_apart ? " with sums apart" : "");
          const PartGrid grid = tile_grid(m, n, 1, threads, sums_apart);
          CHECK(size_of_part(grid.down, m, grid_row_step) <= (sums_apart ? 252 : 504));
          const std::int64_t possible =
              std::max<std::int64_t>(1, m / 60) * std::max<std::int64_t>(1, n / 128);
          CHECK(grid.down * grid.across >= std::min<std::int64_t>(threads, possible) / 2);
          for (const auto& [parts, size, step] : {std::tuple(grid.down, m, grid_row_step),
                                                  std::tuple(grid.across, n, grid_column_step)}) {
            CHECK(begin_of_part(0, parts, size, step) == 0);
            CHECK(begin_of_part(parts, parts, size, step) == size);
            for (std::int64_t i = 0; i < parts; ++i) {
              const std::int64_t length =
                  begin_of_part(i + 1, parts, size, step) - begin_of_part(i, parts, size, step);
              CHECK(length > 0);
              CHECK(length <= size_of_part(parts, size, step));
            }
          }
        }
      }
    }
  }
}

}  // namespace reprise::codegen
