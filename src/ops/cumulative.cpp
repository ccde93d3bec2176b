// Cumulative sums, products and extremes along one axis.
#include "ops/elementwise.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "ops/reduce.h"
#include "ops/shape.h"

#include <cmath>
#include <limits>
#include <memory>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

template <Name name>
Types cumulative_type(const Types& in, const Params& params) {
  expect_operands(name.text, in, 1);
  elementwise::check_domain(name.text, Domain::number, in);
  check_axes(name.text, "cumulative", {params.get<std::int64_t>("axis")}, in[0]);
  return {in[0]};
}

// Results so far are kept as `base` (whole blocks) and `part` (the current block), so that the
// rounding error of long sums stays small.
template <class R, class T>
void accumulate(const T* in, T* out, std::int64_t n, std::int64_t inner, bool reverse) {
  using C = Compute<T>;
  constexpr std::int64_t block = 64;
  const auto columns = static_cast<std::size_t>(inner);
  const auto base = std::make_unique<C[]>(columns), part = std::make_unique<C[]>(columns);
  std::fill(base.get(), base.get() + inner, R::template neutral<C>());
  std::fill(part.get(), part.get() + inner, R::template neutral<C>());
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t row = (reverse ? n - 1 - step : step) * inner;
    const bool new_block = step % block == 0;
    for (std::int64_t j = 0; j < inner; ++j) {
      if (new_block) {
        base[j] = R::template combine<C>(base[j], part[j]);
        part[j] = R::template neutral<C>();
      }
      part[j] = R::template combine<C>(part[j], static_cast<C>(in[row + j]));
      out[row + j] = elementwise::to_element<T>(R::template combine<C>(base[j], part[j]));
    }
  }
}

template <class R, Domain domain>
Arrays accumulated(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  if (result.size() == 0) return {std::move(result).finish()};
  const auto axis = static_cast<std::size_t>(params.get<std::int64_t>("axis"));
  const std::int64_t n = x[0].shape()[axis], inner = row_major_strides(x[0].shape())[axis];
  const bool reverse = params.get<bool>("reverse");
  elementwise::visit_domain<domain>(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t at = 0; at < result.size(); at += n * inner) {
      accumulate<R>(elements<T>(x[0]) + at, result.data<T>() + at, n, inner, reverse);
    }
  });
  return {std::move(result).finish()};
}
template <class R>
Arrays cumulative_eval(const Arrays& x, const Params& params, const Types& out) {
  return accumulated<R, Domain::number>(x, params, out);
}

Types log_sum_type(const Types& in, const Params& params) {
  elementwise::check_domain("cumlogsumexp", Domain::floating, in);
  return cumulative_type<"cumlogsumexp">(in, params);
}
struct LogSum {
  template <class T>
  static T neutral() {
    return -std::numeric_limits<T>::infinity();
  }
  template <class T>
  static T combine(T a, T b) {
    const T m = Largest::combine(a, b);
    return std::isfinite(m) ? m + std::log(std::exp(a - m) + std::exp(b - m)) : m;
  }
};
Arrays log_sum_eval(const Arrays& x, const Params& params, const Types& out) {
  return accumulated<LogSum, Domain::floating>(x, params, out);
}

// ------------------------------------------------------------------------------------------ rules
Array cumulative_sum(const Array& x, const Params& params, bool reverse) {
  return cumsum_p.bind1({x}, params.with("reverse", reverse));
}
Tangents cumsum_tangent(const Arrays&, const Tangents& dx, const Arrays&, const Params& params) {
  return {cumulative_sum(*dx[0], params, params.get<bool>("reverse"))};
}
Tangents cumsum_transpose(const Tangents& ct, const Primals&, const Types&, const Params& params) {
  return {cumulative_sum(*ct[0], params, !params.get<bool>("reverse"))};
}

// The elements start, start + stride, ... below limit along one axis.
Dual strided(const Dual& d, std::size_t axis, std::int64_t start, std::int64_t limit,
             std::int64_t stride) {
  Ints starts(d.x.shape().size(), 0), limits = d.x.shape(), strides(d.x.shape().size(), 1);
  starts[axis] = std::min(start, limits[axis]);
  limits[axis] = std::max(limit, starts[axis]);
  strides[axis] = stride;
  return both(d, [&](const Array& v) { return slice(v, starts, limits, strides); });
}

Dual interleaved(const Dual& even, const Dual& odd, std::size_t axis) {
  const bool equal = even.x.shape()[axis] == odd.x.shape()[axis];
  std::vector<PadDimension> even_pad(even.x.shape().size()), odd_pad = even_pad;
  even_pad[axis] = {0, equal ? 1 : 0, 1};
  odd_pad[axis] = {1, equal ? 0 : 1, 1};
  const Dual a = both(even, [&](const Array& v) { return pad(v, const_like(v, 0), even_pad); });
  const Dual b = both(odd, [&](const Array& v) { return pad(v, const_like(v, 0), odd_pad); });
  const Array x = add(a.x, b.x);
  return {x, add(a.dx, b.dx)};
}

