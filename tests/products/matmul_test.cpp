// Every product is compared with a plain loop in double, and memory around the views must stay as
// it was.
#include "products/matmul.h"

#include "base/memory.h"
#include "codegen/pool.h"
#include "products/widened_dot.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;

float load(const std::vector<std::byte>& x, Dtype d, std::int64_t i) {
  if (d == Dtype::f32) {
    float value;
    std::memcpy(&value, x.data() + 4 * i, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, x.data() + 2 * i, 2);
  return d == Dtype::bf16 ? static_cast<float>(std::bit_cast<BFloat16>(bits))
                          : static_cast<float>(std::bit_cast<Float16>(bits));
}
void store(std::vector<std::byte>& x, Dtype d, std::int64_t i, float value) {
  if (d == Dtype::f32) {
    std::memcpy(x.data() + 4 * i, &value, 4);
  } else {
    const std::uint16_t rounded = d == Dtype::bf16 ? BFloat16(value).bits : Float16(value).bits;
    std::memcpy(x.data() + 2 * i, &rounded, 2);
  }
}
std::int64_t extent(const Ints& batch, const Ints& strides, std::int64_t rows,
                    std::int64_t columns) {
  Ints dims = batch;
  dims.insert(dims.end(), {rows, columns});
  std::int64_t last = 0;
  for (std::size_t d = 0; d < dims.size(); ++d)
    last += std::max<std::int64_t>(0, dims[d] - 1) * strides[d];
  return last + 1;
}
std::vector<std::byte> random_values(std::int64_t n, Dtype d, unsigned seed) {
  std::vector<std::byte> x(static_cast<std::size_t>(n) * itemsize(d));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t i = 0; i < n; ++i) store(x, d, i, uniform(random));
  return x;
}

// Operands of a spec with a margin of 3 elements in front of each, so that nothing is aligned by
// chance.
struct Problem {
  static constexpr std::int64_t margin = 3;
  MatmulSpec s;
  std::vector<std::byte> a, b, bias, c;

  explicit Problem(const MatmulSpec& spec)
      : s(spec),
        a(random_values(margin + extent(s.batch, s.a_strides, s.m, s.k), s.dtype, 1)),
        b(random_values(margin + extent(s.batch, s.b_strides, s.k, s.n), s.dtype, 2)),
        bias(random_values(margin + s.n, s.result, 3)),
        c(random_values(margin + extent(s.batch, s.c_strides, s.m, s.n) + margin, s.result, 4)) {}

  void run(const Matmul& matmul) {
    const auto scratch = allocate_buffer(matmul.scratch_bytes());
    const std::size_t in = margin * itemsize(s.dtype), out = margin * itemsize(s.result);
    REQUIRE(matmul.run(a.data() + in, b.data() + in, s.bias ? bias.data() + out : nullptr,
                       c.data() + out, scratch.get()));
  }

  // What c must become, by the definition.
  std::vector<std::byte> expected() const {
    std::vector<std::byte> out = c;
    each_matrix(0, 0, 0, 0, [&](std::int64_t ai, std::int64_t bi, std::int64_t ci) {
      const std::size_t row = s.batch.size(), column = row + 1;
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          const std::int64_t at = margin + ci + i * s.c_strides[row] + j * s.c_strides[column];
          double sum = s.accumulate ? load(c, s.result, at) : 0.0;
          for (std::int64_t k = 0; k < s.k; ++k) {
            sum += static_cast<double>(load(
                       a, s.dtype, margin + ai + i * s.a_strides[row] + k * s.a_strides[column])) *
                   load(b, s.dtype, margin + bi + k * s.b_strides[row] + j * s.b_strides[column]);
          }
          if (s.bias) sum += load(bias, s.result, margin + j);
          store(out, s.result, at, static_cast<float>(sum));
        }
      }
    });
    return out;
  }
  void each_matrix(std::size_t d, std::int64_t ai, std::int64_t bi, std::int64_t ci,
                   const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) const {
    if (d == s.batch.size()) return f(ai, bi, ci);
    for (std::int64_t i = 0; i < s.batch[d]; ++i) {
      each_matrix(d + 1, ai + i * s.a_strides[d], bi + i * s.b_strides[d], ci + i * s.c_strides[d],
                  f);
    }
  }
};

