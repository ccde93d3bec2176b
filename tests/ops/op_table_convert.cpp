// The same values in other formats, labels and constants.
#include "ops/device_put.h"
#include "ops/op_table.h"
#include "ops/records.h"
#include "reprise/remat.h"

#include <bit>
#include <cmath>

namespace reprise::op_table {
namespace {

void add_conversions(Rows& rows) {
  const auto to = [&](Dtype d, double (*formula)(double)) {
    Dtypes from = everything;
    std::erase(from, d);
    rows.push_back(
        {.name = "convert_element_type to " + std::string(long_name(d)),
         .f = [d](const Arrays& x) { return Arrays{lax::convert_element_type(x[0], d)}; },
         .in = {{.shape = {2, 3}, .low = 0, .high = 6}},
         .reference = each(formula),
         .primitive = &convert_element_type_p,
         .dtypes = from,
         // Differences would show the steps of the shorter format.
         .derivative = d == float64 ? Derivative::smooth : Derivative::none,
         .variants = scalar_and_empty()});
  };
  for (Dtype d : floats) to(d, [](double x) { return x; });
  for (Dtype d : integers) to(d, [](double x) { return std::trunc(x); });
  to(bool_, [](double x) { return double(x != 0); });
  rows.push_back(
      {.name = "convert_element_type, saturating",
       .f = [](const Arrays& x) { return Arrays{lax::convert_element_type(x[0], int8)}; },
       .in = {{.shape = {7}, .fixed = {300, -300, -1.5, INFINITY, -INFINITY, NAN, 127.5}}},
       .reference = each([](double x) {
         if (std::isnan(x)) return 0.0;
         return std::trunc(std::fmax(-128, std::fmin(127, x)));
       }),
       .primitive = &convert_element_type_p,
       .derivative = Derivative::none});
}

void add_bitcasts(Rows& rows) {
  const auto bitcast = [](Dtype d) -> Function {
    return [d](const Arrays& x) { return Arrays{lax::bitcast_convert_type(x[0], d)}; };
  };
  rows.push_back({.name = "bitcast_convert_type to the same width",
                  .f = bitcast(int32),
                  .in = {{.shape = {2, 3}}},
                  .reference = each([](double x) {
                    return double(std::bit_cast<std::int32_t>(static_cast<float>(x)));
                  }),
                  .primitive = &bitcast_convert_type_p,
                  .dtypes = {float32},
                  .derivative = Derivative::none,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "bitcast_convert_type to half the width",
                  .f = bitcast(uint32),
                  .in = {{.shape = {2, 3}}},
                  .reference =
                      [](const Many& x) {
                        Shape shape = x[0].shape;
                        shape.push_back(2);
                        return Many{tabulate(shape, [&](Shape i) {
                          const bool high = i.back() == 1;
                          i.pop_back();
                          const auto all = std::bit_cast<std::uint64_t>(x[0].at(i));
                          return double(high ? all >> 32 : all & 0xffffffffu);
                        })};
                      },
                  .primitive = &bitcast_convert_type_p,
                  .dtypes = {float64},
                  .derivative = Derivative::none,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "bitcast_convert_type to four times the width",
                  .f = bitcast(uint32),
                  .in = {{.shape = {2, 4}}},
                  .reference =
                      [](const Many& x) {
                        Shape shape = x[0].shape;
                        shape.pop_back();
                        return Many{tabulate(shape, [&](Shape i) {
                          double sum = 0;
                          i.push_back(4);
                          while (i.back()-- > 0) sum = sum * 256 + x[0].at(i);
                          return sum;
                        })};
                      },
                  .primitive = &bitcast_convert_type_p,
                  .dtypes = {uint8},
                  .derivative = Derivative::none,
                  .variants = {{{4}}, {{0, 4}}}});
}

// x with `mantissa` bits behind the first one.
double rounded(double x, int mantissa) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  return std::ldexp(std::nearbyint(std::ldexp(fraction, mantissa + 1)), exponent - mantissa - 1);
}

void add_precision(Rows& rows) {
  rows.push_back({.name = "reduce_precision to the bits of bfloat16",
                  .f = [](const Arrays& x) { return Arrays{lax::reduce_precision(x[0], 8, 7)}; },
                  .in = {{.shape = {2, 3}}},
                  .reference = each([](double x) { return rounded(x, 7); }),
                  .primitive = &reduce_precision_p,
                  .dtypes = {float64, float32, bfloat16},
                  .derivative = Derivative::none,
                  .ulps = 0,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "reduce_precision with overflow and underflow",
                  .f = [](const Arrays& x) { return Arrays{lax::reduce_precision(x[0], 5, 10)}; },
                  .in = {{.shape = {5}, .fixed = {1e6, -1e6, 1e-6, 65504, NAN}}},
                  .reference = each([](double x) {
                    if (std::fabs(x) > 65504) return std::copysign(double(INFINITY), x);
                    return std::fabs(x) < 0x1p-14 ? 0 : x;
                  }),
                  .primitive = &reduce_precision_p,
                  .dtypes = {float64, float32},
                  .derivative = Derivative::none});
  rows.push_back({.name = "reduce_precision that keeps everything",
                  .f = [](const Arrays& x) { return Arrays{lax::reduce_precision(x[0], 11, 52)}; },
                  .in = {{.shape = {2, 3}}},
                  .reference = each([](double x) { return x; }),
                  .primitive = &reduce_precision_p,
                  .ulps = 0,
                  .variants = scalar_and_empty()});
}

void add_identities(Rows& rows) {
  const auto identity = [](double x) { return x; };
  rows.push_back({.name = "copy",
                  .f = one(lax::copy),
                  .in = {{.shape = {2, 3}}},
                  .reference = each(identity),
                  .primitive = &copy_p,
                  .dtypes = everything,
                  .ulps = 0,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "name",
                  .f = [](const Arrays& x) { return Arrays{checkpoint_name(x[0], "label")}; },
                  .in = {{.shape = {2, 3}}},
                  .reference = each(identity),
                  .primitive = &name_p,
                  .dtypes = everything,
                  .ulps = 0,
                  .variants = scalar_and_empty()});
  const auto moved = [](const Array& x, MemorySpace space) {
    return device_put_p.bind1({x}, device_put_equation({}, 0, space).params);
  };
  rows.push_back({.name = "device_put to the host and back",
                  .f =
                      [moved](const Arrays& x) {
                        const Array away = moved(x[0], MemorySpace::host);
                        return Arrays{moved(away, MemorySpace::device)};
                      },
                  .in = {{.shape = {2, 3}}},
                  .reference = each(identity),
                  .primitive = &device_put_p,
                  .dtypes = everything,
                  .ulps = 0,
                  .variants = scalar_and_empty()});
  rows.push_back({.name = "stop_gradient",
                  .f = one(lax::stop_gradient),
                  .in = {{.shape = {2, 3}}},
                  .reference = each(identity),
                  .primitive = &stop_gradient_p,
                  .dtypes = everything,
                  .derivative = Derivative::none,  // zero, whatever differences show
                  .ulps = 0,
                  .variants = scalar_and_empty()});
}

// Constants take no operands: the dtype is part of the function.
void add_constants(Rows& rows) {
  for (Dtype d : numbers) {
    const auto iota = [&](const Shape& shape, std::int64_t axis) {
      rows.push_back({.name = "iota of " + to_string(Type{d, shape}),
                      .f = [=](const Arrays&) { return Arrays{lax::iota(d, shape, axis)}; },
                      .in = {},
                      .reference =
                          [=](const Many&) {
                            return Many{tabulate(shape, [&](const Shape& i) {
                              return double(i[static_cast<std::size_t>(axis)]);
                            })};
                          },
                      .primitive = &iota_p,
                      .dtypes = {d},
                      .derivative = Derivative::none});
    };
    iota({5}, 0);
    iota({2, 3, 2}, 1);
    iota({3, 0}, 0);
    rows.push_back({.name = "empty2 of " + std::string(long_name(d)),
                    .f =
                        [=](const Arrays&) {
                          return Arrays{lax::empty2(d, {2, 3})};
                        },
                    .in = {},
                    .reference =
                        [](const Many&) {
                          return Many{tabulate({2, 3}, [](const Shape&) { return 0.0; })};
                        },
                    .primitive = &empty2_p,
                    .dtypes = {d},
                    .derivative = Derivative::none});
  }
}

}  // namespace

Rows convert_rows() {
  Rows rows;
  add_conversions(rows);
  add_bitcasts(rows);
  add_precision(rows);
  add_identities(rows);
  add_constants(rows);
  return rows;
}

}  // namespace reprise::op_table
