// Primitives that put arrays together and take them apart: concatenate, stack, unstack, split,
// tile, pad.
#include "ops/records.h"
#include "ops/shape.h"

#include <algorithm>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void expect_equal_dtypes(const char* op, const Types& in) {
  if (in.empty()) fail<TypeError>(op, ": at least one operand is needed, got none");
  for (const Type& t : in) {
    if (t.dtype != in[0].dtype) fail<TypeError>(op, ": dtypes differ, got ", join(in, " and "));
  }
}
void expect_axis(const char* op, std::int64_t axis, std::int64_t ndim) {
  if (axis >= 0 && axis < ndim) return;
  fail<TypeError>(op, ": axis out of range, got axis ", axis, " for ", ndim, " dimensions");
}
bool all_weak(const Types& in) {
  return std::all_of(in.begin(), in.end(), [](const Type& t) { return t.weak_type; });
}
Shape without(Shape shape, std::int64_t axis) {
  shape.erase(shape.begin() + axis);
  return shape;
}

// Copies the elements of `part` to where they stand in the whole, or back.
struct Parts {
  std::int64_t part_step;  // elements of the whole between consecutive positions along the axis
  Shape strides;           // of the whole, for the dimensions of a part
  std::size_t width;

  void put(const Array& part, std::int64_t position, std::byte* whole) const {
    std::byte* to = whole + position * part_step * static_cast<std::int64_t>(width);
    copy_strided(content(part).elements, row_major_strides(part.shape()), to, strides, part.shape(),
                 width);
  }
  Array take(const std::byte* whole, std::int64_t position, const Type& type) const {
    NewArray part(type);
    const std::byte* from = whole + position * part_step * static_cast<std::int64_t>(width);
    copy_strided(from, strides, part.bytes(), row_major_strides(type.shape), type.shape, width);
    return std::move(part).finish();
  }
};
// Parts that have the axis themselves (concatenate, split) or not (stack, unstack).
Parts parts_of(const Type& whole, std::int64_t axis, bool parts_have_axis) {
  const Shape strides = row_major_strides(whole.shape);
  return {strides[at(axis)], parts_have_axis ? strides : without(strides, axis),
          itemsize(whole.dtype)};
}

// The cotangents that exist as one list; symbolic zeros become arrays.
Arrays with_zeros(const Tangents& ct, const Types& types) {
  Arrays out;
  for (std::size_t i = 0; i < ct.size(); ++i) out.push_back(ct[i] ? *ct[i] : zeros(types[i]));
  return out;
}
Tangents for_linear(const Arrays& back, const Primals& x) {
  Tangents out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!x[i]) out[i] = back[i];
  }
  return out;
}
Arrays in_front(const Arrays& x, const Axes& axes, std::int64_t n) {
  Arrays out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(mapped_in_front(x[i], axes[i], n));
  return out;
}

// ------------------------------------------------------------------------------------ concatenate
Types concatenate_type(const Types& in, const Params& params) {
  constexpr const char* op = "concatenate";
  expect_equal_dtypes(op, in);
  const auto axis = params.get<std::int64_t>("dimension");
  expect_axis(op, axis, in[0].ndim());
  Type out = in[0];
  out.weak_type = all_weak(in);
  out.shape[at(axis)] = 0;
  for (const Type& t : in) {
    if (t.ndim() != out.ndim() || without(t.shape, axis) != without(out.shape, axis)) {
      fail<TypeError>(op, ": shapes must be equal except in dimension ", axis, ", got ",
                      join(in, " and "));
    }
    if (__builtin_add_overflow(out.shape[at(axis)], t.shape[at(axis)], &out.shape[at(axis)])) {
      fail<TypeError>(op, ": the sizes of dimension ", axis, " add up to more than 2^63, got ",
                      join(in, " and "));
    }
  }
  return {std::move(out)};
}
Arrays concatenate_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto axis = params.get<std::int64_t>("dimension");
  NewArray result(out[0]);
  const Parts parts = parts_of(out[0], axis, /*parts_have_axis=*/true);
  std::int64_t position = 0;
  for (const Array& part : x) {
    parts.put(part, position, result.bytes());
    position += part.shape(axis);
  }
  return {std::move(result).finish()};
}
Tangents concatenate_transpose(const Tangents& ct, const Primals& x, const Types& in,
                               const Params& params) {
  const auto axis = params.get<std::int64_t>("dimension");
  Ints sizes;
  for (const Type& t : in) sizes.push_back(t.shape[at(axis)]);
  return for_linear(split(*ct[0], sizes, axis), x);
}
Batched concatenate_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                          const Params& params) {
  const Arrays moved = in_front(x, axes, n);
  return {{concatenate(moved, params.get<std::int64_t>("dimension") + 1)}, {0}};
}

