// conv_general_dilated: convolutions with strides, padding, dilations and groups.
//
//   out[n, o, s] = sum over i, w of lhs[n, i, s * stride + w * rhs_dilation - low] * rhs[o, i, w]
#include "ops/conv.h"

#include "ops/reduce.h"
#include "ops/shape.h"

#include <cctype>
#include <cstdlib>
#include <limits>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

using Layout = lax::ConvDimensionNumbers;

// ------------------------------------------------------------------------------------------ types
constexpr const char* op = "conv_general_dilated";

void check_spec(const char* what, const Ints& spec, const Type& type) {
  if (static_cast<std::int64_t>(spec.size()) != type.ndim()) {
    fail<TypeError>(op, ": ", what, " must name every axis of ", type, ", got ",
                    python_tuple(spec));
  }
  check_axes(op, what, spec, type);
}
void check_values(const Conv& c, std::size_t n) {
  check_window_values(op, "window_strides", c.strides, n, 1);
  check_window_values(op, "lhs_dilation", c.lhs_dilation, n, 1);
  check_window_values(op, "rhs_dilation", c.rhs_dilation, n, 1);
  Ints low, high;
  for (const auto& [l, h] : c.padding) {
    low.push_back(l);
    high.push_back(h);
  }
  constexpr std::int64_t smallest = std::numeric_limits<std::int32_t>::min();
  check_window_values(op, "padding", low, n, smallest);
  check_window_values(op, "padding", high, n, smallest);
}
void check_groups(const Conv& c, const Type& lhs, const Type& rhs) {
  const std::int64_t features = size_at(lhs.shape, c.layout.lhs_spec[1]);
  const std::int64_t inputs = size_at(rhs.shape, c.layout.rhs_spec[1]);
  const std::int64_t outputs = size_at(rhs.shape, c.layout.rhs_spec[0]);
  const std::int64_t batch = size_at(lhs.shape, c.layout.lhs_spec[0]);
  if (c.feature_groups < 1 || c.batch_groups < 1 || (c.feature_groups > 1 && c.batch_groups > 1)) {
    fail<TypeError>(op, ": group counts must be positive and one of them 1, got ",
                    "feature_group_count=", c.feature_groups,
                    " and batch_group_count=", c.batch_groups);
  }
  if (features % c.feature_groups != 0 || features / c.feature_groups != inputs) {
    fail<TypeError>(op, ": lhs features must be rhs input features times feature_group_count, got ",
                    features, " and ", inputs, " times ", c.feature_groups, "\n  lhs ", lhs,
                    ", rhs ", rhs);
  }
  if (outputs % c.feature_groups != 0 || outputs % c.batch_groups != 0 ||
      batch % c.batch_groups != 0) {
    fail<TypeError>(op, ": groups must divide the rhs output features and the lhs batch, got ",
                    c.feature_groups, " feature groups and ", c.batch_groups, " batch groups for ",
                    outputs, " features and a batch of ", batch);
  }
}
void check_preferred(const Conv& c, Dtype dtype) {
  if (!c.preferred || *c.preferred == dtype) return;
  if (is_floating(dtype) != is_floating(*c.preferred) || itemsize(*c.preferred) < itemsize(dtype)) {
    fail<TypeError>(op, ": preferred_element_type must be of the same kind and not narrower, got ",
                    *c.preferred, " for ", dtype);
  }
}

Types conv_type(const Types& in, const Params& params) {
  expect_operands(op, in, 2);
  const Type &lhs = in[0], &rhs = in[1];
  const Conv c(params);
  if (lhs.ndim() != rhs.ndim() || lhs.ndim() < 2) {
    fail<TypeError>(op, ": operands need equal ranks of at least 2, got ", lhs, " and ", rhs);
  }
  if (lhs.dtype != rhs.dtype) fail<TypeError>(op, ": dtypes differ, got ", lhs, " and ", rhs);
  visit_dtype(lhs.dtype, [](auto) {});  // a number
  check_preferred(c, lhs.dtype);
  check_spec("lhs_spec", c.layout.lhs_spec, lhs);
  check_spec("rhs_spec", c.layout.rhs_spec, rhs);
  check_spec("out_spec", c.layout.out_spec, lhs);
  check_values(c, lhs.shape.size() - 2);
  check_groups(c, lhs, rhs);
  Shape canonical{size_at(lhs.shape, c.layout.lhs_spec[0]) / c.batch_groups,
                  size_at(rhs.shape, c.layout.rhs_spec[0])};
  for (const WindowAxis& a : c.axes(lhs.shape, rhs.shape)) {
    if (a.padded() < 0) {
      fail<TypeError>(op, ": negative padding must leave something of the axis, got (", a.low, ", ",
                      a.high, ") for size ", a.in, "\n  lhs ", lhs);
    }
    canonical.push_back(a.out());
  }
  return {Type{c.preferred.value_or(lhs.dtype),
               sizes_at(canonical, inverse_permutation(c.layout.out_spec)),
               lhs.weak_type && rhs.weak_type}};
}

