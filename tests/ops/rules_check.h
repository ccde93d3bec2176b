// Checks of rules that need no reference: the tangent against finite differences, the transpose
// against the tangent, the batch rule against a loop. And exact comparison of numbers.
#pragma once

#include "program/trace.h"
#include "transform/jvp.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace reprise {

// The same number: NaN equals NaN, 0.0 differs from -0.0.
inline bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}
inline void check_numbers(const Array& got, const std::vector<double>& expected) {
  const std::vector<double> numbers = got.to_vector<double>();
  REQUIRE(numbers.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CAPTURE(numbers[i]);
    CAPTURE(expected[i]);
    CHECK(same_number(numbers[i], expected[i]));
  }
}

inline double inner_product(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}
// Numbers that look random, the same ones every time.
inline Array some_direction(const Type& type, unsigned seed) {
  std::vector<double> v(static_cast<std::size_t>(type.size()));
  for (double& number : v) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<double>(seed >> 8) / (1 << 23) - 1.0;
  }
  return array(v, type.shape);
}
inline Array moved(const Array& x, const Array& direction, double step) {
  std::vector<double> v = x.to_vector<double>();
  const std::vector<double> d = direction.to_vector<double>();
  for (std::size_t i = 0; i < v.size(); ++i) v[i] += step * d[i];
  return array(v, x.shape());
}

// f: one output; x: f64 arrays are differentiated, others are held fixed.
inline void check_derivatives(const FlatFunction& f, const Arrays& x, double tolerance = 1e-6) {
  Types types;
  Tangents directions;
  std::vector<bool> active;
  Arrays ahead, behind;
  constexpr double step = 1e-6;
  for (std::size_t i = 0; i < x.size(); ++i) {
    types.push_back(x[i].type());
    active.push_back(x[i].dtype() == float64);
    const Array d = active[i] ? some_direction(x[i].type(), static_cast<unsigned>(i) + 1) : Array();
    directions.push_back(active[i] ? Tangent(d) : std::nullopt);
    ahead.push_back(active[i] ? moved(x[i], d, step) : x[i]);
    behind.push_back(active[i] ? moved(x[i], d, -step) : x[i]);
  }
  const Traced traced = trace(f, types);
  REQUIRE(traced.consts.empty());
  const Duals y = jvp(*traced.program, x, directions);
  REQUIRE(y.tangents[0].has_value());
  const std::vector<double> got = y.tangents[0]->to_vector<double>();
  const std::vector<double> high = f(ahead)[0].to_vector<double>();
  const std::vector<double> low = f(behind)[0].to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == doctest::Approx((high[i] - low[i]) / (2 * step)).epsilon(tolerance));
  }

  const Linearized linear = linearize(*traced.program, x, active);
  Primals args(linear.residuals.begin(), linear.residuals.end());
  for (bool a : active) {
    if (a) args.push_back(std::nullopt);
  }
  const Array ct = some_direction(y.out[0].type(), 99);
  const Tangents cotangents = backward(*linear.linear, args, {ct});
  double through_x = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!active[i]) continue;
    if (cotangents[next]) {
      CHECK(cotangents[next]->type().shape == x[i].shape());
      through_x += inner_product(*cotangents[next], *directions[i]);
    }
    ++next;
  }
  CHECK(through_x == doctest::Approx(inner_product(ct, *y.tangents[0])).epsilon(1e-9));
}

// The mapped function against the function of each slice. Mapped operands have their axis in front.
inline void check_batching(const FlatFunction& f, const Arrays& x,
                           const std::vector<bool>& mapped) {
  std::int64_t n = 0;
  Types types;
  Axes axes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Type t = x[i].type();
    if (mapped[i]) {
      n = t.shape[0];
      t.shape.erase(t.shape.begin());
    }
    axes.push_back(mapped[i] ? Axis(0) : std::nullopt);
    types.push_back(std::move(t));
  }
  const Traced traced = trace(f, types);
  const Batched y = vmap(*traced.program, x, axes, n);
  const Array all = axis_at(y.out[0], y.axes[0], 0, n);
  const std::vector<double> got = all.to_vector<double>();
  for (std::int64_t k = 0; k < n; ++k) {
    Arrays slices;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!mapped[i]) {
        slices.push_back(x[i]);
        continue;
      }
      const auto* bytes = content(x[i]).elements + static_cast<std::size_t>(k) * types[i].nbytes();
      slices.push_back(from_bytes(bytes, types[i]));
    }
    const std::vector<double> one = f(slices)[0].to_vector<double>();
    for (std::size_t j = 0; j < one.size(); ++j) {
      CHECK(same_number(got[static_cast<std::size_t>(k) * one.size() + j], one[j]));
    }
  }
}

}  // namespace reprise
