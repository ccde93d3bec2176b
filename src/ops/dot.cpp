// dot_general: products summed over contracting axes, one for each index of the batch axes.
//
//   out[batch, lhs free, rhs free] = sum over contracting of lhs * rhs
#include "ops/dot.h"

#include "ops/dot_vector.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/reduce.h"
#include "ops/shape.h"

#include <tuple>
#include <vector>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

constexpr const char* dims_key = "dimension_numbers";
constexpr const char* dtype_key = "preferred_element_type";

DotDims swapped(const DotDims& d) {
  return {d.rhs_contracting, d.lhs_contracting, d.rhs_batch, d.lhs_batch};
}
std::optional<Dtype> preferred(const Params& params) {
  const Attr* value = params.find(dtype_key);
  if (value == nullptr || std::holds_alternative<None>(*value)) return std::nullopt;
  return params.get<Dtype>(dtype_key);
}
Array dot_like(const Array& x, const Array& y, const DotDims& dims, const Params& params) {
  return dot_general_p.bind1({x, y}, params.with(dims_key, dims));
}

// ------------------------------------------------------------------------------------------ types
void check_pairs(const char* what, const Type& lhs, const Type& rhs, const Ints& a, const Ints& b) {
  if (a.size() != b.size()) {
    fail<TypeError>("dot_general: numbers of ", what, " axes differ, got ", python_tuple(a),
                    " (lhs) and ", python_tuple(b), " (rhs)\n  lhs ", lhs, ", rhs ", rhs);
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t m = lhs.shape[static_cast<std::size_t>(a[i])];
    const std::int64_t n = rhs.shape[static_cast<std::size_t>(b[i])];
    if (m == n) continue;
    fail<TypeError>("dot_general: ", what, " sizes differ, got ", m, " (lhs axis ", a[i], ") and ",
                    n, " (rhs axis ", b[i], ")\n  lhs ", lhs, ", rhs ", rhs);
  }
}
void check_operand(const char* what, const Type& t, const Ints& contracting, const Ints& batch) {
  Ints axes = batch;
  axes.insert(axes.end(), contracting.begin(), contracting.end());
  check_axes("dot_general", what, axes, t);
}

// Floating beats integers, more exponent beats less, wider beats narrower, signed beats unsigned.
auto precedence(Dtype d) {
  const int exponent = d == Dtype::f64 ? 4 : d == Dtype::f32 || d == Dtype::bf16 ? 3 : 2;
  const int bits = d == Dtype::bool_ ? 1 : static_cast<int>(8 * itemsize(d));
  const bool is_unsigned = d == Dtype::u8 || d == Dtype::u16 || d == Dtype::u32 || d == Dtype::u64;
  return std::tuple(is_floating(d) ? exponent : -1, bits, !is_unsigned);
}
Dtype result_dtype(const Type& lhs, const Type& rhs, std::optional<Dtype> wanted) {
  for (Dtype d : {lhs.dtype, rhs.dtype, wanted.value_or(lhs.dtype)}) {
    if (d == Dtype::float0 || d == Dtype::key) {
      fail<TypeError>("dot_general: a numeric dtype is needed, got ", d);
    }
  }
  const Dtype natural = precedence(lhs.dtype) < precedence(rhs.dtype) ? rhs.dtype : lhs.dtype;
  if (!wanted || *wanted == natural) return natural;
  if (!is_floating(natural) && itemsize(*wanted) < itemsize(natural)) {
    fail<TypeError>("dot_general: preferred_element_type is narrower than the result, got ",
                    *wanted, " for ", natural);
  }
  return *wanted;
}

Types dot_type(const Types& in, const Params& params) {
  expect_operands("dot_general", in, 2);
  const auto& d = params.get<DotDims>(dims_key);
  const Type &lhs = in[0], &rhs = in[1];
  check_operand("lhs", lhs, d.lhs_contracting, d.lhs_batch);
  check_operand("rhs", rhs, d.rhs_contracting, d.rhs_batch);
  check_pairs("batch", lhs, rhs, d.lhs_batch, d.rhs_batch);
  check_pairs("contracting", lhs, rhs, d.lhs_contracting, d.rhs_contracting);
  Type out{result_dtype(lhs, rhs, preferred(params)), sizes_at(lhs.shape, d.lhs_batch),
           lhs.weak_type && rhs.weak_type};
  for (std::int64_t a : other_axes(lhs.ndim(), d.lhs_contracting, d.lhs_batch)) {
    out.shape.push_back(lhs.shape[static_cast<std::size_t>(a)]);
  }
  for (std::int64_t a : other_axes(rhs.ndim(), d.rhs_contracting, d.rhs_batch)) {
    out.shape.push_back(rhs.shape[static_cast<std::size_t>(a)]);
  }
  return {std::move(out)};
}

