// Param values in Python's notation. A value whose shape is not one of ours stays text.
#include "base/dtype.h"
#include "program/parse_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace reprise {
namespace {

// An integer, or a tuple or list of such values.
struct Value {
  enum class Kind { integer, tuple, list } kind = Kind::integer;
  std::int64_t integer = 0;
  std::vector<Value> items = {};
};

class ValueParser {
 public:
  explicit ValueParser(std::string_view text) : rest_(text) {}
  std::optional<Value> parse() {
    std::optional<Value> v = value(0);
    return v && rest_.empty() ? v : std::nullopt;
  }

 private:
  bool accept(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_space() {
    while (rest_.starts_with(' ') || rest_.starts_with('\n')) rest_.remove_prefix(1);
  }
  std::optional<Value> value(int depth) {
    if (depth > 3) return std::nullopt;  // dimension numbers are the deepest
    if (accept('(')) return items({Value::Kind::tuple}, ')', depth);
    if (accept('[')) return items({Value::Kind::list}, ']', depth);
    Value v;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v.integer);
    if (code != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return v;
  }
  std::optional<Value> items(Value v, char close, int depth) {
    bool comma = false;
    for (skip_space(); !accept(close); skip_space()) {
      if (!v.items.empty() && !comma) return std::nullopt;
      std::optional<Value> item = value(depth + 1);
      if (!item) return std::nullopt;
      v.items.push_back(*std::move(item));
      skip_space();
      comma = accept(',');
    }
    const bool is_number_in_parentheses = close == ')' && v.items.size() == 1 && !comma;
    return is_number_in_parentheses ? std::nullopt : std::optional(std::move(v));
  }

  std::string_view rest_;
};

std::optional<Ints> as_ints(const Value& v, Value::Kind kind) {
  if (v.kind != kind) return std::nullopt;
  Ints result;
  for (const Value& item : v.items) {
    if (item.kind != Value::Kind::integer) return std::nullopt;
    result.push_back(item.integer);
  }
  return result;
}
std::optional<std::vector<Ints>> as_rows(const Value& v, Value::Kind kind) {
  if (v.kind != Value::Kind::tuple) return std::nullopt;
  std::vector<Ints> rows;
  for (const Value& item : v.items) {
    std::optional<Ints> row = as_ints(item, kind);
    if (!row) return std::nullopt;
    rows.push_back(*std::move(row));
  }
  return rows;
}
// (([1], [0]), ([], []))
std::optional<DotDims> as_dot_dims(const Value& v) {
  if (v.kind != Value::Kind::tuple || v.items.size() != 2) return std::nullopt;
  const auto contracting = as_rows(v.items[0], Value::Kind::list);
  const auto batch = as_rows(v.items[1], Value::Kind::list);
  if (!contracting || !batch || contracting->size() != 2 || batch->size() != 2) return std::nullopt;
  return DotDims{(*contracting)[0], (*contracting)[1], (*batch)[0], (*batch)[1]};
}

std::optional<double> as_real(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [read, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || read != end) return std::nullopt;
  return value;
}

}  // namespace

Attr parse_attr(std::string_view key, std::string_view text) {
  const std::string verbatim(text);
  constexpr std::array<std::string_view, 4> names{"name", "jvp", "fwd", "bwd"};
  if (std::find(names.begin(), names.end(), key) != names.end()) return verbatim;
  // Of a scalar: an empty list of rows and not of numbers.
  if (text == "()" && (key == "padding" || key == "padding_config")) return std::vector<Ints>{};
  if (text == "None") return None{};
  if (text == "True") return true;
  if (text == "False") return false;
  if (const std::optional<Dtype> dtype = dtype_from_long_name(text)) return *dtype;
  if (const std::optional<Value> v = ValueParser(text).parse()) {
    if (v->kind == Value::Kind::integer) return v->integer;
    if (auto ints = as_ints(*v, Value::Kind::tuple)) return *std::move(ints);
    if (auto rows = as_rows(*v, Value::Kind::tuple)) return *std::move(rows);
    if (auto dims = as_dot_dims(*v)) return *std::move(dims);
    return verbatim;
  }
  if (const std::optional<double> real = as_real(text)) return *real;
  return verbatim;
}

}  // namespace reprise
