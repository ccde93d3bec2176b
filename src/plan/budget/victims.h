// Which values to drop so that the next one fits: several sets, each without a member it could do
// without, since nobody can know yet which of them is the best.
#pragma once

#include "plan/budget/bits.h"
#include "plan/budget/graph.h"
#include "plan/budget/one_point.h"

#include <vector>

namespace reprise::budget {

class Victims {
 public:
  // `variety` bounds the number of sets.
  Victims(const Graph&, const Moments&, int variety);

  // Weighs what is in memory while node s is next: what it costs to compute a value again, and when
  // it is read next, directly or for one of the missing values.
  void weigh(const Word* memory, const Word* missing, int s);
  // Sets of weighed values, none of them an operand of v, with at least so many bytes.
  // Empty if there are none.
  const std::vector<std::vector<int>>& sets(int v, std::int64_t bytes);

 private:
  struct Value {
    int node;
    std::int64_t bytes;
    double cost;      // of its evaluation and of those of missing values it takes
    double distance;  // how many nodes ahead it is read
    int use;          // by which node
  };
  struct SmallSet {
    double cost;
    int a, b;  // -1: one value alone
  };
  double cost_again(int v, const Word* memory);
  template <class Key>
  void add_in_order(std::int64_t bytes, const Key& key);
  void add_for(const Moment&, std::int64_t bytes);
  void add_small_sets(std::int64_t bytes);
  void add(std::vector<int> values);

  const Graph& graph_;
  const Moments& moments_;
  std::size_t words_;
  int variety_;
  int weighed_ = 0;  // the node that was next
  std::vector<Value> all_, values_;
  std::vector<std::pair<double, int>> order_;
  std::vector<SmallSet> singles_, pairs_;
  std::vector<int> next_use_, stamp_, todo_;
  int stamps_ = 0;
  std::vector<std::vector<int>> sets_;
};

}  // namespace reprise::budget
