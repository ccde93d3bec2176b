// A compiled program: immutable, runs from many threads at once.
#pragma once

#include "engine/engine.h"
#include "runtime/budget.h"
#include "runtime/code.h"

#include <atomic>

namespace reprise {

class Executable final : public CompiledProgram {
 public:
  // Offloaded values go to a file in the directory; empty: they stay in memory.
  explicit Executable(std::shared_ptr<const Code> code, std::string spill_directory = {},
                      std::shared_ptr<const BudgetOutcome> budget = nullptr);
  // One value per input of the program; throws what evaluation throws, RuntimeError without memory
  // or when an offloaded value could not be written or read back. A donated argument that is the
  // last handle of its memory is overwritten, any other is copied first: arguments that the caller
  // moves in are given up.
  Arrays run(Arrays args, const Observer* observer) const;
  Arrays run(Arrays args) const override { return run(std::move(args), nullptr); }

  // figures.cpp
  MemoryAnalysis memory() const override;
  double seconds() const override;
  BudgetAnalysis budget_analysis() const override;
  const Program& lowered() const override { return *code_->schedule->program; }
  std::string text() const override;
  Timeline timeline(const std::vector<std::string>& argument_names) const override;
  void run_shown(Arrays args, const Wants& wants, const Show& show) const override;

  const Code& code() const { return *code_; }
  const BudgetOutcome* budget() const { return budget_.get(); }  // null: none was asked for
  // in all runs so far
  std::size_t copied_donations() const { return copied_donations_.load(std::memory_order_relaxed); }

 private:
  Arrays run_timed(Arrays args) const;
  void claim_donated(Arrays& args, std::byte** slots) const;
  // Outputs that have no buffer of their own.
  void add_others(Arrays& out, const Arrays& args, const std::shared_ptr<std::byte>& results) const;

  std::shared_ptr<const Code> code_;
  // results share them, which leaves a handle few bytes
  std::shared_ptr<const std::vector<Type>> output_types_;
  std::vector<std::size_t> first_outputs_;  // of each output, the first one that is the same memory
  std::vector<std::size_t> own_outputs_;    // of each buffer that is an output's own, that output
  std::string spill_directory_;
  std::shared_ptr<const BudgetOutcome> budget_;
  mutable std::atomic<std::size_t> copied_donations_{0};
  bool is_shared_;  // ranks run it together: at the first run they see that theirs are the same
  bool timed_;      // REPRISE_TIME=run: every call reports the time of each instruction
};

}  // namespace reprise
