// Threefry-2x32 keys and bits. A key is two 32-bit words. What is drawn at position i (row by row)
// depends on the key and on i only: the hash of the counter (high word of i, low word of i). So
// results do not depend on the shape they are drawn in, on mapping, or on being computed again.
#include "ops/random.h"

#include "ops/elementwise.h"
#include "ops/erf_inv.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/shape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace reprise {
namespace {

using Word = std::uint32_t;
struct Words {
  Word a, b;
};

// ------------------------------------------------------------------------------------------ hash
template <int r0, int r1, int r2, int r3>
void four_rounds(Words& x) {
  const auto round = [&](int turn) {
    x.a += x.b;
    x.b = std::rotl(x.b, turn) ^ x.a;
  };
  round(r0);
  round(r1);
  round(r2);
  round(r3);
}

// Threefry-2x32 with 20 rounds.
Words hash(Words key, Words count) {
  const Word k0 = key.a, k1 = key.b, k2 = k0 ^ k1 ^ 0x1BD11BDAu;
  const auto inject = [](Words& x, Word a, Word b, Word step) {
    x.a += a;
    x.b += b + step;
  };
  Words x{count.a + k0, count.b + k1};
  four_rounds<13, 15, 26, 6>(x);
  inject(x, k1, k2, 1);
  four_rounds<17, 29, 16, 24>(x);
  inject(x, k2, k0, 2);
  four_rounds<13, 15, 26, 6>(x);
  inject(x, k0, k1, 3);
  four_rounds<17, 29, 16, 24>(x);
  inject(x, k1, k2, 4);
  four_rounds<13, 15, 26, 6>(x);
  inject(x, k2, k0, 5);
  return x;
}
Words hash_of_position(Words key, std::int64_t i) {
  const auto n = static_cast<std::uint64_t>(i);
  return hash(key, {static_cast<Word>(n >> 32), static_cast<Word>(n)});
}
Words key_at(const Array& keys, std::int64_t i) {
  const Word* words = elements<Word>(keys) + 2 * i;
  return {words[0], words[1]};
}
void put_key(NewArray& keys, std::int64_t i, Words key) {
  Word* words = keys.data<Word>() + 2 * i;
  words[0] = key.a;
  words[1] = key.b;
}

// ----------------------------------------------------------------------------------------- types
void expect_keys(const char* op, const Type& t) {
  if (t.dtype != Dtype::key) fail<TypeError>(op, ": keys are needed, got ", t);
}
void expect_words(const char* op, const Type& t) {
  if (t.dtype != Dtype::u32) fail<TypeError>(op, ": u32 is needed, got ", t);
}
void expect_threefry(const char* op, const Params& params) {
  const Attr* impl = params.find("impl");
  const auto* name = impl ? std::get_if<std::string>(impl) : nullptr;
  if (name == nullptr || *name != "fry")
    fail<TypeError>(op, ": keys of fry are known, got another impl");
}
// The dimensions of the keys, then those of the param `shape`.
Shape drawn_shape(const char* op, const Type& keys, const Params& params) {
  const auto& drawn = params.get<Ints>("shape");
  for (std::int64_t d : drawn) {
    if (d < 0)
      fail<TypeError>(op, ": dimensions must not be negative, got ", to_string(Shape(drawn)));
  }
  Shape shape = keys.shape;
  shape.insert(shape.end(), drawn.begin(), drawn.end());
  return shape;
}

Types seed_type(const Types& in, const Params& params) {
  expect_operands("random_seed", in, 1);
  expect_threefry("random_seed", params);
  if (!is_integer(in[0].dtype))
    fail<TypeError>("random_seed: a seed must be an integer, got ", in[0]);
  return {Type{Dtype::key, in[0].shape}};
}
Types wrap_type(const Types& in, const Params& params) {
  expect_operands("random_wrap", in, 1);
  expect_threefry("random_wrap", params);
  if (in[0].dtype != Dtype::u32 || in[0].shape.empty() || in[0].shape.back() != 2) {
    fail<TypeError>("random_wrap: a key is two u32 in the last dimension, got ", in[0]);
  }
  Shape shape = in[0].shape;
  shape.pop_back();
  return {Type{Dtype::key, std::move(shape)}};
}
Types unwrap_type(const Types& in, const Params&) {
  expect_operands("random_unwrap", in, 1);
  expect_keys("random_unwrap", in[0]);
  Shape shape = in[0].shape;
  shape.push_back(2);
  return {Type{Dtype::u32, std::move(shape)}};
}
Types split_type(const Types& in, const Params& params) {
  expect_operands("random_split", in, 1);
  expect_keys("random_split", in[0]);
  return {Type{Dtype::key, drawn_shape("random_split", in[0], params)}};
}
Types clone_type(const Types& in, const Params&) {
  expect_keys("random_clone", in[0]);
  return in;
}
Types fold_in_type(const Types& in, const Params&) {
  expect_operands("random_fold_in", in, 2);
  expect_keys("random_fold_in", in[0]);
  expect_words("random_fold_in", in[1]);
  Type t = elementwise::common_type("random_fold_in", {Type{Dtype::u32, in[0].shape}, in[1]});
  return {Type{Dtype::key, std::move(t.shape)}};
}
Types bits_type(const Types& in, const Params& params) {
  expect_operands("random_bits", in, 1);
  expect_keys("random_bits", in[0]);
  const auto width = params.get<std::int64_t>("bit_width");
  for (Dtype d : {Dtype::u8, Dtype::u16, Dtype::u32, Dtype::u64}) {
    if (static_cast<std::int64_t>(8 * itemsize(d)) != width) continue;
    return {Type{d, drawn_shape("random_bits", in[0], params)}};
  }
  fail<TypeError>("random_bits: bit_width must be 8, 16, 32 or 64, got ", width);
}
Types threefry_type(const Types& in, const Params&) {
  expect_operands("threefry2x32", in, 4);
  for (const Type& t : in) expect_words("threefry2x32", t);
  Type t = elementwise::common_type("threefry2x32", in);
  t.weak_type = false;
  return {t, t};
}

Types threefry_bits_type(const Types& in, const Params&) {
  expect_operands("threefry_bits", in, 3);
  for (const Type& t : in) expect_words("threefry_bits", t);
  Type t = elementwise::common_type("threefry_bits", in);
  t.weak_type = false;
  return {t};
}

// ------------------------------------------------------------------------------------ evaluation
// Seeds of up to 32 bits fill the low word, as integers of any size do in JAX by default.
Arrays seed_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray keys(out[0]);
  visit_dtype(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      const T* seeds = elements<T>(x[0]);
      for (std::int64_t i = 0; i < keys.size(); ++i) {
        const auto wide = static_cast<std::uint64_t>(seeds[i]);
        put_key(keys, i,
                {sizeof(T) == 8 ? static_cast<Word>(wide >> 32) : 0, static_cast<Word>(wide)});
      }
    }
  });
  return {std::move(keys).finish()};
}
Arrays same_words_eval(const Arrays& x, const Params&, const Types& out) {
  return {with_type(x[0], out[0])};
}
Arrays split_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray keys(out[0]);
  if (keys.size() == 0) return {std::move(keys).finish()};
  const std::int64_t each = keys.size() / x[0].size();
  for (std::int64_t k = 0; k < x[0].size(); ++k) {
    const Words key = key_at(x[0], k);
    for (std::int64_t i = 0; i < each; ++i) put_key(keys, k * each + i, hash_of_position(key, i));
  }
  return {std::move(keys).finish()};
}
Arrays fold_in_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray keys(out[0]);
  if (keys.size() == 0) return {std::move(keys).finish()};
  const elementwise::Walk walk({x[0].type(), x[1].type()}, out[0].shape);
  const Word* data = elements<Word>(x[1]);
  elementwise::for_each_row<2>(walk, [&](std::int64_t o, const std::int64_t* at) {
    for (std::int64_t i = 0; i < walk.inner_size; ++i) {
      const Words key = key_at(x[0], at[0] + i * walk.inner[0]);
      put_key(keys, o + i, hash(key, {0, data[at[1] + i * walk.inner[1]]}));
    }
  });
  return {std::move(keys).finish()};
}
Arrays bits_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  if (result.size() == 0) return {std::move(result).finish()};
  const std::int64_t each = result.size() / x[0].size();
  visit_dtype(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      for (std::int64_t k = 0; k < x[0].size(); ++k) {
        const Words key = key_at(x[0], k);
        T* to = result.data<T>() + k * each;
        for (std::int64_t i = 0; i < each; ++i) {
          const Words w = hash_of_position(key, i);
          if constexpr (sizeof(T) == 8)
            to[i] = static_cast<T>(std::uint64_t{w.a} << 32 | w.b);
          else
            to[i] = static_cast<T>(w.a ^ w.b);
        }
      }
    }
  });
  return {std::move(result).finish()};
}
Arrays threefry_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray a(out[0]), b(out[1]);
  if (a.size() == 0) return {std::move(a).finish(), std::move(b).finish()};
  const elementwise::Walk walk({x[0].type(), x[1].type(), x[2].type(), x[3].type()}, out[0].shape);
  elementwise::for_each_row<4>(walk, [&](std::int64_t o, const std::int64_t* at) {
    for (std::int64_t i = 0; i < walk.inner_size; ++i) {
      const auto word = [&](std::size_t k) {
        return elements<Word>(x[k])[at[k] + i * walk.inner[k]];
      };
      const Words w = hash({word(0), word(1)}, {word(2), word(3)});
      a.data<Word>()[o + i] = w.a;
      b.data<Word>()[o + i] = w.b;
    }
  });
  return {std::move(a).finish(), std::move(b).finish()};
}

