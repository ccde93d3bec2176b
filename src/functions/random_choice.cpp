// Random decisions: integers, orders and elements, with the equations of jax.random.
#include "array/access.h"
#include "base/dtype.h"
#include "base/location.h"
#include "control/call.h"
#include "functions/promote.h"
#include "functions/random.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "reprise/ops_math.h"
#include "reprise/ops_reduce.h"
#include "reprise/ops_shape.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise::random {
namespace {

// ---------------------------------------------------------------------------------------- integers
bool is_unsigned(Dtype d) { return d <= Dtype::u64; }
int width_of(Dtype d) { return static_cast<int>(8 * itemsize(d)); }
Dtype unsigned_of(Dtype d) { return itemsize(d) == 8 ? Dtype::u64 : Dtype::u32; }

Literal integer_literal(Dtype dtype, std::int64_t value, bool weak) {
  Literal l;
  l.dtype = dtype;
  l.weak_type = weak;
  l.integer = value;  // not negative where the dtype is unsigned
  return l;
}
// The least and the largest integer of a dtype.
Literal least(Dtype d, Dtype as, bool weak) {
  const std::int64_t value = is_unsigned(d) ? 0 : -(std::int64_t{1} << (width_of(d) - 2)) * 2;
  return integer_literal(as, value, weak);
}
Literal largest(Dtype d, Dtype as, bool weak) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - width_of(d));
  return integer_literal(as, static_cast<std::int64_t>(is_unsigned(d) ? all : all >> 1), weak);
}

// x as another integer dtype, limited to what both can hold.
Array saturated(const Array& x, Dtype to) {
  const Dtype from = x.dtype();
  const bool weak = x.weak_type();
  const auto positive_bits = [](Dtype d) { return width_of(d) - (is_unsigned(d) ? 0 : 1); };
  const auto negative_bits = [](Dtype d) { return is_unsigned(d) ? 0 : width_of(d); };
  const Dtype low = negative_bits(from) <= negative_bits(to) ? from : to;
  const Dtype high = positive_bits(from) <= positive_bits(to) ? from : to;
  const Array limited = clip(x, Operand(make_number(least(low, from, weak))),
                             Operand(make_number(largest(high, from, weak))));
  return lax::convert(limited, to);
}

Array as_integer(const Array& x, Dtype dtype) {
  return is_integer(x.dtype()) ? x : lax::convert(x, dtype);
}

// The number of integers in [low, high), at least 1; one more if high was beyond the dtype.
Array span_of(const Array& low, const Array& high, const Array& is_beyond) {
  const Array difference = lax::sub(high, low);
  const Array span = lax::convert(difference, unsigned_of(low.dtype()));
  const Array is_empty = lax::le(high, low);
  const Array one = lax::full_like(span.type(), 1);
  const Array positive = lax::select_n(is_empty, {span, one});
  const Array grows = lax::gt(high, low);
  const Array beyond = is_beyond.ndim() == 0 ? is_beyond : to_rank(is_beyond, low.shape().size());
  const Array is_longer = lax::bitwise_and(beyond, grows);
  const Array longer = lax::add(positive, lax::const_like(positive, 1));
  return lax::select_n(is_longer, {positive, longer});
}

Arrays randint_body(const Arrays& a, const Shape& shape, Dtype dtype) {
  const Array minval = as_integer(a[1], dtype);
  const Array maxval = as_integer(a[2], dtype);
  const Array limit = saturated(make_number(largest(dtype, dtype, false)), maxval.dtype());
  const Array is_beyond = lax::gt(maxval, limit);
  const Array least_value = saturated(minval, dtype);
  const Array end_value = saturated(maxval, dtype);
  const Array low = to_rank(least_value, shape.size());
  const Array high = to_rank(end_value, shape.size());
  const std::int64_t width = width_of(dtype);
  const auto [high_key, low_key] = two_keys(a[0]);
  // Twice the bits, so that the remainder is nearly even.
  const Array high_bits = lax::random_bits(high_key, width, shape);
  const Array low_bits = lax::random_bits(low_key, width, shape);
  const Array span = span_of(low, high, is_beyond);
  const double half = std::ldexp(1, static_cast<int>(width / 2));
  const Array root = lax::rem(lax::const_like(span, half), span);
  const Array square = lax::mul(root, root);
  const Array factor = lax::rem(square, span);
  const Array high_rest = lax::rem(high_bits, span);
  const Array scaled = lax::mul(high_rest, factor);
  const Array low_rest = lax::rem(low_bits, span);
  const Array sum = lax::add(scaled, low_rest);
  const Array rest = lax::rem(sum, span);
  const Array offset = lax::convert(rest, dtype);
  return {lax::add(low, offset)};
}
Array randint_call(const Array& key, const Shape& shape, const Array& minval, const Array& maxval,
                   Dtype dtype) {
  const auto body = [&](const Arrays& a) { return randint_body(a, shape, dtype); };
  return jit_call1("_randint", body, {key, minval, maxval});
}

