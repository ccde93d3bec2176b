// Draws, positions and windows that compiled programs compute by fused kernels, against the plain
// evaluator.
#include "ops/random.h"
#include "same_bits.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <optional>

namespace rp = reprise;
namespace lax = reprise::lax;
using rp::Array;

namespace {

template <class F, class... A>
std::string plan_of(F f, const A&... args) {
  return rp::jit(f).lower(args...).compile().as_text();
}

}  // namespace

TEST_CASE("compiled draws are the evaluator's, bit for bit") {
  const Array words =
      rp::array(std::vector<std::uint32_t>{7, 9, 1u << 31, 0xffffffffu, 0, 1}).reshape({3, 2});
  for (std::int64_t width : {8, 16, 32, 64}) {
    for (const rp::Shape& shape :
         {rp::Shape{1001}, rp::Shape{3, 5, 67}, rp::Shape{2}, rp::Shape{0, 4}}) {
      INFO(width, " bits, ", shape.size(), " dimensions");
      const auto bits = [&](Array w) {
        return lax::random_bits(lax::random_wrap(w), width, shape);
      };
      check_same_bits(bits, words);
      check_same_bits(bits, words[std::int64_t{0}]);
    }
  }
}

TEST_CASE("numbers drawn in compiled programs are those of the evaluator") {
  const Array key = rp::random::PRNGKey(3);
  check_same_bits([](Array k) { return rp::random::uniform(k, {700}); }, key);
  check_same_bits([](Array k) { return rp::random::normal(k, {7, 100}); }, key);
  check_same_bits([](Array k) { return rp::random::bernoulli(k, 0.3, rp::Shape{40, 9}); }, key);
  check_same_bits([](Array k) { return rp::random::randint(k, {1000}, -5, 5); }, key);
  check_same_bits(
      [](Array k) {
        return rp::vmap([](Array one) { return rp::random::uniform(one, {300}); })(
            rp::random::split(k, 5));
      },
      key);
}

TEST_CASE("large draws and windows are no steps of their own") {
  const Array key = rp::random::PRNGKey(3), x = rp::ones({64, 64});
  const auto noise = [](Array k, Array v) { return v + rp::random::uniform(k, {64, 64}); };
  CHECK(plan_of(noise, key, x).find("evaluate random_bits") == std::string::npos);
  const auto few = [](Array k) { return rp::random::uniform(k, {3}); };
  CHECK(plan_of(few, key).find("evaluate random_bits") != std::string::npos);
  const auto pool = [](Array v) {
    return lax::reduce_window_max(v, {{2, 2}, {2, 2}, {{0, 0}, {0, 0}}});
  };
  CHECK(plan_of(pool, x).find("evaluate") == std::string::npos);
}

TEST_CASE("compiled windows are the evaluator's, whatever their geometry") {
  std::vector<float> values;
  for (int i = 0; i < 40 * 37; ++i) values.push_back(static_cast<float>((i * 7919) % 1009) - 500.f);
  values[77] = std::numeric_limits<float>::quiet_NaN();
  values[300] = -std::numeric_limits<float>::infinity();
  const Array x = rp::array(values).reshape({40, 37});
  const std::vector<lax::WindowDimensions> windows = {
      {{2, 2}, {2, 2}, {{0, 0}, {0, 0}}},
      {{3, 3}, {1, 1}, {{1, 1}, {1, 1}}},
      {{3, 2}, {2, 1}, {{0, 2}, {3, 0}}},
      {{1, 5}, {1, 1}, {{0, 0}, {4, 0}}},
      {{2, 2}, {1, 1}, {{1, 0}, {0, 1}}, {2, 1}, {1, 3}},
      {{9, 9}, {1, 1}, {{4, 4}, {4, 4}}},    // more elements than are worth a kernel
      {{2, 2}, {1, 1}, {{-1, 0}, {0, -2}}},  // cut off: evaluated
  };
  for (const auto& w : windows) {
    check_same_bits([&](Array v) { return lax::reduce_window_max(v, w); }, x);
    check_same_bits([&](Array v) { return lax::reduce_window_min(v, w); }, x);
    check_same_bits([&](Array v) { return lax::reduce_window_sum(v, w); }, x);
    check_same_bits([&](Array v) { return lax::reduce_window_max(v, w); }, x.astype(rp::bfloat16));
    check_same_bits([&](Array v) { return lax::reduce_window_max(v, w); },
                    rp::nan_to_num(x).astype(rp::int32));
  }
}

