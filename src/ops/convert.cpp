// Other views of the same values: conversion, reinterpretation, rounding, copies.
#include "base/float_format.h"
#include "ops/elementwise.h"
#include "ops/records.h"
#include "ops/shape.h"
#include "program/trace.h"

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

bool is_numeric(Dtype d) { return d != Dtype::float0 && d != Dtype::key; }

// --------------------------------------------------------------------------- convert_element_type
Types convert_type(const Types& in, const Params& params) {
  Type out = in[0];
  out.dtype = params.get<Dtype>("new_dtype");
  out.weak_type = params.get<bool>("weak_type");
  if (!is_numeric(in[0].dtype) || !is_numeric(out.dtype)) {
    fail<TypeError>("convert_element_type: numeric dtypes are needed, got ", in[0], " to ",
                    out.dtype);
  }
  return {std::move(out)};
}
Arrays convert_eval(const Arrays& x, const Params&, const Types& out) {
  if (x[0].dtype() == out[0].dtype) return {with_type(x[0], out[0])};
  NewArray result(out[0]);
  visit_dtype(x[0].dtype(), [&](auto from) {
    visit_dtype(out[0].dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const From* in = elements<From>(x[0]);
      To* dst = result.data<To>();
      for (std::int64_t i = 0; i < result.size(); ++i) dst[i] = cast_element<To>(in[i]);
    });
  });
  return {std::move(result).finish()};
}
Tangents convert_tangent(const Arrays&, const Tangents& dx, const Arrays& y, const Params&) {
  if (!is_floating(y[0].dtype())) return {std::nullopt};
  return {convert(*dx[0], y[0].dtype(), y[0].weak_type())};
}
Tangents convert_transpose(const Tangents& ct, const Primals&, const Types& in, const Params&) {
  return {convert(*ct[0], in[0].dtype, in[0].weak_type)};
}

// --------------------------------------------------------------------------- bitcast_convert_type
// A narrower dtype adds a last dimension, a wider one takes it away.
Types bitcast_type(const Types& in, const Params& params) {
  Type out = in[0];
  out.dtype = params.get<Dtype>("new_dtype");
  out.weak_type = false;
  for (Dtype d : {in[0].dtype, out.dtype}) {
    if (in[0].dtype != out.dtype && (!is_numeric(d) || d == Dtype::bool_)) {
      fail<TypeError>("bitcast_convert_type: number dtypes are needed, got ", in[0], " to ",
                      out.dtype);
    }
  }
  const auto from = static_cast<std::int64_t>(itemsize(in[0].dtype));
  const auto to = static_cast<std::int64_t>(itemsize(out.dtype));
  if (to < from) out.shape.push_back(from / to);
  if (to > from) {
    if (out.shape.empty() || out.shape.back() != to / from) {
      fail<TypeError>("bitcast_convert_type: the last dimension must be ", to / from, ", got ",
                      in[0], " to ", out.dtype);
    }
    out.shape.pop_back();
  }
  return {std::move(out)};
}
Arrays bitcast_eval(const Arrays& x, const Params&, const Types& out) {
  return {with_type(x[0], out[0])};
}
Batched bitcast_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                      const Params& params) {
  const bool is_last = *axes[0] == x[0].ndim() - 1;
  const bool widens = itemsize(params.get<Dtype>("new_dtype")) > itemsize(x[0].dtype());
  if (!is_last || !widens) return {self.bind(x, params), axes};
  return {self.bind({moveaxis(x[0], *axes[0], 0)}, params), {0}};
}

// ------------------------------------------------------------------------------- reduce_precision
// Round to nearest even; too large becomes inf; subnormal numbers of a narrower exponent become 0.
template <class T>
T with_precision(T x, FloatFormat format, std::int64_t exponent_bits, std::int64_t mantissa_bits) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  const int mantissa = format.mantissa_bits, exponent = format.exponent_bits;
  const std::uint64_t infinity = ((1ull << exponent) - 1) << mantissa;
  const std::uint64_t sign_bit = 1ull << (exponent + mantissa);
  const std::uint64_t bits = std::bit_cast<Bits>(x);
  const std::uint64_t sign = bits & sign_bit;
  std::uint64_t rest = bits & ~sign_bit;
  if (rest >= infinity) return x;  // inf and NaN
  if (mantissa_bits < mantissa) {
    const auto dropped = mantissa - static_cast<int>(mantissa_bits);
    const std::uint64_t last_kept = 1ull << dropped;
    rest += (last_kept >> 1) - 1 + ((rest >> dropped) & 1);
    rest &= ~(last_kept - 1);
  }
  if (exponent_bits < exponent) {
    const std::int64_t bias = (1ll << (exponent - 1)) - 1,
                       new_bias = (1ll << (exponent_bits - 1)) - 1;
    const auto e = static_cast<std::int64_t>(rest >> mantissa);
    if (e > bias + new_bias) rest = infinity;
    if (e <= bias - new_bias) rest = 0;
  }
  return std::bit_cast<T>(static_cast<Bits>(sign | rest));
}

Types reduce_precision_type(const Types& in, const Params& params) {
  elementwise::check_domain("reduce_precision", Domain::floating, in);
  const auto e = params.get<std::int64_t>("exponent_bits");
  const auto m = params.get<std::int64_t>("mantissa_bits");
  if (e < 1 || m < 0) {
    fail<TypeError>(
        "reduce_precision: at least 1 exponent bit and 0 mantissa bits are needed, got ", e,
        " and ", m);
  }
  return in;
}
Arrays reduce_precision_eval(const Arrays& x, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const auto e = params.get<std::int64_t>("exponent_bits");
  const auto m = params.get<std::int64_t>("mantissa_bits");
  visit_floating(x[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = elements<T>(x[0]);
    T* to = result.data<T>();
    const FloatFormat format = float_format(x[0].dtype());
    for (std::int64_t i = 0; i < result.size(); ++i) to[i] = with_precision(in[i], format, e, m);
  });
  return {std::move(result).finish()};
}
Tangents reduce_precision_transpose(const Tangents& ct, const Primals&, const Types&,
                                    const Params& params) {
  return {reduce_precision_p.bind1({*ct[0]}, params)};
}

