// Gather and scatter by definition, one element at a time.
#pragma once

#include "base/dtype.h"
#include "ops/lax.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace reprise {

using lax::GatherDimensionNumbers;
using lax::GatherScatterMode;

// All positions of an array, in row-major order.
inline void for_each_position(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape position(shape.size(), 0);
  const std::int64_t count = element_count(shape);
  for (std::int64_t n = 0; n < count; ++n) {
    f(position);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++position[d] < shape[d]) break;
      position[d] = 0;
    }
  }
}
inline std::size_t offset_of(const Shape& position, const Shape& shape) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + position[d];
  return static_cast<std::size_t>(offset);
}
inline bool contains(const lax::Ints& dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
}

// Where element `position` of all windows lies in the operand.
struct Place {
  Shape operand;
  bool window_is_inside = true;
};
inline Place place_of(const Shape& position, const Shape& operand, const Array& indices,
                      const GatherDimensionNumbers& n, const lax::Ints& sizes, bool clamp) {
  Shape batch, window;
  for (std::size_t d = 0; d < position.size(); ++d) {
    (contains(n.offset_dims, d) ? window : batch).push_back(position[d]);
  }
  Place place{Shape(operand.size(), 0)};
  const std::vector<std::int64_t> numbers = indices.to_vector<std::int64_t>();
  for (std::size_t k = 0; k < n.start_index_map.size(); ++k) {
    Shape at = batch;
    at.push_back(static_cast<std::int64_t>(k));
    std::int64_t start = numbers[offset_of(at, indices.shape())];
    const auto dim = static_cast<std::size_t>(n.start_index_map[k]);
    const std::int64_t most = operand[dim] - sizes[dim];
    if (clamp) start = std::clamp<std::int64_t>(start, 0, most);
    place.window_is_inside = place.window_is_inside && 0 <= start && start <= most;
    place.operand[dim] = start;
  }
  for (std::size_t k = 0; k < n.operand_batching_dims.size(); ++k) {
    place.operand[static_cast<std::size_t>(n.operand_batching_dims[k])] =
        batch[static_cast<std::size_t>(n.start_indices_batching_dims[k])];
  }
  std::size_t next = 0;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (contains(n.collapsed_slice_dims, d) || contains(n.operand_batching_dims, d)) continue;
    place.operand[d] += window[next++];
  }
  return place;
}

inline std::vector<double> gather_reference(const Array& x, const Array& indices,
                                            const GatherDimensionNumbers& n, const lax::Ints& sizes,
                                            const Shape& out, bool fills, double fill) {
  const std::vector<double> from = x.to_vector<double>();
  std::vector<double> result;
  for_each_position(out, [&](const Shape& position) {
    const Place p = place_of(position, x.shape(), indices, n, sizes, !fills);
    result.push_back(p.window_is_inside ? from[offset_of(p.operand, x.shape())] : fill);
  });
  return result;
}
inline std::vector<double> scatter_reference(const Array& x, const Array& indices,
                                             const Array& updates, const GatherDimensionNumbers& n,
                                             const lax::Ints& sizes, bool clamp,
                                             const std::function<double(double, double)>& combine) {
  std::vector<double> result = x.to_vector<double>();
  const std::vector<double> from = updates.to_vector<double>();
  for_each_position(updates.shape(), [&](const Shape& position) {
    const Place p = place_of(position, x.shape(), indices, n, sizes, clamp);
    if (!p.window_is_inside) return;
    double& element = result[offset_of(p.operand, x.shape())];
    element = combine(element, from[offset_of(position, updates.shape())]);
  });
  return result;
}

// One way to address windows: used by the tests of gather and of scatter.
struct WindowCase {
  std::string name;
  Shape operand;
  Array indices;
  GatherDimensionNumbers numbers;
  lax::Ints sizes;
  Shape windows;  // their shape together
  bool reaches_outside = false, overlaps = false;
};
inline std::vector<WindowCase> window_cases() {
  const Array rows = array({{0}, {3}, {1}, {3}}), wild = array({{-1}, {9}, {2}});
  return {
      {"rows", {4, 3}, rows, {{1}, {0}, {0}}, {1, 3}, {4, 3}, false, true},
      {"columns", {3, 4}, rows, {{0}, {1}, {1}}, {3, 1}, {3, 4}, false, true},
      {"rows outside", {4, 3}, wild, {{1}, {0}, {0}}, {1, 3}, {3, 3}, true, false},
      {"boxes",
       {4, 5},
       array({{0, 1}, {2, 3}, {3, 4}}),
       {{1, 2}, {}, {0, 1}},
       {2, 3},
       {3, 2, 3},
       true,
       true},
      {"swapped index", {4, 5}, array({{1, 0}, {4, 3}}), {{}, {0, 1}, {1, 0}}, {1, 1}, {2}},
      {"points",
       {4, 5},
       array({{{0, 1}, {3, 4}}, {{2, 2}, {1, 0}}}),
       {{}, {0, 1}, {0, 1}},
       {1, 1},
       {2, 2}},
      {"window first", {4, 5}, rows, {{0}, {0}, {0}}, {1, 2}, {2, 4}, false, true},
      {"batched",
       {2, 4, 3},
       array({{{0}, {3}}, {{2}, {2}}}),
       {{2}, {1}, {1}, {0}, {0}},
       {1, 1, 3},
       {2, 2, 3},
       false,
       true},
      {"batched, transposed",
       {2, 3, 4},
       array({{{0}, {3}}, {{2}, {2}}, {{1}, {5}}}),
       {{}, {2}, {2}, {0, 1}, {1, 0}},
       {1, 1, 1},
       {3, 2},
       true,
       false},
      {"one window", {4}, array({1}), {{0}, {}, {0}}, {2}, {2}},
      {"no index", {2, 2}, array(std::vector<int>{}), {{0, 1}, {}, {}}, {2, 2}, {2, 2}},
  };
}

}  // namespace reprise
