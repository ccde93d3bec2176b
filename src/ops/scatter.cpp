// The scatter primitives: windows of updates written into, added to, ... an operand.
#include "ops/scatter.h"

#include "ops/gather.h"
#include "ops/records.h"
#include "ops/shape.h"

#include <cmath>
#include <map>
#include <tuple>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

constexpr NamedTuple scatter_names{
    "ScatterDimensionNumbers",
    {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
     "operand_batching_dims", "scatter_indices_batching_dims"}};

Ints shifted(Ints dims) { return skip_axis(std::move(dims), 0); }
Ints with_leading_zero(Ints dims) {
  dims.insert(dims.begin(), 0);
  return dims;
}

ScatterDimensionNumbers numbers_of(const Params& params) {
  return params.get_opaque<ScatterNumbers>("dimension_numbers")->numbers;
}
ScatterOptions options_of(const Params& params) {
  return {mode_of(params), params.get<bool>("indices_are_sorted"),
          params.get<bool>("unique_indices")};
}
}  // namespace

GatherDimensionNumbers inverse(const ScatterDimensionNumbers& n) {
  return {n.update_window_dims, n.inserted_window_dims, n.scatter_dims_to_operand_dims,
          n.operand_batching_dims, n.scatter_indices_batching_dims};
}
Ints slice_sizes_of(const ScatterDimensionNumbers& n, std::int64_t ndim, const Shape& updates) {
  const auto has = [](const Ints& dims, std::int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  Ints sizes;
  std::size_t next = 0;
  for (std::int64_t d = 0; d < ndim; ++d) {
    const bool single = has(n.inserted_window_dims, d) || has(n.operand_batching_dims, d);
    sizes.push_back(single ? 1 : updates[static_cast<std::size_t>(n.update_window_dims[next++])]);
  }
  return sizes;
}

// --------------------------------------------------------------------------------- texts, params
std::string ScatterNumbers::text() const {
  return scatter_names.text({&numbers.update_window_dims, &numbers.inserted_window_dims,
                             &numbers.scatter_dims_to_operand_dims, &numbers.operand_batching_dims,
                             &numbers.scatter_indices_batching_dims});
}
ScatterDimensionNumbers parse_scatter_numbers(std::string_view text) {
  std::array<Ints, 5> v = scatter_names.parse(text);
  return {v[0], v[1], v[2], v[3], v[4]};
}

ProgramPtr update_program(const Primitive& combine, Dtype dtype, UpdateUse use) {
  using Key = std::tuple<const Primitive*, Dtype, UpdateUse>;
  static const auto& programs = *[] {
    auto& made = *new std::map<Key, ProgramPtr>;
    for (const Primitive* p : {&add_p, &mul_p, &min_p, &max_p}) {
      for (int d = 0; d <= static_cast<int>(Dtype::key); ++d) {
        for (UpdateUse u : {UpdateUse::forward, UpdateUse::transposed}) {
          Program program;
          const Type scalar{static_cast<Dtype>(d)};
          program.in = {program.fresh(scalar), program.fresh(scalar)};
          const Var out = program.fresh(scalar);
          program.eqns.push_back({p, {}, {Atom::of(Var{0}), Atom::of(Var{1})}, {out}, {}});
          program.out = {Atom::of(out)};
          made[{p, scalar.dtype, u}] = std::make_shared<const Program>(std::move(program));
        }
      }
    }
    return &made;
  }();
  return programs.at({&combine, dtype, use});
}

Params scatter_params(const ProgramPtr& update, const ScatterDimensionNumbers& numbers,
                      const ScatterOptions& options) {
  return {{"dimension_numbers", std::make_shared<const ScatterNumbers>(numbers)},
          {"indices_are_sorted", options.indices_are_sorted},
          {"mode", mode_text(options.mode)},
          {"unique_indices", options.unique_indices},
          {"update_consts", Ints{}},
          {"update_jaxpr", update ? Attr(update) : Attr(None{})}};
}

// ------------------------------------------------------------------------------------- evaluation
namespace {

Types scatter_type(const char* op, const Types& in, const Params& params) {
  expect_operands(op, in, 3);
  const ScatterDimensionNumbers n = numbers_of(params);
  const Type &operand = in[0], &indices = in[1], &updates = in[2];
  mode_of(params);
  if (operand.dtype != updates.dtype) {
    fail<TypeError>(op, ": dtypes differ, got operand ", operand, " and updates ", updates);
  }
  const GatherDimensionNumbers gather = inverse(n);
  check_dimension_numbers(op, scatter_names, gather, operand, indices);
  const std::size_t ndim = n.update_window_dims.size() + indices.shape.size() - 1;
  if (updates.shape.size() != ndim) {
    fail<TypeError>(op, ": updates must have ", ndim, " dimensions for indices ", indices, ", got ",
                    updates);
  }
  const Ints sizes = slice_sizes_of(n, operand.ndim(), updates.shape);
  const Shape expected = windows_shape(gather, indices.shape, sizes);
  if (updates.shape != expected) {
    fail<TypeError>(op, ": updates must have the shape ", to_string(expected), " for indices ",
                    indices, ", got ", updates);
  }
  check_slice_sizes(op, gather, operand, indices, sizes);
  return {operand};
}
template <const char* op>
Types typed(const Types& in, const Params& params) {
  return scatter_type(op, in, params);
}
template <const char* op>
Types typed_number(const Types& in, const Params& params) {
  Types out = scatter_type(op, in, params);
  const Dtype d = out[0].dtype;
  if (!is_floating(d) && !is_integer(d)) {
    fail<TypeError>(op, ": a number dtype is needed, got ", in[0]);
  }
  return out;
}

constexpr auto replace = [](auto, auto b) { return b; };
constexpr auto plus = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
};
constexpr auto minus_update = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
};
constexpr auto times = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
};
template <bool larger>
constexpr auto extreme = [](auto a, auto b) {  // NaN wins
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return (larger ? a < b : b < a) ? b : a;
};

