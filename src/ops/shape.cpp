// Primitives that rearrange elements: broadcast, reshape, transpose, squeeze, reverse.
#include "ops/shape.h"

#include "ops/records.h"

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// ----------------------------------------------------------------------------------------- copies
template <std::size_t width>
void copy_row(const std::byte* from, std::byte* to, const Loop& row) {
  if (row.from == 1 && row.to == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(row.size) * width);
    return;
  }
  constexpr auto w = static_cast<std::int64_t>(width);
  for (std::int64_t i = 0; i < row.size; ++i) {
    std::memcpy(to + i * row.to * w, from + i * row.from * w, width);
  }
}
template <std::size_t width>
void copy_rows(const std::byte* from, std::byte* to, const std::vector<Loop>& loops) {
  constexpr auto w = static_cast<std::int64_t>(width);
  for_each_row(loops, [&](std::int64_t f, std::int64_t t) {
    copy_row<width>(from + f * w, to + t * w, loops.back());
  });
}

}  // namespace

std::vector<Loop> merged_loops(const Shape& from, const Shape& to, const Shape& sizes) {
  std::vector<Loop> loops;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    if (!loops.empty() && loops.back().from == from[d] * sizes[d] &&
        loops.back().to == to[d] * sizes[d]) {
      loops.back() = {loops.back().size * sizes[d], from[d], to[d]};
    } else {
      loops.push_back({sizes[d], from[d], to[d]});
    }
  }
  if (loops.empty()) loops.push_back({1, 1, 1});
  return loops;
}

void copy_loops(const std::byte* from, std::byte* to, const std::vector<Loop>& loops,
                std::size_t width) {
  switch (width) {
    case 1: return copy_rows<1>(from, to, loops);
    case 2: return copy_rows<2>(from, to, loops);
    case 4: return copy_rows<4>(from, to, loops);
    case 8: return copy_rows<8>(from, to, loops);
    default: REPRISE_INVARIANT(width == 0);  // elements without content
  }
}
void copy_strided(const std::byte* from, const Shape& from_strides, std::byte* to,
                  const Shape& to_strides, const Shape& sizes, std::size_t width) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  copy_loops(from, to, merged_loops(from_strides, to_strides, sizes), width);
}
Array copy_box(const Array& x, std::int64_t offset, const Shape& strides, const Type& out) {
  NewArray result(out);
  const std::size_t width = itemsize(out.dtype);
  const std::byte* from = content(x).elements + offset * static_cast<std::int64_t>(width);
  copy_strided(from, strides, result.bytes(), row_major_strides(out.shape), out.shape, width);
  return std::move(result).finish();
}

