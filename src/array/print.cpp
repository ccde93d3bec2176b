// Arrays as numpy prints them: one format for all elements, nested brackets, lines of 75 columns,
// `...` for the middle of arrays with more than 1000 elements.
#include "array/access.h"
#include "array/number_text.h"
#include "base/cast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

namespace reprise {
namespace {

constexpr int precision = 8;
constexpr std::int64_t summary_threshold = 1000;
constexpr std::int64_t edge_items = 3;
constexpr std::size_t line_width = 75;

using Words = std::vector<std::string>;

// The positions shown along an axis of length n.
std::vector<std::int64_t> shown_along(std::int64_t n, bool summarize) {
  std::vector<std::int64_t> shown;
  const bool cut = summarize && n > 2 * edge_items;
  for (std::int64_t i = 0; i < n; ++i) {
    if (cut && i == edge_items) i = n - edge_items;
    shown.push_back(i);
  }
  return shown;
}

// Flat positions of all elements shown, in order.
std::vector<std::int64_t> shown_elements(const Shape& shape, bool summarize) {
  std::vector<std::int64_t> flat{0};
  for (std::int64_t n : shape) {
    const std::vector<std::int64_t> along = shown_along(n, summarize);
    std::vector<std::int64_t> next;
    next.reserve(flat.size() * along.size());
    for (std::int64_t outer : flat) {
      for (std::int64_t i : along) next.push_back(outer * n + i);
    }
    flat = std::move(next);
  }
  return flat;
}

// --------------------------------------------------------------------------------------- elements
std::string left_padded(const std::string& s, std::size_t width) {
  return std::string(width - std::min(width, s.size()), ' ') + s;
}

Words align_right(Words words) {
  std::size_t width = 0;
  for (const std::string& w : words) width = std::max(width, w.size());
  for (std::string& w : words) w = left_padded(w, width);
  return words;
}

// Numbers from here on are scientific: what the type can hold in plain digits.
template <class T>
constexpr double scientific_from = sizeof(T) == 8   ? 1e8
                                   : sizeof(T) == 4 ? 1e6
                                                    : 1e3;

template <class T>
bool needs_exponents(const std::vector<T>& values) {
  using C = Compute<T>;
  C smallest = std::numeric_limits<C>::infinity(), largest = 0;
  for (T value : values) {
    const C v = std::abs(static_cast<C>(value));
    if (!std::isfinite(v) || v == 0) continue;
    smallest = std::min(smallest, v);
    largest = std::max(largest, v);
  }
  if (largest == 0) return false;
  const auto in_type = [](C v) { return static_cast<C>(cast_element<T>(v)); };
  return largest >= static_cast<C>(scientific_from<T>) ||
         smallest < in_type(static_cast<C>(1e-4)) || in_type(largest / smallest) > 1000;
}

// Widths shared by all numbers of an array; the point is aligned.
struct NumberWidths {
  std::size_t whole = 0, fraction = 0, exponent = 0;
  void include(const NumberParts& p) {
    whole = std::max(whole, p.whole.size());
    fraction = std::max(fraction, p.fraction.size());
    exponent = std::max(exponent, p.exponent.size());
  }
  std::size_t total() const { return whole + 1 + fraction + exponent; }
};

std::string aligned(const NumberParts& p, const NumberWidths& widths) {
  const std::string text = left_padded(p.whole, widths.whole) + "." + p.fraction;
  if (p.exponent.empty()) return text + std::string(widths.fraction - p.fraction.size(), ' ');
  const std::string zeros(widths.exponent - p.exponent.size(), '0');
  return text + p.exponent.substr(0, 2) + zeros + p.exponent.substr(2);  // "e+" zeros "06"
}

template <class T>
Words floating_words(const std::vector<T>& values) {
  const bool with_exponents = needs_exponents(values);
  std::vector<NumberParts> parts(values.size());
  NumberWidths widths;
  std::size_t width_of_others = 0;  // nan, inf, -inf
  const auto is_number = [&](std::size_t i) {
    return std::isfinite(static_cast<Compute<T>>(values[i]));
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_number(i)) {
      parts[i] = with_exponents ? scientific_parts(values[i], 0, precision)
                                : positional_parts(values[i], precision);
      widths.include(parts[i]);
    } else {
      width_of_others = std::max(width_of_others, numpy_scalar(values[i]).size());
    }
  }
  const std::size_t rest = widths.total() - widths.whole;
  if (width_of_others > rest) widths.whole = std::max(widths.whole, width_of_others - rest);
  const auto digits = static_cast<int>(widths.fraction);
  Words words;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (with_exponents && is_number(i)) parts[i] = scientific_parts(values[i], digits, digits);
    words.push_back(is_number(i) ? aligned(parts[i], widths)
                                 : left_padded(numpy_scalar(values[i]), widths.total()));
  }
  return words;
}

