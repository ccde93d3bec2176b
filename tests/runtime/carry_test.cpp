// Carried values of compiled loops: updated where they lie if nothing is lost by it, else in two
// places.
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;

namespace {

constexpr std::int64_t side = 256;
constexpr std::size_t matrix_bytes = side * side * 4;

Array ramp(const rp::Shape& shape) {
  const std::int64_t n = rp::Type{rp::float32, shape}.size();
  return rp::reshape(rp::arange(n).astype(rp::float32), shape) / static_cast<float>(n);
}

template <class F, class... Args>
void check_same(const F& f, const Args&... args) {
  const rp::Arrays expected = rp::tree_leaves(f(args...)),
                   got = rp::tree_leaves(rp::jit(f)(args...));
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i].to_vector<float>() == expected[i].to_vector<float>());
}

template <class F, class... Args>
std::size_t peak_of(const F& f, const Args&... args) {
  return rp::jit(f).lower(args...).compile().memory_analysis().peak_bytes;
}

}  // namespace

TEST_CASE("a sum that a scan carries lies in one place") {
  const auto f = [](Array start, Array rows) {
    return rp::scan(
               [](Array sum, Array row) {
                 return std::pair{sum + row, rp::none};
               },
               start, rows)
        .first;
  };
  const Array start = ramp({side, side}), rows = ramp({7, side});
  check_same(f, start, rows);
  CHECK(peak_of(f, start, rows) < matrix_bytes + 4096);
}

TEST_CASE("values that change places are carried in two places each") {
  const auto f = [](Array a, Array b) {
    return rp::scan(
               [](std::pair<Array, Array> c, rp::None) {
                 return std::pair{std::pair{c.second * 0.5f, c.first + 1.0f}, rp::none};
               },
               std::pair{a, b}, rp::none, {.length = 5})
        .first;
  };
  check_same(f, ramp({40, 3}), ramp({40, 3}) * 2.0f);
}

TEST_CASE("a carried value that a step reads again after its successor keeps its place") {
  const auto f = [](Array a) {
    return rp::scan(
               [](std::pair<Array, Array> c, rp::None) {
                 const Array next = rp::flip(c.first, 0) + 1.0f;
                 const Array other = rp::matmul(next, next) * 1e-3f + c.first;
                 return std::pair{std::pair{next, other}, rp::none};
               },
               std::pair{a, a}, rp::none, {.length = 6})
        .first;
  };
  const Array a = ramp({24, 24});
  const auto [next, other] = rp::jit(f)(a);
  const auto [expected_next, expected_other] = f(a);
  CHECK(next.to_vector<float>() == expected_next.to_vector<float>());
  const auto got = other.to_vector<double>(), expected = expected_other.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("what a loop starts from stays as it is for others") {
  const auto f = [](Array x) {
    const Array start = x * 2.0f;
    const Array end = rp::scan(
                          [&](Array c, rp::None) {
                            return std::pair{c + start, rp::none};
                          },
                          start, rp::none, {.length = 3})
                          .first;
    const Array again = rp::scan(
                            [](Array c, rp::None) {
                              return std::pair{c + 1.0f, rp::none};
                            },
                            start, rp::none, {.length = 0})
                            .first;
    return std::tuple{end, again, start};
  };
  const Array x = ramp({side, 5});
  check_same(f, x);
  CHECK(x.to_vector<float>()[1] == 1.0f / static_cast<float>(side * 5));
}

TEST_CASE("a carried value that steps do not change is not copied in each of them") {
  const auto f = [](Array table, Array rows) {
    const auto step = [](std::pair<Array, Array> c, Array row) {
      return std::pair{std::pair{c.first, c.second + rp::sum(c.first) * row}, rp::none};
    };
    return rp::scan(step, std::pair{table * 2.0f, rp::zeros({side})}, rows).first;
  };
  const Array table = ramp({side, side}), rows = ramp({4, side});
  const auto [same, sums] = rp::jit(f)(table, rows);
  CHECK(same.to_vector<float>() == (table * 2.0f).to_vector<float>());
  CHECK(peak_of(f, table, rows) < matrix_bytes + (64 << 10));
}

TEST_CASE("a carried value that is stacked before each step is written to the stack at once") {
  for (const std::int64_t length : {0, 1, 2, 9}) {
    for (const bool reverse : {false, true}) {
      const auto f = [=](Array start) {
        const auto step = [](Array c, rp::None) {
          return std::pair{c * 0.5f + rp::flip(c, 0), std::tuple{c, c, c + 1.0f}};
        };
        return rp::scan(step, start, rp::none, {.length = length, .reverse = reverse});
      };
      check_same(f, ramp({40, 3}));
    }
  }
  const auto history = [](Array start) {
    const auto step = [](Array c, rp::None) { return std::pair{c + 1.0f, c}; };
    return rp::scan(step, start, rp::none, {.length = 4});
  };
  const Array start = ramp({side, side});
  check_same(history, start);
  CHECK(peak_of(history, start) < 5 * matrix_bytes + 4096);  // the stack and the last value
}

TEST_CASE("a while loop updates in place, and a donated start too") {
  const auto f = [](Array x) {
    return rp::while_loop([](Array c) { return rp::max(c) < 40.0f; },
                          [](Array c) { return c * 1.5f + 1.0f; }, x);
  };
  const Array x = ramp({side, side});
  check_same(f, x);
  CHECK(peak_of(f, x) < matrix_bytes + (64 << 10));
  const auto donating = rp::jit(f, {.donate_argnums = {0}});
  CHECK(donating.lower(x).compile().memory_analysis().peak_bytes < 64 << 10);
  CHECK(donating(ramp({side, side})).to_vector<float>() == f(x).to_vector<float>());
}