void expect_operands(const char* op, const Types& in, std::size_t count) {
  if (in.size() == count) return;
  fail<TypeError>(op, ": ", count, count == 1 ? " operand is" : " operands are", " needed, got ",
                  in.size());
}
bool all_unique(Ints values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

Array mapped_in_front(const Array& x, const Axis& axis, std::int64_t n) {
  if (axis) return moveaxis(x, *axis, 0);
  Shape shape = x.shape();
  shape.insert(shape.begin(), n);
  Ints dims = iota_ints(x.ndim());
  for (std::int64_t& d : dims) ++d;
  return broadcast_in_dim(x, shape, dims);
}
Ints skip_axis(Ints dims, std::int64_t axis) {
  for (std::int64_t& d : dims) d += d >= axis ? 1 : 0;
  return dims;
}

namespace {

Ints one_more(Ints dims) { return skip_axis(std::move(dims), 0); }

Type with_shape(Type t, Shape shape) {
  t.shape = std::move(shape);
  return t;
}
bool within(const Ints& dims, std::int64_t ndim) {
  return std::all_of(dims.begin(), dims.end(), [&](std::int64_t d) { return 0 <= d && d < ndim; });
}
bool is_iota(const Ints& dims, std::int64_t n) { return dims == iota_ints(n); }

// Shares the elements under another shape.
Arrays eval_same_elements(const Arrays& x, const Params&, const Types& out) {
  return {with_type(x[0], out[0])};
}

// ------------------------------------------------------------------------------- broadcast_in_dim
Types broadcast_type(const Types& in, const Params& params) {
  constexpr const char* op = "broadcast_in_dim";
  expect_operands(op, in, 1);
  const auto& shape = params.get<Ints>("shape");
  const auto& dims = params.get<Ints>("broadcast_dimensions");
  const Type& x = in[0];
  for (std::int64_t d : shape) {
    if (d < 0) fail<TypeError>(op, ": sizes must not be negative, got shape ", to_string(shape));
  }
  if (dims.size() != x.shape.size()) {
    fail<TypeError>(op, ": broadcast_dimensions must name one dimension of the result for each of ",
                    x, ", got ", python_tuple(dims));
  }
  if (!within(dims, static_cast<std::int64_t>(shape.size())) || !all_unique(dims)) {
    fail<TypeError>(op, ": broadcast_dimensions must be different dimensions of the shape ",
                    to_string(shape), ", got ", python_tuple(dims));
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (x.shape[i] == 1 || x.shape[i] == shape[at(dims[i])]) continue;
    fail<TypeError>(op, ": a dimension must be 1 or have the size of the result, got ", x,
                    " for the shape ", to_string(shape), " with broadcast_dimensions ",
                    python_tuple(dims));
  }
  return {with_shape(x, shape)};
}

Arrays broadcast_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto& dims = params.get<Ints>("broadcast_dimensions");
  const Shape strides = row_major_strides(x[0].shape());
  Shape from(out[0].shape.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (x[0].shape()[i] != 1) from[at(dims[i])] = strides[i];
  }
  return {copy_box(x[0], 0, from, out[0])};
}

// Sums the new and the stretched dimensions, then puts those of size 1 back.
Tangents broadcast_transpose(const Tangents& ct, const Primals&, const Types& in,
                             const Params& params) {
  const auto& dims = params.get<Ints>("broadcast_dimensions");
  Ints unit_dims, kept;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (in[0].shape[i] == 1)
      unit_dims.push_back(static_cast<std::int64_t>(i));
    else
      kept.push_back(dims[i]);
  }
  Ints summed;
  for (std::int64_t d = 0; d < ct[0]->ndim(); ++d) {
    if (std::find(kept.begin(), kept.end(), d) == kept.end()) summed.push_back(d);
  }
  Array c = *ct[0];
  if (!summed.empty()) c = reduce_sum(c, summed);
  Ints sorted = kept, order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t d : kept) {
    order.push_back(std::lower_bound(sorted.begin(), sorted.end(), d) - sorted.begin());
  }
  c = transpose(c, order);
  return {expand_dims(c, unit_dims)};
}

Batched broadcast_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                        const Params& params) {
  Shape shape = params.get<Ints>("shape");
  shape.insert(shape.begin(), n);
  Ints dims = one_more(params.get<Ints>("broadcast_dimensions"));
  dims.insert(dims.begin(), 0);
  const Array moved = moveaxis(x[0], *axes[0], 0);
  return {{broadcast_in_dim(moved, shape, dims)}, {0}};
}

std::vector<Param> broadcast_printed(const Params& params) {
  const auto& dims = params.get<Ints>("broadcast_dimensions");
  if (dims.empty()) return {};
  return {{"broadcast_dimensions", dims}};
}
Params broadcast_parsed(const Params& printed, const Types&, const Types& out) {
  const Attr* dims = printed.find("broadcast_dimensions");
  return {{"broadcast_dimensions", dims != nullptr ? *dims : Attr(Ints{})},
          {"shape", out.empty() ? Ints{} : out[0].shape}};
}

// ---------------------------------------------------------------------------------------- reshape
Types reshape_type(const Types& in, const Params& params) {
  expect_operands("reshape", in, 1);
  const auto& sizes = params.get<Ints>("new_sizes");
  const bool valid = std::all_of(sizes.begin(), sizes.end(), [](std::int64_t d) { return d >= 0; });
  if (!valid || element_count(sizes) != in[0].size()) {
    fail<TypeError>("reshape: the number of elements must stay the same, got ", in[0],
                    " for the shape ", to_string(sizes));
  }
  const Attr* dims = params.find("dimensions");
  if (dims != nullptr && !std::holds_alternative<None>(*dims)) {
    fail<TypeError>("reshape: dimensions must be None, got ", python_text(*dims));
  }
  return {with_shape(in[0], sizes)};
}
Tangents reshape_transpose(const Tangents& ct, const Primals&, const Types& in, const Params&) {
  return {reshape(*ct[0], in[0].shape)};
}
Batched reshape_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                      const Params& params) {
  const Array moved = moveaxis(x[0], *axes[0], 0);
  Shape sizes = params.get<Ints>("new_sizes");
  sizes.insert(sizes.begin(), n);
  return {{reshape(moved, sizes)}, {0}};
}

