// Two-operand elementwise primitives: derivative and scalar code of each, side by side.
#include "ops/elementwise.h"
#include "ops/records.h"

#include <cstdint>
#include <limits>

namespace reprise {
namespace {

using namespace lax;  // NOLINT: rules read like formulas

// ------------------------------------------------------------------------------------ scalar code
template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Integer arithmetic wraps around.
constexpr auto plus = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
};
constexpr auto minus = [](auto a, auto b) {
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
constexpr auto quotient = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(0 - static_cast<std::uint64_t>(a));
    }
    return static_cast<T>(a / b);
  }
};
constexpr auto remainder_of = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return T{0};
    }
    return static_cast<T>(a % b);
  }
};
constexpr auto power = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else {  // repeated squaring, wrapping; a negative exponent gives the truncated quotient
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return a == 1 ? T{1} : a == T(-1) ? static_cast<T>(b % 2 ? -1 : 1) : T{0};
    }
    std::uint64_t result = 1, base = static_cast<std::uint64_t>(a);
    for (auto e = static_cast<std::uint64_t>(b); e != 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  }
};
constexpr auto larger = [](auto a, auto b) {  // NaN wins
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<decltype(a)>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
};
constexpr auto smaller = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<decltype(a)>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
};
template <class T>
constexpr bool shifts_out(T b) {  // all bits leave
  return static_cast<std::uint64_t>(b) >= 8 * sizeof(T);
}
constexpr auto left_shift = [](auto a, auto b) {
  using T = decltype(a);
  return shifts_out(b) ? T{0} : static_cast<T>(static_cast<std::uint64_t>(a) << b);
};
constexpr auto logical_right_shift = [](auto a, auto b) {
  using T = decltype(a);
  return shifts_out(b) ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(a) >> b);
};
constexpr auto arithmetic_right_shift = [](auto a, auto b) {  // of the bits as a signed number
  using T = decltype(a);
  const auto value = static_cast<std::make_signed_t<T>>(a);
  if (shifts_out(b)) return static_cast<T>(value < 0 ? -1 : 0);
  return static_cast<T>(value >> b);
};

// The next number of the element's own format, also for halves.
constexpr auto following = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>) {
    return std::nextafter(a, b);
  } else {
    const auto from = static_cast<float>(a), to = static_cast<float>(b);
    if (std::isnan(from) || std::isnan(to)) return T(std::numeric_limits<float>::quiet_NaN());
    if (from == to) return b;
    if (from == 0) {
      a.bits = static_cast<std::uint16_t>(std::signbit(to) ? 0x8001 : 1);
    } else {
      const bool grows = (from < to) == (from > 0);  // in magnitude, which orders the bits
      a.bits = static_cast<std::uint16_t>(grows ? a.bits + 1 : a.bits - 1);
    }
    return a;
  }
};
constexpr Primitive nextafter_record(Primitive p) {
  p.eval = elementwise::eval_binary<Domain::floating, following, /*on_elements=*/true>;
  return p;
}

// ------------------------------------------------------------------------------------ derivatives
Array stretch(X t, X y) {  // the tangent of an operand that broadcasting stretched
  if (t.shape() == y.shape()) return t;
  if (t.ndim() == 0) return broadcast_in_dim(t, y.shape(), {});
  Ints kept;
  Shape squeezed;
  for (std::int64_t d = 0; d < t.ndim(); ++d) {
    if (t.shape(d) != y.shape(d)) continue;
    kept.push_back(d);
    squeezed.push_back(t.shape(d));
  }
  return broadcast_in_dim(reshape(t, squeezed), y.shape(), kept);
}

