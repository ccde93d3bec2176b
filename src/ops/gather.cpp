// The gather primitive: windows of an operand, one for each index vector.
#include "ops/gather.h"

#include "ops/records.h"
#include "ops/scatter.h"
#include "ops/shape.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

constexpr NamedTuple gather_names{"GatherDimensionNumbers",
                                  {"offset_dims", "collapsed_slice_dims", "start_index_map",
                                   "operand_batching_dims", "start_indices_batching_dims"}};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
bool has(const Ints& dims, std::int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}
bool is_window_dim(const GatherDimensionNumbers& n, std::int64_t d) {
  return !has(n.collapsed_slice_dims, d) && !has(n.operand_batching_dims, d);
}
Ints shifted(Ints dims) { return skip_axis(std::move(dims), 0); }
Ints with_leading_zero(Ints dims) {
  dims.insert(dims.begin(), 0);
  return dims;
}

}  // namespace

// ------------------------------------------------------------------------------------------ texts
std::string NamedTuple::text(const std::array<const Ints*, 5>& values) const {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    items.push_back(std::string(fields[i]) + "=" + python_tuple(*values[i]));
  }
  return std::string(name) + "(" + join(items, ", ") + ")";
}

std::array<Ints, 5> NamedTuple::parse(std::string_view text) const {
  std::array<Ints, 5> values;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string key = std::string(fields[i]) + "=(";
    const std::size_t begin = text.find(key);
    const std::size_t end = begin == text.npos ? text.npos : text.find(')', begin);
    if (!text.starts_with(name) || end == text.npos) {
      fail<TypeError>("parse: ", name, " needs the field ", fields[i], ", got ", text);
    }
    std::istringstream items(
        std::string(text.substr(begin + key.size(), end - begin - key.size())));
    std::string item;
    while (std::getline(items, item, ',')) {
      if (item.find_first_not_of(' ') == item.npos) continue;  // after the comma of (0,)
      char* rest = nullptr;
      values[i].push_back(std::strtoll(item.c_str(), &rest, 10));
      if (*rest != '\0') fail<TypeError>("parse: an integer is needed in ", name, ", got ", item);
    }
  }
  return values;
}

std::string GatherNumbers::text() const {
  return gather_names.text({&numbers.offset_dims, &numbers.collapsed_slice_dims,
                            &numbers.start_index_map, &numbers.operand_batching_dims,
                            &numbers.start_indices_batching_dims});
}
GatherDimensionNumbers parse_gather_numbers(std::string_view text) {
  std::array<Ints, 5> v = gather_names.parse(text);
  return {v[0], v[1], v[2], v[3], v[4]};
}

std::string mode_text(GatherScatterMode mode) {
  switch (mode) {
    case GatherScatterMode::clip: return "GatherScatterMode.CLIP";
    case GatherScatterMode::fill_or_drop: return "GatherScatterMode.FILL_OR_DROP";
    case GatherScatterMode::promise_in_bounds: return "GatherScatterMode.PROMISE_IN_BOUNDS";
  }
  return "";
}
GatherScatterMode mode_of(const Params& params) {
  const auto& text = params.get<std::string>("mode");
  for (auto mode : {GatherScatterMode::clip, GatherScatterMode::fill_or_drop,
                    GatherScatterMode::promise_in_bounds}) {
    if (text == mode_text(mode)) return mode;
  }
  fail<TypeError>("gather: mode must be CLIP, FILL_OR_DROP or PROMISE_IN_BOUNDS, got ", text);
}

Ints index_values(const Array& indices) {
  Ints out;
  out.reserve(at(indices.size()));
  visit_dtype(indices.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = elements<T>(indices);
    for (std::int64_t i = 0; i < indices.size(); ++i) {
      if constexpr (std::is_same_v<T, std::uint64_t>) {
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        out.push_back(static_cast<std::int64_t>(std::min<T>(from[i], most)));
      } else {
        out.push_back(static_cast<std::int64_t>(static_cast<Compute<T>>(from[i])));
      }
    }
  });
  return out;
}

