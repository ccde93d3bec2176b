// What the stages ahead cost at least: at each node the values that live across it share what the
// budget leaves, and those that do not fit are computed again later.
#pragma once

#include "plan/budget/bits.h"
#include "plan/budget/graph.h"

#include <vector>

namespace reprise::budget {

// The bytes that are in memory while s runs for the first time, whatever the schedule: its
// operands, its result, what it works in and the outputs before it. For every node.
std::vector<std::int64_t> forced_bytes(const Graph&);

class Stages {
 public:
  // Remembers all stages of small graphs, the most demanding ones of large graphs.
  Stages(const Graph&, std::int64_t budget);

  // A stage whose forced bytes alone exceed the budget; -1 if there is none.
  int impossible() const { return impossible_; }
  // The stage that costs most on its own, and how much; -1 and 0 if all values fit everywhere.
  int worst() const { return stages_.empty() ? -1 : stages_.front().node; }
  double extra() const { return stages_.empty() ? 0 : stages_.front().alone; }
  // The most demanding stages, first the worst.
  std::vector<int> demanding(std::size_t count) const;

  // Forgets the stages before s.
  void advance(int s);
  // The least cost of repetitions that the remaining stages force beyond the values of `missing`,
  // which are computed again in any case.
  double extra(const Word* missing) const;

 private:
  struct Stage {
    int node = 0;
    std::int64_t over = 0;    // bytes that live across it and do not fit
    double alone = 0;         // what dropping them costs if nothing is missing
    std::vector<int> across;  // who lives across it, first the cheapest per byte
    std::vector<Word> members;
  };
  bool lives_across(int v, int stage) const;
  Stage stage_at(int node, std::int64_t over, const std::vector<int>& by_price) const;
  double alone(int node, std::int64_t over, const std::vector<int>& by_price) const;
  double extra(const Stage&, const Word* missing) const;

  const Graph& graph_;
  std::size_t words_;
  int impossible_ = -1;
  std::vector<Stage> stages_;  // first the most demanding
};

}  // namespace reprise::budget
