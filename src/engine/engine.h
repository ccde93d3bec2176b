// What turns programs into something that runs: the seam for engines.
//
//   compile:  program, options  =>  a compiled program, which runs and says what memory it needs
//
// Whoever traces and transforms knows an engine by this interface alone. Ours, for the processor,
// is runtime/cpu_engine.h; api/engine.cpp chooses.
#pragma once

#include "plan/capabilities.h"
#include "plan/timeline.h"
#include "reprise/budget.h"
#include "reprise/jit.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

struct CompileOptions {
  // of offloaded values; empty: REPRISE_SPILL_DIR, else they stay in memory
  std::string spill_directory = {};
  std::vector<bool> donated = {};  // inputs whose memory outputs may take over; empty: none
  // false: every stored value has memory of its own, for those who watch a run
  bool relays = true;
  // the plan's peak is at most that, or it is a RuntimeError
  std::optional<std::size_t> memory_budget = {};
  bool policies_are_free = false;  // budgets: what policies save, and play again, is only a hint
  bool only_memory = false;        // everything but machine code: it cannot run
};
// Immutable, runs from many threads at once.
class CompiledProgram {
 public:
  virtual ~CompiledProgram() = default;

  // One value per input of the program; throws what evaluation throws, and RuntimeError where
  // memory or a device fails. A donated argument that is the last handle of its memory may be
  // overwritten.
  virtual Arrays run(Arrays args) const = 0;

  // What is known before it runs.
  virtual MemoryAnalysis memory() const = 0;
  virtual double seconds() const = 0;  // by the cost model
  virtual BudgetAnalysis budget_analysis() const = 0;
  virtual const Program& lowered() const = 0;  // the program whose equations run
  virtual std::string text() const = 0;        // what runs, for people
  virtual Timeline timeline(const std::vector<std::string>& argument_names) const = 0;

  // Runs, and shows each stored value of lowered() that is wanted when it is complete.
  using Wants = std::function<bool(Var)>;
  using Show = std::function<void(Var, const Array&)>;
  virtual void run_shown(Arrays args, const Wants& wants, const Show& show) const = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  virtual plan::Capabilities capabilities() const = 0;

  virtual std::shared_ptr<const CompiledProgram> compile(const Program&,
                                                         const CompileOptions&) const = 0;
  // Whether a plan within the budget of the options is found.
  virtual bool fits(const Program&, const CompileOptions&) const = 0;
  // Plans from the least peak to the plain one, at most about so many.
  virtual std::vector<detail::CurveData> curve(const Program&, const CompileOptions&,
                                               int count) const = 0;
  // One operation on concrete arrays, outside any trace. An operation that is repeated gives the
  // same bits.
  virtual Arrays evaluate(const Primitive&, const Arrays& x, const Params&,
                          const Types& out) const = 0;
  // The process ends: nothing is compiled any more.
  virtual bool is_gone() const = 0;
};

}  // namespace reprise
