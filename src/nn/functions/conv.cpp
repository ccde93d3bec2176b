// Convolution and pooling: windows that move over the spatial axes of (batch..., spatial...,
// features).
#include "nn/functions/axes.h"
#include "reprise/lax.h"
#include "reprise/nn_layers.h"
#include "reprise/ops_shape.h"

namespace reprise::nn {

Shape PerDimension::expanded(std::size_t rank) const {
  const auto* one = std::get_if<std::int64_t>(&value_);
  return one ? Shape(rank, *one) : std::get<Shape>(value_);
}

namespace {

using Pads = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Widths given as numbers; nothing for names.
std::optional<Pads> explicit_pads(const char* op, const Padding& padding, std::size_t rank) {
  if (std::holds_alternative<std::string>(padding.value())) return std::nullopt;
  if (const auto* all = std::get_if<Padding::Sides>(&padding.value())) {
    return Pads(rank, {all->low, all->high});
  }
  const auto& each = std::get<std::vector<Padding::Sides>>(padding.value());
  if (each.size() != rank) {
    fail<TypeError>(op, ": the padding needs one entry for each of the ", rank,
                    " dimensions of the window, got ", each.size());
  }
  Pads pads;
  for (const Padding::Sides& s : each) pads.emplace_back(s.low, s.high);
  return pads;
}

Shape per_dimension(const char* op, const char* what, const PerDimension& value, std::size_t rank) {
  Shape out = value.expanded(rank);
  if (out.size() != rank) {
    fail<TypeError>(op, ": ", what, " needs one number for each of the ", rank,
                    " dimensions of the window, got ", out.size());
  }
  for (const std::int64_t n : out) {
    if (n < 1) fail<TypeError>(op, ": ", what, " must be at least 1, got ", n);
  }
  return out;
}

// A border of x itself, from the other end (wrap) or mirrored without the edge (reflect).
Array pad_periodic(const Array& x, std::int64_t axis, std::int64_t before, std::int64_t after,
                   bool reflect) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  if (before + after == 0) return x;
  if (size == 0)
    fail<TypeError>("conv: an empty axis cannot be padded with itself, got ", x.type());
  const std::int64_t period = reflect ? std::max<std::int64_t>(1, 2 * (size - 1)) : size;
  std::vector<std::int32_t> from;
  for (std::int64_t i = -before; i < size + after; ++i) {
    std::int64_t at = ((i % period) + period) % period;
    if (reflect && at >= size) at = period - at;
    from.push_back(static_cast<std::int32_t>(at));
  }
  return take(x, array(from), axis, {.mode = IndexMode::clip});
}

struct PaddedInput {
  Array x;
  Pads pads;
};
PaddedInput pad_input(const Array& x, const Padding& padding, const Shape& window,
                      const Shape& strides, const Shape& dilation) {
  const std::size_t rank = window.size();
  if (auto pads = explicit_pads("conv", padding, rank)) return {x, *pads};
  const auto& name = std::get<std::string>(padding.value());
  Shape dilated, sizes(x.shape().begin() + 1, x.shape().end() - 1);
  for (std::size_t i = 0; i < rank; ++i) dilated.push_back((window[i] - 1) * dilation[i] + 1);
  if (name == "CIRCULAR" || name == "REFLECT") {
    Array wide = x;
    for (std::size_t i = 0; i < rank; ++i) {
      wide = pad_periodic(wide, static_cast<std::int64_t>(i) + 1, (dilated[i] - 1) / 2,
                          dilated[i] / 2, name == "REFLECT");
    }
    return {wide, Pads(rank)};
  }
  if (name == "CAUSAL") {
    if (rank != 1)
      fail<TypeError>("conv: CAUSAL padding is for windows of one dimension, got ", rank);
    return {x, {{dilated[0] - 1, 0}}};
  }
  if (name == "SAME" || name == "VALID" || name == "SAME_LOWER") {
    return {x, lax::padtype_to_pads(sizes, dilated, strides, name)};
  }
  fail<TypeError>(
      "conv: the padding must be SAME, VALID, CIRCULAR, REFLECT, CAUSAL or numbers, got '", name,
      "'");
}

// Batch and features around the spatial axes: x is N...C, the kernel ...IO.
lax::ConvDimensionNumbers channels_last(std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  lax::ConvDimensionNumbers out{{0, n + 1}, {n + 1, n}, {0, n + 1}};
  for (std::int64_t i = 0; i < n; ++i) {
    out.lhs_spec.push_back(i + 1);
    out.rhs_spec.push_back(i);
    out.out_spec.push_back(i + 1);
  }
  return out;
}

void check_kernel(const Array& x, const Array& kernel, std::int64_t groups) {
  if (kernel.ndim() < 3 || x.ndim() < kernel.ndim() - 1) {
    fail<TypeError>(
        "conv: needs an input (batch..., spatial..., in) and a kernel (window..., in, out), got ",
        x.type(), " and ", kernel.type());
  }
  if (groups < 1) fail<TypeError>("conv: feature_group_count must be at least 1, got ", groups);
  if (kernel.shape(-2) * groups != x.shape(-1)) {
    fail<TypeError>("conv: the kernel does not fit the features of the input, got ", kernel.type(),
                    " in ", groups, " group(s) for ", x.type());
  }
}

}  // namespace

