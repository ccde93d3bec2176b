// What rules and library functions build with: the public lax functions, and a few that users do
// not need.
#pragma once

#include "program/primitive.h"
#include "reprise/lax.h"

namespace reprise::lax {

// While tracing: broadcast_in_dim of the literal, or the literal itself for scalars.
Array filled(const Shape& shape, Literal value);
Array zeros(const Type& type);                    // broadcast_in_dim 0.0, or a literal for scalars
Array full_like(const Type& type, double value);  // the same with another value
Array const_like(const Array& x, double value);   // a literal of x's dtype, never a residual
Array convert(const Array& x, Dtype dtype, bool weak_type = false);  // elided when nothing changes
Array add_any(const Array& x, const Array& y);  // accumulation of tangents and cotangents
// The cotangent of an operand of type t that broadcasting stretched: sums the stretched axes.
Array unbroadcast(const Type& t, const Array& ct);
// Moves the axis `from` to position `to` by a transpose.
Array moveaxis(const Array& x, std::int64_t from, std::int64_t to);
// pad as rules emit it: JAX holds `numpy` of the integers as numpy scalars (see numpy_ints).
Array pad_in_rule(const Array& x, const Array& value, const std::vector<PadDimension>& config,
                  std::int64_t numpy);
Ints iota_ints(std::int64_t n);  // 0, 1, ..., n-1

}  // namespace reprise::lax

namespace reprise {

Tangent add_tangents(const Tangent& a, const Tangent& b);  // add_any, or the one that is not zero

}  // namespace reprise