// A bound of a short dtype as i32, limited to [least, largest + beyond].
Array short_bound(const Array& x, Dtype dtype, std::int64_t beyond) {
  const Literal* number = content(x).number();
  const Array wide = number ? make_number(convert_literal(*number, Dtype::i32, false))
                            : lax::convert(x, Dtype::i32);
  Literal top = largest(dtype, Dtype::i32, true);
  top.integer += beyond;
  const auto body = [](const Arrays& a) {
    const Array bottom = maximum(a[2], a[0]);
    return Arrays{minimum(a[1], bottom)};
  };
  return jit_call1("clip", body,
                   {wide, make_number(top), make_number(least(dtype, Dtype::i32, true))});
}

// --------------------------------------------------------------------------------------- elements
// For each wanted number the position of the first element of `sorted` that is not less.
Array searchsorted(const Array& sorted, const Array& wanted) {
  const auto body = [](const Arrays& a) {
    const std::int64_t n = a[0].shape(0);
    Array low = lax::full_like(Type{Dtype::i32, a[1].shape()}, 0);
    Array high = lax::full_like(low.type(), static_cast<double>(n));
    const int steps = std::bit_width(static_cast<std::uint64_t>(n));
    for (int i = 0; i < steps; ++i) {
      const Array distance = lax::sub(high, low);
      const Array half = lax::div(distance, lax::const_like(distance, 2));
      const Array middle = lax::add(low, half);
      const Array value = take(a[0], middle, 0, {.mode = IndexMode::clip});
      const Array is_left = lax::le(a[1], value);
      low = lax::select_n(is_left, {middle, low});
      high = lax::select_n(is_left, {high, middle});
    }
    return Arrays{high};
  };
  return jit_call1("searchsorted", body, {sorted, wanted});
}

// Where to choose from: x along an axis, or without x the numbers 0, ..., n-1.
struct Population {
  const Array* x;
  std::int64_t n, axis;
};

Array drawn_by_probability(const Array& key, const Population& from, const Shape& shape,
                           std::int64_t count, const ChoiceOptions& options) {
  const Array p = promote_dtype(*options.p, Works::inexact);
  if (p.shape() != Shape{from.n}) {
    fail<TypeError>("choice: a probability for each of ", from.n, " elements is needed, got ",
                    p.type());
  }
  if (!options.replace) {
    const Array noise = gumbel(key, {from.n}, p.dtype());
    const Array logits = lax::log(p);
    const Array sum = lax::add(noise, logits);
    return lax::top_k(sum, count).second;
  }
  const Array sums = cumsum(p);
  const Array last = lax::slice(sums, {from.n - 1}, {from.n});
  const Array total = lax::squeeze(last, {0});
  const Array u = uniform(key, shape, p.dtype());
  const Array from_one = lax::sub(lax::const_like(u, 1), u);
  const Array wanted = lax::mul(total, from_one);
  return searchsorted(sums, wanted);
}

Array shuffled_start(const Array& key, const Population& from, std::int64_t count) {
  const Array all = from.x ? permutation(key, *from.x, from.axis) : permutation(key, from.n);
  lax::Ints start(all.shape().size(), 0), limit = all.shape();
  limit[static_cast<std::size_t>(from.axis)] = count;
  return count == from.n ? all : lax::slice(all, start, limit);
}

Array chosen(const Operand& given, const Population& from, const Shape& shape,
             const ChoiceOptions& options) {
  check_shape("choice", shape);
  const std::int64_t count = element_count(shape);
  Shape result = shape;
  if (from.x) {
    const Shape& whole = from.x->shape();
    result.insert(result.begin(), whole.begin(), whole.begin() + from.axis);
    result.insert(result.end(), whole.begin() + from.axis + 1, whole.end());
  }
  const Array key = single_key("choice", given);
  if (count == 0) return zeros(result, from.x ? from.x->dtype() : int32);
  if (from.n <= 0)
    fail<TypeError>("choice: there must be something to choose from, got ", from.n, " elements");
  if (!options.replace && count > from.n) {
    fail<TypeError>(
        "choice: not more elements than there are can be chosen without replacement, got ", count,
        " of ", from.n);
  }
  if (!options.p && !options.replace) return lax::reshape(shuffled_start(key, from, count), result);
  const Array positions = options.p ? drawn_by_probability(key, from, shape, count, options)
                                    : randint(key, shape, 0, Array(from.n));
  if (!from.x) return lax::reshape(positions, result);
  return lax::reshape(take(*from.x, positions, from.axis), result);
}

}  // namespace

