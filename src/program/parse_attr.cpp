// Param values in Python's notation, read as one of the forms that their rule allows.
#include "base/dtype.h"
#include "program/parse_tree.h"

#include <charconv>
#include <optional>

namespace reprise {
namespace {

// An integer, or a tuple or list of such values.
struct Value {
  bool is_integer = true;
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
    if (accept('(')) return items(')', depth);
    if (accept('[')) return items(']', depth);
    Value v;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v.integer);
    if (code != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return v;
  }
  std::optional<Value> items(char close, int depth) {
    Value v{false};
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

std::optional<Ints> as_ints(const Value& v) {
  if (v.is_integer) return std::nullopt;
  Ints result;
  for (const Value& item : v.items) {
    if (!item.is_integer) return std::nullopt;
    result.push_back(item.integer);
  }
  return result;
}
std::optional<std::vector<Ints>> as_rows(const Value& v) {
  if (v.is_integer) return std::nullopt;
  std::vector<Ints> rows;
  for (const Value& item : v.items) {
    std::optional<Ints> row = as_ints(item);
    if (!row) return std::nullopt;
    rows.push_back(*std::move(row));
  }
  return rows;
}
// (([1], [0]), ([], []))
std::optional<DotDims> as_dot_dims(const Value& v) {
  if (v.is_integer || v.items.size() != 2) return std::nullopt;
  const auto contracting = as_rows(v.items[0]), batch = as_rows(v.items[1]);
  if (!contracting || !batch || contracting->size() != 2 || batch->size() != 2) return std::nullopt;
  return DotDims{(*contracting)[0], (*contracting)[1], (*batch)[0], (*batch)[1]};
}
std::optional<Attr> as_numbers(Forms forms, std::string_view text) {
  const std::optional<Value> v = ValueParser(text).parse();
  if (!v) return std::nullopt;
  if (v->is_integer && (forms & form::integer) != 0) return v->integer;
  if ((forms & form::ints) != 0) {
    if (auto ints = as_ints(*v)) return *std::move(ints);
  }
  if ((forms & form::rows) != 0) {
    if (auto rows = as_rows(*v)) return *std::move(rows);
  }
  if ((forms & form::dims) != 0) {
    if (auto dims = as_dot_dims(*v)) return *std::move(dims);
  }
  return std::nullopt;
}

std::optional<double> as_real(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [read, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || read != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Attr> parse_attr(Forms forms, std::string_view text) {
  const auto may_be = [&](Forms f) { return (forms & f) != 0; };
  if (may_be(form::none) && text == "None") return None{};
  if (may_be(form::flag) && (text == "True" || text == "False")) return text == "True";
  if (may_be(form::dtype)) {
    if (const std::optional<Dtype> dtype = dtype_from_long_name(text)) return *dtype;
  }
  if (may_be(form::integer | form::ints | form::rows | form::dims)) {
    if (std::optional<Attr> numbers = as_numbers(forms, text)) return numbers;
  }
  if (may_be(form::real)) {
    if (const std::optional<double> real = as_real(text)) return *real;
  }
  // An object is made of its text by the primitive.
  if (may_be(form::text | form::object)) return std::string(text);
  return std::nullopt;
}

std::string without_numpy(std::string_view text, std::int64_t& count) {
  std::string out;
  for (std::size_t at = text.find("np."); at != std::string_view::npos; at = text.find("np.")) {
    const std::size_t open =
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at + 3);
    const std::size_t close = open == std::string_view::npos ? open : text.find(')', open);
    const bool is_call = close != std::string_view::npos && text[open] == '(' && open > at + 3 &&
                         text.find_first_of("([{", open + 1) > close;
    out += text.substr(0, is_call ? at : at + 3);
    if (is_call) out += text.substr(open + 1, close - open - 1);
    text.remove_prefix(is_call ? close + 1 : at + 3);
    count += is_call ? 1 : 0;
  }
  return out += text;
}

}  // namespace reprise
