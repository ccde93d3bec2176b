#include "ops/mapped_axes.h"
#include "test_data.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

namespace reprise {
namespace {

using Json = nlohmann::json;
namespace r = random;
using Words = std::vector<std::uint64_t>;

const Json& golden() {
  static const Json all = [] {
    std::ifstream in(golden_path("random_cases.json"));
    REQUIRE(in.good());
    return Json::parse(in);
  }();
  return all;
}

// The elements as the integers that their bits are.
Words words(const Array& x) {
  if (x.dtype() == Dtype::key) return words(r::key_data(x));
  const std::size_t width = itemsize(x.dtype());
  const auto* bytes = content(x).elements;
  Words out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i * width, width);
    out.push_back(word);
  }
  return out;
}
Words words(const Json& values, std::size_t width) {
  Words out;
  for (const Json& v : values) {
    const std::int64_t value = v.get<std::int64_t>();
    out.push_back(static_cast<std::uint64_t>(value) & (~std::uint64_t{0} >> (64 - 8 * width)));
  }
  return out;
}
void same_bits(const std::string& name, const Array& ours) {
  INFO(name);
  const Json& theirs = golden()["key42"][name];
  CHECK(long_name(ours.dtype()) == theirs["dtype"].get<std::string>());
  CHECK(ours.shape() == theirs["shape"].get<Shape>());
  CHECK(words(ours) == words(theirs["words"], itemsize(ours.dtype())));
}
// To a few units in the last place: logarithms.
void nearly_same(const Array& ours, const Json& bits) {
  const std::vector<float> got = ours.to_vector<float>();
  REQUIRE(got.size() == bits.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float wanted = std::bit_cast<float>(bits[i].get<std::uint32_t>());
    CHECK(std::abs(got[i] - wanted) <= 1e-6 * std::max(1.f, std::abs(wanted)));
  }
}
bool equal_bits(const Array& a, const Array& b) {
  return a.type() == b.type() && words(a) == words(b);
}

TEST_CASE("keys, bits and numbers of several seeds are those of JAX") {
  for (const auto& item : golden()["seeds"].items()) {
    const std::string seed = item.key();
    INFO("seed ", seed);
    const Json& wanted = item.value();
    const Array key = r::key(std::stoll(seed));
    const auto same = [&](const char* name, const Array& ours) {
      INFO(name);
      CHECK(words(ours) == words(wanted[name], 4));
    };
    same("key", key);
    CHECK(words(r::PRNGKey(std::stoll(seed))) == words(key));
    same("split2", r::split(key));
    same("split3", r::split(key, 3));
    same("fold_in_0", r::fold_in(key, 0));
    same("fold_in_1", r::fold_in(key, 1));
    same("fold_in_12345", r::fold_in(key, 12345));
    same("fold_in_ffffffff", r::fold_in(key, full({}, 0xffffffffl, uint32)));
    same("bits32_8", r::bits(key, {8}));
    same("bits8_8", r::bits(key, {8}, uint8));
    same("bits16_8", r::bits(key, {8}, uint16));
    same("uniform_8", r::uniform(key, {8}));
    same("uniform_m1_1_8", r::uniform(key, {8}, float32, -1, 1));
    same("normal_8", r::normal(key, {8}));
    same("truncated_normal_m2_2_8", r::truncated_normal(key, -2, 2, {{8}}));
    same("randint_0_10_8", r::randint(key, {8}, 0, 10));
    same("bernoulli_0.5_16", r::bernoulli(key, 0.5, {{16}}));
    same("permutation_10", r::permutation(key, 10));
    same("categorical_uniform4_8", r::categorical(key, zeros({4}), -1, {{8}}));
    nearly_same(r::gumbel(key, {8}), wanted["gumbel_8"]);
    nearly_same(r::exponential(key, {8}), wanted["exponential_8"]);
  }
}

