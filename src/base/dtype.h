// From a dtype to the C++ type of its elements: visit_dtype(d, [](auto tag) { using T =
// decltype(tag); }).
#pragma once

#include "base/error.h"
#include "base/half.h"
#include "reprise/array.h"

#include <type_traits>
#include <utility>

namespace reprise {

// The type in which scalar arithmetic of T is done.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Float16> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeType<T>::type;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_floating_element = std::is_floating_point_v<T> || is_half<T>;

// Calls f(T{}) for the element type of a numeric dtype (not float0, not keys).
template <class F>
decltype(auto) visit_dtype(Dtype d, F&& f) {
  switch (d) {
    case Dtype::bool_: return f(bool{});
    case Dtype::u8: return f(std::uint8_t{});
    case Dtype::u16: return f(std::uint16_t{});
    case Dtype::u32: return f(std::uint32_t{});
    case Dtype::u64: return f(std::uint64_t{});
    case Dtype::i8: return f(std::int8_t{});
    case Dtype::i16: return f(std::int16_t{});
    case Dtype::i32: return f(std::int32_t{});
    case Dtype::i64: return f(std::int64_t{});
    case Dtype::f16: return f(Float16{});
    case Dtype::bf16: return f(BFloat16{});
    case Dtype::f32: return f(float{});
    case Dtype::f64: return f(double{});
    case Dtype::float0:
    case Dtype::key: break;
  }
  fail<TypeError>("dtype: arithmetic is not defined, got ", d);
}

// Calls f(T{}) for floating dtypes only.
template <class F>
decltype(auto) visit_floating(Dtype d, F&& f) {
  if (d == Dtype::f32) return f(float{});
  if (d == Dtype::f64) return f(double{});
  if (d == Dtype::f16) return f(Float16{});
  if (d == Dtype::bf16) return f(BFloat16{});
  fail<TypeError>("dtype: a floating dtype is needed, got ", d);
}

std::optional<Dtype> dtype_from_short_name(std::string_view);
std::optional<Dtype> dtype_from_long_name(std::string_view);

// The product of the dimensions; throws RuntimeError when it does not fit.
std::int64_t element_count(const Shape&);
std::string to_string(const Shape&);  // "(5, 4)", "(3,)", "()" as Python prints tuples
Shape row_major_strides(const Shape&);

// axis in [-ndim, ndim) to [0, ndim); throws TypeError naming `op`.
std::int64_t canonical_axis(std::string_view op, std::int64_t axis, std::int64_t ndim);

}  // namespace reprise