// ---------------------------------------------------------------------------------------- windows
namespace {

void check_dims(const char* op, const char* field, const Ints& dims, std::int64_t end,
                bool sorted) {
  const bool in_order = !sorted || std::is_sorted(dims.begin(), dims.end());
  const bool in_range =
      std::all_of(dims.begin(), dims.end(), [&](std::int64_t d) { return 0 <= d && d < end; });
  if (in_order && in_range && all_unique(dims)) return;
  fail<TypeError>(op, ": ", field, " must be different dimensions below ", end,
                  sorted ? " in order" : "", ", got ", python_tuple(dims));
}
void check_disjoint(const char* op, const char* a_name, const Ints& a, const char* b_name,
                    const Ints& b) {
  for (std::int64_t d : a) {
    if (!has(b, d)) continue;
    fail<TypeError>(op, ": ", a_name, " and ", b_name, " must have nothing in common, got ",
                    python_tuple(a), " and ", python_tuple(b));
  }
}

}  // namespace

void check_dimension_numbers(const char* op, const NamedTuple& names,
                             const GatherDimensionNumbers& n, const Type& operand,
                             const Type& indices) {
  const auto& [window, collapsed, index_map, batching, index_batching] = names.fields;
  if (indices.ndim() == 0 || !is_integer(indices.dtype)) {
    fail<TypeError>(op, ": indices must be integers with the index vector as last dimension, got ",
                    indices);
  }
  const std::int64_t vector_dim = indices.ndim() - 1;
  const auto windows = static_cast<std::int64_t>(n.offset_dims.size());
  check_dims(op, window, n.offset_dims, windows + vector_dim, /*sorted=*/true);
  check_dims(op, index_map, n.start_index_map, operand.ndim(), /*sorted=*/false);
  check_dims(op, collapsed, n.collapsed_slice_dims, operand.ndim(), /*sorted=*/true);
  check_dims(op, batching, n.operand_batching_dims, operand.ndim(), /*sorted=*/true);
  check_dims(op, index_batching, n.start_indices_batching_dims, vector_dim, /*sorted=*/false);
  check_disjoint(op, collapsed, n.collapsed_slice_dims, batching, n.operand_batching_dims);
  check_disjoint(op, index_map, n.start_index_map, batching, n.operand_batching_dims);
  if (static_cast<std::int64_t>(n.start_index_map.size()) != indices.shape.back()) {
    fail<TypeError>(op, ": ", index_map, " must have one dimension for each component of an index ",
                    "vector, got ", python_tuple(n.start_index_map), " for indices ", indices);
  }
  bool batches_match = n.operand_batching_dims.size() == n.start_indices_batching_dims.size();
  for (std::size_t i = 0; batches_match && i < n.operand_batching_dims.size(); ++i) {
    batches_match = operand.shape[at(n.operand_batching_dims[i])] ==
                    indices.shape[at(n.start_indices_batching_dims[i])];
  }
  if (!batches_match) {
    fail<TypeError>(op, ": batching dimensions of operand and indices must have equal sizes, got ",
                    python_tuple(n.operand_batching_dims), " of ", operand, " and ",
                    python_tuple(n.start_indices_batching_dims), " of ", indices);
  }
  if (n.offset_dims.size() + n.collapsed_slice_dims.size() + n.operand_batching_dims.size() !=
      operand.shape.size()) {
    fail<TypeError>(op, ": every dimension of ", operand, " must be in a window, in ", collapsed,
                    " or in ", batching, ", got ", n.offset_dims.size(), ", ",
                    n.collapsed_slice_dims.size(), " and ", n.operand_batching_dims.size());
  }
}

