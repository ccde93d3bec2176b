// Files: reading at places with every length checked, and writing that replaces a file at once or
// not at all.
#pragma once

#include "reprise/errors.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::io {

// Memory for the elements of one array, aligned so that an Array can take it over.
class Buffer {
 public:
  explicit Buffer(std::size_t size);  // a RuntimeError when there is not so much
  std::byte* data() const { return data_.get(); }
  Array to_array(const Type& type) const;  // shares the memory; it must not change any more

 private:
  std::shared_ptr<std::byte[]> data_;
};

// Texts of a file in messages: its beginning will do.
inline std::string_view shown(const std::string& text) {
  return std::string_view(text).substr(0, 100);
}
template <class T>
const T& shown(const T& part) {
  return part;
}

// Errors name the operation ("load_npz") and the file.
class InputFile {
 public:
  InputFile(const char* op, const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const char* op() const { return op_; }
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  void read(std::uint64_t offset, void* out, std::size_t count) const;
  std::string read_text(std::uint64_t offset, std::size_t count) const;
  // A RuntimeError: `op: what, got facts in 'path'`.
  template <class... T>
  [[noreturn]] void reject(const T&... parts) const {
    fail<RuntimeError>(op_, ": ", shown(parts)..., " in '", path_, "'");
  }

 private:
  const char* op_;
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Writes beside `path`; commit puts the file into its place. Without commit nothing remains. Pipes
// and /dev/stdout take the bytes as they come; devices and directories are refused (destination.h).
class OutputFile {
 public:
  OutputFile(const char* op, const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::size_t count);
  void write(const std::string& text) { write(text.data(), text.size()); }
  std::uint64_t position() const { return position_; }
  void commit();

 private:
  void close();
  [[noreturn]] void fail_with_errno(const char* what, int error) const;

  const char* op_;
  std::string path_;       // as the user gave it, for messages
  std::string target_;     // the same with symbolic links followed; empty: a stream
  std::string temporary_;  // empty once it is in its place
  int descriptor_ = -1;
  std::uint64_t position_ = 0;
};

}  // namespace reprise::io
