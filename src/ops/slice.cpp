// Primitives that read or replace a box of an array: slice, dynamic_slice, dynamic_update_slice.
#include "ops/slice.h"

#include "ops/gather.h"
#include "ops/records.h"
#include "ops/scatter.h"
#include "ops/shape.h"

#include <algorithm>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

// ------------------------------------------------------------------------------------------ slice
const Ints* strides_of(const Params& params) {
  return std::get_if<Ints>(params.find("strides"));  // null: all 1
}

Types slice_type(const Types& in, const Params& params) {
  expect_operands("slice", in, 1);
  const auto& start = params.get<Ints>("start_indices");
  const auto& limit = params.get<Ints>("limit_indices");
  const Ints* strides = strides_of(params);
  const std::size_t ndim = in[0].shape.size();
  if (start.size() != ndim || limit.size() != ndim || (strides && strides->size() != ndim)) {
    fail<TypeError>("slice: one start, limit and stride is needed for each dimension of ", in[0],
                    ", got ", python_tuple(start), ", ", python_tuple(limit), " and ",
                    strides ? python_tuple(*strides) : "no strides");
  }
  Type out = in[0];
  for (std::size_t d = 0; d < ndim; ++d) {
    if (start[d] < 0 || start[d] > limit[d] || limit[d] > in[0].shape[d]) {
      fail<TypeError>("slice: 0 <= start <= limit <= size is needed, got start ", start[d],
                      " and limit ", limit[d], " for dimension ", d, " of ", in[0]);
    }
    const std::int64_t stride = strides ? (*strides)[d] : 1;
    if (stride < 1)
      fail<TypeError>("slice: strides must be positive, got ", python_tuple(*strides));
    const std::int64_t size = limit[d] - start[d];
    out.shape[d] = size == 0 ? 0 : (size - 1) / stride + 1;
  }
  return {std::move(out)};
}

Arrays slice_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto& start = params.get<Ints>("start_indices");
  const Ints* strides = strides_of(params);
  if (out[0].size() == 0) return {NewArray(out[0]).finish()};
  Shape from = row_major_strides(x[0].shape());
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < from.size(); ++d) {
    offset += start[d] * from[d];
    // One element needs no step; a step past the end could be any number.
    if (strides && out[0].shape[d] > 1) from[d] *= (*strides)[d];
  }
  return {copy_box(x[0], offset, from, out[0])};
}

Tangents slice_transpose(const Tangents& ct, const Primals&, const Types& in,
                         const Params& params) {
  const auto& start = params.get<Ints>("start_indices");
  const auto& limit = params.get<Ints>("limit_indices");
  const Ints* strides = strides_of(params);
  std::vector<PadDimension> config;
  for (std::size_t d = 0; d < start.size(); ++d) {
    const std::int64_t stride = strides ? (*strides)[d] : 1;
    const std::int64_t size = ct[0]->shape()[d];
    // With strides the last element read may stand before the limit.
    const std::int64_t end =
        stride == 1 ? limit[d] : start[d] + (size == 0 ? 0 : 1 + (size - 1) * stride);
    config.push_back({start[d], in[0].shape[d] - end, stride - 1});
  }
  return {
      pad_in_rule(*ct[0], const_like(*ct[0], 0), config, static_cast<std::int64_t>(config.size()))};
}

Batched slice_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params& params) {
  const auto inserted = [&](Ints values, std::int64_t value) {
    values.insert(values.begin() + *axes[0], value);
    return values;
  };
  std::optional<Ints> strides;
  if (const Ints* old = strides_of(params)) strides = inserted(*old, 1);
  const Ints start = inserted(params.get<Ints>("start_indices"), 0);
  const Ints limit = inserted(params.get<Ints>("limit_indices"), n);
  return {{slice(x[0], start, limit, strides)}, {axes[0]}};
}

