#include "array/number_text.h"

#include "base/dtype.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace reprise {
namespace {

// digits[0] . digits[1] digits[2] ... * 10^exponent, without trailing zeros
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

constexpr std::size_t buffer_size = 400;  // the longest double has 309 digits before the point

template <class T, class... Precision>
std::string number(T value, std::chars_format format, Precision... precision) {
  char buffer[buffer_size];
  const auto result = std::to_chars(buffer, buffer + buffer_size, value, format, precision...);
  return std::string(buffer, result.ptr);
}

// The fewest digits that read back as the same half number. Below a power of two the numbers are
// closer together, so there a tie may have to be rounded away from zero.
template <class T>
std::string shortest_half(T value) {
  const double exact = static_cast<float>(value);
  const double further = exact + exact * 0x1p-40;
  for (int precision = 0;; ++precision) {
    for (double v : {exact, further}) {
      std::string text = number(v, std::chars_format::scientific, precision);
      float read = 0;
      std::from_chars(text.data(), text.data() + text.size(), read);
      if (T(read).bits == value.bits || precision == 8) return text;
    }
  }
}

template <class T>
Decimal shortest_decimal(T value) {
  std::string text;
  if constexpr (is_half<T>)
    text = shortest_half(value);
  else
    text = number(value, std::chars_format::scientific);
  Decimal d;
  d.negative = text[0] == '-';
  const std::size_t e = text.find('e');
  for (char c : std::string_view(text).substr(0, e)) {
    if (c >= '0' && c <= '9') d.digits += c;
  }
  const std::size_t sign = text[e + 1] == '+' ? 2 : 1;
  std::from_chars(text.data() + e + sign, text.data() + text.size(), d.exponent);
  d.digits.erase(std::max<std::size_t>(1, d.digits.find_last_not_of('0') + 1));
  return d;
}

NumberParts positional(const Decimal& d) {
  NumberParts parts;
  const auto count = static_cast<int>(d.digits.size());
  const int before = d.exponent + 1;  // digits before the point
  if (before <= 0) {
    parts.whole = "0";
    parts.fraction = std::string(static_cast<std::size_t>(-before), '0') + d.digits;
  } else if (before >= count) {
    parts.whole = d.digits + std::string(static_cast<std::size_t>(before - count), '0');
  } else {
    parts.whole = d.digits.substr(0, static_cast<std::size_t>(before));
    parts.fraction = d.digits.substr(static_cast<std::size_t>(before));
  }
  if (parts.whole == "0" && d.digits == "0") parts.fraction.clear();
  if (d.negative) parts.whole.insert(0, "-");
  return parts;
}

NumberParts scientific(const Decimal& d) {
  const int e = std::abs(d.exponent);
  return {std::string(d.negative ? "-" : "") + d.digits[0], d.digits.substr(1),
          std::string(d.exponent < 0 ? "e-" : "e+") + (e < 10 ? "0" : "") + std::to_string(e)};
}

// "12.500e+06" -> "12" "500" "e+06"
NumberParts split(const std::string& text) {
  const std::size_t e = std::min(text.find('e'), text.size());
  const std::size_t point = std::min(text.find('.'), e);
  NumberParts parts{text.substr(0, point), "", text.substr(e)};
  if (point < e) parts.fraction = text.substr(point + 1, e - point - 1);
  return parts;
}

void trim_zeros(std::string& digits, int min_size) {
  while (static_cast<int>(digits.size()) > min_size && digits.back() == '0') digits.pop_back();
}

std::string not_finite(double v) { return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf"; }

std::string scalar_text(const Decimal& d, bool as_scientific) {
  if (as_scientific) {
    const NumberParts p = scientific(d);
    return p.whole + (p.fraction.empty() ? "" : ".") + p.fraction + p.exponent;
  }
  const NumberParts p = positional(d);
  return p.whole + "." + (p.fraction.empty() ? "0" : p.fraction);
}

template <class T>
std::string scalar(T value, double scientific_from) {
  const auto v = static_cast<double>(static_cast<Compute<T>>(value));
  if (!std::isfinite(v)) return not_finite(v);
  const bool as_scientific = v != 0 && (std::abs(v) < 1e-4 || std::abs(v) >= scientific_from);
  return scalar_text(shortest_decimal(value), as_scientific);
}

}  // namespace

std::string python_float(double v) {
  if (!std::isfinite(v)) return not_finite(v);
  const Decimal d = shortest_decimal(v);
  return scalar_text(d, d.exponent < -4 || d.exponent >= 16);
}

std::string numpy_scalar(double v) { return scalar(v, 1e16); }
std::string numpy_scalar(float v) { return scalar(v, 1e6); }
std::string numpy_scalar(Float16 v) { return scalar(v, 1e3); }
std::string numpy_scalar(BFloat16 v) { return scalar(v, 1e3); }

template <class T>
NumberParts positional_parts(T value, int max_fraction) {
  NumberParts parts = positional(shortest_decimal(value));
  if (static_cast<int>(parts.fraction.size()) <= max_fraction) return parts;
  parts = split(number(static_cast<Compute<T>>(value), std::chars_format::fixed, max_fraction));
  trim_zeros(parts.fraction, 0);
  return parts;
}
template <class T>
NumberParts scientific_parts(T value, int min_fraction, int max_fraction) {
  NumberParts parts = scientific(shortest_decimal(value));
  const auto size = static_cast<int>(parts.fraction.size());
  const int wanted = std::clamp(size, min_fraction, max_fraction);
  if (wanted == size) return parts;
  parts = split(number(static_cast<Compute<T>>(value), std::chars_format::scientific, wanted));
  trim_zeros(parts.fraction, min_fraction);
  return parts;
}
template NumberParts positional_parts(double, int);
template NumberParts positional_parts(float, int);
template NumberParts positional_parts(Float16, int);
template NumberParts positional_parts(BFloat16, int);
template NumberParts scientific_parts(double, int, int);
template NumberParts scientific_parts(float, int, int);
template NumberParts scientific_parts(Float16, int, int);
template NumberParts scientific_parts(BFloat16, int, int);

}  // namespace reprise
