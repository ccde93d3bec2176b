#include "runtime/compile.h"

#include "random_program.h"
#include "runtime/difference.h"
#include "runtime/threads.h"
#include "without_pass.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

namespace {

Array ramp(rp::Shape shape, double from, double to) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i)
    v.push_back(static_cast<float>(from + (to - from) * static_cast<double>((i * 7919) % n) /
                                              static_cast<double>(n)));
  return rp::array(v).reshape(shape);
}

template <class F, class... A>
void check_equal(const char* what, double tolerance, F f, const A&... args) {
  INFO(std::string(what));
  const Arrays expected = rp::tree_leaves(f(args...)), got = rp::tree_leaves(rp::jit(f)(args...));
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CHECK(got[k].type() == expected[k].type());
    CHECK(largest_difference(got[k], expected[k]) <= tolerance);
  }
}

}  // namespace

TEST_CASE("random programs and their gradients compile to what the evaluator computes") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    INFO("seed ", seed);
    const auto program = random_program::make(seed);
    const auto step = rp::value_and_grad(program.loss);
    const auto [value, gradient] = step(program.args);
    const auto check = [&, &expected = value, &gradients = gradient] {
      const auto [compiled_value, compiled_gradient] = rp::jit(step)(program.args);
      CHECK(largest_difference(compiled_value, expected) <= 1e-11);
      for (std::size_t k = 0; k < gradients.size(); ++k) {
        if (rp::is_floating(gradients[k].dtype()))
          CHECK(largest_difference(compiled_gradient[k], gradients[k]) <= 1e-10);
      }
    };
    check();
    const char* pass = optional_pass(seed);
    INFO("without ", std::string(pass));
    const WithoutPass without(pass);
    check();
  }
}

TEST_CASE("rows, columns and tails of every length agree with the evaluator") {
  for (std::int64_t rows : {1, 2, 3, 17, 130}) {
    for (std::int64_t columns : {1, 2, 15, 16, 17, 33, 64, 100, 257}) {
      INFO(rows, " x ", columns);
      const Array x = ramp({rows, columns}, -2, 2);
      check_equal(
          "softmax", 1e-5, [](Array v) { return rp::nn::softmax(v, -1); }, x);
      check_equal(
          "over rows", 1e-5, [](Array v) { return rp::sum(rp::sin(v), 0); }, x);
      check_equal(
          "along rows", 1e-5, [](Array v) { return rp::max(rp::sin(v), 1); }, x);
      check_equal(
          "all", 1e-5, [](Array v) { return rp::sum(v * v); }, x);
      check_equal(
          "transposed", 0, [](Array v) { return rp::transpose(v) * 2.f; }, x);
    }
  }
}

TEST_CASE("large reductions are split and still agree") {
  const Array x = ramp({300, 1000}, 0, 1), y = ramp({4, 70000}, 0, 1), z = ramp({3, 50, 40}, 0, 1);
  check_equal(
      "sum of all", 1e-5, [](Array v) { return rp::sum(v); }, x);
  check_equal(
      "wide columns", 1e-5, [](Array v) { return rp::sum(v, 0); }, y);
  check_equal(
      "middle", 1e-5, [](Array v) { return rp::sum(v, 1); }, z);
  check_equal(
      "outer and inner", 1e-5,
      [](Array v) {
        return rp::sum(v, {0, 2});
      },
      z);
  check_equal(
      "mean and variance", 1e-4, [](Array v) { return rp::var(v, -1); }, x);
}

TEST_CASE("division by powers of two is division to the bit") {
  const Array x = rp::array(std::vector<float>{0.0f, -0.0f, 1.0f, 3.3f, -7e37f, 1e-38f, 1e-45f,
                                               5e-41f, INFINITY, -INFINITY, NAN});
  for (const float divisor : {8.0f, 0.25f, -2.0f, 3.0f, 1.7014118e38f, 1e-40f, 0.0f}) {
    INFO(divisor);
    const auto expected = (x / divisor).to_vector<float>(),
               got = rp::jit([=](Array v) { return v / divisor; })(x).to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(i);
      CHECK((std::isnan(got[i])
                 ? std::isnan(expected[i])
                 : got[i] == expected[i] && std::signbit(got[i]) == std::signbit(expected[i])));
    }
  }
}