// ------------------------------------------------------------------------------------- evaluation
// One operand with its axes in the order [batch, free, contracting] or [batch, contracting, free],
// as numbers of type P; shares the elements when they already are.
template <class P>
class Packed {
 public:
  Packed(const Array& x, const Ints& permutation) : source_(x) {
    if constexpr (std::is_floating_point_v<P>) {
      if (x.dtype() == dtype_of<P>() && permutation == iota_ints(x.ndim())) {
        data_ = elements<P>(x);
        return;
      }
    }
    copy_.resize(static_cast<std::size_t>(x.size()));
    copy_permuted(x, permutation, copy_.data());
    data_ = copy_.data();
  }
  const P* data() const { return data_; }

 private:
  Array source_;
  std::vector<P> copy_;
  const P* data_ = nullptr;
};

Ints joined(const Ints& a, const Ints& b, const Ints& c) {
  Ints out = a;
  out.insert(out.end(), b.begin(), b.end());
  out.insert(out.end(), c.begin(), c.end());
  return out;
}

// P is float or double, or std::uint64_t for integers (which wrap around) and bool.
template <class P>
Array evaluate(const Array& lhs, const Array& rhs, const DotDims& d, const Type& type) {
  NewArray result(type);
  const Ints lhs_free = other_axes(lhs.ndim(), d.lhs_contracting, d.lhs_batch);
  const Ints rhs_free = other_axes(rhs.ndim(), d.rhs_contracting, d.rhs_batch);
  if (result.size() == 0) return std::move(result).finish();
  const MatrixSizes s{element_count(sizes_at(lhs.shape(), lhs_free)),
                      element_count(sizes_at(lhs.shape(), d.lhs_contracting)),
                      element_count(sizes_at(rhs.shape(), rhs_free))};
  const std::int64_t batches = element_count(sizes_at(lhs.shape(), d.lhs_batch));
  const Packed<P> a(lhs, joined(d.lhs_batch, lhs_free, d.lhs_contracting));
  const Packed<P> b(rhs, joined(d.rhs_batch, d.rhs_contracting, rhs_free));
  visit_dtype(type.dtype, [&](auto tag) {
    using Out = decltype(tag);
    for (std::int64_t i = 0; i < batches; ++i) {
      multiply_matrices(a.data() + i * s.m * s.k, b.data() + i * s.k * s.n,
                        result.data<Out>() + i * s.m * s.n, s);
    }
  });
  return std::move(result).finish();
}

// One side is a single vector and the other a matrix, all f32: sums in XLA's order.
std::optional<Array> evaluate_vector(const Array& lhs, const Array& rhs, const DotDims& d,
                                     const Type& type) {
  const auto is_vector = [](const Array& x, const Ints& contracting) {
    return x.size() == x.shape(contracting[0]);
  };
  if (!d.lhs_batch.empty() || d.lhs_contracting.size() != 1 || type.size() == 0)
    return std::nullopt;
  const bool lhs_vector = is_vector(lhs, d.lhs_contracting),
             rhs_vector = is_vector(rhs, d.rhs_contracting);
  if (!lhs_vector && !rhs_vector) return std::nullopt;
  const Array &matrix = lhs_vector ? rhs : lhs, &vector = lhs_vector ? lhs : rhs;
  const std::int64_t axis = lhs_vector ? d.rhs_contracting[0] : d.lhs_contracting[0];
  if (axis != 0 && axis != matrix.ndim() - 1) return std::nullopt;
  const std::int64_t k = matrix.shape(axis), n = type.size();
  NewArray result(type);
  if (axis == 0) {
    vector_times_matrix(elements<float>(vector), elements<float>(matrix), result.data<float>(), k,
                        n);
  } else {
    matrix_times_vector(elements<float>(matrix), elements<float>(vector), result.data<float>(), n,
                        k);
  }
  return std::move(result).finish();
}

Arrays dot_eval(const Arrays& x, const Params& params, const Types& out) {
  const auto& d = params.get<DotDims>(dims_key);
  const Dtype dtypes[] = {x[0].dtype(), x[1].dtype(), out[0].dtype};
  if (std::all_of(dtypes, dtypes + 3, [](Dtype t) { return t == Dtype::f32; })) {
    if (auto product = evaluate_vector(x[0], x[1], d, out[0])) return {*std::move(product)};
  }
  if (std::find(dtypes, dtypes + 3, Dtype::f64) != dtypes + 3) {
    return {evaluate<double>(x[0], x[1], d, out[0])};
  }
  if (std::any_of(dtypes, dtypes + 3, is_floating)) {
    return {evaluate<float>(x[0], x[1], d, out[0])};
  }
  return {evaluate<std::uint64_t>(x[0], x[1], d, out[0])};
}

// ------------------------------------------------------------------------------------ derivatives
Tangents dot_tangent(const Arrays& x, const Tangents& dx, const Arrays&, const Params& params) {
  Tangent a, b;
  if (dx[0]) a = dot_general_p.bind1({*dx[0], x[1]}, params);
  if (dx[1]) b = dot_general_p.bind1({x[0], *dx[1]}, params);
  return {add_tangents(a, b)};
}