Tangents add_tangent(const Arrays&, const Tangents& dx, const Arrays& y, const Params&) {
  if (dx[0] && dx[1]) return {add(*dx[0], *dx[1])};
  return {stretch(dx[0] ? *dx[0] : *dx[1], y[0])};
}
Tangents add_any_tangent(const Arrays&, const Tangents& dx, const Arrays&, const Params&) {
  return {add_tangents(dx[0], dx[1])};
}
Tangents sub_tangent(const Arrays&, const Tangents& dx, const Arrays& y, const Params&) {
  if (dx[0] && dx[1]) return {sub(*dx[0], *dx[1])};
  if (dx[0]) return {stretch(*dx[0], y[0])};
  return {stretch(neg(*dx[1]), y[0])};
}
Tangents add_transpose(const Tangents& ct, const Primals& x, const Types& in, const Params&) {
  Tangents out(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!x[i]) out[i] = unbroadcast(in[i], *ct[0]);
  }
  return out;
}
Tangents sub_transpose(const Tangents& ct, const Primals& x, const Types& in, const Params&) {
  Tangents out(2);
  if (!x[0]) out[0] = unbroadcast(in[0], *ct[0]);
  if (!x[1]) out[1] = unbroadcast(in[1], neg(*ct[0]));
  return out;
}
Tangents mul_transpose(const Tangents& ct, const Primals& x, const Types& in, const Params&) {
  if (!x[0] && !x[1]) fail<RuleError>("mul: not linear, got two linear operands");
  if (!x[0]) return {unbroadcast(in[0], mul(*ct[0], *x[1])), std::nullopt};
  return {std::nullopt, unbroadcast(in[1], mul(*x[0], *ct[0]))};
}
Tangents div_transpose(const Tangents& ct, const Primals& x, const Types& in, const Params&) {
  if (!x[1]) fail<RuleError>("div: not linear in the divisor, got a linear divisor");
  return {unbroadcast(in[0], div(*ct[0], *x[1])), std::nullopt};
}

// Ties share the derivative evenly: 1, 1/2 or 0.
Array share(X x, X y, X z) {
  const Array is_x = eq(x, z);
  const Array one = full_like(z.type(), 1), zero = full_like(z.type(), 0);
  const Array mine = select_n(is_x, {zero, one});
  const Array is_y = eq(y, z);
  const Array two = full_like(z.type(), 2), one_again = full_like(z.type(), 1);
  const Array holders = select_n(is_y, {one_again, two});
  return div(mine, holders);
}
constexpr auto share_0 = [](X x, X y, X t, X z) {
  const Array s = share(x, y, z);
  return mul(t, s);
};
constexpr auto share_1 = [](X x, X y, X t, X z) {
  const Array s = share(y, x, z);
  return mul(t, s);
};

// y x^(y-1), and exactly 0 where y is 0, even at x = 0.
Array pow_by_base_with_integers(X x, X y, X t, X z) {
  const Array exponent = stretch(convert(y, x.dtype()), z);
  const Array base = stretch(x, z);
  const Array is_zero = eq(exponent, const_like(x, 0));
  const Array zero = zeros(exponent.type());
  const Array is_zero_again = eq(exponent, const_like(x, 0));
  const Array one = full_like(exponent.type(), 1);
  const Array safe = select_n(is_zero_again, {exponent, one});
  const Array one_again = full_like(exponent.type(), 1);
  const Array less = sub(exponent, one_again);
  const Array power_less = pow(base, less);
  const Array slope = mul(safe, power_less);
  const Array factor = select_n(is_zero, {slope, zero});
  return mul(t, factor);
}
Array pow_by_base(X x, X y, X t, X z) {
  if (!is_floating(y.dtype())) return pow_by_base_with_integers(x, y, t, z);
  const Array one = full_like(y.type(), 1);
  const Array less = sub(y, one);
  const Array power_less = pow(x, less);
  const Array factor = mul(y, power_less);
  return mul(t, factor);
}
Array pow_by_exponent(X x, X, X t, X z) {
  const Array is_zero = eq(x, const_like(x, 0));
  const Array one = full_like(x.type(), 1);
  const Array safe = select_n(is_zero, {x, one});  // log(0) * 0 is 0 here
  const Array log_x = log(safe);
  const Array factor = mul(log_x, z);
  return mul(t, factor);
}
Array atan2_by_0(X x, X y, X t, X) {
  const Array x2 = square(x);
  const Array y2 = square(y);
  const Array squares = add(x2, y2);
  const Array factor = div(y, squares);
  return mul(t, factor);
}
Array atan2_by_1(X x, X y, X t, X) {
  const Array minus_x = neg(x);
  const Array x2 = square(x);
  const Array y2 = square(y);
  const Array squares = add(x2, y2);
  const Array factor = div(minus_x, squares);
  return mul(t, factor);
}
Array div_by_1(X x, X y, X t, X) {
  const Array n = neg(t);
  const Array m = mul(n, x);
  const Array p = integer_pow(y, -2);
  return mul(m, p);
}
Array rem_by_1(X x, X y, X t, X) {
  const Array n = neg(t);
  const Array q = div(x, y);
  const Array s = sign(q);
  const Array q_again = div(x, y);
  const Array size = abs(q_again);
  const Array f = floor(size);
  const Array whole = mul(s, f);
  return mul(n, whole);
}