// ------------------------------------------------------------------------------------ derivatives
Tangents conv_tangent(const Arrays& x, const Tangents& dx, const Arrays&, const Params& params) {
  Tangent a, b;
  if (dx[0]) a = conv_general_dilated_p.bind1({*dx[0], x[1]}, params);
  if (dx[1]) b = conv_general_dilated_p.bind1({x[0], *dx[1]}, params);
  return {add_tangents(a, b)};
}

// Moves the axis `from` in front of the axis `into` (counted without it) and merges the two.
Array merge_axis(const Array& x, std::int64_t from, std::int64_t into) {
  Ints order = other_axes(x.ndim(), {from});
  Shape shape = sizes_at(x.shape(), order);
  order.insert(order.begin() + into, from);
  shape[static_cast<std::size_t>(into)] *= size_at(x.shape(), from);
  const Array moved = transpose(x, order);
  return reshape(moved, shape);
}
// Splits an axis into `size` and the rest.
Array split_axis(const Array& x, std::int64_t axis, std::int64_t size) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis)] /= size;
  shape.insert(shape.begin() + axis, size);
  return reshape(x, shape);
}
Array as_dtype(const Array& x, Dtype dtype) {
  return x.dtype() == dtype ? x : convert_element_type(x, dtype);
}
Ints swap_features(Ints spec) {
  std::swap(spec[0], spec[1]);
  return spec;
}

// The cotangent slides under the reversed kernel; strides become holes.
Array lhs_cotangent(const Array& ct, const Type& lhs, Array rhs, Conv c) {
  const Layout l = c.layout;
  const std::int64_t groups = c.feature_groups * c.batch_groups, batch_groups = c.batch_groups;
  c.padding = transposed_padding(c.axes(lhs.shape, rhs.shape()));
  if (groups > 1) {
    rhs = split_axis(rhs, l.rhs_spec[0], groups);
    rhs = merge_axis(rhs, l.rhs_spec[0], l.rhs_spec[1]);
  }
  rhs = rev(rhs, spatial(l.rhs_spec));
  rhs = as_dtype(rhs, ct.dtype());
  c.layout = {l.out_spec, swap_features(l.rhs_spec), l.lhs_spec};
  std::swap(c.strides, c.lhs_dilation);
  c.feature_groups = groups;
  c.batch_groups = 1;
  Array out = as_dtype(c(ct, rhs), lhs.dtype);
  if (batch_groups > 1) {
    out = split_axis(out, l.lhs_spec[1], batch_groups);
    out = merge_axis(out, l.lhs_spec[1], l.lhs_spec[0]);
  }
  return out;
}
// The cotangent, with holes, is a kernel that slides over the left operand.
Array rhs_cotangent(const Array& ct, const Array& lhs, const Type& rhs, Conv c) {
  const WindowAxes axes = c.axes(lhs.shape(), rhs.shape);
  for (std::size_t s = 0; s < axes.size(); ++s) {
    const WindowAxis& a = axes[s];
    c.padding[s].second = dilated(a.out(), a.stride) - dilated(a.in, a.base_dilation) +
                          dilated(a.window, a.window_dilation) - a.low - 1;
  }
  const Layout l = c.layout;
  c.layout = {swap_features(l.lhs_spec), swap_features(l.out_spec), swap_features(l.rhs_spec)};
  std::swap(c.strides, c.rhs_dilation);
  std::swap(c.feature_groups, c.batch_groups);
  return as_dtype(c(as_dtype(lhs, ct.dtype()), ct), rhs.dtype);
}
Tangents conv_transpose(const Tangents& ct, const Primals& x, const Types& in,
                        const Params& params) {
  if (!x[0] && !x[1]) fail<RuleError>(op, ": not linear, got two linear operands");
  const Conv c(params);
  if (!x[0]) return {lhs_cotangent(*ct[0], in[0], *x[1], c), std::nullopt};
  if (ct[0]->size() == 0) return Tangents(2);
  return {std::nullopt, rhs_cotangent(*ct[0], *x[0], in[1], c)};
}

