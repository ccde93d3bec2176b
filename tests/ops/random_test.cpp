#include "ops/random.h"

#include "ops/mapped_axes.h"
#include "ops/records.h"
#include "reprise/ops.h"
#include "reprise/program.h"

namespace reprise {
namespace {

Array words(const Nested& values) { return array(values, uint32); }
Array keys_of(const Nested& values) { return lax::random_wrap(words(values)); }
std::vector<std::uint32_t> numbers(const Array& x) {
  return (x.dtype() == Dtype::key ? lax::random_unwrap(x) : x).to_vector<std::uint32_t>();
}
using Words = std::vector<std::uint32_t>;

TEST_CASE("threefry2x32 gives the published numbers") {
  const auto hash = [](std::uint32_t k0, std::uint32_t k1, std::uint32_t c0, std::uint32_t c1) {
    const auto word = [](std::uint32_t w) { return array(std::vector<std::uint32_t>{w}); };
    const auto [a, b] = lax::threefry2x32(word(k0), word(k1), word(c0), word(c1));
    return Words{a.item<std::uint32_t>(), b.item<std::uint32_t>()};
  };
  // The vectors of the Random123 library.
  CHECK(hash(0, 0, 0, 0) == Words{0x6b200159, 0x99ba4efe});
  CHECK(hash(~0u, ~0u, ~0u, ~0u) == Words{0x1cb996fc, 0xbb002be7});
  CHECK(hash(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3) == Words{0xc4923a9c, 0x483df7a0});
}

TEST_CASE("threefry2x32 broadcasts scalars and dimensions of size 1") {
  const Array count = words({{0, 1, 2}, {3, 4, 5}}), column = words({{7}, {8}});
  const auto [a, b] = lax::threefry2x32(array({1}, uint32)[0], column, count, count);
  CHECK(a.shape() == Shape{2, 3});
  const auto [one, other] = lax::threefry2x32(words({1}), words({8}), words({4}), words({4}));
  CHECK(numbers(a)[4] == numbers(one)[0]);
  CHECK(numbers(b)[4] == numbers(other)[0]);
  const Array none = lax::full({0, 3}, 0, uint32);
  CHECK(lax::threefry2x32(none, none, none, none).first.shape() == Shape{0, 3});
}

TEST_CASE("a seed fills the low word of the key, 64-bit arrays both") {
  CHECK(numbers(lax::random_seed(array({-1, 5}))) == Words{0, ~0u, 0, 5});
  CHECK(numbers(lax::random_seed(array({200}, uint8))) == Words{0, 200});
  CHECK(numbers(lax::random_seed(array({-3}, int8))) == Words{0, ~0u - 2});
  CHECK(numbers(lax::random_seed(full({}, (1l << 32) + 5, int64))) == Words{1, 5});
  CHECK(lax::random_seed(lax::full({2, 0}, 0, int32)).type() == Type{Dtype::key, {2, 0}});
}

TEST_CASE("split, fold_in and bits depend on the key and the position only") {
  const Array key = keys_of({0, 42});
  const Words first = numbers(lax::random_split(key, {3}));
  const Words more = numbers(lax::random_split(key, {2, 4}));
  CHECK(Words(more.begin(), more.begin() + 6) == first);
  for (int i : {0, 1, 2}) {
    const Array folded = lax::random_fold_in(key, array({i}, uint32)[0]);
    CHECK(numbers(folded) == Words(first.begin() + 2 * i, first.begin() + 2 * i + 2));
  }
  const Words bits = numbers(lax::random_bits(key, 32, {3}));
  for (std::size_t i : {0u, 1u, 2u}) CHECK(bits[i] == (first[2 * i] ^ first[2 * i + 1]));
  const auto wide = lax::random_bits(key, 64, {3}).to_vector<std::uint64_t>();
  CHECK(wide[1] == (std::uint64_t{first[2]} << 32 | first[3]));
  const auto low = lax::random_bits(key, 8, {3}).to_vector<std::uint32_t>();
  CHECK(low[2] == (bits[2] & 0xff));
}

TEST_CASE("keys in every position map as in a loop") {
  const Array raw = words({{1, 2}, {3, 4}, {5, 6}});
  const auto bits = [](const Arrays& a) -> Arrays {
    return {lax::random_bits(lax::random_wrap(a[0]), 32, {2, 2})};
  };
  const auto halves = [](const Arrays& a) -> Arrays {
    return {lax::random_unwrap(lax::random_split(lax::random_wrap(a[0]), {2}))};
  };
  const auto folded = [](const Arrays& a) -> Arrays {
    return {lax::random_unwrap(lax::random_fold_in(lax::random_wrap(a[0]), a[1]))};
  };
  const auto hashed = [](const Arrays& a) -> Arrays {
    const auto [x, y] = lax::threefry2x32(a[0], a[0], a[1], a[1]);
    return {lax::add(x, y)};
  };
  const Array numbers_3 = words({7, 8, 9});
  for (std::int64_t at : {0, 1}) {
    check_mapped(bits, {raw}, {at});
    check_mapped(halves, {raw}, {at});
    check_mapped(folded, {raw, numbers_3}, {at, 0});
    check_mapped(folded, {raw, words({7})[0]}, {at, std::nullopt});
    check_mapped(hashed, {raw, raw}, {at, 1 - at});
    check_mapped(hashed, {raw, words({7, 8})}, {at, std::nullopt});
  }
  check_mapped(folded, {words({1, 2}), numbers_3}, {std::nullopt, 0});
  const auto seeded = [](const Arrays& a) -> Arrays {
    return {lax::random_unwrap(lax::random_seed(a[0]))};
  };
  check_mapped(seeded, {words({{1, 2}, {3, 4}})}, {1});
}

TEST_CASE("a wrong operand or param is a TypeError") {
  const Array key = keys_of({0, 1}), real = array({1.0, 2.0});
  const auto says = [](auto f, const char* text) {
    INFO(text);
    CHECK(error_of<TypeError>(f).starts_with(text));
  };
  says([&] { lax::random_bits(key, 12, {2}); },
       "random_bits: bit_width must be 8, 16, 32 or 64, got 12");
  says([&] { lax::random_bits(real, 8, {2}); }, "random_bits: keys are needed, got f32[2]");
  says([&] { lax::random_split(key, {-1}); },
       "random_split: dimensions must not be negative, got (-1,)");
  says([&] { lax::random_unwrap(real); }, "random_unwrap: keys are needed, got f32[2]");
  says(
      [&] {
        lax::random_wrap(words({1, 2, 3}));
      },
      "random_wrap: a key is two u32 in the last dimension, got u32[3]");
  says([&] { lax::random_fold_in(key, real); }, "random_fold_in: u32 is needed, got f32[2]");
  says([&] { lax::threefry2x32(real, real, real, real); },
       "threefry2x32: u32 is needed, got f32[2]");
  says([&] { lax::add(key, key); }, "add: ");
  says(
      [&] {
        random_seed_p.bind1({array({1})}, {{"impl", std::string("rbg")}});
      },
      "random_seed: keys of fry are known");
  says(
      [&] {
        parse_jaxpr("{ lambda ; a:i32[]. let b:key<fry>[] = random_seed[impl=rbg] a in (b,) }");
      },
      "");
}

TEST_CASE("keys print as types, and their words as numbers") {
  const Array keys = lax::random_split(keys_of({0, 3}), {2});
  CHECK(to_string(keys.type()) == "key<fry>[2]");
  CHECK(to_string(keys) == "[[3716834203 3481239269]\n [1946498123 2217676430]]");
}

}  // namespace
}  // namespace reprise
