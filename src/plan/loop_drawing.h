// The schedule of a loop with checkpoints as lines to draw: steps to the right, evaluations
// downwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise {

struct LoopDrawing {
  std::size_t steps = 0, evaluations = 0;  // none: nothing to draw
  std::vector<std::size_t> advances;   // (from, to, evaluations before) of each that can be seen
  std::vector<std::size_t> reversals;  // (step, evaluations before), some of them
  std::vector<std::size_t>
      kept;  // (state, slot) when the reversal begins; slots up to `disk` are on disk
  std::size_t disk = 0;
};

// Of a loop of known length.
LoopDrawing loop_drawing(std::int64_t steps, std::int64_t checkpoints,
                         std::int64_t disk_checkpoints);

}  // namespace reprise
