// A scalar constant written inside a program.
#pragma once

#include "reprise/array.h"

#include <cstdint>

namespace reprise {

// `real` keeps the C++ number as it was written; it is rounded to the dtype when it is used.
struct Literal {
  Dtype dtype = Dtype::f32;
  bool weak_type = false;
  // The number was converted by promotion while tracing. JAX counts such a literal as a residual
  // ("f32[] from a literal"); numbers that needed no conversion are copied into the backward pass.
  bool promoted = false;
  union {
    double real = 0;
    std::int64_t integer;   // signed integers and bool
    std::uint64_t natural;  // unsigned integers
  };

  Type type() const { return Type{dtype, {}, weak_type}; }
  bool operator==(const Literal& other) const {
    return dtype == other.dtype && weak_type == other.weak_type && promoted == other.promoted &&
           integer == other.integer;
  }
};

Literal make_literal(Dtype, double value, bool weak_type = false);
void store_literal(const Literal&, void* element);  // rounds to the dtype
Literal load_literal(Dtype, const void* element);
Literal convert_literal(const Literal&, Dtype, bool weak_type);
std::string to_string(const Literal&);  // "2.0", "True": without the type

}  // namespace reprise
