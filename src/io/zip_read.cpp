#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace reprise::io {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50,
                        end_signature = 0x06054b50, wide_end_signature = 0x06064b50,
                        wide_locator_signature = 0x07064b50;
constexpr std::size_t local_size = 30, central_size = 46, end_size = 22, wide_end_size = 56,
                      wide_locator_size = 20;
constexpr std::uint32_t in_extra_field =
    0xFFFFFFFF;  // the number stands in the field for wide numbers

// Little-endian numbers at places that the caller has checked.
template <class T>
T number(const std::string& bytes, std::size_t at) {
  T out{};
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

struct Directory {
  std::uint64_t begin, size, count;
};

// The record at the end of the file: after it only a comment of at most 64 KiB.
Directory find_directory(const InputFile& file) {
  const std::uint64_t tail_size = std::min<std::uint64_t>(file.size(), end_size + 0xFFFF);
  const std::uint64_t tail_begin = file.size() - tail_size;
  const std::string tail = file.read_text(tail_begin, static_cast<std::size_t>(tail_size));
  for (std::size_t back = end_size; back <= tail.size(); ++back) {
    const std::size_t at = tail.size() - back;
    if (number<std::uint32_t>(tail, at) != end_signature) continue;
    if (number<std::uint16_t>(tail, at + 20) != back - end_size)
      continue;  // the comment fills the rest
    Directory out{number<std::uint32_t>(tail, at + 16), number<std::uint32_t>(tail, at + 12),
                  number<std::uint16_t>(tail, at + 10)};
    const std::uint64_t end_begin = tail_begin + at;
    const bool is_wide =
        out.begin == in_extra_field || out.size == in_extra_field || out.count == 0xFFFF;
    if (is_wide && end_begin >= wide_locator_size) {
      const std::string locator = file.read_text(end_begin - wide_locator_size, wide_locator_size);
      if (number<std::uint32_t>(locator, 0) == wide_locator_signature) {
        const std::string wide = file.read_text(number<std::uint64_t>(locator, 8), wide_end_size);
        if (number<std::uint32_t>(wide, 0) != wide_end_signature)
          file.reject("the wide end record is missing");
        out = {number<std::uint64_t>(wide, 48), number<std::uint64_t>(wide, 40),
               number<std::uint64_t>(wide, 32)};
      }
    }
    if (out.begin > end_begin || out.size > end_begin - out.begin) {
      file.reject("the directory must lie inside the file, got ", out.size, " bytes at ",
                  out.begin);
    }
    return out;
  }
  file.reject("not a zip archive, or truncated: no end record");
}

// Numbers of 64 bits, for those of the fixed fields that are too small, in the order of these.
void read_wide_numbers(const InputFile& file, const std::string& extra,
                       std::vector<std::uint64_t*> wanted) {
  if (wanted.empty()) return;
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const std::size_t length = number<std::uint16_t>(extra, at + 2);
    if (length > extra.size() - at - 4) break;
    if (number<std::uint16_t>(extra, at) == 1) {
      if (length < 8 * wanted.size()) break;
      for (std::size_t i = 0; i < wanted.size(); ++i)
        *wanted[i] = number<std::uint64_t>(extra, at + 4 + 8 * i);
      return;
    }
    at += 4 + length;
  }
  file.reject("an entry lacks the field for its wide numbers");
}

// Where the content begins: after a second header, which must tell the same name.
std::uint64_t content_begin(const InputFile& file, std::uint64_t header_begin,
                            const ZipEntry& entry) {
  const std::string local = file.read_text(header_begin, local_size);
  const std::size_t name_size = number<std::uint16_t>(local, 26),
                    extra_size = number<std::uint16_t>(local, 28);
  if (number<std::uint32_t>(local, 0) != local_signature ||
      file.read_text(header_begin + local_size, name_size) != entry.name) {
    file.reject("the two headers of an entry differ, got '", entry.name, "'");
  }
  return header_begin + local_size + name_size + extra_size;
}

struct Placed {
  ZipEntry entry;
  std::uint64_t begin;  // of its header
};

// Reads the entry at `at` of the directory and moves on to the next.
Placed read_entry(const InputFile& file, const std::string& directory, std::size_t& at) {
  if (directory.size() - at < central_size ||
      number<std::uint32_t>(directory, at) != central_signature) {
    file.reject("the directory does not hold the entries it counts");
  }
  const std::size_t name_size = number<std::uint16_t>(directory, at + 28),
                    extra_size = number<std::uint16_t>(directory, at + 30),
                    comment_size = number<std::uint16_t>(directory, at + 32);
  if (name_size + extra_size + comment_size > directory.size() - at - central_size) {
    file.reject("an entry of the directory does not fit into it");
  }
  Placed out;
  out.entry.name = directory.substr(at + central_size, name_size);
  if (number<std::uint16_t>(directory, at + 8) & 1)
    file.reject("an entry is encrypted, got '", out.entry.name, "'");
  const auto method = number<std::uint16_t>(directory, at + 10);
  if (method != 0 && method != 8) {
    file.reject("a compression is not supported, got method ", method, " for '", out.entry.name,
                "'");
  }
  out.entry.deflated = method == 8;
  out.entry.crc = number<std::uint32_t>(directory, at + 16);
  out.entry.stored_size = number<std::uint32_t>(directory, at + 20);
  out.entry.size = number<std::uint32_t>(directory, at + 24);
  out.begin = number<std::uint32_t>(directory, at + 42);
  std::vector<std::uint64_t*> wide;
  for (std::uint64_t* n : {&out.entry.size, &out.entry.stored_size, &out.begin}) {
    if (*n == in_extra_field) wide.push_back(n);
  }
  read_wide_numbers(file, directory.substr(at + central_size + name_size, extra_size), wide);
  at += central_size + name_size + extra_size + comment_size;
  return out;
}