Array shuffle(const Array& key, const Array& x, std::int64_t axis) {
  // Equal sort keys would favour an order: enough rounds make that improbable.
  const double bits = std::log(static_cast<double>(std::max<std::int64_t>(1, x.size())));
  const auto rounds = static_cast<int>(std::ceil(3 * bits / std::log(4294967295.0)));
  const auto body = [&](const Arrays& a) {
    Array k = a[0], y = a[1];
    for (int i = 0; i < rounds; ++i) {
      const auto [next, now] = two_keys(k);
      const Array order = lax::random_bits(now, 32, y.shape());
      y = lax::sort({order, y}, axis)[1];
      k = next;
    }
    return Arrays{y};
  };
  return jit_call1("_shuffle", body, {key, x});
}

Array bernoulli(Operand key, Operand p, const std::optional<Shape>& given) {
  const AtUser at(key.at);
  check_floating("bernoulli", p.array.dtype());
  const Shape shape = shape_for("bernoulli", given, p.array.shape());
  const Array k = single_key("bernoulli", key);
  const Literal* number = content(p.array).number();
  const Array limit =
      number ? rounded_number(number->dtype, number->real) : lax::convert(p.array, p.array.dtype());
  const auto body = [&](const Arrays& a) {
    const Array u = uniform(a[0], shape, a[1].dtype());
    return Arrays{less(u, a[1])};
  };
  return jit_call1("_bernoulli", body, {k, limit});
}

Array randint(Operand key, const Shape& shape, Operand minval, Operand maxval, Dtype dtype) {
  const AtUser at(key.at);
  if (!is_integer(dtype)) fail<TypeError>("randint: an integer dtype is needed, got ", dtype);
  shape_for("randint", shape, broadcast_shape("randint", {minval.array, maxval.array}));
  const Array k = single_key("randint", key);
  if (itemsize(dtype) >= 4) {
    return randint_call(k, shape, widened(minval, dtype), widened(maxval, dtype), dtype);
  }
  const Array low = short_bound(minval, dtype, 0);
  const Array high = short_bound(maxval, dtype, 1);
  const Array wide = randint_call(k, shape, low, high, Dtype::i32);
  return lax::convert(wide, dtype);
}

Array permutation(Operand key, std::int64_t n) {
  const AtUser at(key.at);
  if (n < 0) fail<TypeError>("permutation: the number of elements must not be negative, got ", n);
  const Array k = single_key("permutation", key);
  return shuffle(k, lax::iota(index_dtype(n), {n}, 0), 0);
}
Array permutation(Operand key, Operand x, std::int64_t axis, bool independent) {
  const AtUser at(key.at);
  if (x.array.ndim() == 0) {
    fail<TypeError>("permutation: an integer or an array with an axis is needed, got ",
                    x.array.type());
  }
  const std::int64_t along = canonical_axis("permutation", axis, x.array.ndim());
  const Array k = single_key("permutation", key);
  if (independent || x.array.ndim() == 1) return shuffle(k, x, along);
  const std::int64_t n = x.array.shape(along);
  const Array order = shuffle(k, lax::iota(index_dtype(n), {n}, 0), 0);
  if (order.size() == 0) return x.array;
  return take(x, order, along, {.unique_indices = true});
}

Array choice(Operand key, std::int64_t n, const Shape& shape, const ChoiceOptions& options) {
  const AtUser at(key.at);
  return chosen(key, {nullptr, n, 0}, shape, options);
}
Array choice(Operand key, Operand x, const Shape& shape, const ChoiceOptions& options) {
  const AtUser at(key.at);
  if (x.array.ndim() == 0) {
    fail<TypeError>("choice: an integer or an array with an axis is needed, got ", x.array.type());
  }
  const std::int64_t axis = canonical_axis("choice", options.axis, x.array.ndim());
  return chosen(key, {&x.array, x.array.shape(axis), axis}, shape, options);
}

Array categorical(Operand key, Operand logits, std::int64_t axis,
                  const std::optional<Shape>& given) {
  const AtUser at(key.at);
  const Array& x = logits.array;
  check_floating("categorical", x.dtype());
  const std::int64_t along = canonical_axis("categorical", axis, x.ndim());
  if (x.shape(along) == 0)
    fail<TypeError>("categorical: the axis must not be empty, got ", x.type());
  Shape others = x.shape();
  others.erase(others.begin() + along);
  const Shape shape = shape_for("categorical", given, others);
  const auto extra = static_cast<std::int64_t>(shape.size() - others.size());
  Shape drawn = shape;
  drawn.insert(drawn.begin() + extra + along, x.shape(along));
  const Array k = single_key("categorical", key);
  const Array noise = gumbel(k, drawn, x.dtype());
  const Array sum = lax::add(noise, to_rank(x, drawn.size()));
  return lax::argmax(sum, extra + along);
}

}  // namespace reprise::random
