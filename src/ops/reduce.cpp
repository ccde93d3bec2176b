// Reductions over axes: sums, products, extremes, logic, and the positions of extremes.
#include "ops/reduce.h"

#include "ops/elementwise.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/shape.h"

#include <memory>
#include <vector>

namespace reprise {

// ------------------------------------------------------------------------------------------- axes
Ints other_axes(std::int64_t ndim, const Ints& a, const Ints& b) {
  Ints out;
  for (std::int64_t i = 0; i < ndim; ++i) {
    if (!contains(a, i) && !contains(b, i)) out.push_back(i);
  }
  return out;
}
Shape sizes_at(const Shape& shape, const Ints& axes) {
  Shape out;
  out.reserve(axes.size());
  for (std::int64_t a : axes) out.push_back(shape[static_cast<std::size_t>(a)]);
  return out;
}
void check_axes(std::string_view op, const char* what, const Ints& axes, const Type& type) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= type.ndim()) {
      fail<TypeError>(op, ": ", what, " axis is out of range, got axis ", axes[i], " of ", type);
    }
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      fail<TypeError>(op, ": ", what, " axes repeat, got axes ", python_tuple(axes), " of ", type);
    }
  }
}
Ints shifted_axes(const Ints& axes, std::int64_t at) {
  Ints out = axes;
  for (std::int64_t& a : out) a += a >= at ? 1 : 0;
  return out;
}
Ints inverse_permutation(const Ints& permutation) {
  Ints out(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    out[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  }
  return out;
}

std::int64_t largest_integer(Dtype d) {
  return visit_dtype(d, [](auto tag) -> std::int64_t {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> && sizeof(T) < 8) return std::numeric_limits<T>::max();
    return std::numeric_limits<std::int64_t>::max();
  });
}
Dtype index_dtype(std::int64_t size) {
  return size <= largest_integer(Dtype::i32) ? Dtype::i32 : Dtype::i64;
}

Dual combine(const Primitive& p, const Dual& a, const Dual& b) {
  const Array y = p.bind1({a.x, b.x});
  return {y, *p.tangent({a.x, b.x}, {a.dx, b.dx}, {y}, {})[0]};
}