// An integer exponent may meet a floating base: it is converted.
Types pow_type(const Types& in, const Params& params) {
  Types same = in;
  if (is_floating(in[0].dtype) && is_integer(in[1].dtype)) same[1].dtype = in[0].dtype;
  return elementwise::type_of<"pow", Domain::number>(same, params);
}
Arrays pow_eval(const Arrays& x, const Params& params, const Types& out) {
  const Array exponent = convert(x[1], x[0].dtype(), x[1].weak_type());
  return elementwise::eval_binary<Domain::number, power>({x[0], exponent}, params, out);
}
constexpr Primitive pow_record(Primitive p) {
  p.type = pow_type;
  p.eval = pow_eval;
  return p;
}

constexpr Primitive linear(Primitive p, decltype(Primitive::tangent) tangent,
                           decltype(Primitive::transpose) transpose) {
  p.tangent = tangent;
  p.transpose = transpose;
  return p;
}

}  // namespace

// clang-format off
constinit const Primitive
    add_p     = linear(step_binary<"add", Domain::number, plus>, add_tangent, add_transpose),
    add_any_p = linear(step_binary<"add_any", Domain::number, plus>, add_any_tangent, add_transpose),
    sub_p     = linear(step_binary<"sub", Domain::number, minus>, sub_tangent, sub_transpose),
    mul_p     = with_transpose(binary<"mul", Domain::number,
                  [](X, X y, X t, X) { return mul(t, y); },
                  [](X x, X, X t, X) { return mul(x, t); }, times>, mul_transpose),
    div_p     = with_transpose(binary<"div", Domain::number,
                  [](X, X y, X t, X) { return div(t, y); }, div_by_1, quotient>, div_transpose),
    rem_p     = binary<"rem", Domain::number,
                  [](X, X, X t, X z) { return stretch(t, z); }, rem_by_1, remainder_of>,
    pow_p     = pow_record(binary<"pow", Domain::number, pow_by_base, pow_by_exponent, power>),
    atan2_p   = binary<"atan2", Domain::floating, atan2_by_0, atan2_by_1,
                  [](auto a, auto b) { return std::atan2(a, b); }>,
    max_p     = binary<"max", Domain::any, share_0, share_1, larger>,
    min_p     = binary<"min", Domain::any, share_0, share_1, smaller>,

    nextafter_p = nextafter_record(step_binary<"nextafter", Domain::floating, following>),
    and_p     = step_binary<"and", Domain::integral, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); }>,
    or_p      = step_binary<"or",  Domain::integral, [](auto a, auto b) { return static_cast<decltype(a)>(a | b); }>,
    xor_p     = step_binary<"xor", Domain::integral, [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); }>,
    shift_left_p             = step_binary<"shift_left", Domain::integer, left_shift>,
    shift_right_logical_p    = step_binary<"shift_right_logical", Domain::integer, logical_right_shift>,
    shift_right_arithmetic_p = step_binary<"shift_right_arithmetic", Domain::integer, arithmetic_right_shift>,

    eq_p = step_binary<"eq", Domain::any, [](auto a, auto b) -> bool { return a == b; }, true>,
    ne_p = step_binary<"ne", Domain::any, [](auto a, auto b) -> bool { return a != b; }, true>,
    lt_p = step_binary<"lt", Domain::any, [](auto a, auto b) -> bool { return a < b; }, true>,
    le_p = step_binary<"le", Domain::any, [](auto a, auto b) -> bool { return a <= b; }, true>,
    gt_p = step_binary<"gt", Domain::any, [](auto a, auto b) -> bool { return (a > b); }, true>,
    ge_p = step_binary<"ge", Domain::any, [](auto a, auto b) -> bool { return a >= b; }, true>;