void check_slice_sizes(const char* op, const GatherDimensionNumbers& n, const Type& operand,
                       const Type& indices, const Ints& slice_sizes) {
  bool fits = slice_sizes.size() == operand.shape.size();
  const bool no_windows = std::any_of(indices.shape.begin(), indices.shape.end() - 1,
                                      [](std::int64_t size) { return size == 0; });
  for (std::int64_t d = 0; fits && d < operand.ndim(); ++d) {
    const std::int64_t size = slice_sizes[at(d)];
    fits = size >= 0 && (no_windows || size <= operand.shape[at(d)]);
    if (has(n.collapsed_slice_dims, d)) fits = fits && size == 1;
    if (has(n.operand_batching_dims, d)) fits = fits && size <= 1;
  }
  if (fits) return;
  fail<TypeError>(op, ": windows must fit into ", operand,
                  " and have size 1 in collapsed and batching dimensions, got sizes ",
                  python_tuple(slice_sizes));
}

Shape windows_shape(const GatherDimensionNumbers& n, const Shape& indices,
                    const Ints& slice_sizes) {
  Shape window;
  for (std::size_t d = 0; d < slice_sizes.size(); ++d) {
    if (is_window_dim(n, static_cast<std::int64_t>(d))) window.push_back(slice_sizes[d]);
  }
  Shape shape(indices.begin(), indices.end() - 1);
  for (std::size_t i = 0; i < window.size(); ++i) {
    shape.insert(shape.begin() + n.offset_dims[i], window[i]);
  }
  return shape;
}

Windows::Windows(const GatherDimensionNumbers& n, const Shape& operand, const Shape& indices,
                 const Ints& slice_sizes, const Shape& windows)
    : batch(indices.begin(), indices.end() - 1), operand_steps(batch.size(), 0) {
  const Shape operand_all = row_major_strides(operand), windows_all = row_major_strides(windows);
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const bool in_window = has(n.offset_dims, static_cast<std::int64_t>(d));
    (in_window ? window_strides : window_steps).push_back(windows_all[d]);
  }
  for (std::size_t i = 0; i < n.operand_batching_dims.size(); ++i) {
    operand_steps[at(n.start_indices_batching_dims[i])] =
        operand_all[at(n.operand_batching_dims[i])];
  }
  for (std::int64_t d : n.start_index_map) {
    index_steps.push_back(operand_all[at(d)]);
    index_most.push_back(std::max<std::int64_t>(operand[at(d)] - slice_sizes[at(d)], 0));
  }
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (!is_window_dim(n, static_cast<std::int64_t>(d))) continue;
    sizes.push_back(slice_sizes[d]);
    operand_strides.push_back(operand_all[d]);
  }
}

// ----------------------------------------------------------------------------------------- params
namespace {

// NaN and the largest u64 are kept as text: NaN is not equal to itself, the other is no int64.
Attr fill_attr(Dtype dtype, const std::optional<double>& given) {
  if (given && std::isnan(*given)) return std::string("nan");
  if (given && *given == std::trunc(*given) && std::abs(*given) < 0x1p62) {
    return static_cast<std::int64_t>(*given);
  }
  if (given) return *given;
  if (is_floating(dtype)) return std::string("nan");
  if (dtype == Dtype::bool_) return true;
  if (dtype == Dtype::key) return std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  if (dtype == Dtype::float0) return std::int64_t{0};
  return visit_dtype(dtype, [](auto tag) -> Attr {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      return std::to_string(std::numeric_limits<T>::max());
    } else if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      return static_cast<std::int64_t>(std::is_signed_v<T> ? Limits::min() : Limits::max());
    } else {
      return None{};
    }
  });
}

}  // namespace

