// Files for tests: a folder that is removed again, raw bytes in and out, and the arrays of the
// Python files.
#pragma once

#include "error_text.h"
#include "reprise/io.h"
#include "test_data.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace reprise::io_test {

class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("reprise_io_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(
      path);  // a new file: shortening one waits for the disk on some file systems
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline std::string test_file(const std::string& name) {
  return golden_path("io/" + std::string(name));
}

inline const std::vector<Dtype>& all_dtypes() {
  static const std::vector<Dtype> all = {bool_, uint8, uint16,  uint32,   uint64,  int8,   int16,
                                         int32, int64, float16, bfloat16, float32, float64};
  return all;
}
// The array that the Python files hold for a dtype.
inline Array sample(Dtype dtype) {
  std::vector<double> values;
  for (int i = 0; i < 6; ++i) {
    const int n = i * 7 % 5;
    values.push_back(dtype == bool_                ? i % 3 == 0
                     : short_name(dtype)[0] == 'u' ? n
                     : is_floating(dtype)          ? 0.25 * (n - 2)
                                                   : n - 2);
  }
  return array(values, Shape{2, 3}).astype(dtype);
}
inline bool same(const Array& a, const Array& b) {
  return a.type() == b.type() && a.to_vector<double>() == b.to_vector<double>();
}

// What numpy.npz, numpy_compressed.npz and python.safetensors have in common.
inline void check_python_file(const Dict& file) {
  for (const Dtype dtype : all_dtypes()) {
    INFO(short_name(dtype));
    CHECK(same(file.dict("dtypes").array(std::string(short_name(dtype))), sample(dtype)));
  }
  const Dict& dense = file.dict("params").dict("Dense_0");
  CHECK(same(dense.array("kernel"), arange(12).astype(float32).reshape({3, 4})));
  CHECK(same(dense.array("bias"), zeros({4})));
  CHECK(same(file.array("scalar"), full({}, 2.5, float32)));
  CHECK(same(file.array("empty"), zeros({0, 4})));
}

inline Dict small_tree() {
  Dict out;
  out["a"]["w"] = array({{1.0, 2.0}, {3.0, 4.0}});
  out["a"]["on"] = array({true, false});
  out["n"] = array({7});
  return out;
}

// Every truncation, and every byte changed in several ways: an error of ours, or arrays.
inline void check_damaged(const std::string& bytes, const std::string& path,
                          const std::function<Dict(const std::string&)>& load) {
  auto load_or_error = [&](const std::string& damaged) {
    write_bytes(path, damaged);
    try {
      std::size_t total = 0;
      for (const Array& leaf : tree_leaves(load(path))) total += leaf.nbytes();
      CHECK(total < 100 * bytes.size());
    } catch (const RuntimeError& e) {
      CHECK(std::string(e.what()).size() > 20);
    }
  };
  for (std::size_t n = 0; n < bytes.size(); ++n) load_or_error(bytes.substr(0, n));
  load_or_error(bytes + '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {0x01, 0x10, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      load_or_error(damaged);
    }
    std::string without = bytes;
    without.erase(i, 1);
    load_or_error(without);
  }
}

}  // namespace reprise::io_test