// The cotangent of x in dot(x, y), or in dot(y, x) when `x_is_rhs`; d is as in dot(x, y).
//   dot(ct, y) has the axes [batch, x free, x contracting in the order of y's]
Array cotangent(const Array& ct, const Type& x, const Array& y, const DotDims& d, bool x_is_rhs,
                const Params& params) {
  const Ints x_free = other_axes(x.ndim(), d.lhs_contracting, d.lhs_batch);
  const Ints y_free = other_axes(y.ndim(), d.rhs_contracting, d.rhs_batch);
  const auto batch = static_cast<std::int64_t>(d.lhs_batch.size());
  const std::int64_t first = batch + (x_is_rhs ? 0 : static_cast<std::int64_t>(x_free.size()));
  Ints ct_y = iota_ints(static_cast<std::int64_t>(y_free.size()));
  for (std::int64_t& axis : ct_y) axis += first;
  const Array unordered = dot_like(ct, y, {ct_y, y_free, iota_ints(batch), d.rhs_batch}, params);

  Ints order = iota_ints(static_cast<std::int64_t>(d.rhs_contracting.size()));
  std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return d.rhs_contracting[static_cast<std::size_t>(i)] <
           d.rhs_contracting[static_cast<std::size_t>(j)];
  });
  const Ints layout = joined(d.lhs_batch, x_free, sizes_at(d.lhs_contracting, order));
  const Array back = transpose(unordered, inverse_permutation(layout));
  return back.dtype() == x.dtype ? back : convert(back, x.dtype, x.weak_type);
}

Tangents dot_transpose(const Tangents& ct, const Primals& x, const Types& in,
                       const Params& params) {
  if (!x[0] && !x[1]) fail<RuleError>("dot_general: not linear, got two linear operands");
  const auto& d = params.get<DotDims>(dims_key);
  if (!x[0]) return {cotangent(*ct[0], in[0], *x[1], d, false, params), std::nullopt};
  return {std::nullopt, cotangent(*ct[0], in[1], *x[0], swapped(d), true, params)};
}

// --------------------------------------------------------------------------------------- batching
// Both operands mapped: one more batch axis, in front. One mapped: one more free axis.
Batched dot_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t,
                  const Params& params) {
  DotDims d = params.get<DotDims>(dims_key);
  std::int64_t out_axis = 0;
  const auto before = [](const Array& a, std::int64_t axis, const Ints& b, const Ints& c) {
    const Ints free = other_axes(a.ndim(), b, c);
    return std::count_if(free.begin(), free.end(), [&](std::int64_t f) { return f < axis; });
  };
  if (axes[0]) {
    d.lhs_batch = shifted_axes(d.lhs_batch, *axes[0]);
    d.lhs_contracting = shifted_axes(d.lhs_contracting, *axes[0]);
  }
  if (axes[1]) {
    d.rhs_batch = shifted_axes(d.rhs_batch, *axes[1]);
    d.rhs_contracting = shifted_axes(d.rhs_contracting, *axes[1]);
  }
  if (axes[0] && axes[1]) {
    d.lhs_batch.insert(d.lhs_batch.begin(), *axes[0]);
    d.rhs_batch.insert(d.rhs_batch.begin(), *axes[1]);
  } else if (axes[0]) {
    out_axis = static_cast<std::int64_t>(d.lhs_batch.size()) +
               before(x[0], *axes[0], d.lhs_contracting, d.lhs_batch);
  } else {
    out_axis = x[0].ndim() - static_cast<std::int64_t>(d.lhs_contracting.size()) +
               before(x[1], *axes[1], d.rhs_contracting, d.rhs_batch);
  }
  return {{dot_like(x[0], x[1], d, params)}, {out_axis}};
}

// Sums are always in the wider type: no precision asks for more.
constexpr ParamRule dot_rules[] = {{dims_key, form::dims},
                                   {"out_sharding", form::none, absent},
                                   {"out_type", form::none, unused},
                                   {"precision", form::none | form::text, absent},
                                   {dtype_key, form::none | form::dtype, absent}};

}  // namespace

constinit const Primitive dot_general_p{.name = "dot_general",
                                        .kind = Kind::dot,
                                        .type = dot_type,
                                        .eval = dot_eval,
                                        .tangent = dot_tangent,
                                        .transpose = dot_transpose,
                                        .batch = dot_batch,
                                        .param_rules = dot_rules};

Array lax::dot_general(Operand lhs, Operand rhs, const DotDimensionNumbers& n,
                       std::optional<Dtype> preferred_element_type) {
  const AtUser at(rhs.at.line > lhs.at.line ? rhs.at : lhs.at);
  Params params{
      {dims_key, DotDims{n.lhs_contracting, n.rhs_contracting, n.lhs_batch, n.rhs_batch}}};
  if (preferred_element_type) params = params.with(dtype_key, *preferred_element_type);
  return dot_general_p.bind1({lhs.array, rhs.array}, std::move(params));
}

}  // namespace reprise