// The cumulative combination by halves: the odd elements are those of the combined pairs, the even
// ones follow from them.
using Combining = Dual (*)(const Dual&, const Dual&);
Dual scan(Combining p, const Dual& d, std::size_t axis) {
  const std::int64_t n = d.x.shape()[axis];
  if (n < 2) return d;
  const Dual firsts = strided(d, axis, 0, n - 1, 2);
  const Dual seconds = strided(d, axis, 1, n, 2);
  const Dual odd = scan(p, p(firsts, seconds), axis);
  const Dual before = n % 2 == 0 ? strided(odd, axis, 0, n / 2 - 1, 1) : odd;
  const Dual after = strided(d, axis, 2, n, 2);
  const Dual later = p(before, after);
  const Dual first = strided(d, axis, 0, 1, 1);
  const auto dimension = static_cast<std::int64_t>(axis);
  const Array x = concatenate({first.x, later.x}, dimension);
  const Dual even{x, concatenate({first.dx, later.dx}, dimension)};
  return interleaved(even, odd, axis);
}

template <const Primitive& p>
Dual by_primitive(const Dual& a, const Dual& b) {
  return combine(p, a, b);
}
// log(exp(a) + exp(b)): m = max(a, b), or 0 where that is infinite.
Dual by_log_sum(const Dual& a, const Dual& b) {
  const Array largest = max(a.x, b.x);
  const Array finite = is_finite(largest);
  const Array nothing = full_like(largest.type(), 0);
  const Array m = select_n(finite, {nothing, largest});
  const Array ea = exp(sub(a.x, m));
  const Array eb = exp(sub(b.x, m));
  const Array sum = add(ea, eb);
  const Array y = add(m, log(sum));
  const Array weighted_a = mul(a.dx, ea);
  const Array weighted_b = mul(b.dx, eb);
  const Array weighted = add(weighted_a, weighted_b);
  const Array is_nothing = eq(sum, const_like(sum, 0));
  const Array one = full_like(sum.type(), 1);
  const Array share = div(weighted, select_n(is_nothing, {sum, one}));
  return {y, share};
}

template <Combining p>
Duals scan_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const auto axis = params.get<std::int64_t>("axis");
  const bool reverse = params.get<bool>("reverse");
  const auto reversed = [&](const Array& v) { return rev(v, {axis}); };
  Dual d{x[0], *dx[0]};
  if (reverse) d = both(d, reversed);
  d = scan(p, d, static_cast<std::size_t>(axis));
  if (reverse) d = both(d, reversed);
  return {{d.x}, {d.dx}};
}

Batched cumulative_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                         const Params& params) {
  const Ints axis = shifted_axes({params.get<std::int64_t>("axis")}, *axes[0]);
  return {self.bind(x, params.with("axis", axis[0])), {axes[0]}};
}

constexpr ParamRule cumulative_rules[] = {{"axis", form::integer},
                                          {"reverse", form::flag, "False"}};

template <Name name, class R>
constexpr Primitive cumulative{.name = name.text,
                               .kind = Kind::reduce,
                               .type = cumulative_type<name>,
                               .eval = cumulative_eval<R>,
                               .batch = cumulative_batch,
                               .param_rules = cumulative_rules};
constexpr Primitive linear(Primitive p) {
  p.tangent = cumsum_tangent;
  p.transpose = cumsum_transpose;
  return p;
}
template <Combining combining>
constexpr Primitive scanned(Primitive p) {
  p.jvp = scan_jvp<combining>;
  return p;
}

constexpr Primitive log_sum{.name = "cumlogsumexp",
                            .kind = Kind::reduce,
                            .type = log_sum_type,
                            .eval = log_sum_eval,
                            .batch = cumulative_batch,
                            .param_rules = cumulative_rules};

}  // namespace

constinit const Primitive cumsum_p = linear(cumulative<"cumsum", Sum>),
                          cumprod_p = scanned<by_primitive<mul_p>>(cumulative<"cumprod", Product>),
                          cummax_p = scanned<by_primitive<max_p>>(cumulative<"cummax", Largest>),
                          cummin_p = scanned<by_primitive<min_p>>(cumulative<"cummin", Smallest>),
                          cumlogsumexp_p = scanned<by_log_sum>(log_sum);

namespace lax {
namespace {
Array bind_cumulative(const Primitive& p, const Operand& x, std::int64_t axis, bool reverse) {
  const AtUser at(x.at);
  return p.bind1({x.array}, {{"axis", axis}, {"reverse", reverse}});
}
}  // namespace

Array cumsum(Operand x, std::int64_t axis, bool reverse) {
  return bind_cumulative(cumsum_p, x, axis, reverse);
}
Array cumprod(Operand x, std::int64_t axis, bool reverse) {
  return bind_cumulative(cumprod_p, x, axis, reverse);
}
Array cummax(Operand x, std::int64_t axis, bool reverse) {
  return bind_cumulative(cummax_p, x, axis, reverse);
}
Array cummin(Operand x, std::int64_t axis, bool reverse) {
  return bind_cumulative(cummin_p, x, axis, reverse);
}
}  // namespace lax

}  // namespace reprise