// Windows in order of the indices, so the last of several plain updates stays.
template <auto combine>
Arrays scatter_eval(const Arrays& x, const Params& params, const Types& out) {
  const ScatterDimensionNumbers n = numbers_of(params);
  const std::size_t width = itemsize(out[0].dtype);
  NewArray result(out[0]);
  copy_strided(content(x[0]).elements, {1}, result.bytes(), {1}, {result.size()}, width);
  if (x[2].size() == 0 || result.size() == 0) return {std::move(result).finish()};
  const Windows windows(inverse(n), x[0].shape(), x[1].shape(),
                        slice_sizes_of(n, x[0].ndim(), x[2].shape()), x[2].shape());
  const std::vector<Loop> loops =
      merged_loops(windows.window_strides, windows.operand_strides, windows.sizes);
  const Loop row = loops.back();
  visit_dtype(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    const T* updates = elements<T>(x[2]);
    T* operand = result.data<T>();
    for_each_window(
        windows, index_values(x[1]), /*clamp=*/mode_of(params) == GatherScatterMode::clip,
        [&](std::int64_t to, std::int64_t from, bool is_inside) {
          if (!is_inside) return;
          for_each_row(loops, [&](std::int64_t f, std::int64_t t) {
            for (std::int64_t i = 0; i < row.size; ++i) {
              T& element = operand[to + t + i * row.to];
              const T update = updates[from + f + i * row.from];
              element = static_cast<T>(combine(static_cast<C>(element), static_cast<C>(update)));
            }
          });
        });
  });
  return {std::move(result).finish()};
}

// ---------------------------------------------------------------------------- derivative: scatter
// Shares of the derivative rules: operand, indices, updates and how they belong together.
struct Scatter {
  Scatter(const Arrays& x, const Params& params)
      : indices(x[1]),
        numbers(numbers_of(params)),
        options(options_of(params)),
        gather_numbers(inverse(numbers)),
        slice_sizes(slice_sizes_of(numbers, x[0].ndim(), x[2].shape())) {}

  Array read(const Array& from) const {  // the windows of `from` that are written
    return gather(from, indices, gather_numbers, slice_sizes,
                  {.mode = GatherScatterMode::promise_in_bounds});
  }
  Array indices;
  ScatterDimensionNumbers numbers;
  ScatterOptions options;
  GatherDimensionNumbers gather_numbers;
  Ints slice_sizes;
};

Array tangent_or_zeros(const Array& x, const Tangent& dx) { return dx ? *dx : zeros(x.type()); }

Array keep_where(const Array& condition, const Array& x) {
  const Array nothing = full_like(x.type(), 0);
  return select_n(condition, {nothing, x});
}
Array is_zero(const Array& ids) {
  const Array nothing = full_like(ids.type(), 0);
  return eq(ids, nothing);
}

