#include "array/literal.h"

#include "array/number_text.h"
#include "base/cast.h"

#include <cstring>

namespace reprise {
namespace {

double as_double(const Literal& l) {
  if (is_floating(l.dtype)) return l.real;
  if (l.dtype >= Dtype::u8 && l.dtype <= Dtype::u64) return static_cast<double>(l.natural);
  return static_cast<double>(l.integer);
}

}  // namespace

Literal make_literal(Dtype dtype, double value, bool weak_type) {
  Literal l;
  l.dtype = dtype;
  l.weak_type = weak_type;
  if (dtype == Dtype::float0) return l;
  visit_dtype(dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (is_floating_element<T>) {
      l.real =
          weak_type ? value : static_cast<double>(static_cast<Compute<T>>(cast_element<T>(value)));
    } else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
      l.natural = cast_element<T>(value);
    } else {
      l.integer = cast_element<T>(value);
    }
  });
  return l;
}

void store_literal(const Literal& l, void* element) {
  if (l.dtype == Dtype::float0) {  // one byte without meaning
    std::memset(element, 0, 1);
    return;
  }
  visit_dtype(l.dtype, [&](auto tag) {
    using T = decltype(tag);
    T value;
    if constexpr (is_floating_element<T>) {
      value = cast_element<T>(l.real);
    } else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
      value = static_cast<T>(l.natural);
    } else {
      value = static_cast<T>(l.integer);
    }
    std::memcpy(element, &value, sizeof value);
  });
}

Literal load_literal(Dtype dtype, const void* element) {
  Literal l;
  l.dtype = dtype;
  if (dtype == Dtype::float0) return l;
  visit_dtype(dtype, [&](auto tag) {
    using T = decltype(tag);
    T value;
    std::memcpy(&value, element, sizeof value);
    if constexpr (is_floating_element<T>) {
      l.real = static_cast<double>(static_cast<Compute<T>>(value));
    } else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
      l.natural = value;
    } else {
      l.integer = value;
    }
  });
  return l;
}

Literal convert_literal(const Literal& l, Dtype dtype, bool weak_type) {
  if (l.dtype == dtype && l.weak_type == weak_type) return l;
  const bool integers = is_integer(l.dtype) && is_integer(dtype);
  if (!integers) return make_literal(dtype, as_double(l), weak_type);
  Literal out = l;  // 64-bit integers do not go through double
  out.dtype = dtype;
  out.weak_type = weak_type;
  std::byte element[8];
  store_literal(out, element);
  out = load_literal(dtype, element);
  out.weak_type = weak_type;
  return out;
}

std::string to_string(const Literal& l) {
  if (l.dtype == Dtype::float0) return "(b'',)";
  if (is_floating(l.dtype)) return python_float(l.real);
  if (l.dtype == Dtype::bool_) return l.integer ? "True" : "False";
  if (l.dtype >= Dtype::u8 && l.dtype <= Dtype::u64) return std::to_string(l.natural);
  return std::to_string(l.integer);
}

}  // namespace reprise