void store_fill(const Params& params, Dtype dtype, std::byte* element) {
  if (dtype == Dtype::float0) return;
  if (dtype == Dtype::key) {
    std::memset(element, 0xff, itemsize(dtype));
    return;
  }
  const Attr* given = params.find("fill_value");
  const Attr fill = given != nullptr ? *given : Attr(None{});
  Literal literal = make_literal(dtype, 0);
  const auto* integer = std::get_if<std::int64_t>(&fill);
  const auto* text = std::get_if<std::string>(&fill);
  if (integer != nullptr && is_integer(dtype)) {
    literal.integer = *integer;
  } else if (integer != nullptr) {
    literal = make_literal(dtype, static_cast<double>(*integer));
  } else if (text != nullptr && dtype == Dtype::u64) {
    literal.natural = std::strtoull(text->c_str(), nullptr, 10);
  } else if (text != nullptr) {
    literal = make_literal(dtype, std::strtod(text->c_str(), nullptr));
  } else if (const auto* real = std::get_if<double>(&fill)) {
    literal = make_literal(dtype, *real);
  } else if (const auto* flag = std::get_if<bool>(&fill)) {
    literal = make_literal(dtype, *flag ? 1 : 0);
  }
  store_literal(literal, element);
}

Params gather_params(const GatherDimensionNumbers& numbers, const Ints& slice_sizes,
                     const GatherOptions& options, Dtype dtype) {
  const bool fills = options.mode == GatherScatterMode::fill_or_drop;
  return {{"dimension_numbers", std::make_shared<const GatherNumbers>(numbers)},
          {"fill_value", fills ? fill_attr(dtype, options.fill_value) : Attr(None{})},
          {"indices_are_sorted", options.indices_are_sorted},
          {"mode", mode_text(options.mode)},
          {"slice_sizes", slice_sizes},
          {"unique_indices", options.unique_indices}};
}

// ------------------------------------------------------------------------------------------ rules
namespace {

GatherDimensionNumbers numbers_of(const Params& params) {
  return params.get_opaque<GatherNumbers>("dimension_numbers")->numbers;
}

Types gather_type(const Types& in, const Params& params) {
  expect_operands("gather", in, 2);
  const GatherDimensionNumbers n = numbers_of(params);
  const auto& slice_sizes = params.get<Ints>("slice_sizes");
  mode_of(params);
  check_dimension_numbers("gather", gather_names, n, in[0], in[1]);
  check_slice_sizes("gather", n, in[0], in[1], slice_sizes);
  Type out = in[0];
  out.shape = windows_shape(n, in[1].shape, slice_sizes);
  return {std::move(out)};
}

Arrays gather_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  if (result.size() == 0) return {std::move(result).finish()};
  const bool fills = mode_of(params) == GatherScatterMode::fill_or_drop;
  const Windows windows(numbers_of(params), x[0].shape(), x[1].shape(),
                        params.get<Ints>("slice_sizes"), out[0].shape);
  const std::vector<Loop> copies =
      merged_loops(windows.operand_strides, windows.window_strides, windows.sizes);
  const std::vector<Loop> fillings =
      merged_loops(Shape(windows.sizes.size(), 0), windows.window_strides, windows.sizes);
  std::byte filling[8] = {};
  if (fills) store_fill(params, out[0].dtype, filling);
  const std::size_t width = itemsize(out[0].dtype);
  const auto w = static_cast<std::int64_t>(width);
  for_each_window(
      windows, index_values(x[1]), /*clamp=*/!fills,
      [&](std::int64_t from, std::int64_t to, bool is_inside) {
        const std::byte* source = is_inside ? content(x[0]).elements + from * w : filling;
        copy_loops(source, result.bytes() + to * w, is_inside ? copies : fillings, width);
      });
  return {std::move(result).finish()};
}

// Outside the operand the value does not depend on it: tangents are filled with 0.
Tangents gather_tangent(const Arrays& x, const Tangents& dx, const Arrays&, const Params& params) {
  const bool fills = mode_of(params) == GatherScatterMode::fill_or_drop;
  const Attr fill = fills ? Attr(std::int64_t{0}) : Attr(None{});
  return {gather_p.bind1({*dx[0], x[1]}, params.with("fill_value", fill))};
}