namespace {

using namespace lax;  // NOLINT: rules read like formulas

// ------------------------------------------------------------------------------------ scalar code
struct All {
  template <class T>
  static T neutral() {
    if constexpr (std::is_same_v<T, bool>)
      return true;
    else
      return static_cast<T>(~T{0});
  }
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Any {
  template <class T>
  static T neutral() {
    return T{0};
  }
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct Odd {
  template <class T>
  static T neutral() {
    return T{0};
  }
  template <class T>
  static T combine(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// ------------------------------------------------------------------------------------- evaluation
constexpr std::int64_t lanes = 16;

// out[columns] = the reduction of in[rows, columns] over its rows, as a balanced tree: the rounding
// error of a sum grows with the logarithm of its length.
template <class R, class T, class C>
void reduce_rows(const T* in, std::int64_t rows, std::int64_t columns, C* out) {
  constexpr std::int64_t leaf = 32;
  if (rows <= leaf) {
    std::fill(out, out + columns, R::template neutral<C>());
    for (std::int64_t i = 0; i < rows; ++i, in += columns) {
      for (std::int64_t j = 0; j < columns; ++j) {
        out[j] = R::template combine<C>(out[j], static_cast<C>(in[j]));
      }
    }
    return;
  }
  const std::int64_t half = rows / 2;
  reduce_rows<R>(in, half, columns, out);
  const auto rest = std::make_unique<C[]>(static_cast<std::size_t>(columns));
  reduce_rows<R>(in + half * columns, rows - half, columns, rest.get());
  for (std::int64_t j = 0; j < columns; ++j) out[j] = R::template combine<C>(out[j], rest[j]);
}
// One contiguous run: `lanes` columns side by side, then those together with the rest.
template <class R, class T, class C>
C reduce_run(const T* in, std::int64_t n) {
  C total;
  if (n < 4 * lanes) {
    reduce_rows<R>(in, n, 1, &total);
    return total;
  }
  const std::int64_t rows = n / lanes;
  C partial[lanes + 1];
  reduce_rows<R>(in, rows, lanes, partial);
  reduce_rows<R>(in + rows * lanes, n - rows * lanes, 1, partial + lanes);
  reduce_rows<R>(partial, lanes + 1, 1, &total);
  return total;
}

// The operand as [outer, reduced, inner].
struct Split {
  std::int64_t outer = 1, reduced = 1, inner = 1;
};
// Splits at reduced axes that lie side by side; false when others stand between them.
bool split_at(const Shape& shape, const Ints& axes, Split& split) {
  bool after = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (contains(axes, static_cast<std::int64_t>(i))) {
      if (after && split.inner != 1) return false;
      split.reduced *= shape[i];
      after = true;
    } else {
      (after ? split.inner : split.outer) *= shape[i];
    }
  }
  return true;
}

template <class R, class T>
void reduce_split(const T* in, const Split& s, T* out) {
  using C = Compute<T>;
  if (s.inner == 1) {
    for (std::int64_t i = 0; i < s.outer; ++i) {
      out[i] = elementwise::to_element<T>(reduce_run<R, T, C>(in + i * s.reduced, s.reduced));
    }
    return;
  }
  const auto row = std::make_unique<C[]>(static_cast<std::size_t>(s.inner));
  for (std::int64_t i = 0; i < s.outer; ++i) {
    reduce_rows<R>(in + i * s.reduced * s.inner, s.reduced, s.inner, row.get());
    for (std::int64_t j = 0; j < s.inner; ++j) *out++ = elementwise::to_element<T>(row[j]);
  }
}

template <class R, Domain domain>
Arrays reduce_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  if (result.size() == 0) return {std::move(result).finish()};
  const auto& axes = params.get<Ints>("axes");
  Split split;
  const bool in_place = split_at(x[0].shape(), axes, split);
  Array from = x[0];
  if (!in_place) {  // move the reduced axes to the end
    Ints order = other_axes(from.ndim(), axes);
    split = {result.size(), element_count(sizes_at(from.shape(), axes)), 1};
    order.insert(order.end(), axes.begin(), axes.end());
    from = transpose_p.eval({from}, {{"permutation", order}},
                            {Type{from.dtype(), sizes_at(from.shape(), order)}})[0];
  }
  elementwise::visit_domain<domain>(from.dtype(), [&](auto tag) {
    using T = decltype(tag);
    reduce_split<R>(elements<T>(from), split, result.data<T>());
  });
  return {std::move(result).finish()};
}

// The first NaN, else the first extreme.
template <bool largest>
Arrays arg_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  Split s;
  split_at(x[0].shape(), params.get<Ints>("axes"), s);
  visit_dtype(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = elements<T>(x[0]);
    const auto better = [](Compute<T> a, Compute<T> b) {
      return b == b && (a != a || (largest ? a > b : a < b));
    };
    visit_dtype(out[0].dtype, [&](auto index_tag) {
      using I = decltype(index_tag);
      for (std::int64_t i = 0; i < result.size(); ++i) {
        const T* run = in + (i / s.inner) * s.reduced * s.inner + i % s.inner;
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < s.reduced; ++k) {
          if (better(static_cast<Compute<T>>(run[k * s.inner]),
                     static_cast<Compute<T>>(run[best * s.inner]))) {
            best = k;
          }
        }
        result.data<I>()[i] = elementwise::to_element<I>(best);
      }
    });
  });
  return {std::move(result).finish()};
}

// ------------------------------------------------------------------------------------------ types
template <Name name, Domain domain>
Types reduce_type(const Types& in, const Params& params) {
  expect_operands(name.text, in, 1);
  elementwise::check_domain(name.text, domain, in);
  const auto& axes = params.get<Ints>("axes");
  check_axes(name.text, "reduced", axes, in[0]);
  Type out = in[0];
  out.shape = sizes_at(in[0].shape, other_axes(in[0].ndim(), axes));
  if (domain == Domain::integral) out.weak_type = false;
  return {std::move(out)};
}
template <Name name>
Types arg_type(const Types& in, const Params& params) {
  Type out = reduce_type<name, Domain::any>(in, params)[0];
  const auto& axes = params.get<Ints>("axes");
  if (axes.size() != 1) {
    fail<TypeError>(name.text, ": one axis is needed, got axes ", python_tuple(axes));
  }
  const std::int64_t axis = axes[0];
  if (in[0].shape[static_cast<std::size_t>(axis)] == 0) {
    fail<TypeError>(name.text, ": the reduced axis must not be empty, got axis ", axis, " of ",
                    in[0]);
  }
  out.dtype = params.get<Dtype>("index_dtype");
  if (!is_integer(out.dtype)) {
    fail<TypeError>(name.text, ": index_dtype must be an integer, got ", out.dtype);
  }
  if (in[0].shape[static_cast<std::size_t>(axis)] - 1 > largest_integer(out.dtype)) {
    fail_with_hint<TypeError>("take int64", name.text, ": positions must fit index_dtype, got ",
                              out.dtype, " for axis ", axis, " of ", in[0]);
  }
  out.weak_type = false;
  return {std::move(out)};
}

