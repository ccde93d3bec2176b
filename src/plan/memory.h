// A place in memory for every stored value, before anything runs.
//
//   plan_memory:  steps, scratch bytes   =>   places in the arena and in the result block
//
// One offset space: [0, result_bytes) is the block that holds large outputs and outlives the run,
// behind it lies the arena. Space of an output serves temporaries until the output is written.
#pragma once

#include "plan/schedule.h"

namespace reprise::plan {

inline constexpr std::size_t memory_alignment = 64;
inline constexpr std::size_t aligned(std::size_t bytes) { return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment; }
inline constexpr std::size_t large_output = 64 << 10;  // smaller outputs get a buffer each

enum class Region : std::uint8_t { none, argument, arena, results, own };
struct Place {
  Region region = Region::none;
  std::size_t offset = 0;  // arena, results: bytes; argument, own: its number
};

struct MemoryPlan {
  std::vector<Place> places;         // of every root
  std::vector<Place> scratch;        // of every step
  std::vector<std::size_t> scratch_bytes;
  std::vector<Var> own;              // outputs with a buffer of their own
  std::size_t arena_bytes = 0, result_bytes = 0, own_bytes = 0;
  std::size_t argument_bytes = 0;
  std::size_t peak() const { return arena_bytes + result_bytes + own_bytes; }
};

struct MemoryRequest {
  std::vector<std::size_t> scratch_bytes;  // of every step
  bool outputs_given = false;              // the caller has places for all outputs (loop bodies)
  bool in_place = true;                    // values may take the place of an operand that ends
};
MemoryPlan plan_memory(const Schedule&, const MemoryRequest&);

}  // namespace reprise::plan
