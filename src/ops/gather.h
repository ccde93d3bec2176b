// Gather, and what it shares with scatter: one window of the operand for each index vector.
#pragma once

#include "ops/lax.h"
#include "program/primitive.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace reprise {

struct GatherNumbers final : OpaqueParam {
  explicit GatherNumbers(lax::GatherDimensionNumbers n) : numbers(std::move(n)) {}
  std::string text() const override;  // GatherDimensionNumbers(offset_dims=(0,), ...)
  lax::GatherDimensionNumbers numbers;
};
// The inverse of text(); throws TypeError.
lax::GatherDimensionNumbers parse_gather_numbers(std::string_view text);

// "Name(a=(1, 2), b=())" and back, for dimension numbers.
struct NamedTuple {
  const char* name;
  std::array<const char*, 5> fields;
  std::string text(const std::array<const Ints*, 5>& values) const;
  std::array<Ints, 5> parse(std::string_view text) const;
};

std::string mode_text(lax::GatherScatterMode mode);  // "GatherScatterMode.CLIP"
lax::GatherScatterMode mode_of(const Params& params);

Params gather_params(const lax::GatherDimensionNumbers& numbers, const Ints& slice_sizes,
                     const lax::GatherOptions& options, Dtype dtype);

// What gather puts where an index vector points outside, as one element of the dtype.
void store_fill(const Params& params, Dtype dtype, std::byte* element);

// All elements as 64-bit integers; unsigned ones that do not fit become the largest.
Ints index_values(const Array& indices);

// ---------------------------------------------------------------------------------------- windows
// The rules that dimension numbers obey; `names` are those of the primitive's fields.
void check_dimension_numbers(const char* op, const NamedTuple& names,
                             const lax::GatherDimensionNumbers& numbers, const Type& operand,
                             const Type& indices);
void check_slice_sizes(const char* op, const lax::GatherDimensionNumbers& numbers,
                       const Type& operand, const Type& indices, const Ints& slice_sizes);
// The shape of all windows together: the result of gather, the updates of scatter.
Shape windows_shape(const lax::GatherDimensionNumbers& numbers, const Shape& indices,
                    const Ints& slice_sizes);

// Where the windows lie in the operand and in the array of all windows.
struct Windows {
  Windows(const lax::GatherDimensionNumbers& numbers, const Shape& operand, const Shape& indices,
          const Ints& slice_sizes, const Shape& windows);
  Shape batch;                        // the shape of the indices without the index vector
  Shape operand_steps, window_steps;  // for each dimension of `batch`
  Shape index_steps, index_most;  // for each component of an index vector: stride, largest value
  Shape sizes, operand_strides, window_strides;  // of one window
};

// Calls f(operand offset, offset among the windows, is inside) for every index vector. With `clamp`
// windows that reach outside are moved inside.
template <class F>
void for_each_window(const Windows& w, const Ints& starts, bool clamp, F&& f) {
  const std::size_t components = w.index_steps.size();
  Shape index(w.batch.size(), 0);
  std::int64_t count = 1, operand_base = 0, window = 0;
  for (std::int64_t d : w.batch) count *= d;
  const std::int64_t* start = starts.data();
  for (std::int64_t n = 0; n < count; ++n, start += components) {
    std::int64_t operand = operand_base;
    bool is_inside = true;
    for (std::size_t k = 0; k < components; ++k) {
      const std::int64_t inside = std::clamp<std::int64_t>(start[k], 0, w.index_most[k]);
      is_inside = is_inside && (clamp || inside == start[k]);
      operand += inside * w.index_steps[k];
    }
    f(operand, window, is_inside);
    for (std::size_t d = w.batch.size(); d-- > 0;) {
      operand_base += w.operand_steps[d];
      window += w.window_steps[d];
      if (++index[d] < w.batch[d]) break;
      operand_base -= w.operand_steps[d] * w.batch[d];
      window -= w.window_steps[d] * w.batch[d];
      index[d] = 0;
    }
  }
}

}  // namespace reprise