TEST_CASE("distributions of every dtype are those of JAX to the bit") {
  const Array key = r::key(42);
  same_bits("bits8", r::bits(key, {5}, uint8));
  same_bits("bits16", r::bits(key, {5}, uint16));
  same_bits("bits32", r::bits(key, {2, 3}));
  same_bits("split", r::key_data(r::split(key, {2, 2})));
  same_bits("fold_in", r::key_data(r::fold_in(key, 7)));
  same_bits("uniform", r::uniform(key, {2, 9}));
  same_bits("uniform_range", r::uniform(key, {64}, float32, -0.3, 0.7));
  same_bits("uniform_bf16", r::uniform(key, {16}, bfloat16));
  same_bits("uniform_f16", r::uniform(key, {16}, float16));
  same_bits("normal", r::normal(key, {64}));
  same_bits("normal_bf16", r::normal(key, {16}, bfloat16));
  same_bits("normal_f16", r::normal(key, {16}, float16));
  same_bits("truncated_normal", r::truncated_normal(key, -2, 2, {{64}}));
  same_bits("truncated_normal_-1_1", r::truncated_normal(key, -1., 1., {{64}}));
  same_bits("truncated_normal_0.5_3", r::truncated_normal(key, .5, 3., {{64}}));
  same_bits("truncated_normal_bf16", r::truncated_normal(key, -2, 2, {{16}}, bfloat16));
}

TEST_CASE("random decisions are those of JAX") {
  const Array key = r::key(42);
  const Array grid = arange(12).reshape({3, 4});
  same_bits("randint", r::randint(key, {16}, -5, 1000));
  same_bits("randint_i8", r::randint(key, {16}, -100, 100, int8));
  same_bits("randint_u8", r::randint(key, {16}, 0, 256, uint8));
  same_bits("randint_u32", r::randint(key, {16}, 3, 17, uint32));
  same_bits("randint_all", r::randint(key, {8}, -2147483647 - 1, 2147483647));
  same_bits("bernoulli", r::bernoulli(key, 0.3, {{16}}).astype(int32));
  same_bits("permutation", r::permutation(key, 20));
  same_bits("permutation_2000_head", r::permutation(key, 2000)[slice(20)]);
  same_bits("permutation_axis", r::permutation(key, grid, 1));
  same_bits("permutation_independent", r::permutation(key, grid, -1, true));
  same_bits("choice", r::choice(key, 10, {8}));
  same_bits("choice_no_replace", r::choice(key, 10, {8}, {.replace = false}));
  const Array p = array({.1, .2, .3, .4});
  same_bits("choice_p", r::choice(key, 4, {16}, {.p = p}));
  same_bits("choice_p_no_replace", r::choice(key, 4, {3}, {.replace = false, .p = p}));
  same_bits("choice_rows", r::choice(key, grid, {2}, {.axis = 1}));
  const Array logits = log(array({{.1, .9}, {.5, .5}}));
  same_bits("categorical", r::categorical(key, logits, -1, {{6, 2}}));
  same_bits("categorical_axis0", r::categorical(key, logits, 0));
  nearly_same(r::gumbel(key, {16}), golden()["key42"]["gumbel"]["words"]);
  nearly_same(r::exponential(key, {16}), golden()["key42"]["exponential"]["words"]);
}

template <class F>
void same_compiled(const char* what, const F& f) {
  const Array key = r::key(3), raw = r::PRNGKey(3);
  INFO(what);
  CHECK(equal_bits(jit(f)(key), f(key)));
  CHECK(equal_bits(f(raw), f(key)));
  // Mapped over keys: each key draws what it draws alone.
  const Array keys = r::split(key, 3);
  const Array all = vmap(f)(keys), compiled = jit(vmap(f))(keys);
  CHECK(equal_bits(all, compiled));
  for (std::int64_t i = 0; i < 3; ++i) CHECK(equal_bits(all[i], f(keys[i])));
}

TEST_CASE("compiled, mapped and plain calls draw the same bits") {
  same_compiled("bits", [](Array k) { return r::bits(k, {1000}); });
  same_compiled("bits u64", [](Array k) { return r::bits(k, {7, 5}, uint64); });
  same_compiled("uniform", [](Array k) { return r::uniform(k, {1000}); });
  same_compiled("uniform in a range",
                [](Array k) { return r::uniform(k, {1000}, float32, -.3, .7); });
  same_compiled("uniform f64", [](Array k) { return r::uniform(k, {100}, float64, .1, .3); });
  same_compiled("normal", [](Array k) { return r::normal(k, {1000}); });
  same_compiled("normal bf16", [](Array k) { return r::normal(k, {100}, bfloat16); });
  same_compiled("truncated_normal",
                [](Array k) { return r::truncated_normal(k, -2, 2, {{1000}}); });
  same_compiled("randint", [](Array k) { return r::randint(k, {1000}, -7, 20); });
  same_compiled("bernoulli", [](Array k) { return r::bernoulli(k, 0.3, {{1000}}); });
  same_compiled("permutation", [](Array k) { return r::permutation(k, 100); });
  same_compiled("choice", [](Array k) { return r::choice(k, 100, {10}, {.p = ones({100})}); });
  same_compiled("categorical", [](Array k) { return r::categorical(k, zeros({4, 5})); });
  same_compiled("words of new keys", [](Array k) {
    Array keys = r::split(r::wrap_key_data(r::key_data(k)), 4);
    Array folded = r::fold_in(keys[2], 5);
    Array both = stack({folded, keys[0]});
    return r::key_data(both);
  });
}

