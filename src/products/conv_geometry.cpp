#include "products/conv_geometry.h"

#include <algorithm>
#include <optional>

namespace reprise::codegen {
namespace {

using Ints = std::vector<std::int64_t>;

bool all_equal(const Ints& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [=](std::int64_t v) { return v == value; });
}

Ints joined(std::initializer_list<std::int64_t> front, const Ints& back) {
  Ints out(front);
  out.insert(out.end(), back.begin(), back.end());
  return out;
}
Ints spatial(const Ints& strides) { return {strides.begin() + 2, strides.end()}; }

// The padding behind that makes sizes agree; nullopt when only cropping would. Of several any will
// do.
std::optional<std::int64_t> padding_behind(std::int64_t in, std::int64_t window, std::int64_t out,
                                           std::int64_t stride, std::int64_t dilation,
                                           std::int64_t low) {
  const std::int64_t needed = (out - 1) * stride + (window - 1) * dilation + 1 - in - low;
  if (needed >= 0) return needed;
  if (needed + stride - 1 >= 0) return 0;
  return std::nullopt;
}

bool set_padding(ConvGeometry& g, const Ints& in, const Ints& window, const Ints& out,
                 const Ints& low) {
  g.low = low;
  for (std::size_t d = 0; d < in.size(); ++d) {
    const auto high = padding_behind(in[d], window[d], out[d], g.stride[d], g.dilation[d], low[d]);
    if (low[d] < 0 || !high) return false;
    g.high.push_back(*high);
  }
  return true;
}

std::optional<ConvGeometry> forward(const ConvSpec& s) {
  if (s.batch_groups != 1 || !all_equal(s.lhs_dilation, 1) || s.reverse_window) return std::nullopt;
  const std::int64_t groups = s.feature_groups, outputs = s.out_features / groups;
  ConvGeometry g{.kind = ConvGeometry::Kind::forward,
                 .x_dims = joined({s.batch, s.lhs_features}, s.in),
                 .weights_dims = joined({groups, outputs, s.lhs_features / groups}, s.window),
                 .y_dims = joined({s.batch, s.out_features}, s.out),
                 .x_strides = s.lhs_strides,
                 .weights_strides = joined({outputs * s.rhs_strides[0]}, s.rhs_strides),
                 .y_strides = s.out_strides,
                 .stride = s.stride,
                 .dilation = s.rhs_dilation,
                 .low = {},
                 .high = {}};
  if (!set_padding(g, s.in, s.window, s.out, s.low)) return std::nullopt;
  return g;
}

// lhs with holes under the window is the gradient of a strided convolution with the window turned
// round.
std::optional<ConvGeometry> data(const ConvSpec& s) {
  if (s.batch_groups != 1 || !all_equal(s.stride, 1) || !s.reverse_window) return std::nullopt;
  const std::int64_t groups = s.feature_groups, outputs = s.out_features / groups;
  ConvGeometry g{
      .kind = ConvGeometry::Kind::data,
      .x_dims = joined({s.batch, s.out_features}, s.out),
      .weights_dims = joined({groups, s.lhs_features / groups, outputs}, s.window),
      .y_dims = joined({s.batch, s.lhs_features}, s.in),
      .x_strides = s.out_strides,
      .weights_strides = joined({outputs * s.rhs_strides[0], s.rhs_strides[1], s.rhs_strides[0]},
                                spatial(s.rhs_strides)),
      .y_strides = s.lhs_strides,
      .stride = s.lhs_dilation,
      .dilation = s.rhs_dilation,
      .low = {},
      .high = {}};
  Ints low;
  for (std::size_t d = 0; d < s.in.size(); ++d) {
    low.push_back((s.window[d] - 1) * s.rhs_dilation[d] - s.low[d]);
  }
  if (!set_padding(g, s.out, s.window, s.in, low)) return std::nullopt;
  return g;
}

// Sums over a large window are sums over places of an image: out plays the kernel, rhs the result.
std::optional<ConvGeometry> weights(const ConvSpec& s) {
  if (s.feature_groups != 1 || !all_equal(s.lhs_dilation, 1) || s.reverse_window)
    return std::nullopt;
  const std::int64_t groups = s.batch_groups, outputs = s.out_features / groups;
  ConvGeometry g{
      .kind = ConvGeometry::Kind::weights,
      .x_dims = joined({s.lhs_features, s.batch}, s.in),
      .weights_dims = joined({groups, outputs, s.batch / groups}, s.out),
      .y_dims = joined({s.lhs_features, s.out_features}, s.window),
      .x_strides = joined({s.lhs_strides[1], s.lhs_strides[0]}, spatial(s.lhs_strides)),
      .weights_strides = joined({outputs * s.out_strides[1], s.out_strides[1], s.out_strides[0]},
                                spatial(s.out_strides)),
      .y_strides = joined({s.rhs_strides[1], s.rhs_strides[0]}, spatial(s.rhs_strides)),
      .stride = s.rhs_dilation,
      .dilation = s.stride,
      .low = {},
      .high = {}};
  Ints in = s.in;
  for (std::size_t d = 0; d < in.size(); ++d) {  // leave out what no window reaches
    const std::int64_t reach =
        (s.window[d] - 1) * s.rhs_dilation[d] + (s.out[d] - 1) * s.stride[d] + 1;
    in[d] = std::clamp<std::int64_t>(reach - s.low[d], 1, in[d]);
    g.x_dims[d + 2] = in[d];
  }
  if (!set_padding(g, in, s.out, s.window, s.low)) return std::nullopt;
  return g;
}

}  // namespace

