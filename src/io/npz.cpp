// .npz: a zip archive with one .npy file for each array.
#include "io/elements.h"
#include "io/npy.h"
#include "io/zip.h"
#include "reprise/io.h"
#include "reprise/ops_shape.h"

#include <algorithm>
#include <bit>

static_assert(std::endian::native == std::endian::little,
              "elements are written as they are in memory");

namespace reprise::io {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::size_t max_npy_header = 1 << 16;

// Reads magic, version and dictionary, and checks that the elements fill the rest of the entry.
NpyHeader read_header(const InputFile& file, const ZipEntry& entry, ZipReader& content) {
  std::string start(npy_magic.size() + 2, '\0');
  content.read(start.data(), start.size());
  const int version = start[6];
  if (start.substr(0, 6) != npy_magic || version < 1 || version > 3) {
    file.reject("an entry is not a .npy file, got '", entry.name, "'");
  }
  std::uint32_t length = 0;
  const std::size_t length_size = version == 1 ? 2 : 4;
  content.read(&length, length_size);
  if (length > max_npy_header)
    file.reject("a .npy header is too long, got ", length, " bytes in '", entry.name, "'");
  std::string text(length, '\0');
  content.read(text.data(), text.size());
  const NpyParsed parsed = parse_npy_dictionary(text);
  if (!parsed.error.empty()) {
    file.reject("a .npy header cannot be understood, got ", parsed.error, " in '", entry.name, "'");
  }
  const auto elements = bytes_of(parsed.header.dtype, parsed.header.shape);
  const std::uint64_t before = start.size() + length_size + length;
  if (!elements || *elements != entry.size - before) {
    file.reject("the size of an array must follow from its shape, got ", entry.size - before,
                " bytes in '", entry.name, "'");
  }
  return parsed.header;
}

void swap_bytes(std::byte* data, std::size_t size, std::size_t width) {
  for (std::size_t i = 0; i + width <= size; i += width) std::reverse(data + i, data + i + width);
}

Array read_array(const InputFile& file, const ZipEntry& entry) {
  ZipReader content(file, entry);
  const NpyHeader header = read_header(file, entry, content);
  const auto size = static_cast<std::size_t>(*bytes_of(header.dtype, header.shape));
  const Buffer buffer(size);
  content.read(buffer.data(), size);
  content.finish();
  if (header.big_endian) swap_bytes(buffer.data(), size, itemsize(header.dtype));
  check_bools(file, entry.name, header.dtype, {buffer.data(), size});
  Shape shape(header.shape.begin(), header.shape.end());
  if (!header.fortran_order) return buffer.to_array({header.dtype, shape});
  std::reverse(shape.begin(),
               shape.end());  // columns one after the other: the transpose row by row
  return transpose(buffer.to_array({header.dtype, shape}));
}

// Packed entries may claim a thousand times the size of the file: ask before memory is taken for
// them.
void check_inflation(const InputFile& file, const std::vector<ZipEntry>& entries,
                     double max_inflation) {
  constexpr double always_allowed = 64.0 * 1024 * 1024;
  double unpacked = 0;
  for (const ZipEntry& e : entries) unpacked += e.deflated ? static_cast<double>(e.size) : 0;
  if (unpacked <= std::max(always_allowed, max_inflation * static_cast<double>(file.size())))
    return;
  file.reject("the compressed data is ", unpacked / static_cast<double>(file.size()),
              " times as large as the file, more than .max_inflation allows");
}

}  // namespace

void save_npz(const std::string& path, const NamedLeaves& leaves, const NpzOptions& options,
              Location at) {
  const AtUser scope(at);
  const NamedArrays arrays = named_arrays("save_npz", leaves, options.separator);
  OutputFile file("save_npz", path);
  ZipWriter archive(file);
  for (const auto& [name, value] : arrays) {
    const Elements elements(value);
    archive.add(name + std::string(suffix), npy_header(value.type()), elements.bytes.data(),
                elements.bytes.size(), options.compressed);
  }
  archive.finish();
  file.commit();
}

Dict load_npz(const std::string& path, const LoadOptions& options, Location at) {
  const AtUser scope(at);
  const InputFile file("load_npz", path);
  const std::vector<ZipEntry> entries = read_directory(file);
  check_inflation(file, entries, options.max_inflation);
  DictBuilder out(file, options);
  for (const ZipEntry& entry : entries) {
    const std::string& name = entry.name;
    if (name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix) {
      file.reject("an entry is not a .npy file, got '", name, "'");
    }
    out.add(name.substr(0, name.size() - suffix.size()), read_array(file, entry));
  }
  return out.take();
}

}  // namespace reprise::io
