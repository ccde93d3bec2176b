// Choosing among operands: select_n and clamp.
//
//   select_n which case_0 case_1 ...   case_i where which == i (bool or i32 index)
//   clamp min x max                    x limited to [min, max]
#include "ops/elementwise.h"
#include "ops/records.h"
#include "ops/shape.h"

#include <algorithm>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

// --------------------------------------------------------------------------------------- select_n
Types select_type(const Types& in, const Params&) {
  if (in.size() < 2) fail<TypeError>("select_n: at least one case is needed, got none");
  const Type& which = in[0];
  if (which.dtype != Dtype::bool_ && which.dtype != Dtype::i32) {
    fail<TypeError>("select_n: which must be bool or i32, got ", which);
  }
  if (which.dtype == Dtype::bool_ && in.size() > 3) {
    fail<TypeError>("select_n: a bool chooses between two cases, got ", in.size() - 1, " cases");
  }
  Type out = in[1];
  for (std::size_t i = 2; i < in.size(); ++i) {
    if (in[i].dtype != out.dtype || in[i].shape != out.shape) {
      fail<TypeError>("select_n: cases must have equal shapes and dtypes, got ", in[1], " and ",
                      in[i]);
    }
    out.weak_type = out.weak_type && in[i].weak_type;
  }
  if (!which.shape.empty() && which.shape != out.shape) {
    fail<TypeError>("select_n: which must be a scalar or have the shape of the cases, got ", which,
                    " and ", in[1]);
  }
  return {std::move(out)};
}

// An element of 1, 2, 4 or 8 bytes is copied, whatever it means.
template <class Which, class Element>
void choose(const Arrays& x, NewArray& result) {
  const Which* which = elements<Which>(x[0]);
  const std::int64_t step = x[0].ndim() == 0 ? 0 : 1;
  const auto last = static_cast<std::int64_t>(x.size()) - 2;
  std::vector<const Element*> cases;
  for (std::size_t i = 1; i < x.size(); ++i) cases.push_back(elements<Element>(x[i]));
  Element* to = result.data<Element>();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const auto k = std::clamp<std::int64_t>(which[i * step], 0, last);
    to[i] = cases[static_cast<std::size_t>(k)][i];
  }
}
template <class Which>
void choose_by_width(const Arrays& x, NewArray& result) {
  switch (itemsize(x[1].dtype())) {
    case 1: return choose<Which, std::uint8_t>(x, result);
    case 2: return choose<Which, std::uint16_t>(x, result);
    case 4: return choose<Which, std::uint32_t>(x, result);
    default: return choose<Which, std::uint64_t>(x, result);
  }
}
Arrays select_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  if (x[0].dtype() == Dtype::bool_) {
    choose_by_width<bool>(x, result);
  } else {
    choose_by_width<std::int32_t>(x, result);
  }
  return {std::move(result).finish()};
}

Tangents select_tangent(const Arrays& x, const Tangents& dx, const Arrays&, const Params&) {
  const auto first =
      std::find_if(dx.begin() + 1, dx.end(), [](const Tangent& t) { return t.has_value(); });
  if (first == dx.end()) return {std::nullopt};
  const Array zero = zeros((*first)->type());
  Arrays cases;
  for (std::size_t i = 1; i < dx.size(); ++i) cases.push_back(dx[i] ? *dx[i] : zero);
  return {select_n(x[0], cases)};
}

Tangents select_transpose(const Tangents& ct, const Primals& x, const Types&, const Params&) {
  const Array& which = *x[0];
  const Array zero = zeros(ct[0]->type());
  Tangents out(x.size());
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[i]) continue;
    if (which.dtype() == Dtype::bool_) {
      out[i] = select_n(which, i == 1 ? Arrays{*ct[0], zero} : Arrays{zero, *ct[0]});
    } else {
      const Array chosen = eq(which, const_like(which, static_cast<double>(i - 1)));
      out[i] = select_n(chosen, {zero, *ct[0]});
    }
  }
  return out;
}

Batched select_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                     const Params&) {
  Array which = x[0];
  Arrays cases(x.begin() + 1, x.end());
  const auto all_cases_at = [&](const Axis& a) {
    return std::all_of(axes.begin() + 1, axes.end(), [&](const Axis& b) { return a == b; });
  };
  if (axes[0] && all_cases_at(axes[0])) {
    if (which.ndim() < cases[0].ndim()) {  // a mapped scalar chooses between mapped arrays
      which = broadcast_in_dim(which, cases[0].shape(), {*axes[0]});
    }
    return {{select_n(which, cases)}, {axes[0]}};
  }
  if (which.ndim() == 0 &&
      std::all_of(axes.begin() + 1, axes.end(), [](const Axis& a) { return a.has_value(); })) {
    for (std::size_t i = 1; i < cases.size(); ++i) {
      cases[i] = moveaxis(cases[i], *axes[i + 1], *axes[1]);
    }
    return {{select_n(which, cases)}, {axes[1]}};
  }
  if (which.ndim() > 0) which = mapped_in_front(which, axes[0], n);
  for (std::size_t i = 0; i < cases.size(); ++i)
    cases[i] = mapped_in_front(cases[i], axes[i + 1], n);
  if (which.ndim() > 0 && which.ndim() < cases[0].ndim()) {
    which = broadcast_in_dim(which, cases[0].shape(), {0});
  }
  return {{select_n(which, cases)}, {0}};
}

