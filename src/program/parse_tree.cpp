#include "program/parse_tree.h"

#include "base/dtype.h"
#include "program/parse.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace reprise {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_word(char c) { return starts_word(c) || is_digit(c); }

class TreeParser {
 public:
  explicit TreeParser(std::string_view text) : text_(text) {}

  ParsedText parse() {
    ParsedText result;
    skip_space();
    while (accept_word("let")) {
      const std::size_t begin = skip_space();
      const std::size_t end = text_.find(" = {", begin);
      if (end == std::string_view::npos) error("`let name = { lambda` is expected");
      at_ = end + 3;
      ParsedProgram body = program();
      result.definitions.push_back({text_.substr(begin, end - begin), std::move(body)});
      expect_word("in");
      skip_space();
    }
    result.main = program();
    skip_space();
    if (at_ != text_.size()) error("the end of the text is expected");
    result.unknown_dtypes = std::move(unknown_dtypes_);
    return result;
  }

 private:
  // ------------------------------------------------------------------------------------- words
  [[noreturn]] void error(const std::string& what) const { parse_error(text_, at_, what); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool sees(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  std::size_t skip_space() {
    while (is_space(peek())) ++at_;
    return at_;
  }
  bool accept(std::string_view s) {
    skip_space();
    if (!sees(s)) return false;
    at_ += s.size();
    return true;
  }
  void expect(std::string_view s) {
    if (!accept(s)) error(str("`", s, "` is expected"));
  }
  bool sees_word(std::string_view word) const { return sees(word) && !in_word(peek(word.size())); }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!sees_word(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) error(str("`", word, "` is expected"));
  }
  std::string_view word(const char* what) {
    const std::size_t begin = skip_space();
    if (!starts_word(peek())) error(str(what, " is expected"));
    while (in_word(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // The column of the cursor if only spaces are before it in its line.
  std::optional<std::size_t> column_at_line_start() const {
    std::size_t begin = at_;
    while (begin > 0 && text_[begin - 1] == ' ') --begin;
    if (begin > 0 && text_[begin - 1] != '\n') return std::nullopt;
    return at_ - begin;
  }

  // ------------------------------------------------------------------------------------- types
  // f32[5,4], f32<host>[3], key<fry>[]
  Type type() {
    const std::size_t begin = at_;
    while (in_word(peek())) ++at_;
    if (text_.substr(begin, at_ - begin) == "key" && peek() == '<') {  // key<fry>
      at_ = std::min(text_.find('>', at_), text_.size() - 1) + 1;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) error("a dtype is expected");
    const std::optional<Dtype> dtype = dtype_from_short_name(name);
    if (!dtype) unknown_dtypes_.push_back({name, begin});
    Type result{dtype.value_or(Dtype::f32)};
    if (sees("<host>")) {
      at_ += 6;
      result.memory_space = MemorySpace::host;
    }
    if (peek() != '[') error("`[` is expected");
    ++at_;
    while (peek() != ']') {
      result.shape.push_back(dimension());
      if (peek() == ',')
        ++at_;
      else if (peek() != ']')
        error("`]` is expected");
    }
    ++at_;
    check_size(result, begin);
    return result;
  }
  std::int64_t dimension() {
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (code != std::errc() || value < 0) error("a dimension is expected");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  void check_size(const Type& t, std::size_t at) const {
    std::int64_t bytes = std::max<std::int64_t>(static_cast<std::int64_t>(itemsize(t.dtype)), 1);
    for (std::int64_t d : t.shape) {  // nor with the dimensions that are not 0: sizes are added up
      if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(d, 1), &bytes)) {
        parse_error(text_, at, "the type has too many elements");
      }
    }
  }

  // --------------------------------------------------------------------------- binders, atoms
  ParsedBinder binder() {
    const std::size_t at = skip_space();
    const std::string_view name = word("a variable");
    if (peek() != ':') error("`:` and a type are expected");
    ++at_;
    return {name, type(), at};
  }
  std::vector<ParsedBinder> binders(char end) {
    std::vector<ParsedBinder> result;
    for (skip_space(); peek() != end; skip_space()) result.push_back(binder());
    ++at_;
    return result;
  }

  bool sees_literal() const {
    if (peek() == '-' || is_digit(peek()) || sees("(b'',)") || complex_size() > 0) return true;
    for (std::string_view name : {"True", "False", "inf", "nan"}) {
      if (sees_word(name) && peek(name.size()) == ':') return true;
    }
    return false;
  }
  // (1+2j): how long it is, 0 if there is none.
  std::size_t complex_size() const {
    if (peek() != '(') return 0;
    const std::size_t end = text_.find_first_not_of("0123456789.+-einfaj", at_ + 1);
    const bool is_complex = end != std::string_view::npos && text_.substr(end).starts_with("):");
    return is_complex ? end + 1 - at_ : 0;
  }
  ParsedAtom literal() {
    ParsedAtom atom;
    atom.is_literal = true;
    atom.at = at_;
    at_ += sees("(b'',)") ? 6 : complex_size();
    while (in_word(peek()) || peek() == '.' || peek() == '-' || peek() == '+') ++at_;
    atom.text = text_.substr(atom.at, at_ - atom.at);
    if (peek() != ':') error("`:` and a type are expected");
    ++at_;
    atom.type = type();
    if (!atom.type.shape.empty()) parse_error(text_, atom.at, "a literal must be a scalar");
    return atom;
  }
  ParsedAtom atom() {
    skip_space();
    if (sees_literal()) return literal();
    const std::size_t at = at_;
    return {word("a variable or a number"), false, {}, at};
  }

  // ----------------------------------------------------------------------------------- programs
  ParsedProgram program() {
    if (++depth_ > max_program_depth) error("the programs are nested too deeply");
    ParsedProgram p;
    p.at = skip_space();
    expect("{");
    expect_word("lambda");
    p.consts = binders(';');
    p.args = binders('.');
    expect_word("let");
    for (skip_space(); !sees_outputs(); skip_space()) {
      p.eqns.push_back(equation());
      accept(";");
    }
    expect_word("in");
    expect("(");
    while (!accept(")")) {
      p.out.push_back(atom());
      if (!accept(",")) {
        expect(")");
        break;
      }
    }
    expect("}");
    --depth_;
    return p;
  }

  // `in (`: a variable may be called `in` too, and a float0 literal begins with a parenthesis.
  bool sees_outputs() const {
    if (!sees_word("in")) return false;
    std::size_t next = at_ + 2;
    while (next < text_.size() && is_space(text_[next])) ++next;
    const std::string_view rest = text_.substr(next);
    return rest.starts_with("(") && !rest.starts_with("(b'',)");
  }

  ParsedEquation equation() {
    ParsedEquation e;
    e.at = at_;
    const std::optional<std::size_t> column = column_at_line_start();
    const std::size_t begin = at_;
    word("an equation");
    const bool has_outputs = peek() == ':';
    at_ = begin;
    if (has_outputs) e.out = binders('=');
    e.primitive = primitive_name();
    e.params_begin = at_;
    if (peek() == '[') e.params = params();
    e.params_end = at_;
    while (!ends_equation(column)) e.in.push_back(atom());
    return e;
  }
  std::string_view primitive_name() {
    const std::size_t begin = skip_space();
    word("a primitive");
    while (in_word(peek()) || (peek() == '-' && in_word(peek(1)))) ++at_;  // scatter-add
    return text_.substr(begin, at_ - begin);
  }
  // The next equation begins in the column of this one; its first word may look like a literal.
  bool ends_equation(std::optional<std::size_t> column) {
    skip_space();
    if (at_ == text_.size() || peek() == ';' || peek() == '}' || sees_outputs()) return true;
    if (column) {
      const std::optional<std::size_t> mine = column_at_line_start();
      if (mine && *mine <= *column) return true;
    }
    if (sees_literal() || !starts_word(peek())) return false;
    std::size_t end = at_;
    while (end < text_.size() && in_word(text_[end])) ++end;
    return end < text_.size() && text_[end] == ':';
  }

  // ------------------------------------------------------------------------------------- params
  std::vector<ParsedParam> params() {
    expect("[");
    std::vector<ParsedParam> result;
    while (!accept("]")) {
      ParsedParam p;
      p.at = at_;
      p.key = word("a param");
      expect("=");
      read_value(p);
      result.push_back(std::move(p));
    }
    return result;
  }

  void read_value(ParsedParam& p) {
    const bool may_name_programs = p.key.ends_with("jaxpr");
    if (sees_program()) {
      p.is_program = true;
      p.programs.push_back(program_use());
    } else if (peek() == '(' && (p.key == "branches" || sees_program_tuple())) {
      p.is_program_tuple = true;
      ++at_;
      while (!accept(")")) p.programs.push_back(program_use());
    } else {
      const std::size_t begin = at_;
      p.text = plain_value();
      if (may_name_programs && p.text != "None") {
        p.is_program = true;
        p.programs.push_back({p.text, {}, begin});
      }
    }
  }
  bool sees_program() const {
    if (peek() != '{') return false;
    std::size_t next = at_ + 1;
    while (next < text_.size() && is_space(text_[next])) ++next;
    return text_.substr(next).starts_with("lambda ");
  }
  bool sees_program_tuple() {
    const std::size_t begin = at_;
    ++at_;
    skip_space();
    const bool result = sees_program();
    at_ = begin;
    return result;
  }
  ParsedProgramUse program_use() {
    const std::size_t at = skip_space();
    if (peek() == '{') {
      ParsedProgramUse use{{}, {}, at};
      use.body.push_back(program());
      return use;
    }
    while (at_ < text_.size() && !is_space(peek()) && peek() != ')' && peek() != ']') ++at_;
    if (at_ == at) error("a program is expected");
    return {text_.substr(at, at_ - at), {}, at};
  }

  // Text up to the `]` that closes the params or the `key=` of the next one.
  std::string_view plain_value() {
    const std::size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = peek();
      if (depth == 0 && (c == ']' || (is_space(c) && next_is_key_or_end()))) break;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
      if (depth > 0 && (c == '\'' || c == '"') && !in_word(text_[at_ - 1])) skip_quoted(c);
    }
    if (at_ == text_.size()) error("`]` is expected");
    return text_.substr(begin, at_ - begin);
  }
  bool next_is_key_or_end() const {
    std::size_t next = at_;
    while (next < text_.size() && is_space(text_[next])) ++next;
    if (next == text_.size() || text_[next] == ']') return true;
    const std::size_t begin = next;
    while (next < text_.size() && in_word(text_[next])) ++next;
    return next > begin && next < text_.size() && text_[next] == '=';
  }
  void skip_quoted(char quote) {
    const std::size_t begin = at_;
    for (++at_; at_ < text_.size() && peek() != quote; ++at_) {
      if (peek() == '\\') ++at_;
    }
    if (at_ >= text_.size()) parse_error(text_, begin, "the quoted text does not end");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<UnknownWord> unknown_dtypes_;
};

}  // namespace

ParsedText parse_tree(std::string_view text) { return TreeParser(text).parse(); }

void parse_error(std::string_view text, std::size_t at, const std::string& what) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 == 0
  throw ParseError(what, static_cast<std::size_t>(line), column);
}

ParseError::ParseError(const std::string& rule_broken, std::size_t text_line,
                       std::size_t text_column)
    : TypeError(error_text(
          str("parse: ", rule_broken, " (line ", text_line, ", column ", text_column, ")"),
          user_location(), "")),
      reason(rule_broken),
      line(text_line),
      column(text_column) {}

}  // namespace reprise