TEST_CASE("extrema know infinities, the sign of zero and NaN, along rows and over them") {
  const float inf = INFINITY, nan = NAN;
  const std::vector<std::vector<float>> mixes{
      {0.0f, -0.0f},     {-0.0f, 0.0f},         {-0.0f, -0.0f}, {-inf, -inf},   {-inf, -3e38f},
      {inf, 3e38f},      {1.5f, nan, -2.5f},    {-nan, 1.0f},   {inf, -nan},    {-inf, nan},
      {1e-45f, -1e-45f}, {-1.0f, -2.0f, -0.5f}, {2.0f, -3.0f},  {0.0f, 1e-45f}, {-0.0f, -1e-45f}};
  const auto is_same = [](double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  };
  for (const rp::Dtype dtype : {rp::float32, rp::float64, rp::bfloat16, rp::float16}) {
    for (const std::size_t columns : {1u, 2u, 15u, 16u, 37u, 200u}) {
      std::vector<float> numbers;
      for (const auto& mix : mixes) {
        for (std::size_t j = 0; j < columns; ++j) numbers.push_back(mix[j * mix.size() / columns]);
      }
      const Array rows =
          rp::reshape(rp::array(numbers), {static_cast<std::int64_t>(mixes.size()), -1})
              .astype(dtype);
      for (const std::int64_t axis : {1, 0}) {
        const auto both = [axis](Array x) {
          return std::vector<Array>{rp::max(x, axis), rp::min(x, axis)};
        };
        const Array x = axis == 1 ? rows : rp::transpose(rows);
        const std::vector<Array> expected = both(x), got = rp::jit(both)(x);
        for (const std::size_t k : {0u, 1u}) {
          const auto want = expected[k].to_vector<double>(), found = got[k].to_vector<double>();
          for (std::size_t i = 0; i < want.size(); ++i) {
            CHECK_MESSAGE(is_same(want[i], found[i]), std::string(rp::long_name(dtype)), " ",
                          columns, " axis ", axis, " at ", i, ": ", want[i], ", got ", found[i]);
          }
        }
      }
    }
  }
}

TEST_CASE("long sums keep their digits") {
  for (std::int64_t n : {2049, 5000, 70000, 100000, 1000003}) {
    INFO(n);
    const double exact = static_cast<double>(n) * static_cast<double>(0.1f);
    const auto sum_of_all = rp::jit([](Array v) { return rp::sum(v); });
    CHECK(sum_of_all(rp::full({n}, 0.1f)).item<double>() == doctest::Approx(exact).epsilon(3e-6));
    const auto sum_of_rows = rp::jit([](Array v) { return rp::sum(v, 1); });
    CHECK(sum_of_rows(rp::full({3, n}, 0.1f)).to_vector<double>()[2] ==
          doctest::Approx(exact).epsilon(3e-6));
    const auto sum_of_columns = rp::jit([](Array v) { return rp::sum(v, 0); });
    CHECK(sum_of_columns(rp::full({n, 3}, 0.1f)).to_vector<double>()[2] ==
          doctest::Approx(exact).epsilon(2e-5));
  }
}

TEST_CASE("results written in parts are complete when they are read") {
  const Array x = ramp({6, 5}, -1, 1);
  check_equal(
      "concatenate", 1e-6,
      [](Array v) {
        return rp::sin(rp::concatenate({rp::cos(v), v, rp::transpose(rp::transpose(v))}, 0));
      },
      x);
  check_equal(
      "inner axis", 1e-6,
      [](Array v) {
        return rp::sum(rp::concatenate({v * 2.f, v}, 1), 1);
      },
      x);
  check_equal(
      "pad", 1e-6,
      [](Array v) {
        return rp::exp(rp::pad(rp::sin(v), {{1, 2}, {0, 3}}));
      },
      x);
}

