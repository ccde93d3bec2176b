// .safetensors: the length of the header (u64, little endian), the header (JSON: for each name
// dtype, shape and where its bytes begin and end), then the bytes of all arrays without gaps.
#include "io/elements.h"
#include "reprise/io.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

static_assert(std::endian::native == std::endian::little,
              "elements are written as they are in memory");

namespace reprise::io {
namespace {

constexpr std::uint64_t max_header = 100'000'000;  // the limit of the format

struct DtypeName {
  const char* name;
  Dtype dtype;
};
constexpr std::array<DtypeName, 13> dtype_names = {{{"BOOL", Dtype::bool_},
                                                    {"U8", Dtype::u8},
                                                    {"U16", Dtype::u16},
                                                    {"U32", Dtype::u32},
                                                    {"U64", Dtype::u64},
                                                    {"I8", Dtype::i8},
                                                    {"I16", Dtype::i16},
                                                    {"I32", Dtype::i32},
                                                    {"I64", Dtype::i64},
                                                    {"F16", Dtype::f16},
                                                    {"BF16", Dtype::bf16},
                                                    {"F32", Dtype::f32},
                                                    {"F64", Dtype::f64}}};

std::string name_of(Dtype dtype) {
  for (const DtypeName& d : dtype_names) {
    if (d.dtype == dtype) return d.name;
  }
  return "";
}
std::optional<Dtype> dtype_named(const std::string& name) {
  for (const DtypeName& d : dtype_names) {
    if (name == d.name) return d.dtype;
  }
  return std::nullopt;
}

// What the header says about one array.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape = {};
  std::uint64_t begin = 0, end = 0;
};
struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

// Reads the JSON event by event: nothing is built that the format does not have, names that stand
// twice are seen, and nesting deeper than the format's is refused at its first bracket.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const InputFile& file) : file_(file) {}
  Header header;

  bool start_object(std::size_t) override {
    if (depth_ > 1) wrong("an object where the format has none");
    if (depth_ == 1) {
      fields_.clear();
      in_metadata_ = key_ == "__metadata__";
      if (!in_metadata_) header.entries.push_back({.name = key_});
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_ && fields_.size() != 3) {
      file_.reject("the header must give dtype, shape and data_offsets, got less for '",
                   header.entries.back().name, "'");
    }
    return true;
  }
  bool key(string_t& text) override {
    auto& seen = depth_ == 1 ? names_ : fields_;
    if (!seen.insert(text).second) file_.reject("the header has the name '", text, "' twice");
    key_ = text;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_) wrong("a list where the format has none");
    in_array_ = true;
    list_.clear();
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    Entry& entry = header.entries.back();
    if (key_ == "shape") {
      entry.shape = list_;
    } else if (key_ == "data_offsets" && list_.size() == 2) {
      entry.begin = list_[0];
      entry.end = list_[1];
    } else {
      wrong("a list");
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) wrong("a number");
    if (list_.size() >= max_rank) wrong("a list of more than 64 numbers");
    list_.push_back(value);
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && in_metadata_) {
      header.metadata[key_] = text;
    } else if (depth_ == 2 && !in_array_ && key_ == "dtype") {
      const std::optional<Dtype> dtype = dtype_named(text);
      if (!dtype) {
        file_.reject("a dtype is not supported, got ", text.substr(0, 20), " for '",
                     header.entries.back().name, "'");
      }
      header.entries.back().dtype = *dtype;
    } else {
      wrong("a text");
    }
    return true;
  }
  bool null() override { wrong("null"); }
  bool boolean(bool) override { wrong("a truth value"); }
  bool number_integer(number_integer_t) override { wrong("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    wrong("a number that is no integer");
  }
  bool binary(binary_t&) override { wrong("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    file_.reject("the header is not JSON, got an error at its byte ", position);
  }

 private:
  [[noreturn]] void wrong(const char* what) const {
    file_.reject("the header does not have the form of the format, got ", what, " at '", key_, "'");
  }

  const InputFile& file_;
  int depth_ = 0;
  bool in_metadata_ = false, in_array_ = false;
  std::string key_;
  std::vector<std::uint64_t> list_;
  std::set<std::string> names_, fields_;
};

struct Layout {
  Header header;
  std::uint64_t data_begin = 0;
};

// The arrays must lie one after the other and fill the rest of the file.
void check_places(const InputFile& file, Header& header, std::uint64_t data_size) {
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end_of_last = 0;
  for (const Entry& e : header.entries) {
    if (e.begin > e.end || e.end > data_size) {
      file.reject("an array must lie inside the file, got bytes ", e.begin, " to ", e.end, " of ",
                  data_size, " for '", e.name, "'");
    }
    if (e.begin != end_of_last) {
      file.reject("arrays must neither overlap nor leave gaps, got one from byte ", e.begin,
                  " after the end at ", end_of_last, " for '", e.name, "'");
    }
    const auto wanted = bytes_of(e.dtype, e.shape);
    if (!wanted || *wanted != e.end - e.begin) {
      file.reject("the size of an array must follow from its shape, got ", e.end - e.begin,
                  " bytes for '", e.name, "'");
    }
    end_of_last = e.end;
  }
  if (end_of_last != data_size) {
    file.reject("the arrays must fill the file, got ", data_size - end_of_last, " bytes more");
  }
}

Layout read_layout(const InputFile& file) {
  std::uint64_t length = 0;
  file.read(0, &length, sizeof length);
  if (length > max_header || length > file.size() - sizeof length) {
    file.reject("the header must lie inside the file, got a length of ", length, " in ",
                file.size(), " bytes");
  }
  const std::string text = file.read_text(sizeof length, static_cast<std::size_t>(length));
  if (text.empty() || text[0] != '{') file.reject("the header must begin with {");
  HeaderReader reader(file);
  nlohmann::json::sax_parse(text, &reader);
  Layout out{std::move(reader.header), sizeof length + length};
  check_places(file, out.header, file.size() - out.data_begin);
  return out;
}

std::string header_text(const NamedArrays& arrays, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t begin = 0;
  for (const auto& [name, value] : arrays) {
    const std::uint64_t end = begin + value.nbytes();
    header[name] = {{"dtype", name_of(value.dtype())},
                    {"shape", value.shape()},
                    {"data_offsets", {begin, end}}};
    begin = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begins aligned
    return text;
  } catch (const nlohmann::json::exception&) {
    fail<TypeError>("save_safetensors: names and metadata must be valid UTF-8");
  }
}

}  // namespace

