// Elementwise functions of two and more operands.
#include "ops/lax.h"
#include "ops/op_table.h"
#include "ops/records.h"

#include <cmath>

namespace reprise::op_table {
namespace {

struct Range {
  double low = -2, high = 2;
};

Row binary(const Primitive& p, Array (*f)(Operand, Operand), double (*formula)(double, double),
           Range a = {}, Range b = {}) {
  return {.name = p.name,
          .f = two(f),
          .in = {{.shape = {2, 3}, .low = a.low, .high = a.high},
                 {.shape = {2, 3}, .low = b.low, .high = b.high}},
          .reference = each(formula),
          .primitive = &p,
          .variants = scalar_and_empty(2)};
}
Row with(Row row, Dtypes dtypes, Derivative derivative = Derivative::smooth) {
  row.dtypes = std::move(dtypes);
  row.derivative = derivative;
  return row;
}
// The same with a scalar on either side, and with dimensions of size 1.
void add_stretched(Rows& rows, const Row& row) {
  Row copy = row;
  copy.name += ", stretched";
  copy.variants = {{{}, {2, 3}}, {{2, 3}, {}}, {{}, {0}}};
  copy.in[0].shape = {2, 1};
  copy.in[1].shape = {1, 3};
  copy.dtypes = {row.dtypes[0]};
  rows.push_back(std::move(copy));
}

double add_of(double a, double b) { return a + b; }
double sub_of(double a, double b) { return a - b; }
double mul_of(double a, double b) { return a * b; }
double div_of(double a, double b) { return a / b; }
double rem_of(double a, double b) { return std::fmod(a, b); }
double max_of(double a, double b) { return a < b ? b : a; }
double min_of(double a, double b) { return b < a ? b : a; }

void add_arithmetic(Rows& rows) {
  const Range positive{0.4, 2}, small{-1, 1}, large{2.5, 4};
  for (const Row& row : {with(binary(add_p, lax::add, add_of), numbers),
                         with(binary(sub_p, lax::sub, sub_of), numbers),
                         with(binary(mul_p, lax::mul, mul_of), numbers),
                         binary(div_p, lax::div, div_of, {}, positive),
                         binary(rem_p, lax::rem, rem_of, large, {0.9, 1.1}),
                         binary(pow_p, lax::pow, std::pow, positive, {}),
                         binary(atan2_p, lax::atan2, std::atan2, positive, {}),
                         with(binary(max_p, lax::max, max_of, small, large), everything),
                         with(binary(min_p, lax::min, min_of, small, large), everything)}) {
    rows.push_back(row);
    add_stretched(rows, row);
  }
  Row sums = with(binary(add_any_p, lax::add, add_of), numbers);
  sums.f = [](const Arrays& x) { return Arrays{lax::add_any(x[0], x[1])}; };
  rows.push_back(sums);
  Row integer_exponent = binary(pow_p, lax::pow, std::pow, positive, {});
  integer_exponent.name = "pow with integer exponents";
  integer_exponent.in[1] = {.shape = {2, 3}, .dtype = int32, .fixed = {0, 1, 2, 3, -1, -2}};
  integer_exponent.ulps = 8;
  rows.push_back(integer_exponent);
  Row ties = binary(max_p, lax::max, max_of, {1, 1}, {1, 1});
  ties.name = "max of equal numbers";
  ties.derivative = Derivative::none;  // shared evenly: not what differences show
  rows.push_back(ties);
}

double next_of(double a, double b) { return std::nextafter(a, b); }

void add_steps(Rows& rows) {
  const Derivative none = Derivative::none;
  // Its derivative is zero by definition, as in JAX; differences would show 1.
  rows.push_back(with(binary(nextafter_p, lax::nextafter, next_of), floats, none));
  using Comparison = double (*)(double, double);
  const auto compare = [&](const Primitive& p, Array (*f)(Operand, Operand), Comparison formula) {
    Row row = with(binary(p, f, formula), everything, none);
    rows.push_back(row);
    row.name += " with NaN";
    row.in = {{.shape = {5}, .fixed = {NAN, 1, NAN, -0.0, INFINITY}},
              {.shape = {5}, .fixed = {1, NAN, NAN, 0.0, INFINITY}}};
    row.dtypes = floats;
    row.variants = {};
    rows.push_back(row);
    row = with(binary(p, f, formula), {int64}, none);
    add_stretched(rows, row);
  };
  compare(eq_p, lax::eq, [](double a, double b) { return double(a == b); });
  compare(ne_p, lax::ne, [](double a, double b) { return double(a != b); });
  compare(lt_p, lax::lt, [](double a, double b) { return double(a < b); });
  compare(le_p, lax::le, [](double a, double b) { return double(a <= b); });
  compare(gt_p, lax::gt, [](double a, double b) { return double(a > b); });
  compare(ge_p, lax::ge, [](double a, double b) { return double(a >= b); });
}

void add_bits(Rows& rows) {
  const Derivative none = Derivative::none;
  rows.push_back(
      with(binary(and_p, lax::bitwise_and,
                  [](double a, double b) { return double(std::int64_t(a) & std::int64_t(b)); }),
           bits, none));
  rows.push_back(
      with(binary(or_p, lax::bitwise_or,
                  [](double a, double b) { return double(std::int64_t(a) | std::int64_t(b)); }),
           bits, none));
  rows.push_back(
      with(binary(xor_p, lax::bitwise_xor,
                  [](double a, double b) { return double(std::int64_t(a) ^ std::int64_t(b)); }),
           bits, none));
  // Shifts inside the width; op_table_integer.cpp has the others.
  const auto shift = [&](const Primitive& p, Array (*f)(Operand, Operand),
                         double (*formula)(double, double)) {
    Row row = with(binary(p, f, formula), integers, none);
    row.in = {{.shape = {6}, .fixed = {0, 1, 5, 7, 100, 127}},
              {.shape = {6}, .fixed = {0, 3, 1, 7, 2, 6}}};
    row.variants = scalar_and_empty(2);
    rows.push_back(row);
  };
  shift(shift_left_p, lax::shift_left, [](double a, double b) { return a * std::exp2(b); });
  shift(shift_right_logical_p, lax::shift_right_logical,
        [](double a, double b) { return std::floor(a / std::exp2(b)); });
  shift(shift_right_arithmetic_p, lax::shift_right_arithmetic,
        [](double a, double b) { return std::floor(a / std::exp2(b)); });
}

Many chosen(const Many& x) {
  return {tabulate(x[1].shape, [&](const Shape& i) {
    const double which = x[0].shape.empty() ? x[0].values[0] : x[0].at(i);
    return x[static_cast<std::size_t>(which) + 1].at(i);
  })};
}
Many clamped(const Many& x) {
  const auto bound = [](const Numbers& b, const Shape& i) {
    return b.shape.empty() ? b.values[0] : b.at(i);
  };
  return {tabulate(x[1].shape, [&](const Shape& i) {
    return min_of(max_of(x[1].at(i), bound(x[0], i)), bound(x[2], i));
  })};
}

void add_choices(Rows& rows) {
  const Function select = [](const Arrays& x) {
    return Arrays{lax::select_n(x[0], Arrays(x.begin() + 1, x.end()))};
  };
  const In pair{.shape = {2, 3}};
  rows.push_back({.name = "select_n by bools",
                  .f = select,
                  .in = {{.shape = {2, 3}, .dtype = bool_, .fixed = {1, 0, 0, 1, 1}}, pair, pair},
                  .reference = chosen,
                  .primitive = &select_n_p,
                  .dtypes = everything,
                  .variants = {{{}, {}, {}}, {{}, {2, 2}, {2, 2}}, {{0}, {0}, {0}}}});
  rows.push_back(
      {.name = "select_n by numbers",
       .f = select,
       .in = {{.shape = {2, 3}, .dtype = int32, .fixed = {2, 0, 1, 1, 2}}, pair, pair, pair},
       .reference = chosen,
       .primitive = &select_n_p,
       .variants = {{{}, {}, {}, {}}, {{}, {2}, {2}, {2}}, {{0}, {0}, {0}, {0}}}});
  rows.push_back({.name = "clamp",
                  .f = [](const Arrays& x) { return Arrays{lax::clamp(x[0], x[1], x[2])}; },
                  .in = {{.shape = {2, 3}, .low = -1, .high = -0.8},
                         {.shape = {2, 3}, .low = -2, .high = 2, .fill = Fill::distinct},
                         {.shape = {2, 3}, .low = 0.9, .high = 1.1}},
                  .reference = clamped,
                  .primitive = &clamp_p,
                  .dtypes = numbers,
                  .variants = {{{}, {}, {}}, {{}, {2, 3}, {}}, {{0}, {0}, {0}}, {{}, {0}, {}}}});
}

}  // namespace

Rows binary_rows() {
  Rows rows;
  add_arithmetic(rows);
  add_steps(rows);
  add_bits(rows);
  add_choices(rows);
  return rows;
}

}  // namespace reprise::op_table
