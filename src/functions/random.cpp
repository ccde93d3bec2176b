// Keys and the continuous distributions: the equations of jax.random.
#include "functions/random.h"

#include "array/access.h"
#include "base/dtype.h"
#include "base/location.h"
#include "control/call.h"
#include "functions/promote.h"
#include "ops/random.h"
#include "reprise/ops_math.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace reprise::random {
namespace {

struct Format {
  std::int64_t drawn_bits, width, mantissa;  // width: of an element
  double one;                                // the bits of 1.0 as an integer
  double tiny;                               // the least normal number
};
Format format_of(Dtype dtype) {
  switch (itemsize(dtype)) {
    case 8: return {64, 64, 52, 0x3FF0000000000000, std::numeric_limits<double>::min()};
    case 4: return {32, 32, 23, 0x3F800000, std::numeric_limits<float>::min()};
    default: break;
  }
  if (dtype == Dtype::bf16) return {8, 16, 7, 0x3F80, std::numeric_limits<float>::min()};
  return {16, 16, 10, 0x3C00, 0x1p-14};
}
Dtype unsigned_of(std::int64_t width) {
  return width == 64 ? Dtype::u64 : width == 32 ? Dtype::u32 : Dtype::u16;
}

// Multiples of 2^-mantissa in [0, 1).
Array unit_uniform(const Array& key, const Shape& shape, Dtype dtype) {
  const Format f = format_of(dtype);
  const Array drawn = lax::random_bits(key, f.drawn_bits, shape);
  const Array bits = lax::convert(drawn, unsigned_of(f.width));
  const Array fraction = lax::shift_right_logical(
      bits, lax::const_like(bits, static_cast<double>(f.drawn_bits - f.mantissa)));
  const Array with_exponent = lax::bitwise_or(fraction, lax::const_like(bits, f.one));
  const Array from_one = lax::bitcast_convert_type(with_exponent, dtype);
  return lax::sub(from_one, lax::const_like(from_one, 1));
}

// The product with the span is exact, so rounding it before the addition changes nothing.
bool scales_exactly(Dtype dtype, const Array& minval, const Array& maxval) {
  if (dtype != Dtype::f32 && dtype != Dtype::f64) return true;  // rounded after every operation
  const Literal *low = content(minval).number(), *high = content(maxval).number();
  if (!low || !high) return false;
  const auto value = [&](const Literal& l) {
    const double x = convert_literal(l, Dtype::f64, false).real;
    return dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(x)) : x;
  };
  double span = value(*high) - value(*low);
  if (dtype == Dtype::f32) span = static_cast<float>(span);
  int exponent = 0;
  return std::frexp(span, &exponent) == 0.5;
}

}  // namespace

// ------------------------------------------------------------------------------------------ shared
void check_shape(const char* op, const Shape& shape) {
  for (std::int64_t d : shape) {
    if (d < 0) fail<TypeError>(op, ": dimensions must not be negative, got ", to_string(shape));
  }
}
void check_floating(const char* op, Dtype dtype) {
  if (!is_floating(dtype)) fail<TypeError>(op, ": a floating dtype is needed, got ", dtype);
}
Shape shape_for(const char* op, const std::optional<Shape>& given, const Shape& operands) {
  if (!given) return operands;
  check_shape(op, *given);
  bool fits = operands.size() <= given->size();
  for (std::size_t d = 1; fits && d <= operands.size(); ++d) {
    const std::int64_t mine = operands[operands.size() - d];
    fits = mine == 1 || mine == (*given)[given->size() - d];
  }
  if (!fits) {
    fail<TypeError>(op, ": operands must broadcast to the shape, got operands of shape ",
                    to_string(operands), " for ", to_string(*given));
  }
  return *given;
}
Array to_rank(const Array& x, std::size_t rank) {
  if (x.shape().size() == rank) return x;
  const std::size_t added = rank - x.shape().size();
  Shape shape(added, 1);
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  lax::Ints dims = lax::iota_ints(x.ndim());
  for (std::int64_t& d : dims) d += static_cast<std::int64_t>(added);
  return lax::broadcast_in_dim(x, shape, dims);
}
Array widened(const Operand& x, Dtype dtype) {
  const Literal* number = content(x.array).number();
  const bool same_kind = is_floating(x.array.dtype()) == is_floating(dtype);
  if (!number || itemsize(dtype) != 8 || !same_kind) return x.array;
  return make_number(convert_literal(*number, dtype, number->weak_type));
}
Array rounded_number(Dtype dtype, double value) {
  alignas(8) std::byte element[8] = {};
  store_literal(make_literal(dtype, value), element);
  return make_number(load_literal(dtype, element));
}
std::pair<Array, Array> two_keys(const Array& key) {
  const Array keys = lax::random_split(key, {2});
  const auto at = [&](std::int64_t i) {
    const Array one = lax::slice(keys, {i}, {i + 1}, lax::Ints{1});
    return lax::squeeze(one, {0});
  };
  Array first = at(0);
  return {std::move(first), at(1)};
}