Arrays threefry_bits_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray bits(out[0]);
  if (bits.size() == 0) return {std::move(bits).finish()};
  const elementwise::Walk walk({x[0].type(), x[1].type(), x[2].type()}, out[0].shape);
  elementwise::for_each_row<3>(walk, [&](std::int64_t o, const std::int64_t* at) {
    for (std::int64_t i = 0; i < walk.inner_size; ++i) {
      const auto word = [&](std::size_t k) {
        return elements<Word>(x[k])[at[k] + i * walk.inner[k]];
      };
      const Words w = hash({word(0), word(1)}, {0, word(2)});
      bits.data<Word>()[o + i] = w.a ^ w.b;
    }
  });
  return {std::move(bits).finish()};
}

// ---------------------------------------------------------------------------------- gamma samples
// In [0, 1): random bits as the fraction of a number in [1, 2).
template <class T>
T uniform_of(Words key) {
  const Words w = hash_of_position(key, 0);
  if constexpr (sizeof(T) == 8) {
    const std::uint64_t bits = (std::uint64_t{w.a} << 32 | w.b) >> 12;
    return std::bit_cast<double>(bits | 0x3ff0000000000000u) - 1;
  } else {
    return std::bit_cast<float>((w.a ^ w.b) >> 9 | 0x3f800000u) - 1;
  }
}
template <class T>
T normal_of(Words key) {
  const T low = std::nextafter(T{-1}, T{0});
  const T u = std::max(low, uniform_of<T>(key) * (1 - low) + low);
  return static_cast<T>(std::numbers::sqrt2) * inverse_erf(u);
}
// By Marsaglia and Tsang: V is a cube of a normal variable, kept or drawn again. Below 1 a sample
// for a + 1 is made smaller. The keys are used as JAX uses them.
template <class T>
T gamma_of(Words key, T a, bool in_logarithms) {
  const bool is_large = a >= 1;
  const T d = (is_large ? a : a + 1) - T(1.0 / 3), c = T(1.0 / 3) / std::sqrt(d);
  const Words boost_key = hash_of_position(key, 1);
  key = hash_of_position(key, 0);
  T x2 = 0, v3 = 1, u = 2;
  while (u >= 1 - T(0.0331) * (x2 * x2) &&
         std::log(u) >= x2 * T(0.5) + d * ((1 - v3) + std::log(v3))) {
    Words x_key = hash_of_position(key, 1);
    T x = 0, v = -1;
    while (v <= 0) {
      x = normal_of<T>(hash_of_position(x_key, 1));
      v = 1 + x * c;
      x_key = hash_of_position(x_key, 0);
    }
    u = uniform_of<T>(hash_of_position(key, 2));
    key = hash_of_position(key, 0);
    x2 = x * x;
    v3 = v * v * v;
  }
  const T below_one = uniform_of<T>(boost_key);
  if (!in_logarithms) return d * v3 * (is_large ? T{1} : std::pow(1 - below_one, 1 / a));
  const T log_sample = std::log1p(-below_one);
  return std::log(d) + std::log(v3) + (is_large || log_sample == 0 ? T{0} : log_sample * (1 / a));
}
Types gamma_type(const Types& in, const Params&) {
  expect_keys("random_gamma", in[0]);
  const Shape &keys = in[0].shape, &a = in[1].shape;
  if ((in[1].dtype != Dtype::f32 && in[1].dtype != Dtype::f64) || keys.size() > a.size() ||
      !std::equal(keys.begin(), keys.end(), a.begin())) {
    fail<TypeError>(
        "random_gamma: f32 or f64 with the dimensions of the keys first is needed, got ", in[1],
        " for ", in[0]);
  }
  return {in[1]};
}
Arrays gamma_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  if (result.size() == 0) return {std::move(result).finish()};
  const bool in_logarithms = params.get<bool>("log_space");
  const std::int64_t each = result.size() / x[0].size();
  const auto draw_all = [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t i = 0; i < result.size(); ++i) {
      const Words key = hash_of_position(key_at(x[0], i / each), i % each);
      result.data<T>()[i] = gamma_of<T>(key, elements<T>(x[1])[i], in_logarithms);
    }
  };
  if (out[0].dtype == Dtype::f64)
    draw_all(double{});
  else
    draw_all(float{});
  return {std::move(result).finish()};
}
// A sample moves with a along its quantile; its logarithm by that in relation to it.
Tangents gamma_tangent(const Arrays& x, const Tangents& dx, const Arrays& y, const Params& params) {
  if (!dx[1]) return {std::nullopt};
  if (!params.get<bool>("log_space")) {
    const Array slope = random_gamma_grad_p.bind1({x[1], y[0]});
    return {lax::mul(*dx[1], slope)};
  }
  const Array sample = lax::exp(y[0]);
  const Array is_zero = lax::eq(sample, lax::const_like(sample, 0));
  const double smallest = y[0].dtype() == Dtype::f64 ? std::numeric_limits<double>::min()
                                                     : std::numeric_limits<float>::min();
  const Array tiny = lax::full_like(sample.type(), smallest);
  const Array positive = lax::select_n(is_zero, {sample, tiny});
  const Array slope = random_gamma_grad_p.bind1({x[1], positive});
  const Array relative = lax::div(slope, positive);
  return {lax::mul(*dx[1], relative)};
}
Batched gamma_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params& params) {
  const Array keys = mapped_in_front(x[0], axes[0], n);
  const Array a = mapped_in_front(x[1], axes[1], n);
  return {self.bind({keys, a}, params), {0}};
}
constexpr ParamRule gamma_rules[] = {{"log_space", form::flag, "False"}};

