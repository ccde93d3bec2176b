// Schedules made in one walk over the nodes: whenever the next value does not fit, those are
// dropped that cost least to have again for the bytes and the time that they free. One walk is
// quick, and many with changed weights find good schedules of graphs of any size.
#pragma once

#include "plan/budget/bits.h"
#include "plan/budget/graph.h"
#include "plan/budget/one_point.h"

#include <optional>
#include <vector>

namespace reprise::budget {

// What a value is worth: cost^a / (bytes^b x time to its next use^c), times its own weight.
struct Worth {
  double cost = 1, bytes = 1, distance = 1;
  std::vector<double> of_node;  // empty: all 1
};

class Walk {
 public:
  Walk(const Graph&, std::int64_t budget);

  // A schedule within the budget that costs less than `limit`; nothing where the walk gets stuck.
  std::optional<Schedule> run(const Worth&, double limit);

 private:
  struct Candidate {
    double worth;
    int node;
  };
  void start();
  bool make(int s);
  void find_closure(int s);
  bool evaluate_node(int v, int s);
  bool make_room(std::int64_t bytes, int v, int s);
  void drop(int v);
  double worth_of(int v, int now, int s);
  double cost_again(int v);
  int next_use(int v, int s, int depth);
  bool is_ready(int v) const;

  const Graph& graph_;
  const std::int64_t budget_;
  const Worth* worth_ = nullptr;
  std::vector<std::vector<int>> end_;  // values of no use after each node
  std::vector<char> in_memory_;
  std::vector<int> place_;  // of a value in alive_
  std::vector<int> alive_;  // values in memory that can be dropped
  std::vector<int> use_;    // the stage that needs a value next, directly or for missing ones
  std::vector<int> closure_, in_closure_, stamp_, todo_;
  std::vector<Candidate> candidates_;
  int stamps_ = 0, closures_ = 0;
  std::size_t done_ = 0;  // of the closure
  std::int64_t used_ = 0;
  double cost_ = 0, limit_ = 0;
  Schedule schedule_;
};

// How many walks: three for each shape of a worth, alone and led by what the worst moment keeps,
// and then some with weights that are changed at random.
struct WalkEffort {
  int shapes = 12, rounds = 0;
};
// The cheapest of many walks, if it costs less than `limit`.
std::optional<Schedule> walk_often(const Graph&, const Moments&, std::int64_t budget,
                                   const WalkEffort&, double limit);

}  // namespace reprise::budget
