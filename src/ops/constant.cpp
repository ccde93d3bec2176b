// Arrays from nothing: filled, counting, empty.
#include "ops/elementwise.h"
#include "ops/records.h"
#include "program/trace.h"
#include "program/varying.h"

#include <cstring>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

void check_shape(const char* op, const Shape& shape) {
  for (std::int64_t d : shape) {
    if (d < 0) fail<TypeError>(op, ": dimensions must not be negative, got ", to_string(shape));
  }
}

Types iota_type(const Types&, const Params& params) {
  const auto dtype = params.get<Dtype>("dtype");
  const auto& shape = params.get<Ints>("shape");
  const auto dimension = params.get<std::int64_t>("dimension");
  if (!is_integer(dtype) && !is_floating(dtype)) {
    fail<TypeError>("iota: a number dtype is needed, got ", dtype);
  }
  check_shape("iota", shape);
  if (dimension < 0 || dimension >= static_cast<std::int64_t>(shape.size())) {
    fail<TypeError>("iota: dimension out of range, got dimension ", dimension, " for shape ",
                    to_string(Shape(shape)));
  }
  return {Type{dtype, shape}};
}
Arrays iota_eval(const Arrays&, const Params& params, const Types& out) {
  NewArray result(out[0]);
  const Shape& shape = out[0].shape;
  const auto d = static_cast<std::size_t>(params.get<std::int64_t>("dimension"));
  const std::int64_t count = shape[d], inner = row_major_strides(shape)[d];
  visit_dtype(out[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    T* to = result.data<T>();
    for (std::int64_t at = 0; at < result.size();) {
      for (std::int64_t k = 0; k < count; ++k) {
        const T value = elementwise::to_element<T>(k);
        for (std::int64_t i = 0; i < inner; ++i) to[at++] = value;
      }
    }
  });
  return {std::move(result).finish()};
}

Types empty_type(const Types&, const Params& params) {
  check_shape("empty", params.get<Ints>("shape"));
  return {Type{params.get<Dtype>("dtype"), params.get<Ints>("shape")}};
}
// A scalar of no particular value; shapes come from a broadcast.
Types empty2_type(const Types&, const Params& params) {
  return {Type{params.get<Dtype>("dtype"), {}}};
}
Array zero_bytes(const Type& type) {
  NewArray result(type);
  std::memset(result.bytes(), 0, type.nbytes());
  return std::move(result).finish();
}
Arrays zeros_eval(const Arrays&, const Params&, const Types& out) { return {zero_bytes(out[0])}; }

// Which of the groups of platforms is meant for this one: (('tpu',), ('cpu', 'cuda'), None).
Types platform_index_type(const Types&, const Params&) { return {Type{Dtype::i32, {}}}; }
Arrays platform_index_eval(const Arrays&, const Params& params, const Types& out) {
  std::string_view groups = params.get<std::string>("platforms");
  if (groups.starts_with('(')) groups.remove_prefix(1);
  std::int32_t index = 0;
  for (;; ++index) {  // a group, or None for all others
    const std::size_t begin = groups.find_first_not_of(", \n)");
    if (begin == std::string_view::npos || groups.substr(begin).starts_with("None")) break;
    const std::size_t end = std::min(groups.find(')', begin), groups.size());
    if (groups.substr(begin, end - begin).find("'cpu'") != std::string_view::npos) break;
    groups.remove_prefix(end);
  }
  NewArray result(out[0]);
  *result.data<std::int32_t>() = index;
  return {std::move(result).finish()};
}

constexpr ParamRule platform_rules[] = {{"platforms", form::text}};
constexpr ParamRule iota_rules[] = {{"dimension", form::integer},
                                    {"dtype", form::dtype},
                                    {"shape", form::ints},
                                    {"sharding", form::none, "None"}};
constexpr ParamRule empty_rules[] = {
    {"dtype", form::dtype}, {"out_sharding", form::none, "None"}, {"shape", form::ints}};
constexpr ParamRule empty2_rules[] = {{"dtype", form::dtype},
                                      {"memory_space", form::text, "MemorySpace.Device"}};

}  // namespace

constinit const Primitive iota_p{.name = "iota",
                                 .kind = Kind::constant,
                                 .type = iota_type,
                                 .eval = iota_eval,
                                 .param_rules = iota_rules,
                                 .arity = 0};
constinit const Primitive empty_p{.name = "empty",
                                  .kind = Kind::constant,
                                  .type = empty_type,
                                  .eval = zeros_eval,
                                  .param_rules = empty_rules,
                                  .arity = 0};
constinit const Primitive empty2_p{.name = "empty2",
                                   .kind = Kind::constant,
                                   .type = empty2_type,
                                   .eval = zeros_eval,
                                   .param_rules = empty2_rules,
                                   .arity = 0};

constinit const Primitive platform_index_p{.name = "platform_index",
                                           .kind = Kind::constant,
                                           .type = platform_index_type,
                                           .eval = platform_index_eval,
                                           .param_rules = platform_rules,
                                           .arity = 0};

namespace lax {

Array filled(const Shape& shape, Literal value) {
  if (!is_tracing()) return full_array(Type{value.dtype, shape, value.weak_type}, value);
  value.promoted = true;  // JAX counts such a literal as a residual
  const Array number = make_number(value);
  return shape.empty() ? number : broadcast_in_dim(number, shape, {});
}
Array zeros(const Type& type) {
  if (type.dtype == Dtype::key) return zero_bytes(type);
  return full_like(type, 0);
}
Array full_like(const Type& type, double value) {
  return with_varying(filled(type.shape, make_literal(type.dtype, value, type.weak_type)),
                      type.varying);
}
Array const_like(const Array& x, double value) {
  return make_number(make_literal(x.dtype(), value));
}

Array full(const Shape& shape, Operand value, Dtype dtype) {
  const AtUser at(value.at);
  check_shape("full", shape);
  if (value.array.ndim() != 0) {
    fail<TypeError>("full: the value must be a scalar, got ", value.array.type());
  }
  if (const Literal* number = content(value.array).number()) {
    return filled(shape, convert_literal(*number, dtype, false));
  }
  return broadcast_in_dim(convert(value.array, dtype), shape, {});
}
Array iota(Dtype dtype, const Shape& shape, std::int64_t dimension, Location at) {
  const AtUser scope(at);
  const std::int64_t d = canonical_axis("iota", dimension, static_cast<std::int64_t>(shape.size()));
  return iota_p.bind1({},
                      {{"dimension", d}, {"dtype", dtype}, {"shape", shape}, {"sharding", None{}}});
}
Array empty2(Dtype dtype, const Shape& shape, Location at) {
  const AtUser scope(at);
  check_shape("empty2", shape);
  const Array scalar =
      empty2_p.bind1({}, {{"dtype", dtype}, {"memory_space", std::string("MemorySpace.Device")}});
  return broadcast_in_dim(scalar, shape, {});
}

}  // namespace lax
}  // namespace reprise
