// Records of elementwise primitives from a name, a domain of dtypes, a tangent and scalar code.
//
//   constinit const Primitive sin_p = unary<"sin", Domain::floating,
//       [](X x, X dx, X) { Array k = lax::cos(x); return lax::mul(dx, k); },
//       [](auto v) { return std::sin(v); }>;
#pragma once

#include "array/access.h"
#include "base/cast.h"
#include "base/dtype.h"
#include "ops/lax.h"
#include "program/primitive.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace reprise {

using X = const Array&;

template <std::size_t N>
struct Name {  // a string as template argument
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }  // NOLINT
};

enum class Domain : std::uint8_t { any, number, floating, integral, integer };

namespace elementwise {

void check_domain(const char* op, Domain domain, const Types& in);
// Equal dtypes; equal shapes, rank-0 operands, or dimensions of size 1. The result is weak only if
// every operand is.
Type common_type(const char* op, const Types& in);

template <Domain domain, class T>
constexpr bool in_domain() {
  if constexpr (domain == Domain::any) return true;
  if constexpr (domain == Domain::number) return !std::is_same_v<T, bool>;
  if constexpr (domain == Domain::floating) return is_floating_element<T>;
  if constexpr (domain == Domain::integral) return std::is_integral_v<T>;
  if constexpr (domain == Domain::integer) return std::is_integral_v<T> && !std::is_same_v<T, bool>;
}

// Calls f(T{}) for the dtypes of the domain only, so that scalar code need not compile for others.
template <Domain domain, class F>
void visit_domain(Dtype d, F&& f) {
  visit_dtype(d, [&](auto tag) {
    if constexpr (in_domain<domain, decltype(tag)>()) f(tag);
  });
}

// Result of scalar code as an element: halves are computed in float and rounded.
template <class Out, class R>
Out to_element(R r) {
  if constexpr (is_half<Out>) {
    return Out(static_cast<float>(r));
  } else {
    return static_cast<Out>(r);
  }
}

// How to walk operands that broadcasting stretches: per operand a stride for each output dimension.
struct Walk {
  explicit Walk(const Types& in, const Shape& out);
  bool flat = true;                 // every operand is full or a scalar: one loop
  std::vector<std::int64_t> inner;  // stride of the innermost loop, 0 or 1
  std::vector<Shape> strides;
  Shape outer;  // dimensions before the innermost
  std::int64_t inner_size = 1;
};

// Calls row(out_offset, offsets of the operands) for every innermost row.
template <std::size_t N, class F>
void for_each_row(const Walk& walk, F&& row) {
  std::int64_t offset[N] = {};
  Shape index(walk.outer.size(), 0);
  std::int64_t rows = 1;
  for (std::int64_t d : walk.outer) rows *= d;
  for (std::int64_t r = 0; r < rows; ++r) {
    row(r * walk.inner_size, offset);
    for (std::size_t d = walk.outer.size(); d-- > 0;) {
      for (std::size_t k = 0; k < N; ++k) offset[k] += walk.strides[k][d];
      if (++index[d] < walk.outer[d]) break;
      for (std::size_t k = 0; k < N; ++k) offset[k] -= walk.strides[k][d] * walk.outer[d];
      index[d] = 0;
    }
  }
}

template <Domain domain, auto scalar>
Arrays eval_unary(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  visit_domain<domain>(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    using Out = std::conditional_t<std::is_same_v<decltype(scalar(Compute<T>{})), bool>, bool, T>;
    const T* in = elements<T>(x[0]);
    Out* to = result.data<Out>();
    for (std::int64_t i = 0; i < result.size(); ++i) {
      to[i] = to_element<Out>(scalar(static_cast<Compute<T>>(in[i])));
    }
  });
  return {std::move(result).finish()};
}

template <class T, auto scalar>
void apply_lanes(const T* x, T* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(scalar(x[i]));
}
template <auto scalar>
inline constexpr LaneCode lane_code{apply_lanes<float, scalar>, apply_lanes<double, scalar>};
template <Domain domain, auto scalar>
constexpr const LaneCode* lanes_of() {
  if constexpr (domain == Domain::floating)
    return &lane_code<scalar>;
  else
    return nullptr;
}