// clang-format on

// A C++ number takes the other operand's dtype.
namespace {
Array bind_binary(const Primitive& p, const Operand& x, const Operand& y) {
  const AtUser at(y.at.line > x.at.line ? y.at : x.at);
  const Type &a = x.array.type(), &b = y.array.type();
  if (a.dtype == b.dtype) return p.bind1({x.array, y.array});
  const auto number = [](const Array& v) { return content(v).number() && v.weak_type(); };
  if (number(x.array) && !number(y.array)) return p.bind1({convert(x.array, b.dtype), y.array});
  if (number(y.array)) return p.bind1({x.array, convert(y.array, a.dtype)});
  return p.bind1({x.array, y.array});
}
}  // namespace

Tangent add_tangents(const Tangent& a, const Tangent& b) {
  if (a && b) return lax::add_any(*a, *b);
  return a ? a : b;
}

namespace lax {
Array add(Operand x, Operand y) { return bind_binary(add_p, x, y); }
Array add_any(const Array& x, const Array& y) { return add_any_p.bind1({x, y}); }
Array sub(Operand x, Operand y) { return bind_binary(sub_p, x, y); }
Array mul(Operand x, Operand y) { return bind_binary(mul_p, x, y); }
Array div(Operand x, Operand y) { return bind_binary(div_p, x, y); }
Array rem(Operand x, Operand y) { return bind_binary(rem_p, x, y); }
Array pow(Operand x, Operand y) { return bind_binary(pow_p, x, y); }
Array atan2(Operand x, Operand y) { return bind_binary(atan2_p, x, y); }
Array max(Operand x, Operand y) { return bind_binary(max_p, x, y); }
Array min(Operand x, Operand y) { return bind_binary(min_p, x, y); }
Array nextafter(Operand x, Operand y) { return bind_binary(nextafter_p, x, y); }
Array bitwise_and(Operand x, Operand y) { return bind_binary(and_p, x, y); }
Array bitwise_or(Operand x, Operand y) { return bind_binary(or_p, x, y); }
Array bitwise_xor(Operand x, Operand y) { return bind_binary(xor_p, x, y); }
Array shift_left(Operand x, Operand y) { return bind_binary(shift_left_p, x, y); }
Array shift_right_logical(Operand x, Operand y) { return bind_binary(shift_right_logical_p, x, y); }
Array shift_right_arithmetic(Operand x, Operand y) {
  return bind_binary(shift_right_arithmetic_p, x, y);
}
Array eq(Operand x, Operand y) { return bind_binary(eq_p, x, y); }
Array ne(Operand x, Operand y) { return bind_binary(ne_p, x, y); }
Array lt(Operand x, Operand y) { return bind_binary(lt_p, x, y); }
Array le(Operand x, Operand y) { return bind_binary(le_p, x, y); }
Array gt(Operand x, Operand y) { return bind_binary(gt_p, x, y); }
Array ge(Operand x, Operand y) { return bind_binary(ge_p, x, y); }
}  // namespace lax

}  // namespace reprise
