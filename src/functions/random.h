// What the functions of reprise/random.h share.
#pragma once

#include "reprise/random.h"

#include <utility>

namespace reprise::random {

// The one key of a function, in its typed form.
Array single_key(const char* op, const Operand& key);
void check_shape(const char* op, const Shape& shape);
void check_floating(const char* op, Dtype dtype);
// The given shape, to which that of the operands must broadcast; without one, that of the operands.
Shape shape_for(const char* op, const std::optional<Shape>& given, const Shape& operands);
// x with leading dimensions of size 1; scalars of a scalar result stay.
Array to_rank(const Array& x, std::size_t rank);
// A number as a literal of this dtype, weak as before: the others must not be rounded to 32 bits.
Array widened(const Operand& x, Dtype dtype);
Array rounded_number(Dtype dtype, double value);  // a literal that prints as it is stored
std::pair<Array, Array> two_keys(const Array& key);

// [minval, maxval) from a typed key: one jit equation. JAX passes keyword arguments by name order.
enum class Passed : bool { by_position, by_name };
Array uniform_call(const Array& key, const Shape& shape, Dtype dtype, const Array& minval,
                   const Array& maxval, Passed passed = Passed::by_position);
// A permutation of x along the axis.
Array shuffle(const Array& key, const Array& x, std::int64_t axis);

}  // namespace reprise::random