// Several updates may hit one element and it is open which one stays: each update gets a number,
// the numbers are scattered, and those that stayed tell which values and tangents count.
Duals scatter_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const Array d_operand = tangent_or_zeros(x[0], dx[0]);
  const Array d_updates = tangent_or_zeros(x[2], dx[2]);
  const Scatter s(x, params);
  if (s.options.unique_indices) {
    const Array y = scatter_p.bind1(x, params);
    return {{y}, {scatter_p.bind1({d_operand, s.indices, d_updates}, params)}};
  }
  Shape ids_shape = x[2].shape();
  for (std::int64_t d : s.numbers.update_window_dims) ids_shape[static_cast<std::size_t>(d)] = 1;
  const std::int64_t count = element_count(ids_shape);
  const Dtype id = count < std::int64_t{0xffffffff} ? Dtype::u32 : Dtype::u64;
  const Array counted = iota(id, {count}, 0);
  const Array numbered = reshape(counted, ids_shape);
  const Array one = full_like(Type{id, x[2].shape()}, 1);
  const Array ids = add(numbered, one);
  const Array no_ids = full_like(Type{id, x[0].shape()}, 0);
  const Array stayed = scatter(no_ids, s.indices, ids, s.numbers, s.options);
  const Array stayed_ids = s.read(stayed);

  const Array untouched = is_zero(stayed);
  const Array operand = keep_where(untouched, x[0]);
  const Array counts = eq(ids, stayed_ids);
  const Array updates = keep_where(counts, x[2]);
  const Array untouched_again = is_zero(stayed);
  const Array masked_d_operand = keep_where(untouched_again, d_operand);
  const Array counts_again = eq(ids, stayed_ids);
  const Array masked_d_updates = keep_where(counts_again, d_updates);
  const Array y = scatter_add(operand, s.indices, updates, s.numbers, s.options);
  const Array dy = scatter_add(masked_d_operand, s.indices, masked_d_updates, s.numbers, s.options);
  return {{y}, {dy}};
}

// ------------------------------------------------------------------------ derivative: the others
template <const Primitive& p>  // scatter-add and -sub are linear
Tangents linear_scatter_tangent(const Arrays& x, const Tangents& dx, const Arrays&,
                                const Params& params) {
  const Array d_operand = tangent_or_zeros(x[0], dx[0]);
  const Array d_updates = tangent_or_zeros(x[2], dx[2]);
  return {p.bind1({d_operand, x[1], d_updates}, params)};
}

Tangents scatter_mul_tangent(const Arrays& x, const Tangents& dx, const Arrays&,
                             const Params& params) {
  Tangent by_operand, by_updates;
  if (dx[0]) by_operand = scatter_mul_p.bind1({*dx[0], x[1], x[2]}, params);
  if (dx[2]) {
    const Scatter s(x, params);
    if (!s.options.unique_indices) {
      fail_with_hint<RuleError>(
          "set unique_indices",
          "scatter-mul: no derivative by the updates when indices may repeat, "
          "got unique_indices=False");
    }
    const Array nothing = full_like(x[0].type(), 0);
    const Array placed = scatter_add(nothing, x[1], *dx[2], s.numbers, s.options);
    by_updates = mul(x[0], placed);
  }
  return {add_tangents(by_operand, by_updates)};
}

Array reciprocal(const Array& x) { return div(const_like(x, 1), x); }

// Values that are equally extreme share the tangent: all updates that won and, if it is still
// there, the old value.
Tangents scatter_extreme_tangent(const Arrays& x, const Tangents& dx, const Arrays& y,
                                 const Params& params) {
  const Array d_operand = tangent_or_zeros(x[0], dx[0]);
  const Array d_updates = tangent_or_zeros(x[2], dx[2]);
  const Scatter s(x, params);
  const Type &operand = x[0].type(), &updates = x[2].type();
  const Array initial = s.read(x[0]);
  const Array target = s.read(y[0]);
  const Array won = eq(x[2], target);
  const Array retained = eq(initial, target);

  const Array none = full_like(operand, 0);
  const Array one = full_like(updates, 1);
  const Array zero = full_like(updates, 0);
  const Array won_as_number = select_n(won, {zero, one});
  const Array winners = s.read(scatter_add(none, s.indices, won_as_number, s.numbers));
  const Array none_again = full_like(operand, 0);
  const Array one_again = full_like(updates, 1);
  const Array writers = s.read(scatter_add(none_again, s.indices, one_again, s.numbers));

  const Array with_old = add(winners, const_like(winners, 1));
  const Array share_with_old = reciprocal(with_old);
  const Array share_without = reciprocal(winners);
  const Array share = select_n(retained, {share_without, share_with_old});
  const Array updates_weight = keep_where(won, share);
  const Array with_old_again = add(winners, const_like(winners, 1));
  const Array share_again = reciprocal(with_old_again);
  const Array operand_share = keep_where(retained, share_again);
  const Array change = add(const_like(operand_share, -1), operand_share);
  const Array operand_weight = div(change, writers);

  const Array d_target = s.read(d_operand);
  const Array d_old = mul(d_target, operand_weight);
  const Array d_new = mul(d_updates, updates_weight);
  const Array d_windows = add(d_old, d_new);
  return {scatter_add(d_operand, s.indices, d_windows, s.numbers, s.options)};
}

