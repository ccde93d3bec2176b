// Keys and bits. The reference hashes with rotations written out and the key schedule in a table.
#include "ops/op_table.h"
#include "ops/random.h"
#include "ops/records.h"

namespace reprise::op_table {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

Pair hash(Pair key, Pair count) {
  const std::uint32_t schedule[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDA};
  const unsigned turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  std::uint32_t a = count.first + key.first, b = count.second + key.second;
  for (unsigned round = 0; round < 20; ++round) {
    const unsigned turn = turns[round % 8];
    a += b;
    b = ((b << turn) | (b >> (32 - turn))) ^ a;
    if (round % 4 != 3) continue;
    const unsigned step = round / 4 + 1;
    a += schedule[step % 3];
    b += schedule[(step + 1) % 3] + step;
  }
  return {a, b};
}
std::uint32_t word(double x) { return static_cast<std::uint32_t>(x); }
Pair key_of(const Numbers& raw, std::size_t i) {
  return {word(raw.values[2 * i]), word(raw.values[2 * i + 1])};
}

// Keys as their words: [..., 2].
Function on_keys(Array (*f)(const Array& keys)) {
  return [f](const Arrays& x) { return Arrays{f(lax::random_wrap(x[0]))}; };
}
// For each key `count` results, each of the words that `put` gives for its hash.
Reference for_positions(const Shape& drawn, bool is_key, double (*join)(Pair)) {
  return [=](const Many& x) {
    Numbers out;
    out.shape.assign(x[0].shape.begin(), x[0].shape.end() - 1);
    const std::int64_t keys = count_of(out.shape), each = count_of(drawn);
    out.shape.insert(out.shape.end(), drawn.begin(), drawn.end());
    if (is_key) out.shape.push_back(2);
    for (std::int64_t k = 0; k < keys; ++k) {
      for (std::int64_t i = 0; i < each; ++i) {
        const Pair h =
            hash(key_of(x[0], static_cast<std::size_t>(k)), {0, static_cast<std::uint32_t>(i)});
        if (is_key)
          out.values.insert(out.values.end(), {double(h.first), double(h.second)});
        else
          out.values.push_back(join(h));
      }
    }
    return Many{out};
  };
}

Row row(const char* name, const Primitive& p, Function f, std::vector<In> in, Reference reference,
        Dtypes dtypes = {uint32}) {
  return {.name = name,
          .f = std::move(f),
          .in = std::move(in),
          .reference = std::move(reference),
          .primitive = &p,
          .dtypes = std::move(dtypes),
          .derivative = Derivative::none,
          .ulps = 0};
}
Row with_variants(Row r, std::vector<std::vector<Shape>> variants) {
  r.variants = std::move(variants);
  return r;
}

Many seeded(const Many& x) {
  Numbers out;
  out.shape = x[0].shape;
  out.shape.push_back(2);
  for (double seed : x[0].values) {
    const auto low = static_cast<std::uint32_t>(static_cast<std::int64_t>(seed));
    out.values.insert(out.values.end(), {0.0, double(low)});
  }
  return {out};
}
Many folded(const Many& x) {
  Numbers out = x[0];
  for (std::size_t i = 0; 2 * i < out.values.size(); ++i) {
    const Pair h = hash(key_of(x[0], i), {0, word(x[1].values[i])});
    out.values[2 * i] = h.first;
    out.values[2 * i + 1] = h.second;
  }
  return {out};
}
Many hashed(const Many& x) {
  Many out{x[2], x[2]};
  for (std::size_t i = 0; i < out[0].values.size(); ++i) {
    const auto at = [&](std::size_t k) { return word(x[k].values[i]); };
    const Pair h = hash({at(0), at(1)}, {at(2), at(3)});
    out[0].values[i] = h.first;
    out[1].values[i] = h.second;
  }
  return out;
}

Many bits_at(const Many& x) {
  Many out{x[0]};
  for (std::size_t i = 0; i < x[0].values.size(); ++i) {
    const auto at = [&](std::size_t k) { return word(x[k].values[i]); };
    const Pair h = hash({at(0), at(1)}, {0, at(2)});
    out[0].values[i] = h.first ^ h.second;
  }
  return out;
}

}  // namespace

Rows random_rows() {
  const In raw{.shape = {2, 3, 2}}, words{.shape = {2, 3}};
  const std::vector<std::vector<Shape>> one_or_none = {{{2}}, {{0, 2}}};
  const auto bits_of = [](int width, double (*join)(Pair)) {
    return std::pair<Function, Reference>(
        [width](const Arrays& x) {
          return Arrays{lax::random_bits(lax::random_wrap(x[0]), width, {4})};
        },
        for_positions({4}, false, join));
  };
  const auto [bits32, reference32] = bits_of(32, [](Pair h) { return double(h.first ^ h.second); });
  const auto [bits8, reference8] =
      bits_of(8, [](Pair h) { return double((h.first ^ h.second) & 0xff); });
  Rows rows;
  rows.push_back(with_variants(
      row("random_seed", random_seed_p,
          [](const Arrays& x) { return Arrays{lax::random_unwrap(lax::random_seed(x[0]))}; },
          {words}, seeded, {int32, int16, int8, uint32, uint16, uint8}),
      scalar_and_empty()));
  rows.push_back(with_variants(row("random_wrap", random_wrap_p, on_keys(lax::random_unwrap), {raw},
                                   [](const Many& x) { return Many{x[0]}; }),
                               one_or_none));
  rows.push_back(with_variants(row("random_unwrap", random_unwrap_p, on_keys(lax::random_unwrap),
                                   {raw}, [](const Many& x) { return Many{x[0]}; }),
                               one_or_none));
  rows.push_back(with_variants(row("random_split", random_split_p, on_keys([](const Array& k) {
                                     return lax::random_unwrap(lax::random_split(k, {2, 2}));
                                   }),
                                   {raw}, for_positions({2, 2}, true, nullptr)),
                               one_or_none));
  rows.push_back(with_variants(
      row(
          "random_fold_in", random_fold_in_p,
          [](const Arrays& x) {
            return Arrays{lax::random_unwrap(lax::random_fold_in(lax::random_wrap(x[0]), x[1]))};
          },
          {raw, words}, folded),
      {{{2}, {}}, {{0, 2}, {0}}}));
  rows.push_back(with_variants(row("random_bits of 32", random_bits_p, bits32, {raw}, reference32),
                               one_or_none));
  rows.push_back(
      with_variants(row("random_bits of 8", random_bits_p, bits8, {raw}, reference8), one_or_none));
  rows.push_back(with_variants(row(
                                   "threefry2x32", threefry2x32_p,
                                   [](const Arrays& x) {
                                     const auto [a, b] = lax::threefry2x32(x[0], x[1], x[2], x[3]);
                                     return Arrays{a, b};
                                   },
                                   {words, words, words, words}, hashed),
                               scalar_and_empty(4)));
  rows.push_back(with_variants(
      row(
          "threefry_bits", threefry_bits_p,
          [](const Arrays& x) { return Arrays{lax::threefry_bits(x[0], x[1], x[2])}; },
          {words, words, words}, bits_at),
      scalar_and_empty(3)));
  return rows;
}

}  // namespace reprise::op_table