// -------------------------------------------------------------------------------------- transpose
Types transpose_type(const Types& in, const Params& params) {
  expect_operands("transpose", in, 1);
  const auto& permutation = params.get<Ints>("permutation");
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (!is_iota(sorted, in[0].ndim())) {
    fail<TypeError>("transpose: permutation must list every dimension of ", in[0], " once, got ",
                    python_tuple(permutation));
  }
  Shape shape;
  for (std::int64_t d : permutation) shape.push_back(in[0].shape[at(d)]);
  return {with_shape(in[0], std::move(shape))};
}
Arrays transpose_eval(const Arrays& x, const Params& params, const Types& out) {
  const Shape strides = row_major_strides(x[0].shape());
  Shape from;
  for (std::int64_t d : params.get<Ints>("permutation")) from.push_back(strides[at(d)]);
  return {copy_box(x[0], 0, from, out[0])};
}
Tangents transpose_transpose(const Tangents& ct, const Primals&, const Types&,
                             const Params& params) {
  const auto& permutation = params.get<Ints>("permutation");
  Ints inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[at(permutation[i])] = static_cast<std::int64_t>(i);
  }
  return {transpose(*ct[0], inverse)};
}
Batched transpose_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                        const Params& params) {
  Ints permutation = skip_axis(params.get<Ints>("permutation"), *axes[0]);
  permutation.insert(permutation.begin(), *axes[0]);
  return {{transpose(x[0], permutation)}, {0}};
}

// ---------------------------------------------------------------------------------------- squeeze
Types squeeze_type(const Types& in, const Params& params) {
  expect_operands("squeeze", in, 1);
  const auto& dims = params.get<Ints>("dimensions");
  const Type& x = in[0];
  if (!within(dims, x.ndim()) || !all_unique(dims)) {
    fail<TypeError>("squeeze: dimensions must be different dimensions of ", x, ", got ",
                    python_tuple(dims));
  }
  Shape shape;
  for (std::int64_t d = 0; d < x.ndim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      shape.push_back(x.shape[at(d)]);
    } else if (x.shape[at(d)] != 1) {
      fail<TypeError>("squeeze: only dimensions of size 1 can go, got dimension ", d, " of ", x);
    }
  }
  return {with_shape(x, std::move(shape))};
}
Tangents squeeze_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {expand_dims(*ct[0], params.get<Ints>("dimensions"))};
}
Batched squeeze_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                      const Params& params) {
  const Array moved = moveaxis(x[0], *axes[0], 0);
  return {{squeeze(moved, one_more(params.get<Ints>("dimensions")))}, {0}};
}

// -------------------------------------------------------------------------------------------- rev
Types rev_type(const Types& in, const Params& params) {
  expect_operands("rev", in, 1);
  const auto& dims = params.get<Ints>("dimensions");
  if (!within(dims, in[0].ndim()) || !all_unique(dims)) {
    fail<TypeError>("rev: dimensions must be different dimensions of ", in[0], ", got ",
                    python_tuple(dims));
  }
  return {in[0]};
}
Arrays rev_eval(const Arrays& x, const Params& params, const Types& out) {
  if (out[0].size() == 0) return {x[0]};
  Shape from = row_major_strides(x[0].shape());
  std::int64_t offset = 0;
  for (std::int64_t d : params.get<Ints>("dimensions")) {
    offset += (x[0].shape()[at(d)] - 1) * from[at(d)];
    from[at(d)] = -from[at(d)];
  }
  return {copy_box(x[0], offset, from, out[0])};
}
Tangents rev_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {rev(*ct[0], params.get<Ints>("dimensions"))};
}
Batched rev_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                  const Params& params) {
  return {{rev(x[0], skip_axis(params.get<Ints>("dimensions"), *axes[0]))}, {axes[0]}};
}