// -------------------------------------------------------------------------------------- transpose
// The cotangents of the updates: the windows that they were written to, 0 where they were dropped.
Array read_updates(const Array& ct, const Primals& x, const Types& in, const Params& params) {
  const ScatterDimensionNumbers n = numbers_of(params);
  return gather(ct, *x[1], inverse(n), slice_sizes_of(n, in[0].ndim(), in[2].shape),
                {.mode = mode_of(params), .fill_value = 0});
}

Tangents scatter_transpose(const Tangents& ct, const Primals& x, const Types& in,
                           const Params& params) {
  if (!params.get<bool>("unique_indices")) {
    fail_with_hint<RuleError>("set unique_indices",
                              "scatter: no transpose when indices may repeat, "
                              "got unique_indices=False");
  }
  Tangents out(3);
  if (!x[0]) {
    const Array nothing = zeros(in[2]);
    out[0] = scatter_p.bind1({*ct[0], *x[1], nothing}, params);
  }
  if (!x[2]) out[2] = read_updates(*ct[0], x, in, params);
  return out;
}
Tangents scatter_add_transpose(const Tangents& ct, const Primals& x, const Types& in,
                               const Params& params) {
  Tangents out(3);
  if (!x[0]) out[0] = *ct[0];
  if (!x[2]) out[2] = read_updates(*ct[0], x, in, params);
  return out;
}
Tangents scatter_sub_transpose(const Tangents& ct, const Primals& x, const Types& in,
                               const Params& params) {
  Tangents out = scatter_add_transpose(ct, x, in, params);
  if (out[2]) out[2] = neg(*out[2]);
  return out;
}
Tangents scatter_mul_transpose(const Tangents& ct, const Primals& x, const Types& in,
                               const Params& params) {
  if (!x[2]) {
    const Array scaled = mul(*ct[0], *x[0]);
    return {std::nullopt, std::nullopt, read_updates(scaled, x, in, params)};
  }
  const ProgramPtr update = update_program(mul_p, in[0].dtype, UpdateUse::transposed);
  return {scatter_mul_p.bind1({*ct[0], *x[1], *x[2]}, params.with("update_jaxpr", update)),
          std::nullopt, std::nullopt};
}

// ----------------------------------------------------------------------------------- batch, parse
Batched scatter_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t size,
                      const Params& params) {
  ScatterDimensionNumbers n = numbers_of(params);
  Arrays operands = x;
  operands[0] = mapped_in_front(x[0], axes[0], size);
  operands[2] = mapped_in_front(x[2], axes[2], size);
  n.update_window_dims = shifted(n.update_window_dims);
  n.inserted_window_dims = shifted(n.inserted_window_dims);
  n.scatter_dims_to_operand_dims = shifted(n.scatter_dims_to_operand_dims);
  n.operand_batching_dims = shifted(n.operand_batching_dims);
  if (axes[1]) {
    operands[1] = moveaxis(x[1], *axes[1], 0);
    n.operand_batching_dims = with_leading_zero(n.operand_batching_dims);
    n.scatter_indices_batching_dims = with_leading_zero(shifted(n.scatter_indices_batching_dims));
  } else {
    n.update_window_dims = with_leading_zero(n.update_window_dims);
  }
  const auto numbers = std::make_shared<const ScatterNumbers>(std::move(n));
  return {self.bind(operands, params.with("dimension_numbers", numbers)), {0}};
}

