#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace reprise::io {
namespace {

template <class T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
  }
}

// The fields that both headers of an entry have.
void put_common(std::string& out, const ZipEntry& e, std::uint64_t stored_size, std::uint64_t size,
                std::uint16_t extra_size) {
  put<std::uint16_t>(out, 45);       // the version that reads wide numbers
  put<std::uint16_t>(out, 1 << 11);  // names are UTF-8
  put<std::uint16_t>(out, e.deflated ? 8 : 0);
  put<std::uint16_t>(out, 0);  // no time of day
  put<std::uint16_t>(out,
                     0x21);  // 1 January 1980, the first day there is: equal trees give equal files
  put<std::uint32_t>(out, e.crc);
  put<std::uint32_t>(out, static_cast<std::uint32_t>(stored_size));
  put<std::uint32_t>(out, static_cast<std::uint32_t>(size));
  put<std::uint16_t>(out, static_cast<std::uint16_t>(e.name.size()));
  put<std::uint16_t>(out, extra_size);
}

std::string deflated(const std::string& head, const void* body, std::size_t body_size) {
  z_stream s{};
  if (deflateInit2(&s, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    fail<RuntimeError>("save_npz: not enough memory to compress");
  }
  std::string out;
  std::array<char, 1 << 16> packed;
  auto run = [&](const void* data, std::size_t size, int flush) {
    const auto* from = static_cast<const Bytef*>(data);
    do {
      const auto n = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
      s.next_in = const_cast<Bytef*>(from);  // zlib only reads it
      s.avail_in = n;
      from += n;
      size -= n;
      do {
        s.next_out = reinterpret_cast<Bytef*>(packed.data());
        s.avail_out = packed.size();
        ::deflate(&s, size == 0 ? flush : Z_NO_FLUSH);
        out.append(packed.data(), packed.size() - s.avail_out);
      } while (s.avail_out == 0);
    } while (size > 0);
  };
  run(head.data(), head.size(), Z_NO_FLUSH);
  run(body, body_size, Z_FINISH);
  deflateEnd(&s);
  return out;
}

}  // namespace

void ZipWriter::add(const std::string& name, const std::string& head, const void* body,
                    std::size_t body_size, bool deflate) {
  if (name.size() > std::numeric_limits<std::uint16_t>::max()) {
    fail<TypeError>("save_npz: a name is too long for the format, got ", name.size(), " bytes");
  }
  Written w{{name, deflate, 0, head.size() + body_size, head.size() + body_size, 0},
            file_.position()};
  auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(head.data()), head.size());
  if (body_size != 0) crc = crc32_z(crc, static_cast<const Bytef*>(body), body_size);
  w.entry.crc = static_cast<std::uint32_t>(crc);
  std::string packed;
  if (deflate) {
    packed = deflated(head, body, body_size);
    w.entry.stored_size = packed.size();
  }
  std::string header, extra;
  put<std::uint32_t>(header, 0x04034b50);
  const bool is_wide = w.entry.size >= wide_from_ || w.entry.stored_size >= wide_from_;
  if (is_wide) {
    put<std::uint16_t>(extra, 1);
    put<std::uint16_t>(extra, 16);
    put<std::uint64_t>(extra, w.entry.size);
    put<std::uint64_t>(extra, w.entry.stored_size);
  }
  const std::uint64_t shown_stored = is_wide ? 0xFFFFFFFF : w.entry.stored_size,
                      shown_size = is_wide ? 0xFFFFFFFF : w.entry.size;
  put_common(header, w.entry, shown_stored, shown_size, static_cast<std::uint16_t>(extra.size()));
  file_.write(header + name + extra);
  if (deflate) {
    file_.write(packed);
  } else {
    file_.write(head);
    file_.write(body, body_size);
  }
  written_.push_back(std::move(w));
}

std::string ZipWriter::directory_entry(const Written& w) const {
  std::string out, wide;
  // A number that is too wide stands in the extra field, in this order.
  auto shown = [&](std::uint64_t n) {
    if (n < wide_from_) return n;
    put<std::uint64_t>(wide, n);
    return std::uint64_t{0xFFFFFFFF};
  };
  const std::uint64_t size = shown(w.entry.size);
  const std::uint64_t stored_size = shown(w.entry.stored_size);
  const std::uint64_t begin = shown(w.header_begin);
  std::string extra;
  if (!wide.empty()) {
    put<std::uint16_t>(extra, 1);
    put<std::uint16_t>(extra, static_cast<std::uint16_t>(wide.size()));
    extra += wide;
  }
  put<std::uint32_t>(out, 0x02014b50);
  put<std::uint16_t>(out, 3 << 8 | 45);  // made on Unix
  put_common(out, w.entry, stored_size, size, static_cast<std::uint16_t>(extra.size()));
  put<std::uint16_t>(out, 0);  // no comment
  put<std::uint16_t>(out, 0);  // first disk
  put<std::uint16_t>(out, 0);
  put<std::uint32_t>(out, 0600u << 16);  // permissions when unpacked by others
  put<std::uint32_t>(out, static_cast<std::uint32_t>(begin));
  return out + w.entry.name + extra;
}

void ZipWriter::finish() {
  const std::uint64_t directory_begin = file_.position();
  for (const Written& w : written_) file_.write(directory_entry(w));
  const std::uint64_t directory_size = file_.position() - directory_begin, count = written_.size();
  std::string end;
  if (count >= 0xFFFF || directory_begin >= wide_from_ || directory_size >= wide_from_) {
    const std::uint64_t wide_begin = file_.position();
    put<std::uint32_t>(end, 0x06064b50);
    put<std::uint64_t>(end, 44);
    put<std::uint16_t>(end, 3 << 8 | 45);
    put<std::uint16_t>(end, 45);
    put<std::uint64_t>(end, 0);  // both disk numbers
    for (const std::uint64_t n : {count, count, directory_size, directory_begin}) put(end, n);
    put<std::uint32_t>(end, 0x07064b50);
    put<std::uint32_t>(end, 0);
    put<std::uint64_t>(end, wide_begin);
    put<std::uint32_t>(end, 1);
  }
  const std::uint64_t most = 0xFFFFFFFF;
  put<std::uint32_t>(end, 0x06054b50);
  put<std::uint32_t>(end, 0);  // both disk numbers
  put<std::uint16_t>(end, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xFFFF)));
  put<std::uint16_t>(end, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xFFFF)));
  put<std::uint32_t>(
      end, static_cast<std::uint32_t>(directory_size >= wide_from_ ? most : directory_size));
  put<std::uint32_t>(
      end, static_cast<std::uint32_t>(directory_begin >= wide_from_ ? most : directory_begin));
  put<std::uint16_t>(end, 0);  // no comment
  file_.write(end);
}

}  // namespace reprise::io
