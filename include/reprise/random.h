// Random numbers, with the names and the numbers of jax.random: pure functions of a key, so that
// drawing again from the same key gives the same bits, also where a checkpoint plays a function
// again, inside jit, vmap and loops.
//
//   rp::Array key = rp::random::key(0);
//   rp::Array keys = rp::random::split(key);               // key<fry>[2]: two independent keys
//   rp::Array x = rp::random::normal(keys[0], {2, 3});     // f32[2,3]
//   rp::Array mask = rp::random::bernoulli(keys[1], 0.9, {{2, 3}});
//
// Use a key once, or split it first. A key is a scalar of dtype key<fry>, or (the older form) its
// two words as u32[2]; every function takes both, and split and fold_in give back what they were
// given. Arrays of keys are for vmap. The generator is Threefry-2x32: the bits are those of JAX,
// and so are uniform, normal and truncated_normal in f32; functions that take logarithms agree to a
// few units in the last place.
#pragma once

#include "reprise/array.h"

#include <concepts>
#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)
namespace reprise::random {

// ------------------------------------------------------------------------------------------- keys
// The key for a seed. Of a C++ integer the low 32 bits count; an array of i64 or u64 gives all 64.
// A TypeError unless the seed is an integer scalar.
Array key(Operand seed);
Array PRNGKey(Operand seed);  // the same key as u32[2]
template <std::integral T>
Array key(T seed, Location at = Location::current());
template <std::integral T>
Array PRNGKey(T seed, Location at = Location::current());

Array key_data(Operand keys);        // the words: key<fry>[...] -> u32[..., 2]
Array wrap_key_data(Operand words);  // the keys: u32[..., 2] -> key<fry>[...]

// Independent new keys. The first n of split(key, m) are those of split(key, n).
Array split(Operand key, std::int64_t num = 2);
Array split(Operand key, const Shape& shape);
// The new key for a number, such as the index of a step or of a layer; taken modulo 2^32.
Array fold_in(Operand key, Operand data);

// ------------------------------------------------------------------------------------------- bits
// Unsigned integers with all bits random; dtype is uint8, uint16, uint32 or uint64.
Array bits(Operand key, const Shape& shape = {}, Dtype dtype = uint32);

// ------------------------------------------------------------------------------------ real numbers
// Evenly distributed in [minval, maxval); the bounds broadcast to the shape.
Array uniform(Operand key, const Shape& shape = {}, Dtype dtype = float32, Operand minval = 0.0,
              Operand maxval = 1.0);
// Normally distributed with mean 0 and variance 1.
Array normal(Operand key, const Shape& shape = {}, Dtype dtype = float32);
// The same, cut off: within (lower, upper). Without a shape it is that of the bounds.
Array truncated_normal(Operand key, Operand lower, Operand upper,
                       const std::optional<Shape>& shape = std::nullopt, Dtype dtype = float32);
Array exponential(Operand key, const Shape& shape = {}, Dtype dtype = float32);  // with rate 1
Array gumbel(Operand key, const Shape& shape = {}, Dtype dtype = float32);

// --------------------------------------------------------------------------------------- decisions
// True with probability p, which is floating and broadcasts to the shape (by default its own).
Array bernoulli(Operand key, Operand p = 0.5, const std::optional<Shape>& shape = std::nullopt);
// Integers in [minval, maxval); the bounds broadcast to the shape.
Array randint(Operand key, const Shape& shape, Operand minval, Operand maxval, Dtype dtype = int32);
// Positions along an axis of the logits (logarithms of probabilities, up to a constant), as i32.
// The shape, by default that of the logits without the axis, may have more leading dimensions.
Array categorical(Operand key, Operand logits, std::int64_t axis = -1,
                  const std::optional<Shape>& shape = std::nullopt);
// The numbers 0, ..., n-1 in random order.
Array permutation(Operand key, std::int64_t n);
// x in random order along an axis; if independent, each row in its own order.
Array permutation(Operand key, Operand x, std::int64_t axis = 0, bool independent = false);

// Options of choice.
struct ChoiceOptions {
  bool replace = true;                    // may an element be chosen twice
  std::optional<Array> p = std::nullopt;  // probabilities, by default all equal
  std::int64_t axis = 0;
};
// Elements of 0, ..., n-1, or of x along an axis, which `shape` replaces. A TypeError when there
// are not enough elements.
Array choice(Operand key, std::int64_t n, const Shape& shape = {},
             const ChoiceOptions& options = {});
Array choice(Operand key, Operand x, const Shape& shape = {}, const ChoiceOptions& options = {});

// ----------------------------------------------------------------------------------------- details
Array key_of_integer(std::uint64_t seed, Location at);  // for key
template <std::integral T>
Array key(T seed, Location at) {
  return key_of_integer(static_cast<std::uint64_t>(seed), at);
}
template <std::integral T>
Array PRNGKey(T seed, Location at) {
  return key_data(Operand(key_of_integer(static_cast<std::uint64_t>(seed), at), at));
}

}  // namespace reprise::random
#pragma GCC visibility pop