// ---------------------------------------------------------------------------- stop_gradient, copy
Types same_type(const Types& in, const Params&) { return in; }
Arrays same_value(const Arrays& x, const Params&, const Types& out) {
  return {with_type(x[0], out[0])};
}
// Values as they are: nothing here moves an operation across.
Arrays same_values(const Arrays& x, const Params&, const Types& out) {
  Arrays y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(with_type(x[i], out[i]));
  return y;
}
Tangents barrier_tangent(const Arrays&, const Tangents& dx, const Arrays&, const Params&) {
  return dx;
}
Batched barrier_batch(const Primitive& self, const Arrays& x, const Axes& axes, std::int64_t,
                      const Params& params) {
  return {self.bind(x, params), axes};
}
Tangents copy_transpose(const Tangents& ct, const Primals&, const Types&, const Params&) {
  return {copy(*ct[0])};
}

constexpr ParamRule convert_rules[] = {{"new_dtype", form::dtype},
                                       {"sharding", form::none, unused},
                                       {"weak_type", form::flag, "False"}};
constexpr ParamRule bitcast_rules[] = {{"new_dtype", form::dtype}};
constexpr ParamRule precision_rules[] = {{"exponent_bits", form::integer},
                                         {"mantissa_bits", form::integer}};

}  // namespace

constinit const Primitive convert_element_type_p{.name = "convert_element_type",
                                                 .kind = Kind::elementwise,
                                                 .type = convert_type,
                                                 .eval = convert_eval,
                                                 .tangent = convert_tangent,
                                                 .transpose = convert_transpose,
                                                 .batch = elementwise::batch,
                                                 .param_rules = convert_rules,
                                                 .arity = 1};
constinit const Primitive bitcast_convert_type_p{.name = "bitcast_convert_type",
                                                 .kind = Kind::elementwise,
                                                 .type = bitcast_type,
                                                 .eval = bitcast_eval,
                                                 .tangent = elementwise::zero_tangent,
                                                 .batch = bitcast_batch,
                                                 .param_rules = bitcast_rules,
                                                 .arity = 1};
constinit const Primitive reduce_precision_p{.name = "reduce_precision",
                                             .kind = Kind::elementwise,
                                             .type = reduce_precision_type,
                                             .eval = reduce_precision_eval,
                                             .tangent = linear_tangent<reduce_precision_p>,
                                             .transpose = reduce_precision_transpose,
                                             .batch = elementwise::batch,
                                             .param_rules = precision_rules,
                                             .arity = 1};
constinit const Primitive stop_gradient_p{.name = "stop_gradient",
                                          .kind = Kind::elementwise,
                                          .type = same_type,
                                          .eval = same_value,
                                          .tangent = elementwise::zero_tangent,
                                          .batch = elementwise::batch,
                                          .arity = 1};
constinit const Primitive copy_p{.name = "copy",
                                 .kind = Kind::elementwise,
                                 .type = same_type,
                                 .eval = same_value,
                                 .tangent = linear_tangent<copy_p>,
                                 .transpose = copy_transpose,
                                 .batch = elementwise::batch,
                                 .arity = 1};

constinit const Primitive optimization_barrier_p{.name = "optimization_barrier",
                                                 .kind = Kind::index,
                                                 .type = same_type,
                                                 .eval = same_values,
                                                 .tangent = barrier_tangent,
                                                 .batch = barrier_batch};

namespace lax {

Array convert(const Array& x, Dtype dtype, bool weak_type) {
  if (x.dtype() == dtype && x.weak_type() == weak_type) return x;
  if (const Literal* number = content(x).number(); number && is_numeric(dtype)) {
    Literal l = convert_literal(*number, dtype, weak_type);
    l.promoted = number->promoted;
    return is_tracing() ? make_number(l) : full_array(l.type(), l);
  }
  return convert_element_type_p.bind1({x}, {{"new_dtype", dtype}, {"weak_type", weak_type}});
}

Array convert_element_type(Operand x, Dtype new_dtype, bool weak_type) {
  const AtUser at(x.at);
  const Array y = convert(x.array, new_dtype, weak_type);
  if (!content(y).number() || (x.array.dtype() == new_dtype && x.array.weak_type() == weak_type))
    return y;
  Literal l = *content(y).number();
  l.promoted = true;  // JAX counts a converted number as a residual
  return make_number(l);
}
Array bitcast_convert_type(Operand x, Dtype new_dtype) {
  const AtUser at(x.at);
  return bitcast_convert_type_p.bind1({x.array}, {{"new_dtype", new_dtype}});
}
Array reduce_precision(Operand x, std::int64_t exponent_bits, std::int64_t mantissa_bits) {
  const AtUser at(x.at);
  return reduce_precision_p.bind1(
      {x.array}, {{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}});
}
Array stop_gradient(Operand x) {
  const AtUser at(x.at);
  return stop_gradient_p.bind1({x.array});
}
Array copy(Operand x) {
  const AtUser at(x.at);
  return copy_p.bind1({x.array});
}

}  // namespace lax
}  // namespace reprise
