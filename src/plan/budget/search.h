// A beam search over (next node, what is in memory): the nearer to the least cost the wider it is.
#pragma once

#include "plan/budget/graph.h"
#include "plan/budget/stages.h"
#include "plan/budget/victims.h"

#include <optional>
#include <unordered_map>
#include <vector>

namespace reprise::budget {

struct Effort {
  int width = 200;    // states that survive a stage
  int variety = 8;    // sets of values to drop that are tried, about
  int patience = 12;  // states of a stage that are looked at, per state that survives it
  int refine = 0;     // states of a stage, per survivor, whose bound is a minimum cut
  double weight = 1;  // of what the stages ahead cost at least, which is always too little
  int alike = 2;      // states that miss the same values
};

class Search {
 public:
  Search(const Graph&, const Moments&, std::int64_t budget, const Effort&);

  // A schedule within the budget that costs less than `limit`, if one is found.
  std::optional<Schedule> run(double limit);
  // Whether some stage had no end for the best states alone: a wider search may do better.
  bool strained() const { return strained_; }

 private:
  struct State {
    Word hash = 0;
    double cost = 0, again = 0;  // so far, of missing values
    double rank = 0;             // what the whole may cost: the least first
    std::int64_t used = 0;
    int trail = -1;        // the last evaluation in trail_
    int depth = 0;         // evaluations in this stage
    int left = 0;          // values that the next node still waits for, where that is the order
    std::size_t sets = 0;  // two: in memory, missing
  };
  struct Step {
    int before, node;
  };
  // States of one stage with their sets.
  struct Pool {
    std::vector<State> states;
    std::vector<Word> words;
    std::unordered_map<Word, int> by_hash;
    void clear();
  };
  const Word* memory(const Pool& pool, const State& s) const { return &pool.words[s.sets]; }
  const Word* missing(const Pool& pool, const State& s) const {
    return &pool.words[s.sets + words_];
  }
  void expand_stage(int s);
  void push(int state);
  int pop();
  void dive(int s);
  int left_for(int s, const State&);
  void find_closure(int s, const State&);
  static bool comes_later(const State&, const State&);
  void expand(int state, int s);
  void choose_evaluations(const State&, int s);
  void evaluate_node(const State& from, int v, int s);
  void make_child(const State& from, int v, int s, const std::vector<int>& dropped);
  void fill_child(const State& from, State& child, int v, int s, const std::vector<int>& dropped);
  void add_missing(int v, State& child);
  bool is_needed(int v, int next) const;
  void refine(State&, int s);
  void keep_best(int s);
  Word hash_of(const Word* set) const;
  bool is_new(const State&) const;
  void take(State);
  Schedule trail_of(int last) const;

  const Graph& graph_;
  const std::int64_t budget_;
  const Effort effort_;
  const std::size_t words_;
  Stages stages_;
  const Moments& moments_;
  Victims victims_;
  std::vector<double> tail_;           // cost of the nodes from each on
  std::vector<std::vector<int>> end_;  // values of no use after each node
  const std::int64_t most_;            // states, so that large graphs take bounded time
  std::vector<Word> keys_;
  std::vector<Step> trail_;
  Pool now_, next_;
  std::vector<std::pair<double, int>> queue_;
  std::vector<Word> memory_, missing_, closure_;  // of the child, of the next node's operands
  std::vector<int> evaluations_, todo_;
  double limit_ = 0;
  bool weighed_ = false, diving_ = false, strained_ = false;
  std::int64_t made_ = 0;
};

}  // namespace reprise::budget
