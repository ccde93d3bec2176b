// Reductions over sliding windows (pooling) and their derivatives.
#include "ops/window.h"

#include "ops/elementwise.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/reduce.h"
#include "ops/shape.h"

#include <cmath>
#include <limits>

namespace reprise {

// --------------------------------------------------------------------------------------- geometry
std::int64_t dilated(std::int64_t size, std::int64_t dilation) {
  if (size == 0) return 0;
  std::int64_t holes = 0;
  if (__builtin_mul_overflow(size - 1, dilation, &holes) || holes > std::int64_t{1} << 61) {
    fail<TypeError>("window: a dilated size is too large, got size ", size, " and dilation ",
                    dilation);
  }
  return holes + 1;
}
std::int64_t WindowAxis::out() const {
  const std::int64_t span = dilated(window, window_dilation);
  return padded() < span ? 0 : (padded() - span) / stride + 1;
}
void check_window_values(const char* op, const char* what, const Ints& values, std::size_t ndim,
                         std::int64_t smallest) {
  if (values.size() != ndim) {
    fail<TypeError>(op, ": ", what, " must have one value for each of ", ndim, " axes, got ",
                    python_tuple(values));
  }
  for (std::int64_t v : values) {
    if (v < smallest || v > std::numeric_limits<std::int32_t>::max()) {
      fail<TypeError>(op, ": ", what, " must be at least ", smallest, " and less than 2^31, got ",
                      python_tuple(values));
    }
  }
}
Pads transposed_padding(const WindowAxes& axes) {
  Pads pads;
  for (const WindowAxis& a : axes) {
    const std::int64_t span = dilated(a.window, a.window_dilation);
    const std::int64_t before = span - a.low - 1;
    pads.emplace_back(
        before, dilated(a.in, a.base_dilation) + span - 1 - dilated(a.out(), a.stride) - before);
  }
  return pads;
}
std::vector<Ints> to_lists(const Pads& pads) {
  std::vector<Ints> lists;
  for (const auto& [low, high] : pads) lists.push_back({low, high});
  return lists;
}
Pads to_pads(const std::vector<Ints>& lists) {
  Pads pads;
  for (const Ints& pair : lists) {
    if (pair.size() != 2) {
      fail<TypeError>("window: padding must be (low, high) for each axis, got ",
                      python_tuple(pair));
    }
    pads.emplace_back(pair[0], pair[1]);
  }
  return pads;
}

namespace {

using namespace lax;  // NOLINT: rules read like formulas

constexpr const char* per_axis_keys[] = {"base_dilation", "window_dilation", "window_dimensions",
                                         "window_strides"};
const Ints* list_of(const Params& params, const char* key) {
  const Attr* value = params.find(key);
  return value == nullptr ? nullptr : std::get_if<Ints>(value);
}

}  // namespace

WindowAxes window_axes(const Shape& in, const Params& params) {
  WindowAxes axes(in.size());
  const Ints *base = list_of(params, "base_dilation"), *holes = list_of(params, "window_dilation");
  const auto& padding = params.get<std::vector<Ints>>("padding");
  for (std::size_t d = 0; d < in.size(); ++d) {
    axes[d] = {.in = in[d],
               .window = params.get<Ints>("window_dimensions")[d],
               .stride = params.get<Ints>("window_strides")[d],
               .low = padding[d][0],
               .high = padding[d][1],
               .base_dilation = base ? (*base)[d] : 1,
               .window_dilation = holes ? (*holes)[d] : 1};
  }
  return axes;
}

namespace {

Shape out_shape(const char* op, const Type& in, const Params& params) {
  for (const char* key : per_axis_keys) {
    if (const Ints* values = list_of(params, key)) {
      check_window_values(op, key, *values, in.shape.size(), 1);
    }
  }
  Ints low, high;
  for (const auto& [l, h] : to_pads(params.get<std::vector<Ints>>("padding"))) {
    low.push_back(l);
    high.push_back(h);
  }
  constexpr std::int64_t smallest = std::numeric_limits<std::int32_t>::min();
  check_window_values(op, "padding", low, in.shape.size(), smallest);
  check_window_values(op, "padding", high, in.shape.size(), smallest);
  Shape out;
  for (const WindowAxis& a : window_axes(in.shape, params)) out.push_back(a.out());
  return out;
}
// The params of the operation with one more axis, over which the window does not move.
Params with_axis(const Params& params, std::int64_t at) {
  Params out = params;
  for (const char* key : per_axis_keys) {
    if (const Ints* values = list_of(params, key)) {
      Ints longer = *values;
      longer.insert(longer.begin() + at, 1);
      out = out.with(key, longer);
    }
  }
  auto padding = params.get<std::vector<Ints>>("padding");
  padding.insert(padding.begin() + at, Ints{0, 0});
  return out.with("padding", padding);
}

// ---------------------------------------------------------------------------------- reduce_window
template <Name name, Domain domain>
Types window_type(const Types& in, const Params& params) {
  expect_operands(name.text, in, 1);
  elementwise::check_domain(name.text, domain, in);
  Type out = in[0];
  out.shape = out_shape(name.text, in[0], params);
  return {std::move(out)};
}

template <class R, Domain domain>
Arrays window_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const WindowAxes axes = window_axes(x[0].shape(), params);
  const Shape strides = row_major_strides(x[0].shape());
  elementwise::visit_domain<domain>(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    const T* in = elements<T>(x[0]);
    T* to = result.data<T>();
    for_each_index(out[0].shape, [&](const Shape& index) {
      C total = R::template neutral<C>();
      visit_window(axes, strides, index, [&](std::int64_t at) {
        if (at >= 0) total = R::template combine<C>(total, static_cast<C>(in[at]));
      });
      *to++ = elementwise::to_element<T>(total);
    });
  });
  return {std::move(result).finish()};
}

