// Random numbers as pure functions of keys: the primitives under reprise/random.h.
//
//   random_seed: i32[] -> key<fry>[]    random_split[shape=(n,)]: key<fry>[] -> key<fry>[n]
//   random_bits[bit_width=32 shape=(3,)]: key<fry>[] -> u32[3]
#pragma once

#include "ops/lax.h"
#include "program/primitive.h"

#include <utility>

namespace reprise {
extern const Primitive random_gamma_p;  // only programs read from texts have it
}

namespace reprise::lax {

Array random_seed(const Array& seeds);                       // integers -> keys
Array random_wrap(const Array& words);                       // u32[..., 2] -> keys
Array random_unwrap(const Array& keys);                      // keys -> u32[..., 2]
Array random_split(const Array& keys, const Shape& shape);   // the new dimensions come last
Array random_fold_in(const Array& keys, const Array& data);  // data: u32, shapes broadcast
// Unsigned integers of 8, 16, 32 or 64 random bits; the new dimensions come last.
Array random_bits(const Array& keys, std::int64_t bit_width, const Shape& shape);
// The hash itself, elementwise on u32: two words of key, two of counter -> two words.
std::pair<Array, Array> threefry2x32(const Array& key0, const Array& key1, const Array& count0,
                                     const Array& count1);
// Elementwise on u32: what random_bits draws at this position, as one word. Compiled programs draw
// by it.
Array threefry_bits(const Array& key0, const Array& key1, const Array& position);

}  // namespace reprise::lax