Params scatter_parsed(const Params& printed, const Types&, const Types&) {
  const Attr* numbers = printed.find("dimension_numbers");
  const auto* text = numbers ? std::get_if<std::string>(numbers) : nullptr;
  if (text == nullptr) return printed;
  return printed.with("dimension_numbers",
                      std::make_shared<const ScatterNumbers>(parse_scatter_numbers(*text)));
}

constexpr ParamRule scatter_rules[] = {{"dimension_numbers", form::object},
                                       {"indices_are_sorted", form::flag, "False"},
                                       {"mode", form::text},
                                       {"unique_indices", form::flag, "False"},
                                       {"update_consts", form::ints, "()"},
                                       {"update_jaxpr", form::none | form::program, "None"}};

constexpr char scatter_name[] = "scatter", add_name[] = "scatter-add", sub_name[] = "scatter-sub",
               mul_name[] = "scatter-mul", min_name[] = "scatter-min", max_name[] = "scatter-max";

constexpr Primitive scattering(const char* name, decltype(Primitive::type) type,
                               decltype(Primitive::eval) eval, decltype(Primitive::tangent) tangent,
                               decltype(Primitive::transpose) transpose = nullptr,
                               decltype(Primitive::jvp) jvp = nullptr) {
  return {.name = name,
          .kind = Kind::index,
          .type = type,
          .eval = eval,
          .tangent = tangent,
          .jvp = jvp,
          .transpose = transpose,
          .batch = scatter_batch,
          .param_rules = scatter_rules,
          .parsed_params = scatter_parsed};
}

}  // namespace

// clang-format off
constinit const Primitive
    scatter_p     = scattering(scatter_name, typed<scatter_name>, scatter_eval<replace>, nullptr,
                               scatter_transpose, scatter_jvp),
    scatter_add_p = scattering(add_name, typed_number<add_name>, scatter_eval<plus>,
                               linear_scatter_tangent<scatter_add_p>, scatter_add_transpose),
    scatter_sub_p = scattering(sub_name, typed_number<sub_name>, scatter_eval<minus_update>,
                               linear_scatter_tangent<scatter_sub_p>, scatter_sub_transpose),
    scatter_mul_p = scattering(mul_name, typed_number<mul_name>, scatter_eval<times>,
                               scatter_mul_tangent, scatter_mul_transpose),
    scatter_min_p = scattering(min_name, typed<min_name>, scatter_eval<extreme<false>>,
                               scatter_extreme_tangent),
    scatter_max_p = scattering(max_name, typed<max_name>, scatter_eval<extreme<true>>,
                               scatter_extreme_tangent);
// clang-format on

namespace lax {
namespace {

Array bind_scatter(const Primitive& p, const Primitive* combine, const Operand& x,
                   const Operand& indices, const Operand& updates,
                   const ScatterDimensionNumbers& numbers, const ScatterOptions& options) {
  const AtUser scope(x.at);
  const ProgramPtr update =
      combine ? update_program(*combine, x.array.dtype(), UpdateUse::forward) : nullptr;
  return p.bind1({x.array, indices.array, updates.array}, scatter_params(update, numbers, options));
}

}  // namespace

Array scatter(Operand x, Operand indices, Operand updates, const ScatterDimensionNumbers& numbers,
              const ScatterOptions& options) {
  return bind_scatter(scatter_p, nullptr, x, indices, updates, numbers, options);
}
Array scatter_add(Operand x, Operand indices, Operand updates,
                  const ScatterDimensionNumbers& numbers, const ScatterOptions& options) {
  return bind_scatter(scatter_add_p, &add_p, x, indices, updates, numbers, options);
}
Array scatter_mul(Operand x, Operand indices, Operand updates,
                  const ScatterDimensionNumbers& numbers, const ScatterOptions& options) {
  return bind_scatter(scatter_mul_p, &mul_p, x, indices, updates, numbers, options);
}
Array scatter_min(Operand x, Operand indices, Operand updates,
                  const ScatterDimensionNumbers& numbers, const ScatterOptions& options) {
  return bind_scatter(scatter_min_p, &min_p, x, indices, updates, numbers, options);
}
Array scatter_max(Operand x, Operand indices, Operand updates,
                  const ScatterDimensionNumbers& numbers, const ScatterOptions& options) {
  return bind_scatter(scatter_max_p, &max_p, x, indices, updates, numbers, options);
}

}  // namespace lax
}  // namespace reprise