TEST_CASE("compiled functions take and return keys") {
  const Array key = r::key(3);
  auto next = [](Array k) { return r::split(k, {2, 2}); };
  CHECK(equal_bits(jit(next)(key), next(key)));
  auto turned = [](Array k) { return transpose(r::split(k, {2, 3})); };
  CHECK(equal_bits(jit(turned)(key), turned(key)));
  auto chosen = [](Array k) { return where(array({true, false}), r::split(k), r::split(k)); };
  CHECK(equal_bits(jit(chosen)(key), chosen(key)));
  auto walk = [](Array k) {
    auto body = [](Array c, None) { return std::pair{r::fold_in(c, 1), r::uniform(c)}; };
    return scan(body, k, none, {.length = 4});
  };
  const auto [last, numbers] = walk(key);
  const auto [compiled_last, compiled_numbers] = jit(walk)(key);
  CHECK(equal_bits(last, compiled_last));
  CHECK(equal_bits(numbers, compiled_numbers));
}

TEST_CASE("a checkpoint draws the same numbers again") {
  const Array key = r::key(1), x = linspace(-1, 1, 50);
  auto noisy = [key](Array v) {
    Array n = r::truncated_normal(key, -2, 2, v.shape());
    Array u = r::uniform(r::fold_in(key, 1), v.shape(), float32, v - 2., v);
    Array y = sin(v * n) * u;
    return sum(where(r::bernoulli(key, 0.5, v.shape()), y, 0.));
  };
  const Array plain = grad(noisy)(x), again = grad(checkpoint(noisy))(x);
  CHECK(equal_bits(plain, again));
  const Array compiled = jit(grad(checkpoint(noisy)))(x);
  const std::vector<float> a = plain.to_vector<float>(), b = compiled.to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
}

TEST_CASE("uniform has derivatives by its bounds, bits have none") {
  const Array key = r::key(5);
  auto low = [key](Array v) { return sum(r::uniform(key, {4}, float32, v, 3.)); };
  const Array u = r::uniform(key, {4});
  CHECK(grad(low)(1.).item<float>() == doctest::Approx(4 - sum(u).item<float>()));
  auto through_bits = [key](Array v) {
    Array n = r::randint(key, {3}, 0, 10);
    return sum(v * n);
  };
  CHECK(grad(through_bits)(2.).item<float>() == sum(r::randint(key, {3}, 0, 10)).item<float>());
}

TEST_CASE("distributions have the moments that they should") {
  const Array key = r::key(9);
  const std::int64_t n = 20000;
  const auto near = [](const Array& x, double wanted, double tolerance) {
    CHECK(std::abs(x.item<double>() - wanted) < tolerance);
  };
  near(mean(r::uniform(key, {n}, float64)), 0.5, 0.01);
  near(mean(r::normal(key, {n}, float64)), 0, 0.03);
  near(var(r::normal(key, {n}, float64)), 1, 0.05);
  near(mean(r::exponential(key, {n}, float64)), 1, 0.03);
  near(mean(r::gumbel(key, {n}, float64)), 0.5772, 0.05);
  near(mean(r::randint(key, {n}, 0, 11, int64).astype(float64)), 5, 0.1);
  near(mean(r::bernoulli(key, 0.25, {{n}}).astype(float64)), 0.25, 0.02);
  const Array cut = r::truncated_normal(key, -1, 2, {{n}}, float64);
  CHECK(min(cut).item<double>() > -1);
  CHECK(max(cut).item<double>() < 2);
}