// -------------------------------------------------------------------------------- dynamic indices
void check_indices(const char* op, const Types& in, std::size_t first, std::int64_t ndim) {
  if (static_cast<std::int64_t>(in.size() - first) != ndim) {
    fail<TypeError>(op, ": one start index is needed for each dimension of ", in[0], ", got ",
                    in.size() - first);
  }
  for (std::size_t i = first; i < in.size(); ++i) {
    if (in[i].ndim() != 0 || !is_integer(in[i].dtype) || in[i].dtype != in[first].dtype) {
      fail<TypeError>(op, ": start indices must be integer scalars of one dtype, got ",
                      join(Types(in.begin() + static_cast<std::ptrdiff_t>(first), in.end()), ", "));
    }
  }
}

// Where the box starts; a box that would reach outside is moved inside.
std::int64_t box_offset(const Arrays& x, std::size_t first, const Shape& box) {
  const Shape strides = row_major_strides(x[0].shape());
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < box.size(); ++d) {
    const std::int64_t start = index_values(x[first + d])[0];
    offset += std::clamp<std::int64_t>(start, 0, x[0].shape()[d] - box[d]) * strides[d];
  }
  return offset;
}

// The start indices as the last dimension of one array, for gather and scatter.
struct StackedIndices {
  Array array;
  Axis axis;
};
StackedIndices stacked_indices(const Arrays& indices, const Axes& axes, std::int64_t n) {
  const bool mapped = std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a; });
  Arrays parts;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Shape shape = mapped ? Shape{n, 1} : Shape{1};
    parts.push_back(broadcast_in_dim(indices[i], shape, axes[i] ? Ints{0} : Ints{}));
  }
  return {concatenate(parts, mapped ? 1 : 0), mapped ? Axis(0) : std::nullopt};
}

// ---------------------------------------------------------------------------------- dynamic_slice
Types dynamic_slice_type(const Types& in, const Params& params) {
  constexpr const char* op = "dynamic_slice";
  if (in.empty()) fail<TypeError>(op, ": an operand is needed, got none");
  const auto& sizes = params.get<Ints>("slice_sizes");
  check_indices(op, in, 1, in[0].ndim());
  bool fits = sizes.size() == in[0].shape.size();
  for (std::size_t d = 0; fits && d < sizes.size(); ++d) {
    fits = 0 <= sizes[d] && sizes[d] <= in[0].shape[d];
  }
  if (!fits) {
    fail<TypeError>(op, ": slice sizes must fit into ", in[0], ", got ", python_tuple(sizes));
  }
  Type out = in[0];
  out.shape = sizes;
  return {std::move(out)};
}
Arrays dynamic_slice_eval(const Arrays& x, const Params&, const Types& out) {
  const std::int64_t offset = box_offset(x, 1, out[0].shape);
  return {copy_box(x[0], offset, row_major_strides(x[0].shape()), out[0])};
}
Duals dynamic_slice_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  Arrays t = x;
  t[0] = *dx[0];
  const Array dy = dynamic_slice_p.bind1(t, params);
  return {dynamic_slice_p.bind(x, params), {dy}};
}
Tangents dynamic_slice_transpose(const Tangents& ct, const Primals& x, const Types& in,
                                 const Params&) {
  Arrays operands{zeros(in[0]), *ct[0]};
  for (std::size_t i = 1; i < x.size(); ++i) operands.push_back(*x[i]);
  Tangents out(x.size());
  out[0] = dynamic_update_slice_p.bind1(operands);
  return out;
}
Batched dynamic_slice_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                            const Params& params) {
  const Ints dims = iota_ints(static_cast<std::int64_t>(x.size()) - 1);
  if (dims.empty()) return {{x[0]}, {axes[0]}};
  const StackedIndices start =
      stacked_indices(Arrays(x.begin() + 1, x.end()), Axes(axes.begin() + 1, axes.end()), n);
  const Params gather = gather_params(
      {.offset_dims = dims, .start_index_map = dims}, params.get<Ints>("slice_sizes"),
      {.mode = GatherScatterMode::clip, .indices_are_sorted = true, .unique_indices = true},
      x[0].dtype());
  return gather_p.batch(gather_p, {x[0], start.array}, {axes[0], start.axis}, n, gather);
}

