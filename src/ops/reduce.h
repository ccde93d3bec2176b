// What reductions, products and convolutions share: sets of axes and elements in another order.
#pragma once

#include "array/access.h"
#include "base/dtype.h"
#include "program/primitive.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace reprise {

// ------------------------------------------------------------------------------------------- axes
inline bool contains(const Ints& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}
// The axes 0 .. ndim-1 that are in neither list, in order.
Ints other_axes(std::int64_t ndim, const Ints& a, const Ints& b = {});
Shape sizes_at(const Shape& shape, const Ints& axes);
// Throws TypeError unless the axes are distinct and in [0, ndim).
void check_axes(std::string_view op, const char* what, const Ints& axes, const Type& type);
// The axes of an operand as they are once a mapped axis stands at `at`.
Ints shifted_axes(const Ints& axes, std::int64_t at);
// The permutation that undoes `permutation`.
Ints inverse_permutation(const Ints& permutation);

// -------------------------------------------------------------------------------------- positions
std::int64_t largest_integer(Dtype);  // of an integer dtype; of u64 what i64 holds
// What counts from 0 to `size`: i32 as in JAX, i64 where that would not fit.
Dtype index_dtype(std::int64_t size);

// --------------------------------------------------------------------------------------- monoids
// Each names the neutral element and how two partial results combine. Integers wrap around.
struct Sum {
  template <class T>
  static T neutral() {
    return T{0};
  }
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Product {
  template <class T>
  static T neutral() {
    return T{1};
  }
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct Largest {  // NaN wins, +0 is larger than -0
  template <class T>
  static T neutral() {
    if constexpr (std::is_floating_point_v<T>)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::min();
  }
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a > b || a != a || (a == b && std::signbit(b)) ? a : b;
    return a > b ? a : b;
  }
};
struct Smallest {
  template <class T>
  static T neutral() {
    if constexpr (std::is_floating_point_v<T>)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
  template <class T>
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a < b || a != a || (a == b && std::signbit(a)) ? a : b;
    return a < b ? a : b;
  }
};

// ------------------------------------------------------------------------------------------ duals
// A value and its tangent, for rules that differentiate a small computation step by step.
struct Dual {
  Array x, dx;
};
template <class F>
Dual both(const Dual& d, F&& f) {  // f is linear
  const Array x = f(d.x);
  return {x, f(d.dx)};
}
// p(a, b) for an elementwise primitive without params.
Dual combine(const Primitive& p, const Dual& a, const Dual& b);

// --------------------------------------------------------------------------------------- elements
// Writes the elements of x with its axes in the order `permutation`, converted by static_cast.
template <class To>
void copy_permuted(const Array& x, const Ints& permutation, To* to) {
  if (x.size() == 0) return;
  const Shape shape = sizes_at(x.shape(), permutation);
  const Shape strides = sizes_at(row_major_strides(x.shape()), permutation);
  const std::int64_t inner = shape.empty() ? 1 : shape.back();
  const std::int64_t stride = shape.empty() ? 0 : strides.back();
  const std::int64_t rows = x.size() / inner;
  visit_dtype(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = elements<T>(x);
    Shape index(shape.size(), 0);
    for (std::int64_t r = 0; r < rows; ++r, to += inner) {
      for (std::int64_t i = 0; i < inner; ++i) {
        to[i] = static_cast<To>(static_cast<Compute<T>>(from[i * stride]));
      }
      for (std::size_t d = shape.size(); d-- > 1;) {  // the next row
        const std::size_t axis = d - 1;
        from += strides[axis];
        if (++index[axis] < shape[axis]) break;
        from -= strides[axis] * shape[axis];
        index[axis] = 0;
      }
    }
  });
}

}  // namespace reprise