TEST_CASE("empty and scalar draws are ordinary") {
  const Array key = r::key(0);
  for (const Shape& shape : {Shape{0}, Shape{2, 0, 3}, Shape{}, Shape{1}}) {
    CHECK(r::bits(key, shape).shape() == shape);
    CHECK(r::uniform(key, shape, float32, -.3, .7).shape() == shape);
    CHECK(r::normal(key, shape).shape() == shape);
    CHECK(r::truncated_normal(key, -2, 2, shape).shape() == shape);
    CHECK(r::randint(key, shape, 0, 5).shape() == shape);
    CHECK(r::bernoulli(key, 0.5, shape).shape() == shape);
    CHECK(r::gumbel(key, shape).shape() == shape);
    CHECK(r::exponential(key, shape).shape() == shape);
    CHECK(r::choice(key, 5, shape).shape() == shape);
    CHECK(r::choice(key, 5, shape, {.replace = false}).shape() == shape);
    CHECK(r::choice(key, 5, shape, {.p = ones({5})}).shape() == shape);
    CHECK(r::split(key, shape).shape() == shape);
  }
  CHECK(r::permutation(key, 0).shape() == Shape{0});
  CHECK(r::permutation(key, zeros({0, 2})).shape() == Shape{0, 2});
  CHECK(r::permutation(key, zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(r::choice(key, zeros({3, 0}), {2}).shape() == Shape{2, 0});
  CHECK(r::categorical(key, zeros({0, 3})).shape() == Shape{0});
}

TEST_CASE("misuse says what is needed") {
  const Array key = r::key(0), keys = r::split(key);
  const auto error = [](auto f) { return error_of<TypeError>(f).substr(0, 60); };
  CHECK(
      error([&] { r::key(1.5); }).starts_with("random_seed: a seed must be an integer, got f32[]"));
  CHECK(error([&] { r::key(arange(3)); }).starts_with("key: a scalar seed is needed, got i32[3]"));
  CHECK(error([&] {
          r::bits(ones({3}), {2});
        }).starts_with("bits: a key is needed, key<fry>[] or u32[2], got f32[3]"));
  CHECK(error([&] {
          r::bits(keys, {2});
        }).starts_with("bits: a single key is needed, got key<fry>[2]"));
  CHECK(error([&] {
          r::bits(key, {2}, int32);
        }).starts_with("bits: an unsigned dtype is needed, got i32"));
  CHECK(error([&] {
          r::bits(key, {-2});
        }).starts_with("bits: dimensions must not be negative, got (-2,)"));
  CHECK(error([&] { r::split(key, -1); }).starts_with("split: dimensions must not be negative"));
  CHECK(error([&] {
          r::fold_in(key, arange(2));
        }).starts_with("fold_in: a scalar is needed, got i32[2]"));
  CHECK(error([&] {
          r::uniform(key, {2}, int32);
        }).starts_with("uniform: a floating dtype is needed, got i32"));
  CHECK(error([&] {
          r::uniform(key, {2}, float32, ones({3}));
        }).starts_with("uniform: operands must broadcast to the shape"));
  CHECK(error([&] {
          r::truncated_normal(key, ones({3}), 2., {{2}});
        }).starts_with("truncated_normal: operands must broadcast"));
  CHECK(error([&] {
          r::bernoulli(key, 1, {{2}});
        }).starts_with("bernoulli: a floating dtype is needed, got i32"));
  CHECK(error([&] {
          r::randint(key, {2}, 0, 1, float32);
        }).starts_with("randint: an integer dtype is needed, got f32"));
  CHECK(error([&] {
          r::permutation(key, -1);
        }).starts_with("permutation: the number of elements must not be negative"));
  CHECK(error([&] {
          r::permutation(key, Array(5));
        }).starts_with("permutation: an integer or an array with an axis"));
  CHECK(error([&] {
          r::choice(key, 0, {2});
        }).starts_with("choice: there must be something to choose from"));
  CHECK(error([&] {
          r::choice(key, 2, {3}, {.replace = false});
        }).starts_with("choice: not more elements than there are"));
  CHECK(error([&] {
          r::choice(key, 4, {3}, {.p = ones({3})});
        }).starts_with("choice: a probability for each of 4 elements"));
  CHECK(error([&] {
          r::categorical(key, arange(3));
        }).starts_with("categorical: a floating dtype is needed, got i32"));
  CHECK(error([&] {
          r::categorical(key, zeros({2, 3}), -1, {{3}});
        }).starts_with("categorical: operands must broadcast"));
  CHECK(error([&] { r::wrap_key_data(arange(3)); }).starts_with("random_wrap: a key is two u32"));
}

}  // namespace
}  // namespace reprise