Tangents gather_transpose(const Tangents& ct, const Primals& x, const Types& in,
                          const Params& params) {
  const GatherDimensionNumbers n = numbers_of(params);
  const Array nothing = zeros(in[0]);
  const Params scatter = scatter_params(update_program(add_p, in[0].dtype, UpdateUse::transposed),
                                        {n.offset_dims, n.collapsed_slice_dims, n.start_index_map,
                                         n.operand_batching_dims, n.start_indices_batching_dims},
                                        {mode_of(params), params.get<bool>("indices_are_sorted"),
                                         params.get<bool>("unique_indices")});
  return {scatter_add_p.bind1({nothing, *x[1], *ct[0]}, scatter), std::nullopt};
}

Batched gather_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t n,
                     const Params& params) {
  GatherDimensionNumbers numbers = numbers_of(params);
  Ints sizes = params.get<Ints>("slice_sizes");
  Arrays operands = x;
  Params out = params;
  numbers.offset_dims = shifted(numbers.offset_dims);
  if (axes[0]) {
    operands[0] = moveaxis(x[0], *axes[0], 0);
    numbers.collapsed_slice_dims = shifted(numbers.collapsed_slice_dims);
    numbers.start_index_map = shifted(numbers.start_index_map);
    numbers.operand_batching_dims = shifted(numbers.operand_batching_dims);
  }
  if (axes[1]) {
    operands[1] = moveaxis(x[1], *axes[1], 0);
    numbers.start_indices_batching_dims = shifted(numbers.start_indices_batching_dims);
  }
  if (axes[0] && axes[1]) {
    numbers.operand_batching_dims = with_leading_zero(numbers.operand_batching_dims);
    numbers.start_indices_batching_dims = with_leading_zero(numbers.start_indices_batching_dims);
    sizes.insert(sizes.begin(), n == 0 ? 0 : 1);
  } else if (axes[0]) {
    numbers.offset_dims = with_leading_zero(numbers.offset_dims);
    sizes.insert(sizes.begin(), n);
  } else {
    // Several index sets into one operand: sorted and unique no longer hold.
    out = out.with("indices_are_sorted", false).with("unique_indices", false);
  }
  out = out.with("dimension_numbers", std::make_shared<const GatherNumbers>(std::move(numbers)))
            .with("slice_sizes", sizes);
  return {self.bind(operands, out), {0}};
}

Params gather_parsed(const Params& printed, const Types&, const Types&) {
  Params out = printed;
  const Attr* numbers = printed.find("dimension_numbers");
  if (const auto* text = numbers ? std::get_if<std::string>(numbers) : nullptr) {
    out = out.with("dimension_numbers",
                   std::make_shared<const GatherNumbers>(parse_gather_numbers(*text)));
  }
  const Attr* fill = printed.find("fill_value");
  if (const auto* real = fill ? std::get_if<double>(fill) : nullptr; real && std::isnan(*real)) {
    out = out.with("fill_value", std::string("nan"));
  }
  return out;
}

constexpr ParamRule gather_rules[] = {
    {"dimension_numbers", form::object},
    {"fill_value", form::none | form::flag | form::integer | form::real | form::text, "None"},
    {"indices_are_sorted", form::flag, "False"},
    {"mode", form::text},
    {"slice_sizes", form::ints},
    {"unique_indices", form::flag, "False"}};

}  // namespace

constinit const Primitive gather_p{.name = "gather",
                                   .kind = Kind::index,
                                   .type = gather_type,
                                   .eval = gather_eval,
                                   .tangent = gather_tangent,
                                   .transpose = gather_transpose,
                                   .batch = gather_batch,
                                   .param_rules = gather_rules,
                                   .parsed_params = gather_parsed};

namespace lax {

Array gather(Operand x, Operand start_indices, const GatherDimensionNumbers& dimension_numbers,
             const Ints& slice_sizes, const GatherOptions& options) {
  const AtUser scope(x.at);
  return gather_p.bind1({x.array, start_indices.array},
                        gather_params(dimension_numbers, slice_sizes, options, x.array.dtype()));
}

}  // namespace lax
}  // namespace reprise
