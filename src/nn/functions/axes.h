// Axes as positions counted from the front.
#pragma once

#include "reprise/errors.h"
#include "reprise/ops_reduce.h"

#include <algorithm>

namespace reprise::nn {

inline std::int64_t canonical_axis(const char* op, std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) {
    fail<TypeError>(op, ": axis ", axis, " is out of range for ", rank, " dimensions");
  }
  return axis < 0 ? axis + rank : axis;
}

// Axes that were not given are none.
inline Shape canonical_axes(const char* op, const ReduceAxes& axes, std::int64_t rank) {
  Shape out;
  if (!axes.axes()) return out;
  for (const std::int64_t axis : *axes.axes()) {
    const std::int64_t position = canonical_axis(op, axis, rank);
    if (std::find(out.begin(), out.end(), position) != out.end()) {
      fail<TypeError>(op, ": axis ", axis, " is given twice");
    }
    out.push_back(position);
  }
  return out;
}

inline bool contains(const Shape& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

inline std::int64_t product(const Shape& sizes, std::size_t first, std::size_t last) {
  std::int64_t out = 1;
  for (std::size_t i = first; i < last; ++i) out *= sizes[i];
  return out;
}

}  // namespace reprise::nn
