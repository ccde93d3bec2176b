// Collectives on memory: the layout that a communicator wants, and back.
#pragma once

#include "base/mesh.h"
#include "program/primitive.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise {

// An array seen around one of its dimensions: outer x parts x inner bytes.
struct Around {
  std::int64_t outer = 1, parts = 1;
  std::size_t inner = 1;  // bytes of one part
};
// The dimension divided into `parts` equal ones.
Around around(const Type& t, std::int64_t dimension, std::int64_t parts);
// from[outer][part][inner] -> to[part][outer][inner], and back
void parts_first(const Around&, const std::byte* from, std::byte* to);
void parts_inside(const Around&, const std::byte* from, std::byte* to);

struct CollectiveData {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::byte* scratch = nullptr;  // scratch_bytes() of it
};
// Memory that an equation needs besides its operand and its result.
std::size_t scratch_bytes(const Primitive&, const Params&, const Type& in, const Type& out);
// Runs a collective with one operand and one result.
void run_collective(const Primitive&, const Params&, const Type& in, const Type& out,
                    const CollectiveData&);

}  // namespace reprise