template <class T>
Words words_of(const Array& x, const std::vector<std::int64_t>& shown) {
  std::vector<T> values;
  values.reserve(shown.size());
  for (std::int64_t i : shown) values.push_back(elements<T>(x)[i]);
  if constexpr (is_floating_element<T>) return floating_words(values);
  Words words;
  for (T value : values) {
    if constexpr (std::is_same_v<T, bool>)
      words.push_back(value ? " True" : "False");
    else if constexpr (std::is_integral_v<T>)
      words.push_back(std::to_string(value));
  }
  return align_right(std::move(words));
}

// ----------------------------------------------------------------------------------------- layout
class Brackets {
 public:
  Brackets(const Shape& shape, const Words& words, bool summarize)
      : shape_(shape), word_(words.begin()), summarize_(summarize) {}

  std::string print(std::size_t axis, std::size_t width) {
    const bool innermost = axis + 1 == shape_.size();
    return "[" + (innermost ? line_of_words(axis, width) : rows(axis, width)) + "]";
  }

 private:
  bool is_cut(std::size_t axis) const { return summarize_ && shape_[axis] > 2 * edge_items; }

  std::string rows(std::size_t axis, std::size_t width) {
    const std::string separator(shape_.size() - axis - 1, '\n');
    const std::string indent(axis + 1, ' ');
    const auto count = static_cast<std::int64_t>(shown_along(shape_[axis], summarize_).size());
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i > 0) out += separator + indent;
      if (i == edge_items && is_cut(axis)) out += "..." + separator + indent;
      out += print(axis + 1, width - 1);
    }
    return out;
  }

  std::string line_of_words(std::size_t axis, std::size_t width) {
    const std::string indent(axis + 1, ' ');
    const auto count = static_cast<std::int64_t>(shown_along(shape_[axis], summarize_).size());
    std::string out, line = indent;
    const auto add = [&](const std::string& word) {
      if (line.size() > indent.size()) line += ' ';
      if (line.size() > indent.size() && line.size() + word.size() > width - 1) {
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = indent;
      }
      line += word;
    };
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == edge_items && is_cut(axis)) add("...");
      add(*word_++);
    }
    return (out + line).substr(indent.size());
  }

  const Shape& shape_;
  Words::const_iterator word_;
  bool summarize_;
};

std::string scalar_text(const Array& x) {
  return visit_dtype(x.dtype(), [&](auto tag) -> std::string {
    using T = decltype(tag);
    const T value = *elements<T>(x);
    if constexpr (std::is_same_v<T, bool>)
      return value ? "True" : "False";
    else if constexpr (std::is_integral_v<T>)
      return std::to_string(value);
    else
      return numpy_scalar(value);
  });
}

Words element_words(const Array& x, const std::vector<std::int64_t>& shown) {
  if (x.dtype() == Dtype::float0) return Words(shown.size(), "(b'',)");
  return visit_dtype(x.dtype(), [&](auto tag) { return words_of<decltype(tag)>(x, shown); });
}

// A key is a pair of 32-bit numbers.
Array key_numbers(const Array& keys) {
  Type type = keys.type();
  type.dtype = Dtype::u32;
  type.shape.push_back(2);
  return with_type(keys, std::move(type));
}

}  // namespace

std::string to_string(const Array& x) {
  if (is_traced(x)) return str("Traced<", x.type(), ">");
  if (x.dtype() == Dtype::key) return to_string(key_numbers(x));
  if (x.ndim() == 0) return x.dtype() == Dtype::float0 ? "(b'',)" : scalar_text(x);
  if (x.size() == 0) return "[]";
  const bool summarize = x.size() > summary_threshold;
  const Words words = element_words(x, shown_elements(x.shape(), summarize));
  return Brackets(x.shape(), words, summarize).print(0, line_width);
}

std::ostream& operator<<(std::ostream& out, const Array& x) { return out << to_string(x); }

}  // namespace reprise
