// The params of a convolution, shared by its rules and its evaluation.
#pragma once

#include "ops/lax.h"
#include "ops/records.h"
#include "ops/window.h"

#include <memory>
#include <string>
#include <utility>

namespace reprise {

// Which axis of each operand plays which role.
class LayoutParam final : public OpaqueParam {
 public:
  explicit LayoutParam(lax::ConvDimensionNumbers l) : layout(std::move(l)) {}
  std::string text() const override {
    return str("ConvDimensionNumbers(lhs_spec=", python_tuple(layout.lhs_spec),
               ", rhs_spec=", python_tuple(layout.rhs_spec),
               ", out_spec=", python_tuple(layout.out_spec), ")");
  }
  const lax::ConvDimensionNumbers layout;
};

// What the params say, ready to compute with.
struct Conv {
  lax::ConvDimensionNumbers layout;
  Ints strides, lhs_dilation, rhs_dilation;
  Pads padding;
  std::int64_t feature_groups = 1, batch_groups = 1;
  std::optional<Dtype> preferred;

  explicit Conv(const lax::ConvOptions& o, lax::ConvDimensionNumbers l)
      : layout(std::move(l)),
        strides(o.window_strides),
        lhs_dilation(o.lhs_dilation),
        rhs_dilation(o.rhs_dilation),
        padding(o.padding),
        feature_groups(o.feature_group_count),
        batch_groups(o.batch_group_count),
        preferred(o.preferred_element_type) {}
  explicit Conv(const Params& p)
      : layout(p.get_opaque<LayoutParam>("dimension_numbers")->layout),
        strides(p.get<Ints>("window_strides")),
        lhs_dilation(p.get<Ints>("lhs_dilation")),
        rhs_dilation(p.get<Ints>("rhs_dilation")),
        padding(to_pads(p.get<std::vector<Ints>>("padding"))),
        feature_groups(p.get<std::int64_t>("feature_group_count")),
        batch_groups(p.get<std::int64_t>("batch_group_count")) {
    if (const auto* dtype = std::get_if<Dtype>(p.find("preferred_element_type")))
      preferred = *dtype;
  }
  Params params() const {
    return {{"batch_group_count", batch_groups},
            {"dimension_numbers", std::make_shared<const LayoutParam>(layout)},
            {"feature_group_count", feature_groups},
            {"lhs_dilation", lhs_dilation},
            {"out_sharding", None{}},
            {"padding", to_lists(padding)},
            {"precision", None{}},
            {"preferred_element_type", preferred ? Attr(*preferred) : Attr(None{})},
            {"rhs_dilation", rhs_dilation},
            {"window_strides", strides}};
  }
  Array operator()(const Array& lhs, const Array& rhs) const {
    return conv_general_dilated_p.bind1({lhs, rhs}, params());
  }
  WindowAxes axes(const Shape& lhs, const Shape& rhs) const {
    WindowAxes out(strides.size());
    for (std::size_t s = 0; s < out.size(); ++s) {
      out[s] = {.in = lhs[static_cast<std::size_t>(layout.lhs_spec[s + 2])],
                .window = rhs[static_cast<std::size_t>(layout.rhs_spec[s + 2])],
                .stride = strides[s],
                .low = padding[s].first,
                .high = padding[s].second,
                .base_dilation = lhs_dilation[s],
                .window_dilation = rhs_dilation[s]};
    }
    return out;
  }
};

inline std::int64_t size_at(const Shape& shape, std::int64_t axis) {
  return shape[static_cast<std::size_t>(axis)];
}
inline Ints spatial(const Ints& spec) { return Ints(spec.begin() + 2, spec.end()); }

Arrays conv_eval(const Arrays& x, const Params& params, const Types& out);

}  // namespace reprise
