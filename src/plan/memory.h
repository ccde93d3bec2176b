// A place in memory for every stored value, before anything runs.
//
//   plan_memory:  steps, scratch bytes   =>   places in the arena, in the result block, on the host
//
// One offset space: [0, result_bytes) is the block that holds large outputs and outlives the run,
// behind it lies the arena. Space of an output serves temporaries until the output is written.
// Offloaded values lie in a region of their own, in memory or on disk.
#pragma once

#include "plan/schedule.h"

namespace reprise::plan {

inline constexpr std::size_t memory_alignment = 64;
inline constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}
inline constexpr std::size_t large_output = 64 << 10;  // smaller outputs get a buffer each
// of what stands in front of the elements in such a buffer
inline constexpr std::size_t handle_size = 64;

enum class Region : std::uint8_t { none, argument, arena, results, own, host };
struct Place {
  Region region = Region::none;
  std::size_t offset = 0;  // arena, results, host: bytes; argument, own: its number
};

struct MemoryPlan {
  std::vector<Place> places;   // of every root
  std::vector<Place> scratch;  // of every step
  std::vector<std::size_t> scratch_bytes;
  std::vector<Place> host_scratch;  // of every step: what bodies of loops keep on the host
  std::vector<std::size_t> host_scratch_bytes;
  std::vector<Var> own;             // outputs with a buffer of their own
  std::vector<std::size_t> reused;  // donated arguments whose memory outputs take over
  std::size_t arena_bytes = 0, result_bytes = 0;
  std::size_t own_bytes = 0;  // of those buffers: elements, and what stands before them
  std::size_t argument_bytes = 0, alias_bytes = 0;  // alias: of outputs in the memory of arguments
  std::size_t host_bytes = 0;
  bool host_on_disk = false;
  // Of memory: what lies on disk does not count.
  std::size_t peak() const {
    return arena_bytes + result_bytes + own_bytes + (host_on_disk ? 0 : host_bytes);
  }
};

// A result of a loop whose steps update it in place, and the operand that it starts from.
struct CarriedRoots {
  Var result, initial;
};

struct MemoryRequest {
  std::vector<std::size_t> scratch_bytes, host_scratch_bytes;  // of every step
  bool outputs_given = false;      // the caller has places for all outputs (loop bodies)
  bool in_place = true;            // values may take the place of an operand that ends
  std::vector<bool> donated = {};  // inputs whose memory outputs may take over; empty: none
  std::vector<std::vector<CarriedRoots>> carried;  // of every step: what a loop updates in place
  bool host_on_disk = false;
};
MemoryPlan plan_memory(const Schedule&, const MemoryRequest&);

// Of a loop's body: whether output k may be written where input first + k lies, because that has
// been read for the last time by then.
std::vector<bool> updated_in_place(const Schedule& body, std::size_t first, std::size_t count);
// The output behind the first `count` that is a copy of input first + k and nothing else, counted
// from there.
std::vector<std::optional<std::size_t>> stacked_inputs(const Schedule& body, std::size_t first,
                                                       std::size_t count);

// A scatter or dynamic_update_slice: the result is the first operand with a part of it changed, and
// may take its place.
bool updates_operand(const Equation&);

}  // namespace reprise::plan