Array conv(Operand x, const Array& kernel, const OptionalArray& bias, const ConvOptions& options) {
  const AtUser at(x.at);
  check_kernel(x.array, kernel, options.feature_group_count);
  const auto rank = static_cast<std::size_t>(kernel.ndim()) - 2;
  const Shape window(kernel.shape().begin(), kernel.shape().end() - 2);
  const Shape strides = per_dimension("conv", "strides", options.strides, rank);
  const Shape input_dilation =
      per_dimension("conv", "input_dilation", options.input_dilation, rank);
  const Shape dilation = per_dimension("conv", "kernel_dilation", options.kernel_dilation, rank);
  const Shape& shape = x.array.shape();
  const auto batch_rank = static_cast<std::ptrdiff_t>(shape.size() - rank - 1);
  Shape one_batch(shape.begin() + batch_rank, shape.end());
  one_batch.insert(one_batch.begin(), product(shape, 0, static_cast<std::size_t>(batch_rank)));
  const Array flat = batch_rank == 1 ? x.array : reshape(x.array, one_batch);
  const bool dilates =
      std::any_of(input_dilation.begin(), input_dilation.end(), [](auto d) { return d != 1; });
  if (dilates && std::holds_alternative<std::string>(options.padding.value())) {
    fail<TypeError>("conv: with input_dilation the padding must be numbers, got '",
                    std::get<std::string>(options.padding.value()), "'");
  }
  const PaddedInput padded = pad_input(flat, options.padding, window, strides, dilation);
  const Arrays in = promote_dtype({padded.x, kernel, bias.value_or(Array())}, options.dtype);
  Array y = lax::conv_general_dilated(in[0], in[1],
                                      {.window_strides = strides,
                                       .padding = padded.pads,
                                       .lhs_dilation = input_dilation,
                                       .rhs_dilation = dilation,
                                       .dimension_numbers = channels_last(rank),
                                       .feature_group_count = options.feature_group_count});
  if (bias) {
    Shape spread(rank + 1, 1);
    spread.push_back(-1);
    const Array row = reshape(in[2], spread);
    y = y + row;
  }
  if (batch_rank == 1) return y;
  Shape out(shape.begin(), shape.begin() + batch_rank);
  out.insert(out.end(), y.shape().begin() + 1, y.shape().end());
  return reshape(y, out);
}

// ----------------------------------------------------------------------------------------- pooling
Array pool(Operand x, Pooling kind, const Shape& window_shape, const std::optional<Shape>& strides,
           const Padding& padding) {
  const AtUser at(x.at);
  const std::size_t rank = window_shape.size();
  const std::int64_t batch_rank = x.array.ndim() - static_cast<std::int64_t>(rank) - 1;
  if (batch_rank < 0) {
    fail<TypeError>("pool: needs an input (batch..., spatial..., features) for a window of ", rank,
                    " dimensions, got ", x.array.type());
  }
  const Shape steps = per_dimension("pool", "strides", strides.value_or(Shape(rank, 1)), rank);
  const Shape window = per_dimension("pool", "window_shape", window_shape, rank);
  lax::WindowDimensions dims;
  const auto leading = static_cast<std::size_t>(batch_rank);
  auto around = [&](const Shape& inner) {
    Shape out(leading, 1);
    out.insert(out.end(), inner.begin(), inner.end());
    out.push_back(1);
    return out;
  };
  dims.window_dimensions = around(window);
  dims.window_strides = around(steps);
  if (auto pads = explicit_pads("pool", padding, rank)) {
    dims.padding.resize(leading);
    dims.padding.insert(dims.padding.end(), pads->begin(), pads->end());
    dims.padding.emplace_back(0, 0);
  } else {
    const auto& name = std::get<std::string>(padding.value());
    if (name != "SAME" && name != "VALID" && name != "SAME_LOWER") {
      fail<TypeError>("pool: the padding must be SAME, VALID or numbers, got '", name, "'");
    }
    dims.padding =
        lax::padtype_to_pads(x.array.shape(), dims.window_dimensions, dims.window_strides, name);
  }
  switch (kind) {
    case Pooling::sum: return lax::reduce_window_sum(x, dims);
    case Pooling::max: return lax::reduce_window_max(x, dims);
    case Pooling::min: return lax::reduce_window_min(x, dims);
  }
  fail<TypeError>("pool: unknown kind ", static_cast<int>(kind));
}

Array avg_pool(Operand x, const Shape& window_shape, const std::optional<Shape>& strides,
               const Padding& padding, bool count_include_pad) {
  const AtUser at(x.at);
  const Array total = pool(x, Pooling::sum, window_shape, strides, padding);
  if (count_include_pad) return total / product(window_shape, 0, window_shape.size());
  Shape counted(x.array.shape().begin(), x.array.shape().end() - 1);
  counted.push_back(1);
  if (counted.size() == window_shape.size() + 2) counted[0] = 1;
  const Array count = pool(ones(counted), Pooling::sum, window_shape, strides, padding);
  return total / count;
}

Array max_pool(Operand x, const Shape& window_shape, const std::optional<Shape>& strides,
               const Padding& padding) {
  return pool(std::move(x), Pooling::max, window_shape, strides, padding);
}

Array min_pool(Operand x, const Shape& window_shape, const std::optional<Shape>& strides,
               const Padding& padding) {
  return pool(std::move(x), Pooling::min, window_shape, strides, padding);
}

}  // namespace reprise::nn
