// What a plain scan and its reversal could save if they had a checkpoint budget, and the program
// in which they have one.
//
//   (c, rs) = scan f;  .. ;  b = scan g rs, the other way round
//     =>   (c, kept) = checkpointed_scan f' ;  .. ;  b = checkpointed_reverse f' (g . f) kept
//
// where rs is what f leaves for g alone: stacked for all steps before, made again for each step
// from its carry after.
#pragma once

#include "program/program.h"

#include <vector>

namespace reprise {

struct LoopPair {
  std::size_t forward = 0, backward = 0;  // equations
  std::vector<std::size_t> residuals;     // results of the first that only the second reads
  std::int64_t steps = 0;
  std::size_t residual_bytes = 0;  // of all steps
  std::size_t carry_bytes = 0;     // of one state
};
// Scans whose stacked results another scan, and nobody else, reads from the last to the first.
std::vector<LoopPair> loop_pairs(const Program&);

// With so many checkpoints so many bytes are kept between the two loops (residual_bytes without
// any), and the first one's step is evaluated so many times more.
struct LoopPoint {
  std::int64_t checkpoints = 1;
  std::size_t bytes = 0;
  std::int64_t evaluations = 0;
};
// From the most bytes to the fewest, each with more evaluations than the one before it; only
// those that save something. One for each number of repetitions, 64 at most.
std::vector<LoopPoint> loop_curve(const LoopPair&);

Program with_checkpoints(const Program&, const LoopPair&, std::int64_t checkpoints);

}  // namespace reprise