TEST_CASE("products, transposed or not, are computed where a concatenation wants them") {
  const Array x = rp::random::normal(rp::random::key(3), {4, 8, 16, 24}),
              y = rp::random::normal(rp::random::key(4), {4, 8, 24, 16});
  const auto stacked = [](Array v, Array w) {
    const Array square = rp::matmul(v, w), turned = rp::swapaxes(rp::matmul(v * 2.0f, w), 2, 3);
    return rp::concatenate({turned, square, rp::transpose(rp::matmul(v, w * 3.0f), {0, 1, 3, 2})},
                           1);
  };
  check_equal("stacked", 1e-5, stacked, x, y);
  CHECK(rp::jit(stacked).lower(x, y).compile().as_text().find("kernel [copy]") ==
        std::string::npos);
  check_equal(
      "heads outside", 1e-5,
      [](Array v, Array w) {
        return rp::concatenate({rp::transpose(rp::matmul(v, w), {1, 3, 0, 2}),
                                rp::transpose(rp::matmul(v, w + 1.0f), {1, 2, 0, 3})},
                               0);
      },
      x, y);
  check_equal(
      "read twice", 1e-5,
      [](Array v, Array w) {
        const Array turned = rp::swapaxes(rp::matmul(v, w), 2, 3);
        return rp::concatenate({turned, rp::matmul(v, w), turned}, 3);
      },
      x, y);
  check_equal(
      "in part", 1e-5,
      [](Array v, Array w) {
        const Array rows = rp::lax::slice(rp::matmul(v, w), {0, 0, 0, 0}, {4, 8, 5, 16});
        const Array columns = rp::lax::slice(rp::matmul(v, w * 2.0f), {0, 0, 0, 0}, {4, 8, 16, 7});
        return rp::concatenate({rows, rp::swapaxes(columns, 2, 3), rp::matmul(v, w + 1.0f)}, 2);
      },
      x, y);
}

TEST_CASE("an output that is an argument is the argument itself") {
  const Array x = ramp({300, 300}, 0, 1);
  const auto f = rp::jit([](Array v) { return std::pair{v, v * 2.f}; });
  const auto [same, twice] = f(x);
  CHECK(same.data<float>().data() == x.data<float>().data());
  CHECK(twice.data<float>()[1] == 2 * x.data<float>()[1]);
}

TEST_CASE("the plan's peak is what a run takes") {
  const Array x = ramp({256, 512}, -1, 1), w = ramp({512, 512}, -0.1, 0.1);
  for (bool remat : {false, true}) {
    auto layer = [](Array W, Array v) { return rp::tanh(rp::matmul(v, W)); };
    const auto step = rp::jit(rp::value_and_grad([&, layer](Array W, Array v) {
      for (int i = 0; i < 6; ++i) v = remat ? rp::checkpoint(layer)(W, v) : layer(W, v);
      return rp::sum(v);
    }));
    const auto memory = step.lower(w, x).compile().memory_analysis();
    step(w, x);
    rp::reset_peak_live_bytes();
    const std::size_t before = rp::live_bytes();
    const auto out = step(w, x);
    CHECK(rp::peak_live_bytes() - before <= memory.peak_bytes + 4096);
    CHECK(rp::peak_live_bytes() - before + 4096 >= memory.peak_bytes);
  }
}

TEST_CASE("compiled functions refuse other types") {
  const auto compiled = rp::jit([](Array v) { return v + 1.f; }).lower(rp::ones({3})).compile();
  CHECK(compiled(rp::ones({3})).data<float>()[0] == 2);
  CHECK_THROWS_WITH_AS(compiled(rp::ones({4})), doctest::Contains("argument types differ"),
                       rp::TypeError);
}