void check(const MatmulSpec& spec, const Matmul& matmul) {
  Problem p(spec);
  const auto expected = p.expected();
  CAPTURE(spec.dtype);
  CAPTURE(spec.batch.size());
  CAPTURE(spec.m);
  CAPTURE(spec.n);
  CAPTURE(spec.k);
  p.run(matmul);
  const double unit = spec.result == Dtype::f32 ? 1e-6 : 8e-3;
  double worst = 0;
  const auto n = static_cast<std::int64_t>(p.c.size() / itemsize(spec.result));
  for (std::int64_t i = 0; i < n; ++i) {
    const double want = load(expected, spec.result, i), got = load(p.c, spec.result, i);
    const double scale = unit * (std::abs(want) + std::sqrt(static_cast<double>(spec.k)) + 1);
    const double error = std::abs(want - got) / scale;
    worst = std::isnan(error) ? 1e300 : std::max(worst, error);
  }
  CHECK(worst < 1.0);
}
void check(const MatmulSpec& spec, int threads = 2) { check(spec, *make_matmul(spec, threads)); }

// Row major, or column major where the letter is 't'.
MatmulSpec dense(const Ints& batch, std::int64_t m, std::int64_t n, std::int64_t k,
                 const char* orders = "nnn") {
  MatmulSpec s;
  s.batch = batch;
  s.m = m;
  s.n = n;
  s.k = k;
  const auto strides = [&](std::int64_t rows, std::int64_t columns, char order) {
    Ints out(batch.size() + 2);
    std::int64_t next = rows * columns;
    for (std::size_t d = batch.size(); d-- > 0; next *= batch[d]) out[d] = next;
    out.end()[-2] = order == 't' ? 1 : columns;
    out.end()[-1] = order == 't' ? rows : 1;
    return out;
  };
  s.a_strides = strides(m, k, orders[0]);
  s.b_strides = strides(k, n, orders[1]);
  s.c_strides = strides(m, n, orders[2]);
  return s;
}

TEST_CASE("a product is right in every order of storage") {
  for (const char* orders : {"nnn", "ntn", "tnn", "ttn", "nnt", "ntt", "tnt", "ttt"}) {
    CAPTURE(orders);
    check(dense({}, 64, 48, 32, orders));
    check(dense({}, 37, 5, 19, orders));
    check(dense({3}, 7, 33, 65, orders));
    check(dense({2, 3}, 17, 9, 4, orders));
  }
}

TEST_CASE("rows, columns and sums of one element are ordinary") {
  for (const std::int64_t m : {1, 2, 70})
    for (const std::int64_t n : {1, 3, 65})
      for (const std::int64_t k : {1, 5, 130})
        for (const char* orders : {"nnn", "ttn", "nnt"}) check(dense({}, m, n, k, orders));
}

TEST_CASE("accumulation and bias follow the product") {
  for (int variant = 0; variant < 4; ++variant) {
    for (const char* orders : {"nnn", "tnn", "nnt"}) {
      MatmulSpec s = dense({2}, 33, 20, 17, orders);
      s.accumulate = (variant & 1) != 0;
      s.bias = (variant & 2) != 0;
      CAPTURE(variant);
      check(s);
    }
  }
}

TEST_CASE("columns of wider matrices are operands and results") {
  for (const bool accumulate : {false, true}) {
    MatmulSpec s = dense({}, 30, 20, 10);
    s.accumulate = accumulate;
    s.a_strides = {25, 1};
    s.b_strides = {1, 14};
    s.c_strides = {41, 1};
    check(s);
    s.a_strides = {2, 70};  // neither dimension is next to itself
    s.b_strides = {65, 3};
    s.c_strides = {43, 2};
    check(s);
    s.c_strides = {2, 64};
    s.bias = true;
    check(s);
  }
}

TEST_CASE("heads of attention are multiplied where they lie") {
  const std::int64_t heads = 3, rows = 20, width = 8, model = heads * width;
  MatmulSpec scores = dense({2, heads}, rows, rows, width);
  scores.a_strides = {rows * model, width, model, 1};
  scores.b_strides = {rows * model, width, 1, model};
  check(scores);
  MatmulSpec values = dense({2, heads}, rows, width, rows);
  values.b_strides = values.c_strides = {rows * model, width, model, 1};
  check(values);
  values.a_strides = {heads * rows * rows, rows * rows, 1, rows};
  check(values);
  // q, k and v side by side in one matrix: the rows are three models apart.
  scores.a_strides = {rows * 3 * model, width, 3 * model, 1};
  scores.b_strides = {rows * 3 * model, width, 1, 3 * model};
  check(scores);
}