TEST_CASE("compiled positions of extremes are the evaluator's") {
  for (const rp::Shape& shape :
       {rp::Shape{1031}, rp::Shape{17, 67}, rp::Shape{9, 5, 33}, rp::Shape{2, 40000},
        rp::Shape{3, 20011, 1}, rp::Shape{700, 3}, rp::Shape{300, 1}}) {
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.size()); ++axis) {
      INFO(shape.size(), " dimensions, axis ", axis);
      for (const bool with_nan : {true, false}) {
        const Array x = numbers_with_ties(shape, with_nan);
        for (rp::Dtype d : {rp::float32, rp::float64, rp::float16, rp::bfloat16}) {
          check_same_bits([&](Array v) { return lax::argmax(v, axis); }, x.astype(d));
          check_same_bits([&](Array v) { return lax::argmin(v, axis); }, x.astype(d));
        }
      }
      const rp::Dtype narrow =
          shape[static_cast<std::size_t>(axis)] <= 256 ? rp::uint8 : rp::uint32;
      const Array whole = rp::clip(numbers_with_ties(shape, false), -6.f, 6.f);
      for (rp::Dtype d : {rp::int8, rp::int32, rp::int64, rp::uint8, rp::uint32, rp::bool_}) {
        check_same_bits([&](Array v) { return lax::argmax(v, axis, rp::int64); }, whole.astype(d));
        check_same_bits([&](Array v) { return lax::argmin(v, axis, narrow); }, whole.astype(d));
      }
    }
  }
  const Array nothing = rp::zeros({0, 300});
  check_same_bits([](Array v) { return lax::argmax(v, 1); }, nothing);
}

TEST_CASE("positions along rows are one kernel") {
  const Array x = rp::ones({64, 128});
  const std::string plan = plan_of([](Array v) { return rp::argmax(v, 1); }, x);
  CHECK(plan.find("evaluate") == std::string::npos);
  CHECK(plan.find("kernel [reduce_max eq ne or select_n reduce_min]") != std::string::npos);
  CHECK(plan_of([](Array v) { return rp::argmin(v, 0); }, x).find("evaluate") == std::string::npos);
}

namespace {

const std::vector<lax::WindowDimensions> selected_windows = {
    {{1, 2, 2, 1}, {1, 2, 2, 1}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}},  // the usual pooling
    {{1, 1, 2, 2}, {1, 1, 2, 2}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}},  // along the last axis
    {{1, 3, 3, 1}, {1, 2, 2, 1}, {{0, 0}, {0, 1}, {1, 1}, {0, 0}}},  // overlapping
    {{1, 3, 2, 3}, {1, 1, 1, 1}, {{0, 0}, {1, 1}, {1, 0}, {1, 1}}},
    {{1, 2, 2, 3}, {1, 3, 4, 2}, {{0, 0}, {0, 0}, {0, 2}, {1, 0}}},  // gaps between windows
    // windows of nothing but padding
    {{2, 1, 5, 1}, {1, 1, 3, 1}, {{1, 1}, {0, 0}, {6, 7}, {0, 0}}},
    {{1, 1, 1, 3}, {1, 1, 1, 11}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}},
    {{3, 3, 3, 3}, {1, 1, 1, 1}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}},  // evaluated: too many elements
};

}  // namespace

TEST_CASE("compiled gradients of pooling are the evaluator's, whatever the windows") {
  for (const rp::Shape& shape : {rp::Shape{2, 8, 12, 33}, rp::Shape{3, 7, 9, 16}}) {
    for (const auto& w : selected_windows) {
      INFO(w.window_dimensions[1], " ", w.window_dimensions[2], " ", w.window_dimensions[3]);
      for (const bool with_nan : {true, false}) {
        for (rp::Dtype d : {rp::float32, rp::float64, rp::bfloat16, rp::float16}) {
          const Array x = numbers_with_ties(shape, with_nan).astype(d);
          const auto pulled = [&](const auto& pool) {
            return [&, pool](Array v) {
              const auto [y, back] = rp::vjp(pool, v);
              return std::get<0>(back(rp::reshape(rp::arange(y.size()), y.shape()).astype(d) *
                                      rp::array(-0.5).astype(d)));
            };
          };
          check_same_bits(pulled([&](Array v) { return lax::reduce_window_max(v, w); }), x);
          check_same_bits(pulled([&](Array v) { return lax::reduce_window_min(v, w); }), x);
          const auto pushed = [&](Array v, Array t) {
            return rp::jvp([&](Array u) { return lax::reduce_window_max(u, w); }, std::tuple{v},
                           std::tuple{t})
                .second;
          };
          check_same_bits(pushed, x, numbers_with_ties(shape, false).astype(d));
        }
      }
    }
  }
}