// --------------------------------------------------------------------------- dynamic_update_slice
Types dynamic_update_slice_type(const Types& in, const Params&) {
  constexpr const char* op = "dynamic_update_slice";
  if (in.size() < 2) fail<TypeError>(op, ": an operand and an update are needed, got ", in.size());
  if (in[0].dtype != in[1].dtype) {
    fail<TypeError>(op, ": dtypes differ, got ", in[0], " and ", in[1]);
  }
  check_indices(op, in, 2, in[0].ndim());
  bool fits = in[0].ndim() == in[1].ndim();
  for (std::size_t d = 0; fits && d < in[0].shape.size(); ++d) {
    fits = in[1].shape[d] <= in[0].shape[d];
  }
  if (!fits) fail<TypeError>(op, ": the update must fit into ", in[0], ", got ", in[1]);
  Type out = in[0];
  out.weak_type = in[0].weak_type && in[1].weak_type;
  return {std::move(out)};
}
Arrays dynamic_update_slice_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  const std::size_t width = itemsize(out[0].dtype);
  const Shape strides = row_major_strides(out[0].shape);
  copy_strided(content(x[0]).elements, strides, result.bytes(), strides, out[0].shape, width);
  const std::int64_t offset = box_offset(x, 2, x[1].shape()) * static_cast<std::int64_t>(width);
  copy_strided(content(x[1]).elements, row_major_strides(x[1].shape()), result.bytes() + offset,
               strides, x[1].shape(), width);
  return {std::move(result).finish()};
}
Tangents dynamic_update_slice_tangent(const Arrays& x, const Tangents& dx, const Arrays&,
                                      const Params& params) {
  Arrays t = x;
  for (std::size_t i = 0; i < 2; ++i) t[i] = dx[i] ? *dx[i] : zeros(x[i].type());
  return {dynamic_update_slice_p.bind1(t, params)};
}
Tangents dynamic_update_slice_transpose(const Tangents& ct, const Primals& x, const Types& in,
                                        const Params&) {
  const Array nothing = zeros(in[1]);
  Arrays start;
  for (std::size_t i = 2; i < x.size(); ++i) start.push_back(*x[i]);
  Tangents out(x.size());
  if (!x[0]) {
    Arrays operands{*ct[0], nothing};
    operands.insert(operands.end(), start.begin(), start.end());
    out[0] = dynamic_update_slice_p.bind1(operands);
  }
  if (!x[1]) {
    Arrays operands{*ct[0]};
    operands.insert(operands.end(), start.begin(), start.end());
    out[1] = dynamic_slice_p.bind1(operands, {{"slice_sizes", in[1].shape}});
  }
  return out;
}
Batched dynamic_update_slice_batch(const Primitive&, const Arrays& x, const Axes& axes,
                                   std::int64_t n, const Params&) {
  const Ints dims = iota_ints(static_cast<std::int64_t>(x.size()) - 2);
  if (dims.empty()) return {{mapped_in_front(x[1], axes[1], n)}, {0}};
  const StackedIndices start =
      stacked_indices(Arrays(x.begin() + 2, x.end()), Axes(axes.begin() + 2, axes.end()), n);
  const Params scatter = scatter_params(
      nullptr, {.update_window_dims = dims, .scatter_dims_to_operand_dims = dims},
      {.mode = GatherScatterMode::clip, .indices_are_sorted = true, .unique_indices = true});
  return scatter_p.batch(scatter_p, {x[0], start.array, x[1]}, {axes[0], start.axis, axes[1]}, n,
                         scatter);
}

}  // namespace

bool is_unsigned(Dtype d) {
  return d == Dtype::u8 || d == Dtype::u16 || d == Dtype::u32 || d == Dtype::u64;
}

