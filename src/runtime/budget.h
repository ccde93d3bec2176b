// Plans of one program that trade time for memory.
//
//   program   =>   plans from the least peak to the plain one
//
// What a plan needs is what the compiler's own plan says: schedules of the abstract graph
// (plan/budget) become programs, and those are planned like any other. Whatever the graph does not
// know, such as results in the place of operands, packing or fusion, is in the peak that counts.
#pragma once

#include "plan/budget/solve.h"
#include "plan/budget_program.h"
#include "runtime/code.h"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

// A program with its memory planned; its kernels have no machine code.
struct PlannedProgram {
  ProgramPtr program;
  std::shared_ptr<const Code> code;
  double seconds = 0;  // of one thread, by plan/seconds.h
  std::size_t peak() const { return code->memory.peak(); }
};

// What the compiler lends.
struct BudgetTools {
  // The program that is planned; loops stack at most such a share of what they would (1: all).
  // Without `keep`, all that the backward pass reads is kept: a graph of first evaluations.
  std::function<ProgramPtr(double stacked_share, bool keep)> lower;
  std::function<PlannedProgram(const ProgramPtr&)> plan;
  // As it is, without what joins steps afterwards: what graphs are made of. Of a loop's body, or of
  // a program.
  std::function<std::shared_ptr<const Code>(const ProgramPtr&, bool is_body)> plan_steps;
  bool policies_are_free = false;
};

// One value that a plan computes more than once.
struct Repetition {
  std::string value;  // "dot_general f32[4,256,512]"
  Location at;
  std::size_t bytes = 0;
  double seconds = 0, flops = 0;  // of all repetitions
  std::int64_t times = 0;         // beyond the first
};

struct BudgetPoint {
  PlannedProgram planned;
  // no schedule of the graph is cheaper within the bytes that it was given
  double lower_seconds = 0;
  std::vector<Repetition> repeated = {};
};

// The plans of one program that repeat ever more of its equations, by number: the larger, the more
// memory and the less time.
class BudgetLadder {
 public:
  static constexpr int top = 32;  // the program as it is
  // The graph is that of `source`. `proven`: seconds below which no plan can be; without it the
  // graph tells.
  BudgetLadder(PlannedProgram plain, const BudgetTools&, std::optional<double> proven = {});
  BudgetLadder(PlannedProgram plain, PlannedProgram source, const BudgetTools&);

  const BudgetPoint& plain() const { return plain_; }
  // Null: no schedule was found.
  const BudgetPoint* at(int rung);
  // The cheapest plan that fits, of large graphs looking at few; null: none does.
  const BudgetPoint* cheapest(std::size_t budget);
  // That with the lowest peak; null: nothing is found below the plain one.
  const BudgetPoint* lowest();

 private:
  void make_graph();
  std::optional<BudgetPoint> make(int rung);

  const BudgetTools& tools_;
  BudgetPoint plain_;
  PlannedProgram source_;
  const std::optional<double> proven_;
  std::optional<plan::BudgetProgram> program_;  // once it is needed
  std::int64_t least_ = 0, most_ = 0;           // peaks of the graph
  std::map<int, std::optional<BudgetPoint>> made_;
};

// All of them: a ladder for the program as it is, one for what it would be if everything were kept,
// and one for each way in which its loops stack less and their bodies work in less memory.
class BudgetSearch {
 public:
  explicit BudgetSearch(BudgetTools tools);

  const BudgetPoint& plain() const { return ladders_.front().plain(); }
  const BudgetPoint* cheapest(std::size_t budget);
  bool fits(std::size_t budget);  // whether there is one
  // The lowest peak that is found.
  const BudgetPoint& lowest();
  // From the least peak to the plain one: each holds more than those before and takes less time. At
  // most `count`.
  std::vector<const BudgetPoint*> curve(int count);

 private:
  void add_loops();  // ladders of programs whose loops take less
  BudgetLadder& deepest();
  std::vector<BudgetLadder*> climbed();  // those whose equations are repeated
  ProgramPtr squeezed(const ProgramPtr&, int rung) const;

  const BudgetTools tools_;
  std::list<BudgetLadder> ladders_;
  BudgetLadder* unkept_ = nullptr;
  bool has_loops_ = false;
};

// No plan of this program holds fewer bytes: its outputs are there at the end.
std::size_t proven_peak(const Code&);

// A RuntimeError for a budget that no plan meets: the lowest peak, the bound, the fullest step and
// what is there.
[[noreturn]] void fail_over_budget(std::size_t budget, const BudgetPoint& lowest);

// What came of a budget.
struct BudgetOutcome {
  std::optional<std::size_t> budget;
  BudgetPoint plain, chosen;
};

}  // namespace reprise