// ------------------------------------------------------------------------------------------ clamp
Types clamp_type(const Types& in, const Params&) {
  elementwise::check_domain("clamp", Domain::any, in);
  Type out = in[1];
  for (const Type& bound : {in[0], in[2]}) {
    if (bound.dtype != out.dtype || (!bound.shape.empty() && bound.shape != out.shape)) {
      fail<TypeError>("clamp: a bound must be a scalar or have the type of the operand, got ",
                      bound, " for ", in[1]);
    }
    out.weak_type = out.weak_type && bound.weak_type;
  }
  return {std::move(out)};
}

Arrays clamp_eval(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  visit_dtype(x[1].dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    const T *low = elements<T>(x[0]), *in = elements<T>(x[1]), *high = elements<T>(x[2]);
    const std::int64_t low_step = x[0].ndim() == 0 ? 0 : 1, high_step = x[2].ndim() == 0 ? 0 : 1;
    T* to = result.data<T>();
    const auto is_nan = [](T v) {
      if constexpr (is_floating_element<T>)
        return std::isnan(static_cast<C>(v));
      else
        return false;
    };
    for (std::int64_t i = 0; i < result.size(); ++i) {
      const T a = low[i * low_step], b = high[i * high_step];
      T v = in[i];
      if (is_nan(a) || (!is_nan(v) && static_cast<C>(v) < static_cast<C>(a))) v = a;
      if (is_nan(b) || (!is_nan(v) && static_cast<C>(b) < static_cast<C>(v))) v = b;
      to[i] = v;
    }
  });
  return {std::move(result).finish()};
}

// Where `mask` holds the tangent t, else 0. A bound's scalar tangent is stretched.
Array masked(X mask, X t, X y) {
  const Array zero = zeros(y.type());
  const Array full = t.shape() == y.shape() ? t : broadcast_in_dim(t, y.shape(), {});
  return select_n(mask, {zero, full});
}
Tangents clamp_tangent(const Arrays& x, const Tangents& dx, const Arrays& y, const Params&) {
  const Array &low = x[0], &v = x[1], &high = x[2];
  Tangent sum;
  if (dx[0]) {
    const Array above = gt(low, v);
    const Array below = lt(low, high);
    const Array both = bitwise_and(above, below);
    sum = masked(both, *dx[0], y[0]);
  }
  Tangent inside;
  if (dx[1]) {
    const Array above = gt(v, low);
    const Array below = lt(v, high);
    const Array both = bitwise_and(above, below);
    inside = masked(both, *dx[1], y[0]);
  }
  Tangent limited;
  if (dx[2]) {
    const Array below = lt(high, v);
    limited = masked(below, *dx[2], y[0]);
  }
  sum = add_tangents(sum, inside);
  return {add_tangents(sum, limited)};
}

Batched clamp_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params&) {
  Array low = x[0], v = x[1], high = x[2];
  const bool scalar_bounds = low.ndim() == 0 && high.ndim() == 0;
  if (axes[0] == axes[1] && axes[2] == axes[1] && low.ndim() == high.ndim()) {
    if (low.ndim() < v.ndim()) {
      low = broadcast_in_dim(low, v.shape(), {*axes[0]});
      high = broadcast_in_dim(high, v.shape(), {*axes[0]});
    }
    return {{clamp(low, v, high)}, {axes[1]}};
  }
  if (scalar_bounds && axes[1]) return {{clamp(low, v, high)}, {axes[1]}};
  if (low.ndim() > 0) low = mapped_in_front(low, axes[0], n);
  if (high.ndim() > 0) high = mapped_in_front(high, axes[2], n);
  if (v.ndim() == 0) return {{clamp(low, broadcast_in_dim(v, {n}, {}), high)}, {0}};
  v = mapped_in_front(v, axes[1], n);
  // Unmapped scalars are stretched before mapped ones.
  if (low.ndim() == 0) low = broadcast_in_dim(low, v.shape(), {});
  if (high.ndim() == 0) high = broadcast_in_dim(high, v.shape(), {});
  if (low.ndim() < v.ndim()) low = broadcast_in_dim(low, v.shape(), {0});
  if (high.ndim() < v.ndim()) high = broadcast_in_dim(high, v.shape(), {0});
  return {{clamp(low, v, high)}, {0}};
}

// A C++ number takes the dtype of the others.
Array adapt(const Array& x, Dtype dtype) {
  return content(x).number() && x.weak_type() && x.dtype() != dtype ? convert(x, dtype) : x;
}

}  // namespace

constinit const Primitive select_n_p{.name = "select_n",
                                     .kind = Kind::elementwise,
                                     .type = select_type,
                                     .eval = select_eval,
                                     .tangent = select_tangent,
                                     .transpose = select_transpose,
                                     .batch = select_batch};
constinit const Primitive clamp_p{.name = "clamp",
                                  .kind = Kind::elementwise,
                                  .type = clamp_type,
                                  .eval = clamp_eval,
                                  .tangent = clamp_tangent,
                                  .batch = clamp_batch,
                                  .arity = 3};

namespace lax {
Array select_n(Operand which, const Arrays& cases, Location at) {
  const AtUser scope(at);
  Arrays x{which.array};
  const auto strong = std::find_if(cases.begin(), cases.end(), [](const Array& c) {
    return !(content(c).number() && c.weak_type());
  });
  for (const Array& c : cases) {
    x.push_back(strong == cases.end() ? c : adapt(c, strong->dtype()));
  }
  return select_n_p.bind1(x);
}
Array clamp(Operand min, Operand x, Operand max) {
  const AtUser at(x.at);
  const Dtype dtype = x.array.dtype();
  return clamp_p.bind1({adapt(min.array, dtype), x.array, adapt(max.array, dtype)});
}
}  // namespace lax

}  // namespace reprise