// --------------------------------------------------------------------------------------- batching
// x has the mapped axis at `at` and groups in front of its axis `axis`: the mapped axis goes
// between the groups and the rest.
Array merge_within_groups(const Array& x, std::int64_t at, std::int64_t axis, std::int64_t groups) {
  Array out = split_axis(x, axis + (at <= axis ? 1 : 0), groups);
  out = merge_axis(out, at + (axis < at ? 1 : 0), axis + 1);
  return merge_axis(out, axis, axis);
}

Batched batch_both(const Arrays& x, const Axes& axes, std::int64_t n, Conv c) {
  const bool by_batch = c.batch_groups > 1;
  const Array lhs = merge_axis(x[0], *axes[0], c.layout.lhs_spec[by_batch ? 0 : 1]);
  (by_batch ? c.batch_groups : c.feature_groups) *= n;
  const Array rhs = merge_axis(x[1], *axes[1], c.layout.rhs_spec[0]);
  const std::int64_t feature = c.layout.out_spec[1];
  const Array out = c(lhs, rhs);
  return {{split_axis(out, feature, n)}, {feature}};
}
Batched batch_lhs(const Arrays& x, std::int64_t at, std::int64_t n, const Conv& c) {
  const std::int64_t batch = c.layout.lhs_spec[0];
  const Array lhs = c.batch_groups == 1 ? merge_axis(x[0], at, batch)
                                        : merge_within_groups(x[0], at, batch, c.batch_groups);
  const Array out = c(lhs, x[1]);
  return {{split_axis(out, c.layout.out_spec[0], n)}, {c.layout.out_spec[0]}};
}
Batched batch_rhs(const Arrays& x, std::int64_t at, std::int64_t n, const Conv& c) {
  const std::int64_t outputs = c.layout.rhs_spec[0], feature = c.layout.out_spec[1];
  const std::int64_t groups = c.feature_groups * c.batch_groups;
  if (groups == 1) {
    const Array rhs = merge_axis(x[1], at, outputs);
    const Array out = c(x[0], rhs);
    return {{split_axis(out, feature, n)}, {feature}};
  }
  const Array rhs = merge_within_groups(x[1], at, outputs, groups);
  Array out = c(x[0], rhs);
  out = split_axis(out, feature, groups);
  out = split_axis(out, feature + 1, n);
  return {{merge_axis(out, feature, feature + 1)}, {feature}};
}
Batched conv_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                   const Params& params) {
  if (n == 0) {  // no groups of zero elements: say the result
    Types in;
    for (std::size_t i = 0; i < 2; ++i) {
      in.push_back(x[i].type());
      if (axes[i]) in[i].shape.erase(in[i].shape.begin() + *axes[i]);
    }
    Type out = conv_type(in, params)[0];
    out.shape.insert(out.shape.begin(), 0);
    return {{zeros(out)}, {0}};
  }
  const Conv c(params);
  if (axes[0] && axes[1]) return batch_both(x, axes, n, c);
  return axes[0] ? batch_lhs(x, *axes[0], n, c) : batch_rhs(x, *axes[1], n, c);
}

// ---------------------------------------------------------------------------------------- parsing
// The numbers of "name=(1, 2)" in a text.
Ints ints_after(const std::string& text, const std::string& name) {
  Ints out;
  std::size_t at = text.find(name + "=(");
  if (at == std::string::npos)
    fail<TypeError>(op, ": dimension_numbers need ", name, ", got ", text);
  for (at += name.size() + 2; at < text.size() && text[at] != ')';) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      ++at;
      continue;
    }
    std::size_t length = 0;
    while (at + length < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[at + length])) != 0) {
      ++length;
    }
    out.push_back(std::strtoll(text.c_str() + at, nullptr, 10));
    at += length;
  }
  return out;
}
Params conv_parsed(const Params& printed, const Types&, const Types&) {
  const auto& text = printed.get<std::string>("dimension_numbers");
  Layout layout;
  layout.lhs_spec = ints_after(text, "lhs_spec");
  layout.rhs_spec = ints_after(text, "rhs_spec");
  layout.out_spec = ints_after(text, "out_spec");
  const auto param = std::make_shared<const LayoutParam>(layout);
  return Conv(printed.with("dimension_numbers", param)).params();
}