constexpr ParamRule broadcast_rules[] = {{"broadcast_dimensions", form::ints, "()"},
                                         {"shape", form::ints, completed},
                                         {"sharding", form::none, unused}};
// The dimensions of the operand in another order first: JAX's reshape of order "F".
Types permuted_reshape_type(const Types& in, const Params& params) {
  expect_operands("reshape", in, 1);
  const auto& dims = params.get<Ints>("dimensions");
  if (!within(dims, in[0].ndim()) || !all_unique(dims) || dims.size() != in[0].shape.size()) {
    fail<TypeError>("reshape: dimensions must name every dimension of ", in[0], " once, got ",
                    python_tuple(dims));
  }
  return reshape_type(in, params.with("dimensions", None{}));
}
Array permuted_reshape(const Array& x, const Params& params) {
  const Array turned = transpose(x, params.get<Ints>("dimensions"));
  return reshape(turned, params.get<Ints>("new_sizes"));
}
Arrays permuted_reshape_eval(const Arrays& x, const Params& params, const Types&) {
  return {permuted_reshape(x[0], params)};
}
Tangents permuted_reshape_transpose(const Tangents& ct, const Primals&, const Types& in,
                                    const Params& params) {
  const auto& dims = params.get<Ints>("dimensions");
  Shape turned;
  Ints back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    turned.push_back(in[0].shape[at(dims[i])]);
    back[at(dims[i])] = static_cast<std::int64_t>(i);
  }
  const Array ct_turned = reshape(*ct[0], turned);
  return {transpose(ct_turned, back)};
}
Batched permuted_reshape_batch(const Primitive& self, const Arrays& x, const Axes& axes,
                               std::int64_t n, const Params& params) {
  const Array moved = moveaxis(x[0], *axes[0], 0);
  Ints dims = one_more(params.get<Ints>("dimensions")), sizes = params.get<Ints>("new_sizes");
  dims.insert(dims.begin(), 0);
  sizes.insert(sizes.begin(), n);
  return {self.bind({moved}, params.with("dimensions", dims).with("new_sizes", sizes)), {0}};
}
const Primitive* reshape_parsed_as(const Params& params) {
  return std::holds_alternative<Ints>(*params.find("dimensions")) ? &permuted_reshape_p
                                                                  : &reshape_p;
}

constexpr ParamRule reshape_rules[] = {{"dimensions", form::none | form::ints, "None"},
                                       {"new_sizes", form::ints},
                                       {"sharding", form::none, "None"}};
constexpr ParamRule transpose_rules[] = {{"permutation", form::ints}};
constexpr ParamRule dimensions_rules[] = {{"dimensions", form::ints}};

}  // namespace

constinit const Primitive broadcast_in_dim_p{.name = "broadcast_in_dim",
                                             .kind = Kind::shape,
                                             .type = broadcast_type,
                                             .eval = broadcast_eval,
                                             .tangent = linear_tangent<broadcast_in_dim_p>,
                                             .transpose = broadcast_transpose,
                                             .batch = broadcast_batch,
                                             .printed_params = broadcast_printed,
                                             .param_rules = broadcast_rules,
                                             .parsed_params = broadcast_parsed};
constinit const Primitive reshape_p{.name = "reshape",
                                    .kind = Kind::shape,
                                    .type = reshape_type,
                                    .eval = eval_same_elements,
                                    .tangent = linear_tangent<reshape_p>,
                                    .transpose = reshape_transpose,
                                    .batch = reshape_batch,
                                    .param_rules = reshape_rules,
                                    .parsed_as = reshape_parsed_as};
constinit const Primitive permuted_reshape_p{.name = "reshape",
                                             .kind = Kind::shape,
                                             .type = permuted_reshape_type,
                                             .eval = permuted_reshape_eval,
                                             .tangent = linear_tangent<permuted_reshape_p>,
                                             .transpose = permuted_reshape_transpose,
                                             .batch = permuted_reshape_batch,
                                             .param_rules = reshape_rules};
