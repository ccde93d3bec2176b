#include "codegen/index_windows.h"

#include "base/dtype.h"
#include "ops/gather.h"
#include "ops/records.h"
#include "ops/scatter.h"

#include <algorithm>

namespace reprise::codegen {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::ptrdiff_t find(const Ints& dims, std::size_t d) {
  const auto found = std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d));
  return found == dims.end() ? -1 : found - dims.begin();
}

IndexedWindows by_numbers(const lax::GatherDimensionNumbers& n, const Ints& slice_sizes,
                          const Type& operand, const Type& indices, const Shape& windows) {
  IndexedWindows out;
  out.dtype = operand.dtype;
  out.index_dtype = indices.dtype;
  out.operand = operand.shape;
  const Shape operand_strides = row_major_strides(operand.shape),
              strides = row_major_strides(windows);
  const Shape index_strides = row_major_strides(indices.shape);
  Ints inside;  // dimensions of the operand
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    if (find(n.collapsed_slice_dims, d) < 0 && find(n.operand_batching_dims, d) < 0)
      inside.push_back(static_cast<std::int64_t>(d));
  }
  std::size_t next_inside = 0, next_index = 0;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    WindowDim dim{windows[d], strides[d]};
    dim.is_inside = find(n.offset_dims, d) >= 0;
    if (dim.is_inside) {
      dim.operand_dim = inside[next_inside++];
    } else {
      dim.indices = index_strides[next_index];
      const std::ptrdiff_t batching = find(n.start_indices_batching_dims, next_index++);
      if (batching >= 0) dim.operand_dim = n.operand_batching_dims[at(batching)];
    }
    if (dim.operand_dim >= 0) dim.operand = operand_strides[at(dim.operand_dim)];
    out.dims.push_back(dim);
  }
  for (std::size_t k = 0; k < n.start_index_map.size(); ++k) {
    const std::size_t d = at(n.start_index_map[k]);
    const std::int64_t most = std::max<std::int64_t>(operand.shape[d] - slice_sizes[d], 0);
    out.components.push_back({1, static_cast<std::int64_t>(k), operand_strides[d], most, {}});
  }
  return out;
}

// The start indices are scalars, from operand `first` on.
IndexedWindows by_scalars(const EquationKernel& k, std::size_t first, const Shape& box) {
  IndexedWindows out;
  const Type& operand = k.in[0];
  out.dtype = operand.dtype;
  out.operand = operand.shape;
  const Shape operand_strides = row_major_strides(operand.shape), strides = row_major_strides(box);
  for (std::size_t d = 0; d < box.size(); ++d) {
    out.dims.push_back(
        {box[d], strides[d], operand_strides[d], 0, true, static_cast<std::int64_t>(d)});
    IndexComponent c{first + d, 0, operand_strides[d], operand.shape[d] - box[d], {}};
    out.index_dtype = k.in[c.operand].dtype;
    if (const Atom& a = k.eqn->in[c.operand]; !a.is_var()) {
      c.known = std::clamp<std::int64_t>(index_values(make_number(a.literal))[0], 0, c.most);
    }
    out.components.push_back(c);
  }
  return out;
}

}  // namespace

std::vector<WindowDim> merged(const std::vector<WindowDim>& dims) {
  std::vector<WindowDim> out;
  for (const WindowDim& d : dims) {
    if (d.size == 1) continue;
    const auto goes_on = [&](std::int64_t outer, std::int64_t inner) {
      return outer == inner * d.size;
    };
    if (!out.empty() && goes_on(out.back().windows, d.windows) &&
        goes_on(out.back().operand, d.operand) && goes_on(out.back().indices, d.indices)) {
      WindowDim& last = out.back();
      last.size *= d.size;
      last.windows = d.windows;
      last.operand = d.operand;
      last.indices = d.indices;
      last.is_inside &= d.is_inside;
    } else {
      out.push_back(d);
    }
  }
  return out;
}

std::int64_t size_of(const std::vector<WindowDim>& dims) {
  std::int64_t size = 1;
  for (const WindowDim& d : dims) size *= d.size;
  return size;
}

IndexedWindows indexed_windows(const EquationKernel& k) {
  const Params& params = k.eqn->params;
  if (k.eqn->prim == &dynamic_slice_p) return by_scalars(k, 1, k.out[0].shape);
  if (k.eqn->prim == &dynamic_update_slice_p) return by_scalars(k, 2, k.in[1].shape);
  if (k.eqn->prim == &gather_p) {
    const auto numbers = params.get_opaque<GatherNumbers>("dimension_numbers")->numbers;
    IndexedWindows out =
        by_numbers(numbers, params.get<Ints>("slice_sizes"), k.in[0], k.in[1], k.out[0].shape);
    out.clamps = mode_of(params) != lax::GatherScatterMode::fill_or_drop;
    return out;
  }
  const auto numbers = params.get_opaque<ScatterNumbers>("dimension_numbers")->numbers;
  const Ints sizes = slice_sizes_of(numbers, k.in[0].ndim(), k.in[2].shape);
  IndexedWindows out = by_numbers(inverse(numbers), sizes, k.in[0], k.in[1], k.in[2].shape);
  out.clamps = mode_of(params) == lax::GatherScatterMode::clip;
  return out;
}

}  // namespace reprise::codegen
