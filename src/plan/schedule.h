// A program as a list of steps in execution order.
//
//   make_schedule:  { ... eqn* ... }   =>   step*,   every step reads and writes stored values
#pragma once

#include "plan/capabilities.h"
#include "plan/host_values.h"
#include "plan/kernel.h"

#include <memory>
#include <variant>

namespace reprise::plan {

struct Schedule;

// dot_general on strided views; batch, free and contracted dimensions each walk with one stride.
struct DotStep {
  const Equation* eqn = nullptr;
  bool has_bias = false;     // the third operand, one number per column, is added to every row
  bool accumulates = false;  // added to what the result holds already
};
// A loop or branch: bodies have schedules of their own.
struct LoopStep {
  const Equation* eqn = nullptr;
  std::vector<std::shared_ptr<const Schedule>> bodies;
};
// Everything else: code of its own, or the primitive's plain evaluator.
struct EvalStep {
  const Equation* eqn = nullptr;
};

// A value travels between arena and host while other steps run. Each begin has its end, with the
// same operand and result; bytes under way belong to the transfer.
enum class Transfer : std::uint8_t { begin_write, end_write, begin_read, end_read };
struct TransferStep {
  Transfer what = Transfer::begin_write;
};

// Neighbouring steps that run together, slice after slice of their outermost loops: what one step
// makes of a slice is still near when the next one reads it. Values that no other step uses have no
// place of their own: each thread holds one slice of them.
struct Step;
struct RelayStep {
  std::int64_t slices = 1;
  std::vector<Step> steps;  // kernels and products
  std::vector<Var> passed;  // roots of those values
};

struct Step {
  std::variant<Kernel, DotStep, LoopStep, EvalStep, TransferStep, RelayStep> what;
  std::vector<View> operands;  // of an equation, in its order; root -1: a literal
  std::vector<View> results;   // of an equation
  std::vector<Var> reads;      // roots, each once
  std::vector<Var> writes;     // roots
};

struct Schedule {
  std::shared_ptr<const Program> program;  // holds the equations that steps point to
  std::vector<Step> steps;
  std::vector<Type> types;    // of every root: the program's variables, then copies made here
  std::vector<View> outputs;  // dense; root -1: a literal
  std::vector<bool> on_host;  // of every root
};

struct ScheduleOptions {
  bool fuse = true;  // false: a kernel for every equation
  // the caller has a place for every output, so each is a value of its own, made here
  bool is_body = false;
  HostBorder border = {};
  Capabilities capabilities = {};
};
Schedule make_schedule(std::shared_ptr<const Program> p, const ScheduleOptions& options);

}  // namespace reprise::plan