// --------------------------------------------------------------------------------------- mapping
// New dimensions come last, so the mapped axis stays where it is.
Batched batch_in_place(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                       const Params& params) {
  return {self.bind(x, params), {axes[0]}};
}
Batched wrap_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                   const Params& params) {
  return {self.bind({lax::moveaxis(x[0], *axes[0], 0)}, params), {0}};
}
Batched threefry_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t n,
                       const Params& params) {
  Batched y = elementwise::batch(self, x, axes, n, params);
  y.axes.push_back(y.axes[0]);
  return y;
}

constexpr ParamRule impl_rules[] = {{"impl", form::text}};
constexpr ParamRule shape_rules[] = {{"shape", form::ints}};
constexpr ParamRule bits_rules[] = {{"bit_width", form::integer}, {"shape", form::ints}};

// Bits do not vary with anything: the tangent is a symbolic zero.
constexpr Primitive draw(const char* name, decltype(Primitive::type) type,
                         decltype(Primitive::eval) eval, decltype(Primitive::batch) batch,
                         std::span<const ParamRule> params = {}, int arity = 1) {
  return {.name = name,
          .kind = Kind::index,
          .type = type,
          .eval = eval,
          .tangent = elementwise::zero_tangent,
          .batch = batch,
          .param_rules = params,
          .arity = arity};
}

}  // namespace

