#include "io/npy.h"

#include "io/elements.h"

#include <array>

namespace reprise::io {
namespace {

struct Descr {
  const char* kind;  // without the mark of the byte order
  Dtype dtype;
};
constexpr std::array<Descr, 13> descrs = {{{"b1", Dtype::bool_},
                                           {"u1", Dtype::u8},
                                           {"u2", Dtype::u16},
                                           {"u4", Dtype::u32},
                                           {"u8", Dtype::u64},
                                           {"i1", Dtype::i8},
                                           {"i2", Dtype::i16},
                                           {"i4", Dtype::i32},
                                           {"i8", Dtype::i64},
                                           {"f2", Dtype::f16},
                                           {"V2", Dtype::bf16},
                                           {"f4", Dtype::f32},
                                           {"f8", Dtype::f64}}};

std::string descr_of(Dtype dtype) {
  for (const Descr& d : descrs) {
    if (d.dtype == dtype) return (itemsize(dtype) == 1 ? "|" : "<") + std::string(d.kind);
  }
  return "";
}

// Reads the dictionary from front to back; the first thing that does not fit stops it.
class DictionaryParser {
 public:
  explicit DictionaryParser(std::string_view text) : text_(text) {}

  NpyParsed parse() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (ok() && !take('}')) {
      const std::string_view key = quoted();
      expect(':');
      bool& seen = key == "descr" ? has_descr : key == "fortran_order" ? has_order : has_shape;
      if (ok() && (seen || (key != "descr" && key != "fortran_order" && key != "shape"))) {
        error_ = "a key twice or an unknown one";
      }
      seen = true;
      if (key == "descr") read_descr(quoted());
      if (key == "fortran_order") header_.fortran_order = truth();
      if (key == "shape") read_shape();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (ok() && at_ != text_.size()) error_ = "more text after the dictionary";
    if (ok() && !(has_descr && has_order && has_shape))
      error_ = "descr, fortran_order or shape missing";
    return {header_, error_};
  }

 private:
  bool ok() const { return error_.empty(); }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (!ok() || at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c) && ok()) error_ = std::string("no ") + c + " where it must be";
  }
  std::string_view quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = ok() ? text_.find(quote, at_) : std::string_view::npos;
    if (end == std::string_view::npos) {
      if (ok()) error_ = "a text without its end";
      return {};
    }
    const std::string_view out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  bool truth() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!ok() || text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    if (ok()) error_ = "neither True nor False";
    return false;
  }
  void read_descr(std::string_view descr) {
    if (!ok()) return;
    const char order = descr.empty() ? ' ' : descr[0];
    for (const Descr& d : descrs) {
      const bool one_byte = itemsize(d.dtype) == 1;
      const bool no_order_needed =
          one_byte || d.dtype == Dtype::bf16;  // to numpy V2 is two bytes of anything
      const bool order_fits = order == '<' || order == '>' || (order == '|' && no_order_needed);
      if (!order_fits || descr.substr(1) != d.kind) continue;
      header_.dtype = d.dtype;
      header_.big_endian = order == '>' && !one_byte;
      return;
    }
    error_ = "the dtype " + std::string(descr.substr(0, 20)) + ", which is not supported";
  }
  void read_shape() {
    expect('(');
    while (ok() && !take(')')) {
      skip_space();
      std::uint64_t value = 0;
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < 19) {
        value = 10 * value + static_cast<std::uint64_t>(text_[at_++] - '0');
      }
      if (at_ == begin && ok()) error_ = "a dimension that is no number";
      header_.shape.push_back(value);
      if (header_.shape.size() > max_rank) error_ = "more than 64 dimensions";
      if (!take(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
  std::string error_;
};

}  // namespace

std::string npy_header(const Type& type) {
  std::string text = "{'descr': '" + descr_of(type.dtype) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t d : type.shape) text += std::to_string(d) + ", ";
  if (!type.shape.empty()) text.resize(text.size() - (type.shape.size() == 1 ? 1 : 2));
  text += "), }";
  // The array begins at a multiple of 64 bytes; before it the header ends with a new line.
  const std::size_t prefix = npy_magic.size() + 4;
  text.resize((prefix + text.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  text += '\n';
  std::string out(npy_magic);
  out += {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return out + text;
}

NpyParsed parse_npy_dictionary(std::string_view text) { return DictionaryParser(text).parse(); }

}  // namespace reprise::io