Array wrap_negative(const Array& index, std::int64_t size) {
  if (is_unsigned(index.dtype())) return index;
  const Array is_negative = lt(index, const_like(index, 0));
  const Array strong = convert(index, index.dtype());
  const Array from_end = add(strong, const_like(strong, static_cast<double>(size)));
  return select_n(is_negative, {index, from_end});
}

namespace {

constexpr ParamRule slice_rules[] = {{"limit_indices", form::ints},
                                     {"start_indices", form::ints},
                                     {"strides", form::none | form::ints, "None"}};
constexpr ParamRule sizes_rules[] = {{"slice_sizes", form::ints}};

}  // namespace

constinit const Primitive slice_p{.name = "slice",
                                  .kind = Kind::shape,
                                  .type = slice_type,
                                  .eval = slice_eval,
                                  .tangent = linear_tangent<slice_p>,
                                  .transpose = slice_transpose,
                                  .batch = slice_batch,
                                  .param_rules = slice_rules};
constinit const Primitive dynamic_slice_p{.name = "dynamic_slice",
                                          .kind = Kind::index,
                                          .type = dynamic_slice_type,
                                          .eval = dynamic_slice_eval,
                                          .jvp = dynamic_slice_jvp,
                                          .transpose = dynamic_slice_transpose,
                                          .batch = dynamic_slice_batch,
                                          .param_rules = sizes_rules};
constinit const Primitive dynamic_update_slice_p{.name = "dynamic_update_slice",
                                                 .kind = Kind::index,
                                                 .type = dynamic_update_slice_type,
                                                 .eval = dynamic_update_slice_eval,
                                                 .tangent = dynamic_update_slice_tangent,
                                                 .transpose = dynamic_update_slice_transpose,
                                                 .batch = dynamic_update_slice_batch};

namespace lax {
namespace {

// A number is answered at once.
Array start_index(const char* op, const Array& index, std::int64_t size) {
  if (!is_integer(index.dtype())) {
    fail<TypeError>(op, ": start indices must be integers, got ", index.type());
  }
  if (!content(index).number()) return wrap_negative(index, size);
  Literal literal = *content(index).number();
  if (!is_unsigned(index.dtype()) && literal.integer < 0) literal.integer += size;
  literal.weak_type = false;
  literal.promoted = true;  // JAX keeps such an index as a residual
  return make_number(literal);
}

Arrays with_start_indices(const char* op, Arrays operands, const Arrays& start_indices) {
  const Array x = operands[0];
  if (static_cast<std::int64_t>(start_indices.size()) != x.ndim()) {
    fail<TypeError>(op, ": one start index is needed for each dimension of ", x.type(), ", got ",
                    start_indices.size());
  }
  for (std::size_t d = 0; d < start_indices.size(); ++d) {
    operands.push_back(start_index(op, start_indices[d], x.shape()[d]));
  }
  return operands;
}

}  // namespace

Array slice(Operand x, const Ints& start_indices, const Ints& limit_indices,
            std::optional<Ints> strides) {
  const AtUser at(x.at);
  return slice_p.bind1({x.array}, {{"limit_indices", limit_indices},
                                   {"start_indices", start_indices},
                                   {"strides", strides ? Attr(*strides) : Attr(None{})}});
}
Array dynamic_slice(Operand x, const Arrays& start_indices, const Ints& slice_sizes) {
  const AtUser at(x.at);
  const Arrays operands = with_start_indices("dynamic_slice", {x.array}, start_indices);
  return dynamic_slice_p.bind1(operands, {{"slice_sizes", slice_sizes}});
}
Array dynamic_update_slice(Operand x, Operand update, const Arrays& start_indices) {
  const AtUser at(x.at);
  const Arrays operands =
      with_start_indices("dynamic_update_slice", {x.array, update.array}, start_indices);
  return dynamic_update_slice_p.bind1(operands);
}

}  // namespace lax
}  // namespace reprise