TEST_CASE("operands broadcast along batch dimensions") {
  MatmulSpec s = dense({4}, 10, 6, 8);
  s.b_strides[0] = 0;
  check(s);
  s.bias = true;
  check(s);
  s = dense({4}, 10, 6, 8);
  s.a_strides[0] = 0;
  check(s);
  s = dense({2, 3, 2}, 5, 6, 7);
  s.a_strides[1] = 0;
  s.b_strides[0] = 0;
  check(s);
  s = dense({2, 3}, 40, 40, 20);
  s.a_strides[0] = s.a_strides[1] = 0;
  s.b_strides[0] = 0;
  check(s, 2);
  s = dense({2, 1}, 40, 40, 20);
  s.b_strides[0] = s.b_strides[1] = 0;
  check(s, 5);
}

TEST_CASE("batch dimensions may be many and in any order") {
  check(dense(Ints(9, 2), 3, 2, 4));
  MatmulSpec s = dense({3, 4, 5}, 6, 7, 8);
  s.c_strides = {42, 3 * 42, 12 * 42, 7, 1};
  check(s);
  s = dense(Ints(13, 2), 1, 2, 2);  // more than the library's twelve, and not to be folded
  for (std::size_t d = 0; d < 13; ++d) s.c_strides[d] = std::int64_t{2} << d;
  if (can_matmul(s)) check(s);
}

TEST_CASE("random views agree with the definition") {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    Ints batch;
    for (std::int64_t d = pick(0, 3); d > 0; --d) batch.push_back(pick(1, 4));
    MatmulSpec s = dense(batch, pick(1, 40), pick(1, 40), pick(1, 40));
    // Each operand: its dimensions in a random order, some of them wider than needed.
    const auto shuffle = [&](Ints& strides, std::int64_t rows, std::int64_t columns, bool input) {
      Ints dims = batch;
      dims.insert(dims.end(), {rows, columns});
      std::vector<std::size_t> order(dims.size());
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
      std::shuffle(order.begin(), order.end(), random);
      std::int64_t next = pick(0, 3) == 0 ? 2 : 1;
      for (std::size_t d : order) {
        strides[d] = next;
        if (input && d < batch.size() && pick(0, 3) == 0) {
          strides[d] = 0;
        } else {
          next *= dims[d] + (pick(0, 3) == 0 ? pick(1, 3) : 0);
        }
      }
    };
    shuffle(s.a_strides, s.m, s.k, true);
    shuffle(s.b_strides, s.k, s.n, true);
    shuffle(s.c_strides, s.m, s.n, false);
    s.accumulate = pick(0, 1) != 0;
    s.bias = pick(0, 3) == 0;
    CAPTURE(round);
    CHECK(can_matmul(s));
    check(s, static_cast<int>(pick(1, 3)));
  }
}

TEST_CASE("bf16 products sum in f32") {
  for (const Dtype result : {Dtype::bf16, Dtype::f32}) {
    for (const char* orders : {"nnn", "ntn", "tnn", "ttn", "nnt"}) {
      MatmulSpec s = dense({2}, 40, 33, 70, orders);
      s.dtype = Dtype::bf16;
      s.result = result;
      check(s);
      s.accumulate = s.bias = true;
      check(s);
    }
  }
}

TEST_CASE("halves are widened where the processor does not multiply them") {
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const Dtype half : {Dtype::bf16, Dtype::f16}) {
    for (const Dtype result : {half, Dtype::f32}) {
      for (const Sizes z :
           {Sizes{40, 33, 70}, Sizes{1, 300, 513}, Sizes{300, 1, 256}, Sizes{265, 270, 30}}) {
        for (const char* orders : {"nnn", "ntn", "ttn", "nnt"}) {
          MatmulSpec s = dense({2}, z.m, z.n, z.k, orders);
          s.dtype = half;
          s.result = result;
          CAPTURE(orders);
          check(s, *make_widened_dot(s, 3));
          s.accumulate = s.bias = true;
          check(s, *make_widened_dot(s));
        }
      }
    }
  }
}

TEST_CASE("bits of widened products do not depend on the number of threads") {
  MatmulSpec s = dense({}, 300, 700, 600, "tnn");
  s.dtype = s.result = Dtype::bf16;
  Problem one(s);
  one.run(*make_widened_dot(s, 1));
  for (const int threads : {2, 5, 16}) {
    Problem p(s);
    p.run(*make_widened_dot(s, threads));
    CHECK(p.c == one.c);
  }
}