TEST_CASE("the gradient of pooling without overlap takes no memory besides") {
  const lax::WindowDimensions w{{1, 2, 2, 1}, {1, 2, 2, 1}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}};
  const auto step = [&](Array v, Array ct) {
    return std::get<0>(
        rp::vjp([&](Array u) { return lax::reduce_window_max(u, w); }, v).second(ct));
  };
  const Array x = numbers_with_ties({2, 8, 8, 64}), ct = rp::ones({2, 4, 4, 64});
  const auto compiled = rp::jit(step).lower(x, ct).compile();
  CHECK(compiled.as_text().find("evaluate") == std::string::npos);
  CHECK(compiled.as_text().find("arena 0,") != std::string::npos);
}

TEST_CASE("a dropout mask under checkpoint repeats in the backward pass") {
  const auto layer = [](Array w, Array v, Array key) {
    const Array mask = rp::random::bernoulli(key, 0.5, v.shape());
    return rp::where(mask, rp::tanh(rp::matmul(v, w)), 0.f);
  };
  const auto loss = [layer](Array w, Array v, Array key) {
    for (int i = 0; i < 3; ++i) v = rp::checkpoint(layer)(w, v, rp::random::fold_in(key, i));
    return rp::sum(v * v);
  };
  const Array w = 0.1f * rp::random::normal(rp::random::PRNGKey(1), {48, 48}),
              v = rp::ones({32, 48}), key = rp::random::PRNGKey(2);
  const auto step = rp::grad(loss);
  const auto a = rp::jit(step)(w, v, key).to_vector<float>(),
             b = step(w, v, key).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

// Small whole numbers: sums are exact, so that their order does not show.
TEST_CASE("products of any dtypes are compiled, with the evaluator's bits") {
  const auto numbers = [](const rp::Shape& shape, rp::Dtype d) {
    return ((rp::arange(shape[0] * shape[1]) % 7) - (d == rp::uint8 ? 0 : 3))
        .reshape(shape)
        .astype(d);
  };
  const std::vector<rp::Dtype> dtypes = {rp::float32, rp::bfloat16, rp::float16,
                                         rp::float64, rp::int8,     rp::uint8,
                                         rp::int32,   rp::int64,    rp::bool_};
  for (const rp::Dtype a : dtypes) {
    for (const rp::Dtype b : dtypes) {
      for (const std::optional<rp::Dtype> sum :
           {std::optional<rp::Dtype>(), std::optional(rp::float32), std::optional(rp::int64)}) {
        INFO(rp::short_name(a), " ", rp::short_name(b), " ", sum ? rp::short_name(*sum) : "");
        const auto f = [sum](Array x, Array y) {
          return lax::dot_general(x, y, {{1}, {0}, {}, {}}, sum);
        };
        const Array x = numbers({9, 40}, a), y = numbers({40, 11}, b);
        try {
          f(x, y);
        } catch (const rp::TypeError&) {
          continue;  // a sum narrower than the operands
        }
        CHECK(plan_of(f, x, y).find("evaluate") == std::string::npos);
        check_same_bits(f, x, y);
      }
    }
  }
  const auto empty = [](Array x, Array y) { return rp::matmul(x, y); };
  check_same_bits(empty, rp::zeros({3, 0}), rp::zeros({0, 4}));
  CHECK(plan_of(empty, rp::zeros({3, 0}), rp::zeros({0, 4})).find("evaluate") == std::string::npos);
}

TEST_CASE("the largest elements are chosen in the memory of the result") {
  const Array x = numbers_with_ties({50, 50});
  for (const std::int64_t k : {0, 1, 7, 50}) {
    const auto values = [k](Array v) { return lax::top_k(v, k).first; };
    const auto indices = [k](Array v) { return lax::top_k(v, k).second; };
    check_same_bits(values, x);
    check_same_bits(indices, x);
    check_same_bits([&](Array v) { return rp::vmap(indices, {.in_axes = {1}})(v); }, x);
  }
}
