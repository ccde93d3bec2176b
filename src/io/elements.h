// Arrays as bytes, and leaves as names: what the formats have in common.
#pragma once

#include "io/file.h"
#include "reprise/io.h"
#include "reprise/named_leaves.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reprise::io {

// A name that leaves are stored under, and the array. A TypeError if a tree is a single array, if a
// key holds the separator (so that the name would be split elsewhere), or if the dtype has no place
// in files.
using NamedArrays = std::vector<std::pair<std::string, Array>>;
NamedArrays named_arrays(const char* op, const NamedLeaves& leaves, const std::string& separator);

// The elements in memory, row by row.
struct Elements {
  explicit Elements(const Array& x);
  Array holder;  // keeps the bytes alive
  std::span<const std::byte> bytes;
};

// The bytes that a type takes; nothing if the number is too large for any file, or there are more
// dimensions than numpy allows.
inline constexpr std::size_t max_rank = 64;
std::optional<std::uint64_t> bytes_of(Dtype dtype, const std::vector<std::uint64_t>& shape);

// Any byte but 0 and 1 in an array of bool is a RuntimeError.
void check_bools(const InputFile& file, const std::string& name, Dtype dtype,
                 std::span<const std::byte> bytes);

// Collects loaded arrays to a Dict, in the precision that is wanted; a RuntimeError if one name is
// the beginning of another.
class DictBuilder {
 public:
  DictBuilder(const InputFile& file, const LoadOptions& options)
      : file_(file), separator_(options.separator), x64_(options.x64) {}
  void add(const std::string& name, Array value);
  Dict take() { return std::move(out_); }

 private:
  Array at_precision(const std::string& name, Array value) const;

  const InputFile& file_;
  std::string separator_;
  std::optional<bool> x64_;
  Dict out_;
};

}  // namespace reprise::io
