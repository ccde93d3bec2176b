// Integer arithmetic at its edges, exactly: wrap-around, division by zero, shifts beyond the width.
// Every operation meets every pair of the numbers below, in every integer dtype.
#include "ops/op_table.h"

#include <doctest/doctest.h>

namespace reprise::op_table {
namespace {

// A number of `width` bits.
struct Integer {
  std::uint64_t bits;  // the others are 0
  int width;
  bool is_signed;

  std::uint64_t mask() const { return width == 64 ? ~0ull : (1ull << width) - 1; }
  bool negative() const { return is_signed && (bits >> (width - 1)) & 1; }
  std::uint64_t extended() const { return negative() ? bits | ~mask() : bits; }
  std::uint64_t magnitude() const { return negative() ? (0 - extended()) & mask() : bits; }
  bool less(const Integer& b) const {
    if (negative() != b.negative()) return negative();
    return bits < b.bits;  // two's complement orders equal signs
  }
};
using Formula = std::uint64_t (*)(Integer, Integer);

struct IntegerRow {
  const char* name;
  std::function<Array(const Array&, const Array&)> f;
  Formula formula;  // only the low bits count
  bool is_predicate = false;
};

std::uint64_t quotient(Integer a, Integer b) {
  if (b.bits == 0) return ~0ull;
  const std::uint64_t q = a.magnitude() / b.magnitude();
  return a.negative() == b.negative() ? q : 0 - q;
}
std::uint64_t remainder_of(Integer a, Integer b) {
  if (b.bits == 0) return a.bits;
  const std::uint64_t r = a.magnitude() % b.magnitude();
  return a.negative() ? 0 - r : r;
}
bool shifts_out(Integer a, Integer b) {
  return b.negative() || b.bits >= static_cast<std::uint64_t>(a.width);
}
std::uint64_t arithmetic_shift(Integer a, Integer b) {  // of the bits as a signed number
  const Integer number{a.bits, a.width, true};
  const std::uint64_t sign = number.negative() ? ~0ull : 0;
  if (shifts_out(a, b)) return sign;
  if (b.bits == 0) return a.bits;
  return (number.extended() >> b.bits) | (sign << (64 - b.bits));
}

std::vector<IntegerRow> binary_integer_rows() {
  using namespace lax;  // NOLINT
  return {
      {"add", add, [](Integer a, Integer b) { return a.bits + b.bits; }},
      {"sub", sub, [](Integer a, Integer b) { return a.bits - b.bits; }},
      {"mul", mul, [](Integer a, Integer b) { return a.bits * b.bits; }},
      {"div", div, quotient},
      {"rem", rem, remainder_of},
      {"max", max, [](Integer a, Integer b) { return a.less(b) ? b.bits : a.bits; }},
      {"min", min, [](Integer a, Integer b) { return a.less(b) ? a.bits : b.bits; }},
      {"and", bitwise_and, [](Integer a, Integer b) { return a.bits & b.bits; }},
      {"or", bitwise_or, [](Integer a, Integer b) { return a.bits | b.bits; }},
      {"xor", bitwise_xor, [](Integer a, Integer b) { return a.bits ^ b.bits; }},
      {"shift_left", shift_left,
       [](Integer a, Integer b) { return shifts_out(a, b) ? 0 : a.bits << b.bits; }},
      {"shift_right_logical", shift_right_logical,
       [](Integer a, Integer b) { return shifts_out(a, b) ? 0 : a.bits >> b.bits; }},
      {"shift_right_arithmetic", shift_right_arithmetic, arithmetic_shift},
      {"eq", eq, [](Integer a, Integer b) -> std::uint64_t { return a.bits == b.bits; }, true},
      {"ne", ne, [](Integer a, Integer b) -> std::uint64_t { return a.bits != b.bits; }, true},
      {"lt", lt, [](Integer a, Integer b) -> std::uint64_t { return a.less(b); }, true},
      {"le", le, [](Integer a, Integer b) -> std::uint64_t { return !b.less(a); }, true},
      {"gt", gt, [](Integer a, Integer b) -> std::uint64_t { return b.less(a); }, true},
      {"ge", ge, [](Integer a, Integer b) -> std::uint64_t { return !a.less(b); }, true},
  };
}
std::vector<IntegerRow> unary_integer_rows() {
  const auto unary = [](Array (*f)(Operand)) {
    return [f](const Array& a, const Array&) { return f(a); };
  };
  return {
      {"neg", unary(lax::neg), [](Integer a, Integer) { return 0 - a.bits; }},
      {"not", unary(lax::bitwise_not), [](Integer a, Integer) { return ~a.bits; }},
      {"abs", unary(lax::abs), [](Integer a, Integer) { return a.magnitude(); }},
      {"square", unary(lax::square), [](Integer a, Integer) { return a.bits * a.bits; }},
      {"sign", unary(lax::sign),
       [](Integer a, Integer) -> std::uint64_t { return a.negative() ? ~0ull : a.bits != 0; }},
      {"integer_pow 3", [](const Array& a, const Array&) { return lax::integer_pow(a, 3); },
       [](Integer a, Integer) { return a.bits * a.bits * a.bits; }},
      {"integer_pow 0", [](const Array& a, const Array&) { return lax::integer_pow(a, 0); },
       [](Integer, Integer) -> std::uint64_t { return 1; }},
  };
}

std::vector<std::uint64_t> edge_numbers(int width) {
  const std::uint64_t high = 1ull << (width - 1);
  const auto w = static_cast<std::uint64_t>(width);
  return {0,        1,    2,        3,        7,        100, 0 - 1ull, 0 - 2ull,
          0 - 7ull, high, high + 1, high - 1, high - 2, w,   w - 1,    w + 1};
}
Array integers_of(const std::vector<std::uint64_t>& v, Dtype d) {
  return lax::convert_element_type(array(v), d);  // keeps the low bits
}
std::vector<std::uint64_t> low_bits(const Array& x) {
  return lax::convert_element_type(x, uint64).to_vector<std::uint64_t>();
}

void check_integer_row(const IntegerRow& row, Dtype d) {
  const int width = static_cast<int>(8 * itemsize(d));
  const bool is_signed = d == int8 || d == int16 || d == int32 || d == int64;
  std::vector<std::uint64_t> a, b;
  for (std::uint64_t x : edge_numbers(width)) {
    for (std::uint64_t y : edge_numbers(width)) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const Array result = row.f(integers_of(a, d), integers_of(b, d));
  CHECK(result.dtype() == (row.is_predicate ? bool_ : d));
  const std::vector<std::uint64_t> got = low_bits(result);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::uint64_t mask = Integer{0, width, false}.mask();
    const Integer x{a[i] & mask, width, is_signed}, y{b[i] & mask, width, is_signed};
    if ((got[i] & mask) == (row.formula(x, y) & mask)) continue;
    FAIL_CHECK(row.name, " of ", long_name(d), " bits ", x.bits, " and ", y.bits, ": got ",
               got[i] & mask, ", expected ", row.formula(x, y) & mask);
    return;
  }
}

}  // namespace

void check_integer_edges() {
  for (Dtype d : integers) {
    for (const IntegerRow& row : binary_integer_rows()) check_integer_row(row, d);
    for (const IntegerRow& row : unary_integer_rows()) check_integer_row(row, d);
  }
}

}  // namespace reprise::op_table
