// Elements by number along one axis: take, take_along_axis.
#include "base/dtype.h"
#include "control/call.h"
#include "functions/promote.h"
#include "ops/lax.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "reprise/ops_math.h"
#include "reprise/ops_shape.h"

#include <algorithm>
#include <limits>

namespace reprise {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void check_indices(const char* op, const Array& indices) {
  if (is_integer(indices.dtype())) return;
  fail<TypeError>(op, ": indices must be integers, got ", indices.type());
}

// Small integers cannot count to a large size.
Array with_room_for(std::int64_t size, const Array& indices) {
  const std::int64_t most = largest_integer(indices.dtype());
  return size > most ? lax::convert(indices, index_dtype(size)) : indices;
}
Array plus_size(const Array& indices, std::int64_t size) {
  if (size > std::numeric_limits<std::int32_t>::max()) {
    return lax::add(indices, lax::const_like(indices, static_cast<double>(size)));
  }
  return indices + Array(size);
}

Array taken(const Array& x, const Array& given, std::int64_t axis, const TakeOptions& options) {
  const std::int64_t size = x.shape(axis), index_dims = given.ndim();
  Array indices = given;
  if (options.mode == IndexMode::fill_or_drop) {
    indices = with_room_for(size, given);
    const Array is_negative = indices < 0;
    const Array from_end = plus_size(indices, size);
    indices = where(is_negative, from_end, indices);
  }
  if (size == 0 && indices.size() > 0) {
    fail<TypeError>("take: nothing can be taken from an empty axis, got axis ", axis, " of ",
                    x.type());
  }
  Shape slice_sizes = x.shape();
  if (indices.size() == 0) {
    Shape shape = x.shape();
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, indices.shape().begin(), indices.shape().end());
    return lax::full(shape, 0, x.dtype());
  }
  slice_sizes[at(axis)] = 1;
  Ints offset_dims = lax::iota_ints(axis);
  for (std::int64_t d = axis + index_dims; d < x.ndim() + index_dims - 1; ++d) {
    offset_dims.push_back(d);
  }
  const Array vectors = lax::expand_dims(indices, {index_dims});
  return lax::gather(
      x, vectors,
      {.offset_dims = offset_dims, .collapsed_slice_dims = {axis}, .start_index_map = {axis}},
      slice_sizes,
      {.mode = options.mode,
       .unique_indices = options.unique_indices,
       .fill_value = options.fill_value});
}

// How each dimension of x and of the indices takes part in take_along_axis.
struct AlongAxis {
  lax::GatherDimensionNumbers numbers;
  Ints slice_sizes, squeezed;
  Shape vectors_shape;  // of the indices, with the index vector
};
AlongAxis along_axis(const Shape& x, const Shape& indices, std::int64_t axis) {
  AlongAxis out;
  std::int64_t dim = 0, vector_dim = 0;  // of x after squeezing, of the index vectors
  for (std::size_t d = 0; d < x.size(); ++d) {
    const auto i = static_cast<std::int64_t>(d);
    if (i != axis && indices[d] == 1) {  // the whole dimension of x
      out.numbers.offset_dims.push_back(i);
      out.slice_sizes.push_back(x[d]);
      ++dim;
      continue;
    }
    out.vectors_shape.push_back(indices[d]);
    if (i == axis) {
      out.slice_sizes.push_back(1);
      out.numbers.start_index_map.push_back(dim);
      out.numbers.collapsed_slice_dims.push_back(dim++);
    } else if (x[d] == 1) {
      out.squeezed.push_back(i);
    } else {
      out.slice_sizes.push_back(x[d] == 0 ? 0 : 1);
      out.numbers.operand_batching_dims.push_back(dim++);
      out.numbers.start_indices_batching_dims.push_back(vector_dim);
    }
    ++vector_dim;
  }
  out.vectors_shape.push_back(1);
  return out;
}

Array taken_along(const Array& x, const Array& given, std::int64_t axis,
                  const TakeOptions& options) {
  Shape others = x.shape();
  others[at(axis)] = 1;
  Shape shape = given.shape();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) shape[d] = others[d];
    if (shape[d] == others[d] || others[d] == 1) continue;
    fail<TypeError>("take_along_axis: shapes do not broadcast, got ", x.type(), " and indices ",
                    given.type(), " for axis ", axis);
  }
  const std::int64_t size = x.shape(axis);
  if (size == 0) return lax::full(shape, 0, x.dtype());
  Array indices = given;
  if (options.mode != IndexMode::promise_in_bounds) {
    indices = wrap_negative(lax::convert(given, index_dtype(size)), size);
  }
  const AlongAxis along = along_axis(x.shape(), given.shape(), axis);
  const Array vectors = lax::reshape(indices, along.vectors_shape);
  const Array squeezed = lax::squeeze(x, along.squeezed);
  return lax::gather(squeezed, vectors, along.numbers, along.slice_sizes,
                     {.mode = options.mode,
                      .unique_indices = options.unique_indices,
                      .fill_value = options.fill_value});
}

}  // namespace

Array take(Operand x, Operand indices, std::optional<std::int64_t> axis,
           const TakeOptions& options) {
  const AtUser scope(x.at);
  check_indices("take", indices);
  const std::int64_t along = axis ? canonical_axis("take", *axis, x.array.ndim()) : 0;
  return jit_call1("_take",
                   [&](const Arrays& a) {
                     const Array from = axis ? a[0] : ravel(a[0]);
                     return Arrays{taken(from, a[1], along, options)};
                   },
                   {x.array, indices.array});
}

Array take_along_axis(Operand x, Operand indices, std::optional<std::int64_t> axis,
                      const TakeOptions& options) {
  const AtUser scope(x.at);
  check_indices("take_along_axis", indices);
  const std::int64_t ndim = axis ? x.array.ndim() : 1;
  const std::int64_t along = canonical_axis("take_along_axis", axis.value_or(0), ndim);
  if (indices.array.ndim() != ndim) {
    fail<TypeError>("take_along_axis: indices must have ", ndim, " dimensions, got ",
                    indices.array.type(), " for ", x.array.type());
  }
  return jit_call1("take_along_axis",
                   [&](const Arrays& a) {
                     const Array from = axis ? a[0] : ravel(a[0]);
                     return Arrays{taken_along(from, a[1], along, options)};
                   },
                   {x.array, indices.array});
}

}  // namespace reprise
