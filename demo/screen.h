// What the demo shows while it trains: a live bar on a terminal, plain lines elsewhere; and the
// table at the end.
#pragma once

#include "trainer.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace demo {

bool is_terminal();  // standard output

// The progress of one training.
class Progress {
 public:
  explicit Progress(std::int64_t steps) : steps_(steps) {}
  void show(const Trainer& trainer);    // after each step; draws at most ten times a second
  void finish(const Trainer& trainer);  // the line that stays

 private:
  std::int64_t steps_;
  std::chrono::steady_clock::time_point drawn_ = {};
};

// One row per policy. `flops_without` is what a step computes without checkpoint: what a policy
// computes beyond it is recomputed.
std::string table(const std::vector<Trainer>& trainers, double flops_without);

}  // namespace demo