TEST_CASE("types and strides that nothing takes are refused") {
  MatmulSpec s = dense({}, 4, 4, 4);
  s.dtype = s.result = Dtype::i32;
  CHECK_FALSE(can_matmul(s));
  CHECK_THROWS_AS(make_matmul(s), RuntimeError);
  s = dense({}, 4, 4, 4);
  s.a_strides = {0, 1};
  CHECK_FALSE(can_matmul(s));
  s = dense({2}, 4, 4, 4);
  s.c_strides[0] = 0;
  CHECK_FALSE(can_matmul(s));
  s.c_strides = {4, 1};
  CHECK_FALSE(can_matmul(s));
}

TEST_CASE("empty products leave what follows the product") {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    for (int variant = 0; variant < 4; ++variant) {
      MatmulSpec s = dense({2}, 3, 4, 0, "nnt");
      s.dtype = s.result = dtype;
      s.accumulate = (variant & 1) != 0;
      s.bias = (variant & 2) != 0;
      check(s);
    }
  }
  for (const MatmulSpec& s :
       {dense({}, 0, 4, 3), dense({}, 4, 0, 3), dense({0}, 4, 4, 3), dense({2, 0}, 0, 0, 0)}) {
    CHECK(make_matmul(s)->run(nullptr, nullptr, nullptr, nullptr, nullptr));
  }
}

TEST_CASE("bits do not depend on the number of threads") {
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const Sizes z : {Sizes{1, 1, 5000}, Sizes{64, 64, 2048}, Sizes{7, 100, 4097},
                        Sizes{100, 33, 3000}, Sizes{256, 300, 2500}, Sizes{200, 64, 256}}) {
    for (const char* orders : {"nnn", "ntn", "tnn", "ttn", "tnt"}) {
      for (const int variant : {0, 1, 2}) {
        const Ints batch = variant == 1 ? Ints{3} : Ints{};
        MatmulSpec s = dense(batch, z.m, z.n, z.k, orders);
        s.accumulate = variant == 2;
        Problem one(s);
        one.run(*make_matmul(s, 1));
        for (const int threads : {2, 5}) {
          Problem p(s);
          p.run(*make_matmul(s, threads));
          CAPTURE(orders);
          CAPTURE(z.m);
          CAPTURE(z.n);
          CAPTURE(z.k);
          CAPTURE(threads);
          CHECK(std::memcmp(p.c.data(), one.c.data(), p.c.size()) == 0);
        }
      }
    }
  }
}

TEST_CASE("long sums with a bias are cut and still right") {
  for (const bool accumulate : {false, true}) {
    MatmulSpec s = dense({}, 20, 30, 5000, "tnn");
    s.bias = true;
    s.accumulate = accumulate;
    check(s);
  }
}

TEST_CASE("one object of the library per spec and number of threads") {
  MatmulSpec s = dense({}, 12, 13, 14);
  s.dtype = s.result = Dtype::bf16;
  CHECK(make_matmul(s, 2) == make_matmul(s, 2));
  CHECK(make_matmul(s, 1) != make_matmul(s, 2));
}

TEST_CASE("one object runs in many threads at once") {
  const MatmulSpec s = dense({}, 50, 60, 70, "tnn");
  const auto matmul = make_matmul(s, 2);
  const auto expected = Problem(s).expected();
  std::vector<int> right(6);
  std::vector<std::thread> threads;
  for (int& ok : right) {
    threads.emplace_back([&ok, &s, &matmul, &expected] {
      Problem p(s);
      for (int i = 0; i < 20; ++i) p.run(*matmul);
      ok = 1;
      for (std::int64_t i = 0; i < 3000; ++i) {
        if (std::abs(load(p.c, s.result, i) - load(expected, s.result, i)) > 1e-4f) ok = 0;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const int ok : right) CHECK(ok == 1);
}

TEST_CASE("a product inside a parallel loop is whole") {
  const MatmulSpec s = dense({}, 90, 80, 70);
  const auto matmul = make_matmul(s, 3);
  Problem reference(s);
  reference.run(*matmul);
  std::vector<Problem> problems(6, Problem(s));
  share_items(3, 6, [&](std::int64_t, std::int64_t i) {
    problems[static_cast<std::size_t>(i)].run(*matmul);
  });
  for (const Problem& p : problems) CHECK(p.c == reference.c);
}

}  // namespace
}  // namespace reprise::codegen
