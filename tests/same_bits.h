// Compiled functions against the plain evaluator, bit for bit, and numbers that make a difference.
#pragma once

#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

// Zeros by sign; all NaNs count as one.
inline void check_same_elements(const reprise::Array& got, const reprise::Array& expected) {
  CHECK(got.type() == expected.type());
  REQUIRE(got.size() == expected.size());
  std::size_t different = 0;
  if (expected.dtype() == reprise::int64 || expected.dtype() == reprise::uint64) {
    const auto a = got.to_vector<std::int64_t>(), b = expected.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < a.size(); ++i) different += a[i] != b[i] ? 1 : 0;
  } else {
    const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool same = a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
      different += !same && (a[i] == a[i] || b[i] == b[i]) ? 1 : 0;
    }
  }
  CHECK(different == 0);
}

template <class F, class... A>
void check_same_bits(F f, const A&... args) {
  check_same_elements(reprise::jit(f)(args...), f(args...));
}

// Small numbers with many ties, both zeros, infinities and NaN.
inline reprise::Array numbers_with_ties(const reprise::Shape& shape, bool with_nan = true) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>((i * 7919) % 13) - 6.f);
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  const auto put = [&](std::int64_t first, std::int64_t stride, float value) {
    for (std::int64_t i = first; i < n; i += stride) values[static_cast<std::size_t>(i)] = value;
  };
  put(0, 14, -0.f);
  put(7, 14, 0.f);
  put(5, 53, infinity);
  put(9, 41, -infinity);
  if (with_nan) put(11, 97, nan);
  return reprise::array(values).reshape(shape);
}
