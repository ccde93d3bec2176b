// Instructions for loops with checkpoints.
#pragma once

#include "runtime/loop_code.h"

namespace reprise {

// What such a loop needs besides its operands and results. The bodies' arena stands first.
struct CheckpointedMemory {
  std::size_t scratch_bytes =
      0;  // arena, condition's result, second places, places for states of the disk
  std::vector<bool> in_place;  // cotangents that steps update where they lie
  std::vector<plan::CarriedRoots> carried;
};
CheckpointedMemory checkpointed_memory(const plan::Schedule&, const plan::Step&, const Equation&,
                                       const Bodies&, std::size_t arena, bool in_place);

// Whether it has checkpoints that are on disk, or would be if a directory were named.
bool has_checkpoints_on_host(const plan::Schedule&, const Equation&);
Instruction checkpointed_code(const plan::Schedule&, const Equation&, const Bodies&,
                              std::size_t arena, const std::vector<bool>& in_place,
                              const LoopPlaces&);

}  // namespace reprise
