// Zip archives, as far as .npz needs them: entries that are stored or deflated, also beyond 4 GiB.
#pragma once

#include "io/file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::io {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t stored_size = 0, size = 0;  // in the file, and unpacked
  std::uint64_t data_begin = 0;
};

// The entries of an archive. Everything is checked but their content: places inside the file and
// apart from each other, names once.
std::vector<ZipEntry> read_directory(const InputFile& file);

// The content of an entry from front to back.
class ZipReader {
 public:
  ZipReader(const InputFile& file, const ZipEntry& entry);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  void read(void* out, std::size_t count);  // a RuntimeError if there is less
  void finish();                            // all was read, and the checksum is right

 private:
  struct Inflater;
  std::size_t inflate(unsigned char* out,
                      std::size_t count);  // at most count bytes; returns how many

  const InputFile& file_;
  const ZipEntry& entry_;
  std::uint64_t left_;        // of the content
  std::uint64_t input_read_;  // of the stored bytes
  std::uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

class ZipWriter {
 public:
  // Sizes and places from `wide_from` on are written in the form for more than 4 GiB.
  explicit ZipWriter(OutputFile& file, std::uint64_t wide_from = 0xFFFFFFFF)
      : file_(file), wide_from_(wide_from) {}
  // The content is head followed by body.
  void add(const std::string& name, const std::string& head, const void* body,
           std::size_t body_size, bool deflate);
  void finish();

 private:
  struct Written {
    ZipEntry entry;
    std::uint64_t header_begin;
  };
  std::string directory_entry(const Written& w) const;

  OutputFile& file_;
  std::uint64_t wide_from_;
  std::vector<Written> written_;
};

}  // namespace reprise::io
