// The batch rule of a one-output function against a loop, with the mapped axis in every position.
#pragma once

#include "error_text.h"
#include "ops/lax.h"
#include "ops/rules_check.h"

namespace reprise {

// x: operands with their mapped axis in front; positions[i]: where to put it, nullopt: not mapped
// (then x[i] has no such axis).
inline void check_mapped(const FlatFunction& f, const Arrays& x, const Axes& positions) {
  Types types;
  Arrays moved;
  std::int64_t n = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Type t = x[i].type();
    if (positions[i]) {
      n = t.shape[0];
      t.shape.erase(t.shape.begin());
    }
    types.push_back(std::move(t));
    moved.push_back(positions[i] ? lax::moveaxis(x[i], 0, *positions[i]) : x[i]);
  }
  const Traced traced = trace(f, types);
  const Batched y = vmap(*traced.program, moved, positions, n);
  const std::vector<double> got = axis_at(y.out[0], y.axes[0], 0, n).to_vector<double>();
  for (std::int64_t k = 0; k < n; ++k) {
    Arrays one;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!positions[i]) {
        one.push_back(x[i]);
        continue;
      }
      const auto* bytes = content(x[i]).elements + static_cast<std::size_t>(k) * types[i].nbytes();
      one.push_back(from_bytes(bytes, types[i]));
    }
    const std::vector<double> expected = f(one)[0].to_vector<double>();
    REQUIRE(got.size() == expected.size() * static_cast<std::size_t>(n));
    for (std::size_t j = 0; j < expected.size(); ++j) {
      CHECK(same_number(got[static_cast<std::size_t>(k) * expected.size() + j], expected[j]));
    }
  }
}

// 0, 1, 2, ... as f64.
inline Array counting(Shape shape) {
  std::vector<double> v(static_cast<std::size_t>(Type{float64, shape}.size()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  return array(v, std::move(shape));
}
// The number of equations that f records.
inline std::size_t recorded(const FlatFunction& f, const Types& types) {
  return trace(f, types).program->eqns.size();
}

}  // namespace reprise
