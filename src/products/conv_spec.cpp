#include "products/conv_spec.h"

#include "base/dtype.h"
#include "ops/conv.h"

namespace reprise::codegen {
namespace {

std::int64_t size_of(const Type& type, const Ints& spec, std::size_t role) {
  return type.shape[static_cast<std::size_t>(spec[role])];
}
// Strides of the axes in the order of their roles.
Ints strides_by_role(const Type& type, const Ints& spec) {
  const Shape dense = row_major_strides(type.shape);
  Ints out;
  for (std::int64_t axis : spec) out.push_back(dense[static_cast<std::size_t>(axis)]);
  return out;
}

}  // namespace

ConvSpec conv_spec(const Params& params, const Type& lhs, const Type& rhs, const Type& out) {
  const Conv conv(params);
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.layout;
  ConvSpec s;
  s.dtype = lhs.dtype;
  s.batch = size_of(lhs, lhs_spec, 0);
  s.lhs_features = size_of(lhs, lhs_spec, 1);
  s.out_features = size_of(rhs, rhs_spec, 0);
  s.feature_groups = conv.feature_groups;
  s.batch_groups = conv.batch_groups;
  for (const WindowAxis& a : conv.axes(lhs.shape, rhs.shape)) {
    s.in.push_back(a.in);
    s.window.push_back(a.window);
    s.out.push_back(a.out());
    s.low.push_back(a.low);
    s.high.push_back(a.high);
  }
  s.stride = conv.strides;
  s.lhs_dilation = conv.lhs_dilation;
  s.rhs_dilation = conv.rhs_dilation;
  s.lhs_strides = strides_by_role(lhs, lhs_spec);
  s.rhs_strides = strides_by_role(rhs, rhs_spec);
  s.out_strides = strides_by_role(out, out_spec);
  return s;
}

std::optional<ConvSpec> library_spec(const Params& params, const Type& lhs, const Type& rhs,
                                     const Type& out) {
  if (lhs.dtype != Dtype::f32 || out.dtype != Dtype::f32) return std::nullopt;
  ConvSpec spec = conv_spec(params, lhs, rhs, out);
  if (!can_convolve(spec)) return std::nullopt;
  return spec;
}

}  // namespace reprise::codegen
