// How far compiled results are from those they are compared with.
#pragma once

#include <reprise/reprise.h>

#include <algorithm>
#include <cmath>
#include <limits>

// The largest difference of two elements, relative to the largest finite one expected. NaN differs
// from all but NaN.
inline double largest_difference(const reprise::Array& got, const reprise::Array& expected) {
  const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
  double scale = 1e-3, worst = 0;
  for (double v : b) scale = std::isfinite(v) ? std::max(scale, std::abs(v)) : scale;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double difference = std::abs(a[i] - b[i]);
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                   : std::max(worst, difference);
  }
  return worst / scale;
}