Batched window_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                     const Params& params) {
  return {self.bind(x, with_axis(params, *axes[0])), {axes[0]}};
}

Tangents window_sum_tangent(const Arrays&, const Tangents& dx, const Arrays&,
                            const Params& params) {
  return {reduce_window_sum_p.bind1({*dx[0]}, params)};
}
// Windows of the cotangent with holes where the stride jumped.
Tangents window_sum_transpose(const Tangents& ct, const Primals&, const Types& in,
                              const Params& params) {
  const WindowAxes axes = window_axes(in[0].shape, params);
  const Pads pads = transposed_padding(axes);
  std::vector<PadDimension> config;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    config.push_back({pads[d].first, pads[d].second, axes[d].stride - 1});
  }
  const Array padded = pad(*ct[0], const_like(*ct[0], 0), config);
  return {reduce_window_sum(padded, {.window_dimensions = params.get<Ints>("window_dimensions"),
                                     .window_strides = params.get<Ints>("base_dilation"),
                                     .padding = Pads(axes.size()),
                                     .base_dilation = Ints(axes.size(), 1),
                                     .window_dilation = params.get<Ints>("window_dilation")})};
}

template <Name select>
Tangents window_extreme_tangent(const Arrays& x, const Tangents& dx, const Arrays&,
                                const Params& params) {
  return {select_and_gather_add_p.bind1({*dx[0], x[0]},
                                        params.with("select_prim", std::string(select.text)))};
}

// ------------------------------------------------------------------------------------- selections
// select_and_gather_add:  (t, x) -> t at the extreme of every window of x
// select_and_scatter_add: (c, x) -> c added at the extreme of every window of x
struct Selection {
  explicit Selection(const Params& params)
      : largest(params.get<std::string>("select_prim") == "ge") {}
  double neutral() const {
    return largest ? -std::numeric_limits<double>::infinity()
                   : std::numeric_limits<double>::infinity();
  }
  template <class C>
  bool keeps(C chosen, C candidate) const {
    return largest ? chosen >= candidate : chosen <= candidate;
  }
  bool largest;
};

void check_selection(const char* op, const Types& in, const Params& params) {
  expect_operands(op, in, 2);
  elementwise::check_domain(op, Domain::floating, in);
  if (in[0].dtype != in[1].dtype) {
    fail<TypeError>(op, ": dtypes differ, got ", in[0], " and ", in[1]);
  }
  const auto& select = params.get<std::string>("select_prim");
  if (select != "ge" && select != "le") {
    fail<TypeError>(op, ": select_prim must be ge or le, got ", select);
  }
}
Types gather_add_type(const Types& in, const Params& params) {
  check_selection("select_and_gather_add", in, params);
  if (in[0].shape != in[1].shape) {
    fail<TypeError>("select_and_gather_add: shapes differ, got ", in[0], " and ", in[1]);
  }
  Type out = in[0];
  out.shape = out_shape("select_and_gather_add", in[1], params);
  return {std::move(out)};
}
Types scatter_add_type(const Types& in, const Params& params) {
  check_selection("select_and_scatter_add", in, params);
  const Shape windows = out_shape("select_and_scatter_add", in[1], params);
  if (in[0].shape != windows) {
    fail<TypeError>("select_and_scatter_add: one value for every window is needed, got ", in[0],
                    " for windows ", to_string(windows), " of ", in[1]);
  }
  Type out = in[0];
  out.shape = in[1].shape;
  return {std::move(out)};
}

