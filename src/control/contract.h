// Products that are not rounded before they are added.
//
//   c = mul a b; e = add c d   =>   e = fma(a, b, d), where nothing else reads c
//
// XLA compiles jax.random's functions so on the CPU, and the numbers show it. Everywhere else a
// program means one rounding per operation; a jit equation with the param `contracts` (never
// printed) means its body with contracted products.
#pragma once

#include "program/trace.h"

namespace reprise {

Arrays eval_contracted(const Program&, const Arrays& args);

}  // namespace reprise
