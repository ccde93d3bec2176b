// What numpy-style functions do to their operands first: one dtype, then ranks that match.
//
//   promote("multiply", {f32[2,3], 2})       =>  f32[2,3], 2.0:f32[]
//   promote("multiply", {f32[2,3], f32[3]})  =>  f32[2,3], f32[1,3]
#pragma once

#include "program/primitive.h"
#include "reprise/array.h"

namespace reprise {

// The kind of dtype a function works in: numeric functions take bool as i32, inexact ones take
// everything that is not floating as f32.
enum class Works : std::uint8_t { any, numeric, inexact };

// The operands with the common dtype. A C++ number that changes its type stays a literal while
// tracing, one that JAX counts as a residual; anything else is a convert_element_type.
Arrays promote_dtypes(Arrays x, Works in = Works::any);
Array promote_dtype(const Array& x, Works in);  // of a single operand
Array convert_promoted(const Array& x, Dtype dtype, bool weak_type);

// Operands of lower rank get leading dimensions of size 1; scalars stay scalars. Throws TypeError
// when the shapes do not broadcast.
Arrays promote_shapes(const char* op, Arrays x);
Arrays promote(const char* op, Arrays x, Works in = Works::any);

// The shape that numpy broadcasting gives; throws TypeError naming `op`.
Shape broadcast_shape(const char* op, const Arrays& x);
// x repeated to `shape`, aligned at the last dimension; x itself when it has this shape.
Array stretch_to(const Array& x, const Shape& shape);

}  // namespace reprise