void check_sizes(const InputFile& file, const Placed& p, std::uint64_t limit) {
  const ZipEntry& e = p.entry;
  if (e.data_begin > limit || e.stored_size > limit - e.data_begin) {
    file.reject("an entry must lie inside the file, got '", e.name, "'");
  }
  // Deflate packs at most 258 bytes into two bits.
  const bool fits = e.deflated ? e.size / 1032 <= e.stored_size : e.size == e.stored_size;
  if (!fits)
    file.reject("an entry cannot have the size it claims, got ", e.size, " bytes for '", e.name,
                "'");
}

}  // namespace

std::vector<ZipEntry> read_directory(const InputFile& file) {
  const Directory directory = find_directory(file);
  if (directory.count > directory.size / central_size) {
    file.reject("the directory does not hold the entries it counts, got ", directory.count);
  }
  const std::string bytes =
      file.read_text(directory.begin, static_cast<std::size_t>(directory.size));
  std::vector<Placed> placed;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    placed.push_back(read_entry(file, bytes, at));
    Placed& p = placed.back();
    p.entry.data_begin = content_begin(file, p.begin, p.entry);
    check_sizes(file, p, directory.begin);
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < placed.size(); ++i) {
    const ZipEntry& before = placed[i - 1].entry;
    if (before.data_begin + before.stored_size > placed[i].begin) {
      file.reject("entries overlap, got '", before.name, "' and '", placed[i].entry.name, "'");
    }
  }
  std::vector<ZipEntry> out;
  for (Placed& p : placed) out.push_back(std::move(p.entry));
  std::sort(out.begin(), out.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != out.end()) file.reject("an entry stands twice, got '", twice->name, "'");
  return out;
}

// ----------------------------------------------------------------------------------------- content
struct ZipReader::Inflater {
  Inflater() { usable = inflateInit2(&stream, -MAX_WBITS) == Z_OK; }
  ~Inflater() {
    if (usable) inflateEnd(&stream);
  }
  z_stream stream{};
  bool usable = false;
  bool ended = false;
  std::array<unsigned char, 1 << 15> input;
};

ZipReader::ZipReader(const InputFile& file, const ZipEntry& entry)
    : file_(file), entry_(entry), left_(entry.size), input_read_(0) {
  if (!entry.deflated) return;
  inflater_ = std::make_unique<Inflater>();
  if (!inflater_->usable) file.reject("not enough memory to unpack '", entry.name, "'");
}
ZipReader::~ZipReader() = default;

void ZipReader::read(void* out, std::size_t count) {
  if (count > left_) file_.reject("an entry ends too early, got '", entry_.name, "'");
  auto* bytes = static_cast<unsigned char*>(out);
  if (!inflater_) {
    file_.read(entry_.data_begin + input_read_, out, count);
    input_read_ += count;
  }
  for (std::size_t done = 0; inflater_ && done < count;) {
    if (inflater_->ended)
      file_.reject("the packed data of an entry ends too early, got '", entry_.name, "'");
    done += inflate(bytes + done, count - done);
  }
  left_ -= count;
  crc_ = static_cast<std::uint32_t>(crc32_z(crc_, bytes, count));
}

std::size_t ZipReader::inflate(unsigned char* out, std::size_t count) {
  z_stream& s = inflater_->stream;
  if (s.avail_in == 0) {
    const std::uint64_t stored_left = entry_.stored_size - input_read_;
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(inflater_->input.size(), stored_left));
    file_.read(entry_.data_begin + input_read_, inflater_->input.data(), n);
    input_read_ += n;
    s.next_in = inflater_->input.data();
    s.avail_in = static_cast<uInt>(n);
  }
  const auto space = static_cast<uInt>(std::min<std::size_t>(count, 1u << 30));
  s.next_out = out;
  s.avail_out = space;
  const int status = ::inflate(&s, Z_NO_FLUSH);
  if (status != Z_OK && status != Z_STREAM_END) {
    file_.reject("an entry cannot be unpacked, got '", entry_.name, "'");
  }
  inflater_->ended = status == Z_STREAM_END;
  return space - s.avail_out;
}

void ZipReader::finish() {
  if (left_ != 0) file_.reject("an entry is longer than its array, got '", entry_.name, "'");
  if (crc_ != entry_.crc)
    file_.reject("the checksum of an entry is wrong, got '", entry_.name, "'");
  if (!inflater_) return;
  // The packed data must end here as well.
  unsigned char more = 0;
  while (!inflater_->ended) {
    if (inflate(&more, 1) != 0)
      file_.reject("an entry is longer than its size says, got '", entry_.name, "'");
  }
  if (inflater_->stream.avail_in != 0 || input_read_ != entry_.stored_size) {
    file_.reject("the packed data of an entry ends too early, got '", entry_.name, "'");
  }
}

}  // namespace reprise::io
