// Conversion of one element, defined for every value: out of range saturates, NaN gives 0.
#pragma once

#include "base/dtype.h"

#include <cmath>
#include <limits>

namespace reprise {

template <class To, class From>
To cast_element(From from) {
  const Compute<From> v = static_cast<Compute<From>>(from);
  if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<To> || !std::is_floating_point_v<Compute<From>>) {
    return static_cast<To>(v);
  } else {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(v)) return To{0};
    if (v <= static_cast<Compute<From>>(Limits::min())) return Limits::min();
    if (v >= static_cast<Compute<From>>(Limits::max())) return Limits::max();
    return static_cast<To>(v);
  }
}

}  // namespace reprise
