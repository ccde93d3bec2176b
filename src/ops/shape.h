// What the structural families (shape, join, slice, gather, scatter) share: strided copies and the
// derivative of an operation that is linear in all operands.
#pragma once

#include "array/access.h"
#include "base/dtype.h"
#include "ops/lax.h"
#include "program/primitive.h"

namespace reprise {

// A loop over elements of two arrays; strides count elements.
struct Loop {
  std::int64_t size, from, to;
};
// Nested loops over `sizes` (none 0), outermost first: without those of size 1, and one loop where
// the outer one walks on where the inner one stops. Never empty.
std::vector<Loop> merged_loops(const Shape& from, const Shape& to, const Shape& sizes);

// Calls row(from offset, to offset) for every run of the innermost loop.
template <class F>
void for_each_row(const std::vector<Loop>& loops, F&& row) {
  const std::size_t outer = loops.size() - 1;
  Shape index(outer, 0);
  std::int64_t from = 0, to = 0;
  while (true) {
    row(from, to);
    std::size_t d = outer;
    for (; d-- > 0;) {
      from += loops[d].from;
      to += loops[d].to;
      if (++index[d] < loops[d].size) break;
      from -= loops[d].from * loops[d].size;
      to -= loops[d].to * loops[d].size;
      index[d] = 0;
    }
    if (d > outer) return;  // the outermost loop ended
  }
}

// Copies elements of `width` bytes as the loops say.
void copy_loops(const std::byte* from, std::byte* to, const std::vector<Loop>& loops,
                std::size_t width);
// The same for sizes[0] x sizes[1] x ... elements, of which there may be none.
void copy_strided(const std::byte* from, const Shape& from_strides, std::byte* to,
                  const Shape& to_strides, const Shape& sizes, std::size_t width);

// The elements of x that stand `strides` apart, beginning with number `offset`, as a new array.
Array copy_box(const Array& x, std::int64_t offset, const Shape& strides, const Type& out);

void expect_operands(const char* op, const Types& in, std::size_t count);
bool all_unique(Ints values);

// The tangent of a linear operation: the operation on the tangents, zeros filled in.
template <const Primitive& self>
Tangents linear_tangent(const Arrays& x, const Tangents& dx, const Arrays&, const Params& params) {
  Arrays t;
  t.reserve(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) t.push_back(dx[i] ? *dx[i] : lax::zeros(x[i].type()));
  Arrays dy = self.bind(t, params);
  return Tangents(dy.begin(), dy.end());
}

// x with its mapped axis in front; copied n times when it has none.
Array mapped_in_front(const Array& x, const Axis& axis, std::int64_t n);
// `dims` of an unmapped operand as dimensions of the operand with a mapped axis at `axis`.
Ints skip_axis(Ints dims, std::int64_t axis);

}  // namespace reprise
