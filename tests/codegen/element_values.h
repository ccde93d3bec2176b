// Elements to test operations with, and how far two results are apart.
#pragma once

#include "array/access.h"
#include "base/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace reprise {

// ----------------------------------------------------------------------------------------- values
template <class T>
std::vector<T> special_integers() {
  using L = std::numeric_limits<T>;
  std::vector<T> all{L::min(), L::min() + 1, L::max(), L::max() - 1};
  for (int v : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127}) {
    all.push_back(static_cast<T>(v));
    all.push_back(static_cast<T>(-v));
  }
  for (unsigned k = 7; k < 8 * sizeof(T); k += 8) all.push_back(static_cast<T>(T{1} << k));
  return all;
}

// Limits of functions and dtypes, ties of rounding, sizes from smallest to largest.
// clang-format off
inline constexpr double special_numbers[] = {
    0.0, 0.25, 0.49999997, 0.49999999999999994, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 10.0, 27.0, 88.5,
    89.0, 104.0, 127.0, 128.0, 149.5, 255.0, 256.0, 709.5, 745.5, 1023.0, 32767.0, 32768.0, 65504.0,
    65519.0, 65520.0, 65535.0, 65535.5, 8388607.5, 0x1p23, 0x1p24, 2147483647.0, 0x1p31,
    4294967295.0, 0x1p32, 0x1p63, 0x1p64, 1e10, 1e22, 1e30, 1e300, 1e-5, 1e-7, 6e-8, 3e-8, 2.98e-8,
    1e-10, 1e-30, 1e-40, 1e-300, 1e-310, 3.141592653589793, 1.5707963267948966};
// clang-format on
template <class T>
std::vector<T> special_reals() {
  using L = std::numeric_limits<T>;
  std::vector<T> all{L::infinity(),
                     L::quiet_NaN(),
                     L::signaling_NaN(),
                     L::min(),
                     L::max(),
                     L::denorm_min(),
                     std::nextafter(L::min(), T{0}),
                     std::nextafter(T{1}, T{0}),
                     std::nextafter(T{1}, T{2})};
  for (double v : special_numbers) all.push_back(static_cast<T>(v));
  const std::size_t n = all.size();
  for (std::size_t i = 0; i < n; ++i) all.push_back(-all[i]);
  return all;
}

template <class T>
std::vector<T> special_halves() {
  std::vector<T> all;
  for (float v : special_reals<float>()) all.push_back(T(v));
  for (int bits : {0x7c01, 0x7d55, 0x7e00, 0xfc01, 0x7f81, 0x7fc1, 0xff81, 1, 0x3ff, 0x7f}) {
    all.emplace_back().bits = static_cast<std::uint16_t>(bits);  // among them signaling NaNs
  }
  return all;
}

template <class T>
std::vector<T> special_values() {
  if constexpr (is_half<T>)
    return special_halves<T>();
  else if constexpr (is_floating_element<T>)
    return special_reals<T>();
  else if constexpr (std::is_same_v<T, bool>)
    return {false, true};
  else
    return special_integers<T>();
}

// `most` values: special ones first, then random bits and random numbers of moderate size.
template <class T>
std::vector<T> values(std::size_t most) {
  std::vector<T> all = special_values<T>();
  std::mt19937_64 random(all.size());
  constexpr double scales[] = {1, 5, 20, 100, 1000};
  for (std::size_t i = 0; all.size() < most; ++i) {
    const std::uint64_t bits = random();
    T value{};
    if constexpr (std::is_same_v<T, bool>)
      value = bits & 1;
    else if constexpr (is_half<T>)
      value.bits = static_cast<std::uint16_t>(bits);
    else
      std::memcpy(&value, &bits, sizeof value);
    if constexpr (is_floating_element<T>) {
      const double number = (static_cast<double>(bits >> 11) * 0x1p-52 - 1) * scales[i % 5];
      if (i % 2 == 0) value = T(static_cast<Compute<T>>(number));
    }
    all.push_back(value);
  }
  all.resize(most);
  return all;
}

// Operand k of `arity`: together the operands run through all combinations of a pool.
inline constexpr std::int64_t num_values = 1 << 16;
inline Array make_operand(Dtype d, std::size_t k, std::size_t arity) {
  NewArray x(Type{d, {num_values}});
  constexpr int bits_per_operand[] = {16, 8, 5, 4};
  const int bits = bits_per_operand[arity - 1];
  visit_dtype(d, [&](auto tag) {
    using T = decltype(tag);
    // Three and four operands: a few values from the whole pool.
    const std::vector<T> pool = values<T>(std::size_t{1} << std::max(bits, 8));
    const std::size_t step = pool.size() >> bits;
    for (std::size_t i = 0; i < num_values; ++i) {
      const std::size_t at = (i >> (static_cast<std::size_t>(bits) * k)) & ((1u << bits) - 1);
      x.data<T>()[i] = pool[(at * step + (i >> 15) * (step / 2)) % pool.size()];
    }
  });
  return std::move(x).finish();
}
inline const Array& operand(Dtype d, std::size_t k, std::size_t arity) {
  static std::map<std::tuple<Dtype, std::size_t, std::size_t>, Array> made;
  Array& x = made[{d, k, arity}];
  if (!x.defined()) x = make_operand(d, k, arity);
  return x;
}

// ------------------------------------------------------------------------------------- comparison
template <class T>
double distance(T a, T b) {
  using U = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  constexpr U sign = U(1) << (8 * sizeof(T) - 1);
  const U p = std::bit_cast<U>(a), q = std::bit_cast<U>(b);
  const auto x = static_cast<double>(p & ~sign), y = static_cast<double>(q & ~sign);
  if ((p & sign) == (q & sign))
    return std::fabs(static_cast<double>((p & ~sign) > (q & ~sign) ? p - q : q - p));
  return std::max(1.0, x + y);  // zeros of different sign are not equal
}

// The largest distance in units in the last place; unequal integers and a NaN for a number:
// infinite.
template <class T>
double largest_distance(const T* got, const T* want, bool nan_bits_matter, std::int64_t* at) {
  double largest = 0;
  for (std::int64_t i = 0; i < num_values; ++i) {
    if (std::memcmp(got + i, want + i, sizeof(T)) == 0) continue;
    double d = std::numeric_limits<double>::infinity();
    if constexpr (is_floating_element<T>) {
      const bool nan = std::isnan(static_cast<Compute<T>>(got[i])),
                 want_nan = std::isnan(static_cast<Compute<T>>(want[i]));
      if (nan && want_nan && !nan_bits_matter) continue;
      if (nan == want_nan && !nan) d = distance(got[i], want[i]);
    }
    if (d > largest) largest = d, *at = i;
  }
  return largest;
}

}  // namespace reprise
