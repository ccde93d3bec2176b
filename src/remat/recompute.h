// Comparing values that a program computes more than once.
//
// Whoever runs the program, the evaluator or a compiled executable, shows the values it computes:
//
//   RepeatedValues repeated(program);
//   for each equation, in order:  for each result:  repeated.see(variable, value);
//   RecomputeCheck check = repeated.result();
#pragma once

#include "program/program.h"
#include "reprise/check.h"
#include "transform/value_numbers.h"

#include <unordered_map>

namespace reprise {

class RepeatedValues {
 public:
  explicit RepeatedValues(const Program& p, const Arrays& consts = {});
  // Whether the value of this variable is compared; others need not be shown.
  bool wants(Var v) const;
  // Keeps a value that will be computed again, compares one that was computed before.
  void see(Var v, const Array& value);
  RecomputeCheck result() const { return check_; }

 private:
  struct Seen {
    Array value;
    std::size_t uses = 0;  // computations that are still to come
  };

  ValueNumbers numbers_;
  std::vector<const Equation*> made_by_;  // per variable; null for inputs
  std::unordered_map<std::size_t, Seen> seen_;
  std::vector<std::size_t> uses_;  // per number: how often it is computed
  RecomputeCheck check_;
};

}  // namespace reprise