// clang-format off
constinit const Primitive
    random_seed_p    = draw("random_seed", seed_type, seed_eval, batch_in_place, impl_rules),
    random_wrap_p    = draw("random_wrap", wrap_type, same_words_eval, wrap_batch, impl_rules),
    random_unwrap_p  = draw("random_unwrap", unwrap_type, same_words_eval, batch_in_place),
    random_split_p   = draw("random_split", split_type, split_eval, batch_in_place, shape_rules),
    random_fold_in_p = draw("random_fold_in", fold_in_type, fold_in_eval, elementwise::batch, {}, 2),
    random_bits_p    = draw("random_bits", bits_type, bits_eval, batch_in_place, bits_rules),
    threefry2x32_p   = draw("threefry2x32", threefry_type, threefry_eval, threefry_batch, {}, 4),
    random_clone_p   = draw("random_clone", clone_type, same_words_eval, batch_in_place),
    random_gamma_p   = {.name = "random_gamma",
                        .kind = Kind::index,
                        .type = gamma_type,
                        .eval = gamma_eval,
                        .tangent = gamma_tangent,
                        .batch = gamma_batch,
                        .param_rules = gamma_rules,
                        .arity = 2},
    threefry_bits_p  = {.name = "threefry_bits",
                        .kind = Kind::elementwise,
                        .type = threefry_bits_type,
                        .eval = threefry_bits_eval,
                        .tangent = elementwise::zero_tangent,
                        .batch = elementwise::batch,
                        .arity = 3};