// ------------------------------------------------------------------------------------------ stack
Types stack_type(const Types& in, const Params& params) {
  expect_equal_dtypes("stack", in);
  const auto axis = params.get<std::int64_t>("axis");
  expect_axis("stack", axis, in[0].ndim() + 1);
  for (const Type& t : in) {
    if (t.shape != in[0].shape) {
      fail<TypeError>("stack: shapes must be equal, got ", join(in, " and "));
    }
  }
  Type out = in[0];
  out.weak_type = all_weak(in);
  out.shape.insert(out.shape.begin() + axis, static_cast<std::int64_t>(in.size()));
  return {std::move(out)};
}
Arrays stack_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const Parts parts = parts_of(out[0], params.get<std::int64_t>("axis"), /*parts_have_axis=*/false);
  for (std::size_t i = 0; i < x.size(); ++i) {
    parts.put(x[i], static_cast<std::int64_t>(i), result.bytes());
  }
  return {std::move(result).finish()};
}
Tangents stack_transpose(const Tangents& ct, const Primals& x, const Types&, const Params& params) {
  return for_linear(unstack(*ct[0], params.get<std::int64_t>("axis")), x);
}
Batched stack_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params& params) {
  const auto axis = params.get<std::int64_t>("axis");
  const bool agree =
      std::all_of(axes.begin(), axes.end(), [&](const Axis& a) { return a && *a == axes[0]; });
  if (!agree) return {{stack(in_front(x, axes, n), axis + 1)}, {0}};
  if (axis <= *axes[0]) return {{stack(x, axis)}, {*axes[0] + 1}};
  return {{stack(x, axis + 1)}, {*axes[0]}};
}

// ---------------------------------------------------------------------------------------- unstack
Types unstack_type(const Types& in, const Params& params) {
  expect_operands("unstack", in, 1);
  const auto axis = params.get<std::int64_t>("axis");
  expect_axis("unstack", axis, in[0].ndim());
  Type part = in[0];
  part.shape = without(part.shape, axis);
  return Types(at(in[0].shape[at(axis)]), part);
}
Arrays unstack_eval(const Arrays& x, const Params& params, const Types& out) {
  const Parts parts =
      parts_of(x[0].type(), params.get<std::int64_t>("axis"), /*parts_have_axis=*/false);
  Arrays result;
  for (std::size_t i = 0; i < out.size(); ++i) {
    result.push_back(parts.take(content(x[0]).elements, static_cast<std::int64_t>(i), out[i]));
  }
  return result;
}
Tangents unstack_transpose(const Tangents& ct, const Primals&, const Types& in,
                           const Params& params) {
  return {stack(with_zeros(ct, unstack_type(in, params)), params.get<std::int64_t>("axis"))};
}
Batched unstack_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                      const Params& params) {
  const auto axis = params.get<std::int64_t>("axis");
  const bool before = axis < *axes[0];
  Arrays out = unstack(x[0], before ? axis : axis + 1);
  Axes out_axes(out.size(), before ? *axes[0] - 1 : *axes[0]);
  return {std::move(out), std::move(out_axes)};
}