std::int64_t product(const Ints& sizes) {
  std::int64_t n = 1;
  for (std::int64_t s : sizes) n *= s;
  return n;
}

bool is_well_formed(const ConvSpec& s) {
  const std::size_t n = s.in.size();
  for (const Ints* x :
       {&s.window, &s.out, &s.stride, &s.low, &s.high, &s.lhs_dilation, &s.rhs_dilation}) {
    if (x->size() != n) return false;
  }
  for (const Ints* x : {&s.lhs_strides, &s.rhs_strides, &s.out_strides}) {
    if (x->size() != n + 2 ||
        std::any_of(x->begin(), x->end(), [](std::int64_t v) { return v < 0; }))
      return false;
  }
  return s.dtype == Dtype::f32 && n <= 3 && s.feature_groups >= 1 && s.batch_groups >= 1 &&
         (s.feature_groups == 1 || s.batch_groups == 1);
}

bool result_is_empty(const ConvSpec& s) {
  return s.batch == 0 || s.out_features == 0 || product(s.out) == 0;
}
bool sum_is_empty(const ConvSpec& s) {
  return s.lhs_features == 0 || product(s.in) == 0 || product(s.window) == 0;
}

ConvSpec with_a_dimension(ConvSpec s) {
  if (!s.in.empty()) return s;
  for (Ints* x : {&s.in, &s.window, &s.out, &s.stride, &s.lhs_dilation, &s.rhs_dilation}) *x = {1};
  s.low = s.high = {0};
  for (Ints* x : {&s.lhs_strides, &s.rhs_strides, &s.out_strides}) x->push_back(1);
  return s;
}

ConvSpec turned(ConvSpec s) {
  s.reverse_window = !s.reverse_window;
  const Ints dims = joined({s.out_features, s.lhs_features / s.feature_groups}, s.window);
  std::int64_t next = 1;
  for (std::size_t d = dims.size(); d-- > 0; next *= dims[d]) s.rhs_strides[d] = next;
  return s;
}

std::vector<ConvGeometry> geometries(const ConvSpec& s) {
  std::vector<ConvGeometry> out;
  const auto add = [&](std::optional<ConvGeometry> g) {
    if (g) out.push_back(std::move(*g));
  };
  if (product(s.window) > product(s.out)) add(weights(s));
  add(forward(s));
  add(data(s));
  add(weights(s));
  return out;
}

}  // namespace reprise::codegen
