// A program as a list of steps in execution order.
//
//   make_schedule:  { ... eqn* ... }   =>   step*,   every step reads and writes stored values
#pragma once

#include <memory>
#include <variant>

#include "plan/kernel.h"

namespace reprise::plan {

struct Schedule;

// dot_general on strided views; batch, free and contracted dimensions each walk with one stride.
struct DotStep {
  const Equation* eqn = nullptr;
};
// A loop or branch: bodies have schedules of their own.
struct LoopStep {
  const Equation* eqn = nullptr;
  std::vector<std::shared_ptr<const Schedule>> bodies;
};
// Everything else: the primitive's plain evaluator.
struct EvalStep {
  const Equation* eqn = nullptr;
};

struct Step {
  std::variant<Kernel, DotStep, LoopStep, EvalStep> what;
  std::vector<View> operands;  // of an equation, in its order; root -1: a literal
  std::vector<View> results;   // of an equation
  std::vector<Var> reads;      // roots, each once
  std::vector<Var> writes;     // roots
};

struct Schedule {
  std::shared_ptr<const Program> program;  // holds the equations that steps point to
  std::vector<Step> steps;
  std::vector<Type> types;     // of every root: the program's variables, then copies made here
  std::vector<View> outputs;   // dense; root -1: a literal
};

// is_body: the caller has a place for every output, so each is a value of its own, made here.
Schedule make_schedule(std::shared_ptr<const Program> p, bool is_body = false);

}  // namespace reprise::plan