// ------------------------------------------------------------------------------------------ rules
Tangents sum_tangent(const Arrays&, const Tangents& dx, const Arrays&, const Params& params) {
  return {reduce_sum_p.bind1({*dx[0]}, params)};
}
Tangents sum_transpose(const Tangents& ct, const Primals&, const Types& in, const Params& params) {
  const Ints kept = other_axes(in[0].ndim(), params.get<Ints>("axes"));
  if (static_cast<std::int64_t>(kept.size()) == in[0].ndim()) return {*ct[0]};
  return {
      broadcast_in_dim_p.bind1({*ct[0]}, {{"broadcast_dimensions", kept},
                                          {"shape", in[0].shape},
                                          {numpy_ints, static_cast<std::int64_t>(kept.size())}})};
}

// The mean of the tangents where the extreme is reached.
Tangents extreme_tangent(const Arrays& x, const Tangents& dx, const Arrays& y,
                         const Params& params) {
  const auto& axes = params.get<Ints>("axes");
  Shape kept = x[0].shape();
  for (std::int64_t a : axes) kept[static_cast<std::size_t>(a)] = 1;
  const Array extreme = reshape(y[0], kept);
  const Array reached = eq(x[0], extreme);
  const Array mask = convert_element_type(reached, dx[0]->dtype());
  const Array count = reduce_sum(mask, axes);
  const Array masked = mul(*dx[0], mask);
  const Array sum = reduce_sum(masked, axes);
  return {div(sum, count)};
}

// Products of halves of halves: exact also where elements are zero.
Duals prod_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto& axes = params.get<Ints>("axes");
  const Ints kept = other_axes(x[0].ndim(), axes);
  Ints order = axes;
  order.insert(order.end(), kept.begin(), kept.end());
  Shape shape = sizes_at(x[0].shape(), kept);
  shape.insert(shape.begin(), element_count(sizes_at(x[0].shape(), axes)));
  Dual d{x[0], *dx[0]};
  d = both(d, [&](const Array& v) {
    const Array in_front = transpose(v, order);
    return reshape(in_front, shape);
  });
  if (shape[0] == 0) {
    const Shape rest(shape.begin() + 1, shape.end());
    return {{full(rest, const_like(x[0], 1), x[0].dtype())}, {std::nullopt}};
  }
  const Ints ones(shape.size(), 1);
  while (d.x.shape(0) > 1) {
    const std::int64_t n = d.x.shape(0), half = (n + 1) / 2;
    Ints start(shape.size(), 0), limit = d.x.shape();
    limit[0] = half;
    const Dual first = both(d, [&](const Array& v) { return slice(v, start, limit, ones); });
    start[0] = half;
    limit[0] = n;
    Dual second = both(d, [&](const Array& v) { return slice(v, start, limit, ones); });
    if (n - half != half) {
      std::vector<PadDimension> config(shape.size());
      config[0].high = 1;
      const Array padded = pad(second.x, const_like(second.x, 1), config);
      second = {padded, pad(second.dx, const_like(second.dx, 0), config)};
    }
    d = combine(mul_p, first, second);
  }
  d = both(d, [](const Array& v) { return squeeze(v, {0}); });
  return {{d.x}, {d.dx}};
}

Batched reduce_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                     const Params& params) {
  const Ints reduced = shifted_axes(params.get<Ints>("axes"), *axes[0]);
  const auto before =
      std::count_if(reduced.begin(), reduced.end(), [&](std::int64_t a) { return a < *axes[0]; });
  const Params shifted =
      params.with("axes", reduced).with(numpy_ints, static_cast<std::int64_t>(reduced.size()));
  return {self.bind(x, shifted), {*axes[0] - before}};
}