Arrays gather_add_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const Selection selection(params);
  const WindowAxes axes = window_axes(x[1].shape(), params);
  const Shape strides = row_major_strides(x[1].shape());
  visit_floating(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    T* to = result.data<T>();
    for_each_index(out[0].shape, [&](const Shape& index) {
      C extreme = static_cast<C>(selection.neutral());
      std::int64_t chosen = -1;
      visit_window(axes, strides, index, [&](std::int64_t at) {
        if (at < 0) return;
        const C candidate = static_cast<C>(elements<T>(x[1])[at]);
        if (selection.keeps(extreme, candidate)) return;
        extreme = candidate;
        chosen = at;
      });
      *to++ = chosen < 0 ? T(0.0f) : elements<T>(x[0])[chosen];
    });
  });
  return {std::move(result).finish()};
}

Arrays scatter_add_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const Selection selection(params);
  const WindowAxes axes = window_axes(x[1].shape(), params);
  const Shape strides = row_major_strides(x[1].shape());
  visit_floating(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    std::vector<C> wide(is_half<T> ? static_cast<std::size_t>(result.size()) : 0);
    C* sums = wide.data();
    if constexpr (!is_half<T>) {  // in place: inside a compiled program this is all the memory
                                  // there is
      sums = result.data<T>();
      std::fill(sums, sums + result.size(), C{0});
    }
    const T* from = elements<T>(x[0]);
    for_each_index(x[0].shape(), [&](const Shape& index) {
      C extreme = 0;
      std::int64_t chosen = -2;  // none yet; padding is -1
      visit_window(axes, strides, index, [&](std::int64_t at) {
        const C candidate =
            at < 0 ? static_cast<C>(selection.neutral()) : static_cast<C>(elements<T>(x[1])[at]);
        if (chosen != -2 && selection.keeps(extreme, candidate)) return;
        extreme = candidate;
        chosen = at;
      });
      if (chosen >= 0) sums[chosen] += static_cast<C>(*from);
      ++from;
    });
    for (std::size_t i = 0; i < wide.size(); ++i) {
      result.data<T>()[i] = elementwise::to_element<T>(sums[i]);
    }
  });
  return {std::move(result).finish()};
}

// Linear in the first operand, constant in the second almost everywhere.
template <const Primitive& self>
Tangents selection_tangent(const Arrays& x, const Tangents& dx, const Arrays&,
                           const Params& params) {
  if (!dx[0]) return {std::nullopt};
  return {self.bind1({*dx[0], x[1]}, params)};
}
Tangents gather_add_transpose(const Tangents& ct, const Primals& x, const Types&,
                              const Params& params) {
  if (!x[1]) fail<RuleError>("select_and_gather_add: not linear in the operand it selects by");
  const auto& holes = params.get<Ints>("window_dilation");
  if (holes != Ints(holes.size(), 1)) {
    fail<RuleError>("select_and_gather_add: no transpose rule for dilated windows, got ",
                    "window_dilation=", python_tuple(holes));
  }
  const auto& base = params.get<Ints>("base_dilation");
  const bool has_holes = base != Ints(base.size(), 1);
  Array operand = *x[1];
  if (has_holes) {
    std::vector<PadDimension> config;
    for (std::int64_t d : base) config.push_back({0, 0, d - 1});
    operand = pad(operand, const_like(operand, Selection(params).neutral()), config);
  }
  const Array full = select_and_scatter_add_p.bind1(
      {*ct[0], operand}, {{"padding", params.get<std::vector<Ints>>("padding")},
                          {"select_prim", params.get<std::string>("select_prim")},
                          {"window_dimensions", params.get<Ints>("window_dimensions")},
                          {"window_strides", params.get<Ints>("window_strides")}});
  if (!has_holes) return {full, std::nullopt};
  return {slice(full, Ints(base.size(), 0), full.shape(), base), std::nullopt};
}
Tangents scatter_add_transpose(const Tangents& ct, const Primals& x, const Types&,
                               const Params& params) {
  if (!x[1]) fail<RuleError>("select_and_scatter_add: not linear in the operand it selects by");
  const Ints ones(x[1]->shape().size(), 1);
  return {select_and_gather_add_p.bind1(
              {*ct[0], *x[1]}, params.with("base_dilation", ones).with("window_dilation", ones)),
          std::nullopt};
}
Batched selection_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t n,
                        const Params& params) {
  const Array values = mapped_in_front(x[0], axes[0], n);
  const Array operand = mapped_in_front(x[1], axes[1], n);
  return {self.bind({values, operand}, with_axis(params, 0)), {0}};
}

