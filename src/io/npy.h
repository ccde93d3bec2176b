// The header of .npy: a magic number, a version, and a Python dictionary as text:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#pragma once

#include "reprise/array.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::io {

struct NpyHeader {
  Dtype dtype = Dtype::f32;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

inline constexpr std::string_view npy_magic = "\x93NUMPY";

// The whole header, magic and padding included.
std::string npy_header(const Type& type);
// The dictionary; or what is wrong with it.
struct NpyParsed {
  NpyHeader header;
  std::string error;
};
NpyParsed parse_npy_dictionary(std::string_view text);

}  // namespace reprise::io