constexpr ParamRule axes_rules[] = {{"axes", form::ints}, {"out_sharding", form::none, unused}};
constexpr ParamRule sum_rules[] = {{"axes", form::ints}, {"out_sharding", form::none, "None"}};
constexpr ParamRule position_rules[] = {{"axes", form::ints}, {"index_dtype", form::dtype}};

template <Name name, Domain domain, class R>
constexpr Primitive reduction{.name = name.text,
                              .kind = Kind::reduce,
                              .type = reduce_type<name, domain>,
                              .eval = reduce_eval<R, domain>,
                              .tangent = elementwise::zero_tangent,
                              .batch = reduce_batch,
                              .param_rules = axes_rules};
template <Name name, bool largest>
constexpr Primitive position{.name = name.text,
                             .kind = Kind::reduce,
                             .type = arg_type<name>,
                             .eval = arg_eval<largest>,
                             .tangent = elementwise::zero_tangent,
                             .batch = reduce_batch,
                             .param_rules = position_rules};

constexpr Primitive with_tangent(Primitive p, decltype(Primitive::tangent) tangent) {
  p.tangent = tangent;
  return p;
}
constexpr Primitive sum(Primitive p, decltype(Primitive::tangent) tangent,
                        decltype(Primitive::transpose) transpose) {
  p.tangent = tangent;
  p.transpose = transpose;
  p.param_rules = sum_rules;
  return p;
}
constexpr Primitive with_jvp(Primitive p, decltype(Primitive::jvp) jvp) {
  p.tangent = nullptr;
  p.jvp = jvp;
  return p;
}

}  // namespace

// clang-format off
constinit const Primitive
    reduce_sum_p  = sum(reduction<"reduce_sum", Domain::number, Sum>, sum_tangent,
                        sum_transpose),
    reduce_prod_p = with_jvp(reduction<"reduce_prod", Domain::number, Product>, prod_jvp),
    reduce_max_p  = with_tangent(reduction<"reduce_max", Domain::any, Largest>, extreme_tangent),
    reduce_min_p  = with_tangent(reduction<"reduce_min", Domain::any, Smallest>, extreme_tangent),
    reduce_and_p  = reduction<"reduce_and", Domain::integral, All>,
    reduce_or_p   = reduction<"reduce_or", Domain::integral, Any>,
    reduce_xor_p  = reduction<"reduce_xor", Domain::integral, Odd>,
    argmax_p      = position<"argmax", true>,
    argmin_p      = position<"argmin", false>;
// clang-format on

namespace lax {
namespace {
Array reduce(const Primitive& p, const Operand& x, const Ints& axes) {
  const AtUser at(x.at);
  return p.bind1({x.array}, {{"axes", axes}});
}
Array position_of(const Primitive& p, const Operand& x, std::int64_t axis, Dtype index_dtype) {
  const AtUser at(x.at);
  return p.bind1({x.array}, {{"axes", Ints{axis}}, {"index_dtype", index_dtype}});
}
}  // namespace

Array reduce_sum(Operand x, const Ints& axes) {
  const AtUser at(x.at);
  return reduce_sum_p.bind1({x.array}, {{"axes", axes}, {"out_sharding", None{}}});
}
Array reduce_prod(Operand x, const Ints& axes) { return reduce(reduce_prod_p, x, axes); }
Array reduce_max(Operand x, const Ints& axes) { return reduce(reduce_max_p, x, axes); }
Array reduce_min(Operand x, const Ints& axes) { return reduce(reduce_min_p, x, axes); }
Array reduce_and(Operand x, const Ints& axes) { return reduce(reduce_and_p, x, axes); }
Array reduce_or(Operand x, const Ints& axes) { return reduce(reduce_or_p, x, axes); }
Array argmax(Operand x, std::int64_t axis, Dtype index_dtype) {
  return position_of(argmax_p, x, axis, index_dtype);
}
Array argmin(Operand x, std::int64_t axis, Dtype index_dtype) {
  return position_of(argmin_p, x, axis, index_dtype);
}
}  // namespace lax

}  // namespace reprise
