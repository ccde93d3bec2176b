// How far compiled results are from those they are compared with.
#pragma once

#include <reprise/reprise.h>

#include <algorithm>
#include <cmath>

// The largest difference of two elements, relative to the largest element expected.
inline double largest_difference(const reprise::Array& got, const reprise::Array& expected) {
  const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
  double scale = 0, worst = 0;
  for (double v : b) scale = std::max(scale, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst / std::max(scale, 1e-3);
}