// ------------------------------------------------------------------------------------------ split
Types split_type(const Types& in, const Params& params) {
  expect_operands("split", in, 1);
  const auto& sizes = params.get<Ints>("sizes");
  const auto axis = params.get<std::int64_t>("axis");
  expect_axis("split", axis, in[0].ndim());
  std::int64_t left = in[0].shape[at(axis)];
  Types out;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > left) break;
    left -= size;
    out.push_back(in[0]);
    out.back().shape[at(axis)] = size;
  }
  if (left != 0 || out.size() != sizes.size()) {
    fail<TypeError>("split: sizes must add up to dimension ", axis, " of ", in[0], ", got ",
                    python_tuple(sizes));
  }
  return out;
}
Arrays split_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto axis = params.get<std::int64_t>("axis");
  const Parts parts = parts_of(x[0].type(), axis, /*parts_have_axis=*/true);
  Arrays result;
  std::int64_t position = 0;
  for (const Type& part : out) {
    result.push_back(parts.take(content(x[0]).elements, position, part));
    position += part.shape[at(axis)];
  }
  return result;
}
Tangents split_transpose(const Tangents& ct, const Primals&, const Types& in,
                         const Params& params) {
  return {concatenate(with_zeros(ct, split_type(in, params)), params.get<std::int64_t>("axis"))};
}
Batched split_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                    const Params& params) {
  const auto axis = params.get<std::int64_t>("axis");
  Arrays out = split(x[0], params.get<Ints>("sizes"), axis >= *axes[0] ? axis + 1 : axis);
  Axes out_axes(out.size(), axes[0]);
  return {std::move(out), std::move(out_axes)};
}

// ------------------------------------------------------------------------------------------- tile
// (r0, s0, r1, s1, ...): the result with each dimension as (copy, position in the copy).
Shape copies_and_positions(const Ints& reps, const Shape& shape) {
  Shape both;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    both.push_back(reps[d]);
    both.push_back(shape[d]);
  }
  return both;
}
Types tile_type(const Types& in, const Params& params) {
  expect_operands("tile", in, 1);
  const auto& reps = params.get<Ints>("reps");
  Type out = in[0];
  bool valid = reps.size() == out.shape.size();
  for (std::size_t d = 0; valid && d < reps.size(); ++d) {
    valid = reps[d] >= 0 && !__builtin_mul_overflow(out.shape[d], reps[d], &out.shape[d]);
  }
  if (!valid) {
    fail<TypeError>("tile: one count >= 0 is needed for each dimension of ", in[0], ", got ",
                    python_tuple(reps));
  }
  return {std::move(out)};
}
Arrays tile_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const Shape sizes = copies_and_positions(params.get<Ints>("reps"), x[0].shape());
  Shape from;
  for (std::int64_t stride : row_major_strides(x[0].shape())) {
    from.push_back(0);
    from.push_back(stride);
  }
  copy_strided(content(x[0]).elements, from, result.bytes(), row_major_strides(sizes), sizes,
               itemsize(out[0].dtype));
  return {std::move(result).finish()};
}
Tangents tile_transpose(const Tangents& ct, const Primals&, const Types& in, const Params& params) {
  const Array both = reshape(*ct[0], copies_and_positions(params.get<Ints>("reps"), in[0].shape));
  Ints copies;
  for (std::int64_t d = 0; d < in[0].ndim(); ++d) copies.push_back(2 * d);
  return {reduce_sum(both, copies)};
}
Batched tile_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                   const Params& params) {
  Ints reps = params.get<Ints>("reps");
  reps.insert(reps.begin() + *axes[0], 1);
  return {{tile(x[0], reps)}, {axes[0]}};
}

// -------------------------------------------------------------------------------------------- pad
using Padding = std::vector<Ints>;  // (low, high, interior) for each dimension

Types pad_type(const Types& in, const Params& params) {
  expect_operands("pad", in, 2);
  expect_equal_dtypes("pad", in);
  const auto& config = params.get<Padding>("padding_config");
  const std::string text = python_text(Attr(config));
  if (in[1].ndim() != 0) fail<TypeError>("pad: the padding value must be a scalar, got ", in[1]);
  const bool triples = std::all_of(config.begin(), config.end(), [](const Ints& d) {
    constexpr std::int64_t most = std::int64_t{1} << 48;  // keeps the arithmetic below exact
    return d.size() == 3 && -most <= d[0] && d[0] <= most && -most <= d[1] && d[1] <= most &&
           0 <= d[2] && d[2] <= most;
  });
  if (config.size() != in[0].shape.size() || !triples) {
    fail<TypeError>(
        "pad: padding_config must have (low, high, interior >= 0) for each dimension of ", in[0],
        ", got ", text);
  }
  Type out = in[0];
  out.weak_type = all_weak(in);
  for (std::size_t d = 0; d < config.size(); ++d) {
    std::int64_t& size = out.shape[d];
    std::int64_t gaps = 0;
    if (__builtin_mul_overflow(std::max<std::int64_t>(size - 1, 0), config[d][2], &gaps) ||
        __builtin_add_overflow(size, gaps, &size) ||
        __builtin_add_overflow(size, config[d][0], &size) ||
        __builtin_add_overflow(size, config[d][1], &size) || size < 0) {
      fail<TypeError>("pad: sizes must not become negative or overflow, got ", in[0],
                      " with padding_config ", text);
    }
  }
  return {std::move(out)};
}