TEST_CASE("results do not depend on the number of threads, to the bit") {
  const Array x = ramp({333, 517}, -2, 2), w = ramp({517, 301}, -0.1, 0.1);
  const auto step = rp::value_and_grad([](Array W, Array v) {
    const Array h = rp::nn::gelu(rp::matmul(v, W));
    return rp::sum(rp::nn::softmax(h, -1) * h) + rp::sum(rp::sum(h, 0) * rp::sum(h, 0));
  });
  std::vector<float> first;
  for (int threads : {1, 2, 5}) {
    rp::set_num_threads(threads);
    const auto gradient = rp::jit(step)(w, x).second.to_vector<float>();
    if (first.empty()) first = gradient;
    CHECK(gradient == first);
  }
  rp::set_num_threads(2);
}

TEST_CASE("every pass can be switched off and the results agree") {
  const Array x = ramp({40, 33}, -1, 1), w = ramp({33, 33}, -0.2, 0.2);
  auto layer = [](Array W, Array v) { return rp::tanh(rp::matmul(v, W)); };
  const auto step = rp::value_and_grad([layer](Array W, Array v) {
    for (int i = 0; i < 3; ++i) v = rp::checkpoint(layer)(W, v);
    v = rp::scan(
            [W](Array c, rp::None) {
              return std::pair{rp::sin(rp::matmul(c, W)), rp::none};
            },
            v, rp::none, {.length = 4})
            .first;
    return rp::sum(rp::nn::softmax(v, -1) * v);
  });
  const Array expected = step(w, x).second;
  CHECK(largest_difference(rp::jit(step)(w, x).second, expected) <= 1e-4);
  for (const char* pass : optional_passes) {
    INFO(std::string(pass));
    const WithoutPass without(pass);
    CHECK(largest_difference(rp::jit(step)(w, x).second, expected) <= 1e-4);
  }
}

TEST_CASE("a misspelt pass is an error that names the passes") {
  const auto f = rp::jit([](Array v) { return v + 1.f; });
  const WithoutPass without("simplfy");
  try {
    f(rp::ones({3}));
    FAIL("compiled");
  } catch (const rp::TypeError& e) {
    const std::string text = e.what();
    CHECK(text.find("REPRISE_DISABLE: no pass has this name, got 'simplfy'") != std::string::npos);
    CHECK(text.find("hint: the names are all, open_shard_maps, inline,") != std::string::npos);
  }
}

// The parts of such a call make many arrays of its results' types, in another order than the
// results.
TEST_CASE("every result of a call that is evaluated as one step has its own numbers") {
  const Array x = ramp({2, 1}, -1, 1), y = ramp({1, 3}, 0.2, 1);
  const auto pulled = [](Array a, Array b) {
    const auto [value, pull] = rp::vjp([](Array u, Array v) { return rp::hypot(u, v); }, a, b);
    return pull(rp::ones_like(value));
  };
  const WithoutPass without("inline");
  check_equal("hypot", 1e-6, pulled, x, y);
}

TEST_CASE("an absurd shape is an error, not a crash") {
  const auto g = rp::jit([](Array v) {
    return rp::broadcast_to(v, {1 << 20, 1 << 20, 1 << 10}) + 1.f;
  });
  CHECK_THROWS_AS(g(rp::ones({})), rp::RuntimeError);
}

TEST_CASE("sixteen threads run one executable a thousand times each") {
  const Array x = ramp({5, 7}, -1, 1), w = ramp({7, 7}, -1, 1);
  const auto step = rp::jit(rp::value_and_grad([](Array W, Array v) {
    return rp::sum(rp::nn::softmax(rp::matmul(rp::sin(v), W), -1) * v);
  }));
  const auto expected = step(w, x).second.to_vector<float>();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) wrong += step(w, x).second.to_vector<float>() != expected;
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}
