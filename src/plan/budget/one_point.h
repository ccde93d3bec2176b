// What one moment costs: while a node runs for the first time, the values that are read later are
// in memory, or are computed again from what is.
#pragma once

#include "plan/budget/graph.h"
#include "plan/budget/stages.h"

#include <vector>

namespace reprise::budget {

struct Moment {
  int stage = 0;
  std::int64_t room = 0;   // what the budget leaves for values that are not forced
  double extra = 0;        // every schedule within the budget repeats at least so much
  double price = 0;        // per kept byte, at which it does
  std::vector<char> kept;  // for each node: 0 dropped, 2 in memory, 1 just at the edge
};

// The linear program of one stage: Lagrange's relaxation, each price per byte a minimum cut.
Moment one_point(const Graph&, int stage, std::int64_t budget);

// What that moment costs at least beyond the values of `missing`, which are computed again anyway.
double extra_beyond(const Graph&, const Moment&, const Word* missing);

// The moments of the most demanding stages.
class Moments {
 public:
  Moments(const Graph&, std::int64_t budget, std::size_t count);

  double extra() const { return moments_.empty() ? 0 : best_.front()->extra; }
  // The most demanding moment from stage s on, and the nearest one; null if there is none.
  const Moment* worst(int s) const { return at(best_, s); }
  const Moment* nearest(int s) const { return at(nearest_, s); }

 private:
  std::vector<Moment> moments_;
  std::vector<const Moment*> best_, nearest_;
};

}  // namespace reprise::budget