void save_safetensors(const std::string& path, const NamedLeaves& leaves,
                      const SafetensorsOptions& options, Location at) {
  const AtUser scope(at);
  NamedArrays arrays = named_arrays("save_safetensors", leaves, options.separator);
  for (const auto& [name, value] : arrays) {
    if (name == "__metadata__")
      fail<TypeError>("save_safetensors: the name '__metadata__' is taken by the format");
  }
  // The widest elements first: every array then begins at a multiple of its element's size.
  std::stable_sort(arrays.begin(), arrays.end(), [](const auto& a, const auto& b) {
    return itemsize(a.second.dtype()) > itemsize(b.second.dtype());
  });
  const std::string header = header_text(arrays, options.metadata);
  if (header.size() > max_header) {
    fail<TypeError>("save_safetensors: the names are too long for the format, got ", header.size(),
                    " bytes");
  }
  OutputFile file("save_safetensors", path);
  const std::uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header);
  for (const auto& item : arrays) {
    const Elements elements(item.second);
    file.write(elements.bytes.data(), elements.bytes.size());
  }
  file.commit();
}

Dict load_safetensors(const std::string& path, const LoadOptions& options, Location at) {
  const AtUser scope(at);
  const InputFile file("load_safetensors", path);
  const Layout layout = read_layout(file);
  DictBuilder out(file, options);
  for (const Entry& e : layout.header.entries) {
    const auto size = static_cast<std::size_t>(e.end - e.begin);
    const Buffer buffer(size);
    file.read(layout.data_begin + e.begin, buffer.data(), size);
    check_bools(file, e.name, e.dtype, {buffer.data(), size});
    out.add(e.name, buffer.to_array({e.dtype, Shape(e.shape.begin(), e.shape.end())}));
  }
  return out.take();
}

Metadata load_safetensors_metadata(const std::string& path, Location at) {
  const AtUser scope(at);
  return read_layout(InputFile("load_safetensors_metadata", path)).header.metadata;
}

}  // namespace reprise::io
