// Windows that slide over an array: the geometry shared by reduce_window and convolutions.
#pragma once

#include "program/params.h"
#include "reprise/array.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace reprise {

using Pads = std::vector<std::pair<std::int64_t, std::int64_t>>;  // (low, high) per axis

// The size of an axis after dilation - 1 holes were put between neighbours.
std::int64_t dilated(std::int64_t size, std::int64_t dilation);

// One axis: holes are put into the input, padding around it (negative: cut off), then the window,
// itself with holes, moves by `stride`.
struct WindowAxis {
  std::int64_t in = 1, window = 1, stride = 1, low = 0, high = 0;
  std::int64_t base_dilation = 1, window_dilation = 1;

  std::int64_t padded() const { return dilated(in, base_dilation) + low + high; }
  std::int64_t out() const;
  // The input index under element w of the window for output o; -1: padding or a hole.
  std::int64_t source(std::int64_t o, std::int64_t w) const {
    std::int64_t at = o * stride + w * window_dilation - low;
    if (at < 0) return -1;
    if (base_dilation != 1) {
      if (at % base_dilation != 0) return -1;
      at /= base_dilation;
    }
    return at < in ? at : -1;
  }
};
using WindowAxes = std::vector<WindowAxis>;
// The axes of a checked equation on an operand of this shape; dilations that are left out are 1.
WindowAxes window_axes(const Shape& in, const Params& params);

// Throws TypeError unless there is one value per axis, within [smallest, 2^31).
void check_window_values(const char* op, const char* what, const Ints& values, std::size_t ndim,
                         std::int64_t smallest);

// Calls f(offset) for the elements of the window of output `index`, in row-major order; strides are
// those of the input. Padding and holes give -1, once for a whole line or plane of them.
template <class F>
void visit_window(const WindowAxes& axes, const Shape& strides, const Shape& index, F&& f,
                  std::size_t axis = 0, std::int64_t offset = 0) {
  if (axis == axes.size()) {
    f(offset);
    return;
  }
  for (std::int64_t w = 0; w < axes[axis].window; ++w) {
    const std::int64_t at = axes[axis].source(index[axis], w);
    if (at < 0) {
      f(std::int64_t{-1});
    } else {
      visit_window(axes, strides, index, f, axis + 1, offset + at * strides[axis]);
    }
  }
}

// Calls f(index) for every index of a shape, in row-major order.
template <class F>
void for_each_index(const Shape& shape, F&& f) {
  for (std::int64_t d : shape) {
    if (d == 0) return;
  }
  Shape index(shape.size(), 0);
  while (true) {
    f(static_cast<const Shape&>(index));
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// The padding with which the transposed operation slides over the cotangent.
Pads transposed_padding(const WindowAxes& axes);

// Params hold padding as lists.
std::vector<Ints> to_lists(const Pads& pads);
Pads to_pads(const std::vector<Ints>& lists);

}  // namespace reprise