void fill(NewArray& array, const std::byte* value, std::size_t width) {
  if (array.size() == 0 || width == 0) return;
  copy_strided(value, {0}, array.bytes(), {1}, {array.size()}, width);
}

Arrays pad_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto& config = params.get<Padding>("padding_config");
  NewArray result(out[0]);
  const std::size_t width = itemsize(out[0].dtype);
  fill(result, content(x[1]).elements, width);
  const Shape from_strides = row_major_strides(x[0].shape());
  Shape to_strides = row_major_strides(out[0].shape), sizes;
  std::int64_t from = 0, to = 0;
  for (std::size_t d = 0; d < config.size(); ++d) {
    const std::int64_t low = config[d][0], step = config[d][2] + 1;
    // Elements first, ..., first + count - 1 of this dimension land inside the result.
    const std::int64_t first = low >= 0 ? 0 : (-low - 1) / step + 1;
    const std::int64_t room = out[0].shape[d] - 1 - low;
    const std::int64_t end = room < 0 ? 0 : std::min(x[0].shape()[d], room / step + 1);
    sizes.push_back(std::max<std::int64_t>(end - first, 0));
    if (sizes[d] == 0) return {std::move(result).finish()};
    from += first * from_strides[d];
    to += (low + first * step) * to_strides[d];
    if (sizes[d] > 1) to_strides[d] *= step;
  }
  const auto w = static_cast<std::int64_t>(width);
  copy_strided(content(x[0]).elements + from * w, from_strides, result.bytes() + to * w, to_strides,
               sizes, width);
  return {std::move(result).finish()};
}

// The operand's cotangent is what is left after removing the padding; the padding value gets the
// rest of the sum.
Tangents pad_transpose(const Tangents& ct, const Primals& x, const Types&, const Params& params) {
  const auto& config = params.get<Padding>("padding_config");
  std::vector<PadDimension> removal;
  Ints steps;
  for (const Ints& d : config) {
    removal.push_back({-d[0], -d[1], 0});
    steps.push_back(d[2] + 1);
  }
  const auto rank = static_cast<std::int64_t>(steps.size());
  const Array unpadded = pad_in_rule(*ct[0], const_like(*ct[0], 0), removal, 3 * rank);
  const Array operand = slice_p.bind1({unpadded}, {{"limit_indices", unpadded.shape()},
                                                   {"start_indices", Ints(steps.size(), 0)},
                                                   {"strides", steps},
                                                   {numpy_ints, 2 * rank}});
  Tangents out(2);
  if (!x[0]) out[0] = operand;
  if (!x[1]) {
    const Array all = reduce_sum(*ct[0], iota_ints(ct[0]->ndim()));
    const Array inside = reduce_sum(operand, iota_ints(operand.ndim()));
    out[1] = sub(all, inside);
  }
  return out;
}

Batched pad_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                  const Params& params) {
  const Array operand = axes[0] ? x[0] : mapped_in_front(x[0], std::nullopt, n);
  const std::int64_t axis = axes[0].value_or(0);
  std::vector<PadDimension> config;
  for (const Ints& d : params.get<Padding>("padding_config")) config.push_back({d[0], d[1], d[2]});
  config.insert(config.begin() + axis, PadDimension{});
  if (!axes[1]) return {{pad(operand, x[1], config)}, {axis}};
  const Array padded = pad(operand, const_like(operand, 0), config);
  const Array everywhere = full(operand.shape(), true, Dtype::bool_);
  const Array is_operand = pad(everywhere, false, config);
  const Array value = broadcast_in_dim(x[1], padded.shape(), {axis});
  return {{select_n(is_operand, {value, padded})}, {axis}};
}

constexpr ParamRule concatenate_rules[] = {{"dimension", form::integer}};
constexpr ParamRule axis_rules[] = {{"axis", form::integer}};
constexpr ParamRule split_rules[] = {{"axis", form::integer}, {"sizes", form::ints}};
constexpr ParamRule tile_rules[] = {{"reps", form::ints}};
constexpr ParamRule pad_rules[] = {{"padding_config", form::rows}};

}  // namespace

