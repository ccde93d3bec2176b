// Programs as text, letter for letter as JAX prints them:
//
//   { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul 2.0:f32[] b in (c,) }
//
// Variables are lettered in the order in which they are printed; a variable of the outermost
// program that nobody reads is `_`. A program that is used twice (the same object), or has more
// than ten equations, is printed once, before the rest: `let f = { ... } in`. Its name is that of
// the jit that uses it first, or `jaxpr`. The variables of a jit take the names of the values they
// stand for.
#pragma once

#include "program/program.h"

#include <string>

namespace reprise {

struct PrintOptions {
  int width = 80;
  bool print_shapes = true;  // types of the variables where they are bound
  bool source_info = false;  // the user's place after every equation
};

std::string to_text(const Program&, const PrintOptions& = {});

}  // namespace reprise