Array uniform_call(const Array& key, const Shape& shape, Dtype dtype, const Array& minval,
                   const Array& maxval, Passed passed) {
  const bool by_name = passed == Passed::by_name;  // maxval, minval
  const auto body = [&](const Arrays& a) {
    const Array first = lax::convert(a[1], dtype);
    const Array second = lax::convert(a[2], dtype);
    const Array low = to_rank(by_name ? second : first, shape.size());
    const Array high = to_rank(by_name ? first : second, shape.size());
    const Array unit = unit_uniform(a[0], shape, dtype);
    const Array span = lax::sub(high, low);
    const Array scaled = lax::mul(unit, span);
    const Array moved = lax::add(scaled, low);
    const Array shaped = lax::reshape(moved, shape);
    return Arrays{lax::max(low, shaped)};
  };
  const Arrays args{key, by_name ? maxval : minval, by_name ? minval : maxval};
  if (scales_exactly(dtype, minval, maxval)) return jit_call1("_uniform", body, args);
  return contracting_call("_uniform", body, args);
}

// -------------------------------------------------------------------------------------------- keys
namespace {

struct Given {
  Array key;
  bool is_raw;
};
// Keys in their typed form.
Given typed(const Array& key) {
  if (key.dtype() == Dtype::key) return {key, false};
  return {lax::random_wrap(key), true};
}
Given typed_single(const char* op, const Operand& key) {
  const Type& t = key.array.type();
  const std::int64_t dims = t.ndim() - (t.dtype == Dtype::key ? 0 : 1);
  if (t.dtype != Dtype::key && t.dtype != Dtype::u32) {
    fail<TypeError>(op, ": a key is needed, key<fry>[] or u32[2], got ", t);
  }
  if (dims > 0)
    fail_with_hint<TypeError>("map over several keys with vmap", op,
                              ": a single key is needed, got ", t);
  return typed(key.array);
}
Array given_form(const Given& given, const Array& keys) {
  return given.is_raw ? lax::random_unwrap(keys) : keys;
}
void check_seed(const char* op, const Array& seed) {
  if (seed.ndim() != 0)
    fail_with_hint<TypeError>("map over several seeds with vmap", op,
                              ": a scalar seed is needed, got ", seed.type());
}

}  // namespace

Array single_key(const char* op, const Operand& key) { return typed_single(op, key).key; }

Array key(Operand seed) {
  const AtUser at(seed.at);
  check_seed("key", seed);
  return lax::random_seed(seed);
}
Array PRNGKey(Operand seed) {
  const AtUser at(seed.at);
  check_seed("PRNGKey", seed);
  return lax::random_unwrap(lax::random_seed(seed));
}
Array key_of_integer(std::uint64_t seed, Location location) {
  const AtUser at(location);
  Literal low;
  low.dtype = Dtype::i32;
  low.weak_type = true;
  low.integer = static_cast<std::int32_t>(static_cast<std::uint32_t>(seed));
  return lax::random_seed(make_number(low));
}
Array key_data(Operand keys) {
  const AtUser at(keys.at);
  return lax::random_unwrap(typed(keys).key);
}
Array wrap_key_data(Operand words) {
  const AtUser at(words.at);
  return lax::random_wrap(words);
}
Array split(Operand key, std::int64_t num) { return split(std::move(key), Shape{num}); }
Array split(Operand key, const Shape& shape) {
  const AtUser at(key.at);
  check_shape("split", shape);
  const Given given = typed_single("split", key);
  return given_form(given, lax::random_split(given.key, shape));
}
Array fold_in(Operand key, Operand data) {
  const AtUser at(key.at);
  if (data.array.ndim() != 0) {
    fail_with_hint<TypeError>("map over several numbers with vmap",
                              "fold_in: a scalar is needed, got ", data.array.type());
  }
  const Given given = typed_single("fold_in", key);
  const Literal* number = content(data.array).number();
  const Array word = number ? make_number(convert_literal(*number, Dtype::u32, false))
                            : lax::convert(data.array, Dtype::u32);
  return given_form(given, lax::random_fold_in(given.key, word));
}