// clang-format on

namespace lax {

Array random_seed(const Array& seeds) {
  return random_seed_p.bind1({seeds}, {{"impl", std::string("fry")}});
}
Array random_wrap(const Array& words) {
  return random_wrap_p.bind1({words}, {{"impl", std::string("fry")}});
}
Array random_unwrap(const Array& keys) { return random_unwrap_p.bind1({keys}); }
Array random_split(const Array& keys, const Shape& shape) {
  return random_split_p.bind1({keys}, {{"shape", Ints(shape)}});
}
Array random_fold_in(const Array& keys, const Array& data) {
  return random_fold_in_p.bind1({keys, data});
}
Array random_bits(const Array& keys, std::int64_t bit_width, const Shape& shape) {
  return random_bits_p.bind1({keys}, {{"bit_width", bit_width}, {"shape", Ints(shape)}});
}
std::pair<Array, Array> threefry2x32(const Array& key0, const Array& key1, const Array& count0,
                                     const Array& count1) {
  const Arrays out = threefry2x32_p.bind({key0, key1, count0, count1});
  return {out[0], out[1]};
}
Array threefry_bits(const Array& key0, const Array& key1, const Array& position) {
  return threefry_bits_p.bind1({key0, key1, position});
}

}  // namespace lax
}  // namespace reprise