constinit const Primitive concatenate_p{.name = "concatenate",
                                        .kind = Kind::shape,
                                        .type = concatenate_type,
                                        .eval = concatenate_eval,
                                        .tangent = linear_tangent<concatenate_p>,
                                        .transpose = concatenate_transpose,
                                        .batch = concatenate_batch,
                                        .param_rules = concatenate_rules};
constinit const Primitive stack_p{.name = "stack",
                                  .kind = Kind::shape,
                                  .type = stack_type,
                                  .eval = stack_eval,
                                  .tangent = linear_tangent<stack_p>,
                                  .transpose = stack_transpose,
                                  .batch = stack_batch,
                                  .param_rules = axis_rules};
constinit const Primitive unstack_p{.name = "unstack",
                                    .kind = Kind::shape,
                                    .type = unstack_type,
                                    .eval = unstack_eval,
                                    .tangent = linear_tangent<unstack_p>,
                                    .transpose = unstack_transpose,
                                    .batch = unstack_batch,
                                    .param_rules = axis_rules};
constinit const Primitive split_p{.name = "split",
                                  .kind = Kind::shape,
                                  .type = split_type,
                                  .eval = split_eval,
                                  .tangent = linear_tangent<split_p>,
                                  .transpose = split_transpose,
                                  .batch = split_batch,
                                  .param_rules = split_rules};
constinit const Primitive tile_p{.name = "tile",
                                 .kind = Kind::shape,
                                 .type = tile_type,
                                 .eval = tile_eval,
                                 .tangent = linear_tangent<tile_p>,
                                 .transpose = tile_transpose,
                                 .batch = tile_batch,
                                 .param_rules = tile_rules};
constinit const Primitive pad_p{.name = "pad",
                                .kind = Kind::shape,
                                .type = pad_type,
                                .eval = pad_eval,
                                .tangent = linear_tangent<pad_p>,
                                .transpose = pad_transpose,
                                .batch = pad_batch,
                                .param_rules = pad_rules};

namespace lax {

Array concatenate(const Arrays& xs, std::int64_t dimension, Location at_user) {
  const AtUser scope(at_user);
  if (xs.size() == 1 && dimension >= 0 && dimension < xs[0].ndim()) return xs[0];
  return concatenate_p.bind1(xs, {{"dimension", dimension}});
}
Array stack(const Arrays& xs, std::int64_t axis, Location at_user) {
  const AtUser scope(at_user);
  if (!xs.empty()) axis = canonical_axis("stack", axis, xs[0].ndim() + 1);
  return stack_p.bind1(xs, {{"axis", axis}});
}
Arrays unstack(Operand x, std::int64_t axis) {
  const AtUser scope(x.at);
  return unstack_p.bind({x.array}, {{"axis", canonical_axis("unstack", axis, x.array.ndim())}});
}
Arrays split(Operand x, const Ints& sizes, std::int64_t axis) {
  const AtUser scope(x.at);
  axis = canonical_axis("split", axis, x.array.ndim());
  return split_p.bind({x.array}, {{"axis", axis}, {"sizes", sizes}});
}
Array tile(Operand x, const Ints& reps) {
  const AtUser scope(x.at);
  return tile_p.bind1({x.array}, {{"reps", reps}});
}
Array pad(Operand x, Operand padding_value, const std::vector<PadDimension>& padding_config) {
  const AtUser scope(x.at);
  Padding config;
  for (const PadDimension& d : padding_config) config.push_back({d.low, d.high, d.interior});
  Array value = padding_value.array;
  if (content(value).number() && value.dtype() != x.array.dtype()) {
    value = convert(value, x.array.dtype());
  }
  return pad_p.bind1({x.array, value}, {{"padding_config", config}});
}

Array pad_in_rule(const Array& x, const Array& value, const std::vector<PadDimension>& config,
                  std::int64_t numpy) {
  Padding padding;
  for (const PadDimension& d : config) padding.push_back({d.low, d.high, d.interior});
  return pad_p.bind1({x, value}, {{"padding_config", padding}, {numpy_ints, numpy}});
}

}  // namespace lax
}  // namespace reprise