constinit const Primitive transpose_p{.name = "transpose",
                                      .kind = Kind::shape,
                                      .type = transpose_type,
                                      .eval = transpose_eval,
                                      .tangent = linear_tangent<transpose_p>,
                                      .transpose = transpose_transpose,
                                      .batch = transpose_batch,
                                      .param_rules = transpose_rules};
constinit const Primitive squeeze_p{.name = "squeeze",
                                    .kind = Kind::shape,
                                    .type = squeeze_type,
                                    .eval = eval_same_elements,
                                    .tangent = linear_tangent<squeeze_p>,
                                    .transpose = squeeze_transpose,
                                    .batch = squeeze_batch,
                                    .param_rules = dimensions_rules};
constinit const Primitive rev_p{.name = "rev",
                                .kind = Kind::shape,
                                .type = rev_type,
                                .eval = rev_eval,
                                .tangent = linear_tangent<rev_p>,
                                .transpose = rev_transpose,
                                .batch = rev_batch,
                                .param_rules = dimensions_rules};

namespace lax {

Array broadcast_in_dim(Operand x, const Shape& shape, const Ints& broadcast_dimensions) {
  const AtUser at_user(x.at);
  if (x.array.shape() == shape && is_iota(broadcast_dimensions, x.array.ndim())) return x.array;
  return broadcast_in_dim_p.bind1(
      {x.array}, {{"broadcast_dimensions", broadcast_dimensions}, {"shape", shape}});
}
Array reshape(Operand x, const Shape& new_sizes) {
  const AtUser at_user(x.at);
  if (x.array.shape() == new_sizes && x.array.ndim() > 0) return x.array;
  return reshape_p.bind1({x.array},
                         {{"dimensions", None{}}, {"new_sizes", new_sizes}, {"sharding", None{}}});
}
Array transpose(Operand x, const Ints& permutation) {
  const AtUser at_user(x.at);
  if (is_iota(permutation, x.array.ndim())) return x.array;
  return transpose_p.bind1({x.array}, {{"permutation", permutation}});
}
Array squeeze(Operand x, const Ints& dimensions) {
  const AtUser at_user(x.at);
  Ints dims;
  for (std::int64_t d : dimensions) dims.push_back(canonical_axis("squeeze", d, x.array.ndim()));
  std::sort(dims.begin(), dims.end());
  if (dims.empty()) return x.array;
  return squeeze_p.bind1({x.array}, {{"dimensions", dims}});
}
Array expand_dims(Operand x, const Ints& dimensions) {
  const AtUser at_user(x.at);
  const std::int64_t ndim = x.array.ndim() + static_cast<std::int64_t>(dimensions.size());
  Ints added;
  for (std::int64_t d : dimensions) added.push_back(canonical_axis("expand_dims", d, ndim));
  if (!all_unique(added)) {
    fail<TypeError>("expand_dims: axes must be different, got ", python_tuple(dimensions));
  }
  Shape shape;
  Ints kept;
  for (std::int64_t d = 0; d < ndim; ++d) {
    if (std::find(added.begin(), added.end(), d) != added.end()) {
      shape.push_back(1);
    } else {
      shape.push_back(x.array.shape()[kept.size()]);
      kept.push_back(d);
    }
  }
  return broadcast_in_dim(x, shape, kept);
}
Array rev(Operand x, const Ints& dimensions) {
  const AtUser at_user(x.at);
  return rev_p.bind1({x.array}, {{"dimensions", dimensions}});
}

Array unbroadcast(const Type& t, const Array& ct) {
  if (t.shape == ct.shape()) return ct;
  if (t.shape.empty()) return reduce_sum(ct, iota_ints(ct.ndim()));
  Ints stretched;
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] != ct.shape()[d]) stretched.push_back(static_cast<std::int64_t>(d));
  }
  const Array sum = reduce_sum(ct, stretched);
  return reshape(sum, t.shape);
}
Array moveaxis(const Array& x, std::int64_t from, std::int64_t to) {
  Ints permutation = iota_ints(x.ndim());
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return transpose(x, permutation);
}
Ints iota_ints(std::int64_t n) {
  Ints out(at(n));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(i);
  return out;
}

}  // namespace lax
}  // namespace reprise