// `on_elements`: the scalar code takes halves as they are, not as float.
template <Domain domain, auto scalar, bool on_elements = false>
Arrays eval_binary(const Arrays& x, const Params&, const Types& out) {
  NewArray result(out[0]);
  const Walk walk({x[0].type(), x[1].type()}, out[0].shape);
  visit_domain<domain>(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = std::conditional_t<on_elements, T, Compute<T>>;
    using Out = std::conditional_t<std::is_same_v<decltype(scalar(C{}, C{})), bool>, bool, T>;
    const T* a = elements<T>(x[0]);
    const T* b = elements<T>(x[1]);
    Out* to = result.data<Out>();
    if (result.size() == 0) return;
    const std::int64_t sa = walk.inner[0], sb = walk.inner[1];
    for_each_row<2>(walk, [&](std::int64_t o, const std::int64_t* at) {
      for (std::int64_t i = 0; i < walk.inner_size; ++i) {
        to[o + i] = to_element<Out>(
            scalar(static_cast<C>(a[at[0] + i * sa]), static_cast<C>(b[at[1] + i * sb])));
      }
    });
  });
  return {std::move(result).finish()};
}

template <Name name, Domain domain, bool predicate = false>
Types type_of(const Types& in, const Params&) {
  check_domain(name.text, domain, in);
  Type t = common_type(name.text, in);
  if (predicate) {
    t.dtype = Dtype::bool_;
    t.weak_type = false;
  }
  return {std::move(t)};
}

// Elementwise operations keep the mapped axis where it is; operands that disagree get it in front.
Batched batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
              const Params& params);

template <auto f>
Tangents tangent_unary(const Arrays& x, const Tangents& dx, const Arrays& y, const Params&) {
  return {f(x[0], *dx[0], y[0])};
}
// One formula per operand; the sum of those that are not zero.
template <auto f0, auto f1>
Tangents tangent_binary(const Arrays& x, const Tangents& dx, const Arrays& y, const Params&) {
  Tangent a, b;
  if (dx[0]) a = f0(x[0], x[1], *dx[0], y[0]);
  if (dx[1]) b = f1(x[0], x[1], *dx[1], y[0]);
  return {add_tangents(a, b)};
}
inline Tangents zero_tangent(const Arrays&, const Tangents&, const Arrays& y, const Params&) {
  return Tangents(y.size());
}

}  // namespace elementwise

// JAX can be asked for fewer digits or more of some functions; here they have all.
inline constexpr ParamRule accuracy_rules[] = {{"accuracy", form::none | form::text, unused}};

template <Name name, Domain domain, auto tangent, auto scalar>
inline constexpr Primitive unary{.name = name.text,
                                 .kind = Kind::elementwise,
                                 .type = elementwise::type_of<name, domain>,
                                 .eval = elementwise::eval_unary<domain, scalar>,
                                 .tangent = elementwise::tangent_unary<tangent>,
                                 .batch = elementwise::batch,
                                 .param_rules = accuracy_rules,
                                 .arity = 1,
                                 .lanes = elementwise::lanes_of<domain, scalar>()};
template <Name name, Domain domain, auto d0, auto d1, auto scalar>
inline constexpr Primitive binary{.name = name.text,
                                  .kind = Kind::elementwise,
                                  .type = elementwise::type_of<name, domain>,
                                  .eval = elementwise::eval_binary<domain, scalar>,
                                  .tangent = elementwise::tangent_binary<d0, d1>,
                                  .batch = elementwise::batch,
                                  .arity = 2};
// Piecewise constant: the tangent is a symbolic zero.
template <Name name, Domain domain, auto scalar>
inline constexpr Primitive step_unary{.name = name.text,
                                      .kind = Kind::elementwise,
                                      .type = elementwise::type_of<name, domain>,
                                      .eval = elementwise::eval_unary<domain, scalar>,
                                      .tangent = elementwise::zero_tangent,
                                      .batch = elementwise::batch,
                                      .arity = 1};
template <Name name, Domain domain, auto scalar, bool predicate = false>
inline constexpr Primitive step_binary{.name = name.text,
                                       .kind = Kind::elementwise,
                                       .type = elementwise::type_of<name, domain, predicate>,
                                       .eval = elementwise::eval_binary<domain, scalar>,
                                       .tangent = elementwise::zero_tangent,
                                       .batch = elementwise::batch,
                                       .arity = 2};
// The record of a template row, with a transpose rule for operations that can be linear.
constexpr Primitive with_transpose(Primitive p, decltype(Primitive::transpose) rule) {
  p.transpose = rule;
  return p;
}

}  // namespace reprise