constexpr ParamRule conv_rules[] = {{"batch_group_count", form::integer, "1"},
                                    {"dimension_numbers", form::object},
                                    {"feature_group_count", form::integer, "1"},
                                    {"lhs_dilation", form::ints},
                                    {"out_sharding", form::none, "None"},
                                    {"padding", form::rows},
                                    {"precision", form::none | form::text, "None"},
                                    {"preferred_element_type", form::none | form::dtype, "None"},
                                    {"rhs_dilation", form::ints},
                                    {"window_strides", form::ints}};

}  // namespace

constinit const Primitive conv_general_dilated_p{.name = "conv_general_dilated",
                                                 .kind = Kind::conv,
                                                 .type = conv_type,
                                                 .eval = conv_eval,
                                                 .tangent = conv_tangent,
                                                 .transpose = conv_transpose,
                                                 .batch = conv_batch,
                                                 .param_rules = conv_rules,
                                                 .parsed_params = conv_parsed};

namespace lax {

Array conv_general_dilated(Operand lhs, Operand rhs, const ConvOptions& options) {
  const AtUser at(rhs.at.line > lhs.at.line ? rhs.at : lhs.at);
  const std::int64_t ndim = lhs.array.ndim();
  const Ints in_order = iota_ints(ndim);
  Conv c(options, options.dimension_numbers.value_or(Layout{in_order, in_order, in_order}));
  const auto axes = static_cast<std::size_t>(std::max<std::int64_t>(0, ndim - 2));
  for (Ints* values : {&c.strides, &c.lhs_dilation, &c.rhs_dilation}) {
    if (values->empty()) values->assign(axes, 1);
  }
  if (c.padding.empty()) c.padding.resize(axes);
  return c(lhs.array, rhs.array);
}

namespace {
// Positions of the two named letters, then of the others in the order of `spatial_order`.
Ints positions(const std::string& spec, const char* letters, const std::string& spatial_order) {
  Ints out;
  const auto find = [&](char letter) {
    const std::size_t at = spec.find(letter);
    if (at == std::string::npos || spec.find(letter, at + 1) != std::string::npos) {
      fail<TypeError>("conv_dimension_numbers: the letter ", letter, " must stand once in ", spec);
    }
    out.push_back(static_cast<std::int64_t>(at));
  };
  find(letters[0]);
  find(letters[1]);
  for (char letter : spatial_order) find(letter);
  if (out.size() != spec.size()) {
    fail<TypeError>("conv_dimension_numbers: spatial letters differ, got ", spec, " and ",
                    spatial_order);
  }
  return out;
}
}  // namespace

ConvDimensionNumbers conv_dimension_numbers(const std::string& lhs, const std::string& rhs,
                                            const std::string& out) {
  std::string order;
  for (char letter : rhs) {
    if (letter != 'O' && letter != 'I') order.push_back(letter);
  }
  ConvDimensionNumbers numbers;
  numbers.lhs_spec = positions(lhs, "NC", order);
  numbers.rhs_spec = positions(rhs, "OI", order);
  numbers.out_spec = positions(out, "NC", order);
  return numbers;
}

Pads padtype_to_pads(const Shape& in_shape, const Ints& window_shape, const Ints& window_strides,
                     const std::string& padding) {
  const std::size_t n = in_shape.size();
  check_window_values("padtype_to_pads", "window_shape", window_shape, n, 0);
  check_window_values("padtype_to_pads", "window_strides", window_strides, n, 1);
  Pads pads(n);
  if (padding == "VALID") return pads;
  if (padding != "SAME" && padding != "SAME_LOWER") {
    fail<TypeError>("padtype_to_pads: padding must be SAME, SAME_LOWER or VALID, got ", padding);
  }
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t steps =
        in_shape[d] / window_strides[d] + (in_shape[d] % window_strides[d] != 0);
    const std::int64_t total =
        std::max<std::int64_t>(0, (steps - 1) * window_strides[d] + window_shape[d] - in_shape[d]);
    const std::int64_t less = total / 2;
    pads[d] = padding == "SAME" ? std::pair(less, total - less) : std::pair(total - less, less);
  }
  return pads;
}

}  // namespace lax

}  // namespace reprise