Array bits(Operand key, const Shape& shape, Dtype dtype) {
  const AtUser at(key.at);
  check_shape("bits", shape);
  if (dtype < Dtype::u8 || dtype > Dtype::u64) {
    fail<TypeError>("bits: an unsigned dtype is needed, got ", dtype);
  }
  return lax::random_bits(single_key("bits", key), static_cast<std::int64_t>(8 * itemsize(dtype)),
                          shape);
}

// --------------------------------------------------------------------------------- distributions
Array uniform(Operand key, const Shape& shape, Dtype dtype, Operand minval, Operand maxval) {
  const AtUser at(key.at);
  check_floating("uniform", dtype);
  shape_for("uniform", shape, broadcast_shape("uniform", {minval.array, maxval.array}));
  const Array k = single_key("uniform", key);
  return uniform_call(k, shape, dtype, widened(minval, dtype), widened(maxval, dtype));
}

Array normal(Operand key, const Shape& shape, Dtype dtype) {
  const AtUser at(key.at);
  check_floating("normal", dtype);
  check_shape("normal", shape);
  const auto real = [&](const Arrays& a) {
    // -1 itself would give minus infinity.
    const double ulp = std::ldexp(1, -static_cast<int>(format_of(dtype).mantissa) - 1);
    const Array low = rounded_number(dtype, ulp - 1), high = rounded_number(dtype, 1);
    const Array u = uniform_call(a[0], shape, dtype, low, high);
    const Array x = lax::erf_inv(u);
    return Arrays{lax::mul(rounded_number(dtype, std::numbers::sqrt2), x)};
  };
  const auto body = [&](const Arrays& a) { return jit_call("_normal_real", real, a); };
  return jit_call1("_normal", body, {single_key("normal", key)});
}

Array truncated_normal(Operand key, Operand lower, Operand upper, const std::optional<Shape>& given,
                       Dtype dtype) {
  const AtUser at(key.at);
  check_floating("truncated_normal", dtype);
  const Shape bounds = broadcast_shape("truncated_normal", {lower.array, upper.array});
  const Shape shape = shape_for("truncated_normal", given, bounds);
  const auto body = [&](const Arrays& a) {
    const double inf = std::numeric_limits<double>::infinity();
    const Array sqrt2 = rounded_number(dtype, std::numbers::sqrt2);
    const Array low = lax::convert(a[1], dtype);
    const Array high = lax::convert(a[2], dtype);
    const Array scaled_low = lax::div(low, sqrt2);
    const Array from = lax::erf(scaled_low);
    const Array scaled_high = lax::div(high, sqrt2);
    const Array to = lax::erf(scaled_high);
    const Array u = uniform_call(a[0], shape, dtype, from, to);
    const Array x = lax::erf_inv(u);
    const Array out = lax::mul(sqrt2, x);
    // Rounding must not leave the open interval.
    const Array fixed_low = lax::stop_gradient(low);
    const Array above = lax::nextafter(fixed_low, lax::const_like(low, inf));
    const Array fixed_high = lax::stop_gradient(high);
    const Array below = lax::nextafter(fixed_high, lax::const_like(high, -inf));
    return Arrays{clip(out, Operand(above), Operand(below))};
  };
  const Array k = single_key("truncated_normal", key);
  return jit_call1("_truncated_normal", body, {k, widened(lower, dtype), widened(upper, dtype)});
}

Array exponential(Operand key, const Shape& shape, Dtype dtype) {
  const AtUser at(key.at);
  check_floating("exponential", dtype);
  check_shape("exponential", shape);
  const auto body = [&](const Arrays& a) {
    const Array u = uniform(a[0], shape, dtype);
    const Array minus = lax::neg(u);
    const Array logarithm = lax::log1p(minus);
    return Arrays{lax::neg(logarithm)};
  };
  return jit_call1("_exponential", body, {single_key("exponential", key)});
}

Array gumbel(Operand key, const Shape& shape, Dtype dtype) {
  const AtUser at(key.at);
  check_floating("gumbel", dtype);
  check_shape("gumbel", shape);
  const auto body = [&](const Arrays& a) {
    const Array tiny = rounded_number(dtype, format_of(dtype).tiny);
    const Array u = uniform_call(a[0], shape, dtype, tiny, widened(1.0, dtype), Passed::by_name);
    const Array once = lax::log(u);
    const Array positive = lax::neg(once);
    const Array twice = lax::log(positive);
    return Arrays{lax::neg(twice)};
  };
  return jit_call1("_gumbel", body, {single_key("gumbel", key)});
}

}  // namespace reprise::random