constexpr ParamRule window_rules[] = {{"base_dilation", form::ints},
                                      {"padding", form::rows},
                                      {"window_dilation", form::ints},
                                      {"window_dimensions", form::ints},
                                      {"window_strides", form::ints}};
constexpr ParamRule gather_add_rules[] = {
    {"base_dilation", form::ints},     {"padding", form::rows},
    {"select_prim", form::text},       {"window_dilation", form::ints},
    {"window_dimensions", form::ints}, {"window_strides", form::ints}};
constexpr ParamRule scatter_add_rules[] = {{"padding", form::rows},
                                           {"select_prim", form::text},
                                           {"window_dimensions", form::ints},
                                           {"window_strides", form::ints}};

template <Name name, Domain domain, class R>
constexpr Primitive window_reduction(decltype(Primitive::tangent) tangent,
                                     decltype(Primitive::transpose) transpose = nullptr) {
  return {.name = name.text,
          .kind = Kind::reduce,
          .type = window_type<name, domain>,
          .eval = window_eval<R, domain>,
          .tangent = tangent,
          .transpose = transpose,
          .batch = window_batch,
          .param_rules = window_rules};
}

Array bind_window(const Primitive& p, const Operand& x, const WindowDimensions& w) {
  const AtUser at(x.at);
  const auto or_ones = [&](const Ints& v) {
    return v.empty() ? Ints(x.array.shape().size(), 1) : v;
  };
  return p.bind1({x.array}, {{"base_dilation", or_ones(w.base_dilation)},
                             {"padding", to_lists(w.padding)},
                             {"window_dilation", or_ones(w.window_dilation)},
                             {"window_dimensions", w.window_dimensions},
                             {"window_strides", w.window_strides}});
}

}  // namespace

constinit const Primitive
    reduce_window_max_p =
        window_reduction<"reduce_window_max", Domain::any, Largest>(window_extreme_tangent<"ge">),
    reduce_window_min_p =
        window_reduction<"reduce_window_min", Domain::any, Smallest>(window_extreme_tangent<"le">),
    reduce_window_sum_p = window_reduction<"reduce_window_sum", Domain::number, Sum>(
        window_sum_tangent, window_sum_transpose),
    select_and_gather_add_p{.name = "select_and_gather_add",
                            .kind = Kind::reduce,
                            .type = gather_add_type,
                            .eval = gather_add_eval,
                            .tangent = selection_tangent<select_and_gather_add_p>,
                            .transpose = gather_add_transpose,
                            .batch = selection_batch,
                            .param_rules = gather_add_rules},
    select_and_scatter_add_p{.name = "select_and_scatter_add",
                             .kind = Kind::reduce,
                             .type = scatter_add_type,
                             .eval = scatter_add_eval,
                             .tangent = selection_tangent<select_and_scatter_add_p>,
                             .transpose = scatter_add_transpose,
                             .batch = selection_batch,
                             .param_rules = scatter_add_rules};

Array lax::reduce_window_max(Operand x, const WindowDimensions& w) {
  return bind_window(reduce_window_max_p, x, w);
}
Array lax::reduce_window_min(Operand x, const WindowDimensions& w) {
  return bind_window(reduce_window_min_p, x, w);
}
Array lax::reduce_window_sum(Operand x, const WindowDimensions& w) {
  return bind_window(reduce_window_sum_p, x, w);
}

}  // namespace reprise
