#include "runtime/compile.h"

#include "control/checkpointed.h"
#include "control/shard_map.h"
#include "control/while.h"
#include "plan/epilogue.h"
#include "plan/expand.h"
#include "plan/find_relays.h"
#include "plan/hoist.h"
#include "plan/keep.h"
#include "plan/keep_loops.h"
#include "plan/reduction.h"
#include "plan/seconds.h"
#include "products/conv_rewrite.h"
#include "program/effects.h"
#include "remat/open.h"
#include "runtime/assemble.h"
#include "runtime/budget.h"
#include "runtime/passes.h"
#include "runtime/products.h"
#include "runtime/text.h"
#include "transform/cse.h"
#include "transform/dce.h"
#include "transform/inline.h"
#include "transform/simplify.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <unordered_map>

namespace reprise {
namespace {

std::string spill_directory(const CompileOptions& options) {
  if (!options.spill_directory.empty()) return options.spill_directory;
  const char* named = std::getenv("REPRISE_SPILL_DIR");
  return named == nullptr ? "" : named;
}

}  // namespace

ProgramPtr lowered(const Program& source, const LowerOptions& options) {
  Program p = apply_pass("open_shard_maps", open_shard_maps, source);
  p = apply_pass("inline", inline_calls, std::move(p));
  p = apply_pass("one_predicate", one_predicate, std::move(p));
  p = apply_pass("open_tangents", open_tangents, std::move(p));
  p = apply_pass("open_mergeable",
                 options.policies_are_free ? open_checkpoints : open_mergeable_checkpoints,
                 std::move(p));
  p = apply_pass("simplify", simplify, std::move(p));
  p = apply_pass("cse", cse, std::move(p));
  p = apply_pass("open", open_checkpoints, std::move(p));
  p = apply_pass("dce", drop_dead, std::move(p));
  p = apply_pass("split_reductions", plan::split_reductions, std::move(p));
  p = apply_pass("keep_loops", plan::keep_loops, std::move(p));
  if (options.stacked_share < 1)
    p = plan::restack_loops(p, {options.stacked_share, options.policies_are_free});
  if (options.keep) p = apply_pass("keep", plan::keep, std::move(p));
  p = apply_pass("expand", plan::expand, std::move(p));
  p = apply_pass("convolutions", codegen::rewrite_convolutions, std::move(p));
  return std::make_shared<const Program>(std::move(p));
}

namespace {

// Bytes of all values of a program and of those inside it, far below what a size_t holds.
class TotalBytes {
 public:
  std::size_t of(const Program& p) {
    const auto [it, is_new] = known_.emplace(&p, 0);
    if (!is_new) return it->second;
    std::size_t total = 0;
    for (const Type& t : p.types) add(total, t.nbytes());
    for (const Equation& e : p.eqns) {
      for_each_program(e.params, [&](const ProgramPtr& inside) { add(total, of(*inside)); });
    }
    return known_[&p] = total;
  }

 private:
  static void add(std::size_t& total, std::size_t bytes) {
    constexpr std::size_t most = std::size_t{1} << 57;
    total += bytes;
    if (total <= most) return;
    fail<RuntimeError>(
        "jit: the values of the program are larger than any memory, got more than 2^57 bytes");
  }
  std::unordered_map<const Program*, std::size_t> known_;
};

SchedulePtr with_sums(const SchedulePtr& s) {
  return std::make_shared<const plan::Schedule>(plan::with_epilogues(*s, cpu_capabilities()));
}
SchedulePtr with_slices(const SchedulePtr& s) { return plan::with_relays(s, cpu_capabilities()); }

// Collectives run in the order of the program, whatever became of the steps around them.
void check_shared_order(const plan::Schedule& s) {
  std::ptrdiff_t last = -1;
  for (const plan::Step& step : s.steps) {
    const auto* eval = std::get_if<plan::EvalStep>(&step.what);
    const auto* loop = std::get_if<plan::LoopStep>(&step.what);
    const Equation* e = eval != nullptr ? eval->eqn : loop != nullptr ? loop->eqn : nullptr;
    if (e == nullptr || !effect_of(*e).is_shared) continue;
    const std::ptrdiff_t now = e - s.program->eqns.data();
    REPRISE_INVARIANT(now > last);
    last = now;
  }
}

std::shared_ptr<const Code> code_of(const ProgramPtr& program, const CompileOptions& options,
                                    bool host_on_disk, bool only_memory) {
  SchedulePtr schedule;
  {
    const PassTimer timer("schedule");
    schedule = std::make_shared<const plan::Schedule>(plan::make_schedule(
        program, {.fuse = !pass_is_disabled("fuse"), .capabilities = cpu_capabilities()}));
  }
  schedule = apply_pass("epilogue", with_sums, std::move(schedule));
  AssembleOptions assembling{.in_place = !pass_is_disabled("in_place"),
                             .host_on_disk = host_on_disk,
                             .donated = options.donated,
                             .only_memory = only_memory};
  const auto assembled = [&](const SchedulePtr& s, bool is_plan) {
    const PassTimer timer("assemble");
    assembling.only_memory = is_plan || only_memory;
    return assemble(s, assembling);
  };
  if (options.relays) {
    const SchedulePtr relayed = apply_pass("relay", with_slices, schedule);
    // what a relay uses lives as long as the relay
    if (relayed != schedule &&
        assembled(relayed, true)->memory.peak() <= assembled(schedule, true)->memory.peak())
      schedule = relayed;
  }
  if (effects_of(*program).is_shared) check_shared_order(*schedule);
  return assembled(schedule, false);
}

// The better of the program as it is and with values taken out of loops.
std::shared_ptr<const Code> best_code_of(const ProgramPtr& program, const CompileOptions& options,
                                         bool host_on_disk, bool only_memory) {
  std::shared_ptr<const Code> code = code_of(program, options, host_on_disk, only_memory);
  const auto hoisted = std::make_shared<const Program>(apply_pass("hoist", plan::hoist, *program));
  if (!plan::is_hoisted(*program, *hoisted)) return code;
  const auto other = code_of(hoisted, options, host_on_disk, only_memory);
  return other->memory.peak() <= code->memory.peak() ? other : code;  // memory comes before time
}

BudgetTools tools_for(const Program& source, const CompileOptions& options, bool on_disk) {
  return {[&source, options](double share, bool keep) {
            return lowered(source, {options.policies_are_free, share, keep});
          },
          [options, on_disk](const ProgramPtr& p) {
            const auto code = best_code_of(p, options, on_disk, true);
            return PlannedProgram{p, code, plan::seconds_of(*code->schedule)};
          },
          [options, on_disk](const ProgramPtr& p, bool is_body) {
            const auto schedule = std::make_shared<const plan::Schedule>(
                plan::make_schedule(p, {.is_body = is_body, .capabilities = cpu_capabilities()}));
            return assemble(schedule, {.outputs_given = is_body,
                                       .host_on_disk = on_disk,
                                       .donated = is_body ? std::vector<bool>{} : options.donated,
                                       .only_memory = true});
          },
          options.policies_are_free};
}

// Without a budget, and where it is met anyway, the plain plan.
BudgetOutcome plan_within(const Program& source, const CompileOptions& options, bool on_disk) {
  const BudgetTools plain_tools =
      tools_for(source, {options.spill_directory, options.donated, options.relays}, on_disk);
  const PlannedProgram plain = plain_tools.plan(plain_tools.lower(1, true));
  const BudgetPoint point{plain, plain.seconds, {}};
  if (!options.memory_budget || plain.peak() <= *options.memory_budget)
    return {options.memory_budget, point, point};
  const PassTimer timer("budget");
  BudgetSearch search(tools_for(source, options, on_disk));
  const BudgetPoint* chosen = search.cheapest(*options.memory_budget);
  if (chosen == nullptr) fail_over_budget(*options.memory_budget, search.lowest());
  return {options.memory_budget, point, *chosen};
}

std::shared_ptr<const Executable> compile_checked(const Program& source,
                                                  const CompileOptions& options) {
  const std::string directory = spill_directory(options);
  const bool on_disk = !directory.empty();
  std::shared_ptr<const BudgetOutcome> outcome;
  std::shared_ptr<const Code> code;
  if (options.memory_budget || options.only_memory)
    outcome = std::make_shared<const BudgetOutcome>(plan_within(source, options, on_disk));
  if (options.only_memory)
    code = outcome->chosen.planned.code;
  else
    code = best_code_of(outcome ? outcome->chosen.planned.program : lowered(source), options,
                        on_disk, false);
  if (pass_is_dumped("assemble"))
    std::fprintf(stderr, "reprise: after assemble\n%s\n", to_text(*code).c_str());
  return std::make_shared<const Executable>(std::move(code), directory, std::move(outcome));
}

}  // namespace

std::shared_ptr<const Executable> compile(const Program& source,
                                          const CompileOptions& options) try {
  check_pass_names();
  TotalBytes().of(source);  // sums of sizes do not wrap from here on
  return compile_checked(source, options);
} catch (const std::bad_alloc&) {
  fail_with_hint<RuntimeError>(
      "free arrays, or divide the program into several jit functions",
      "jit: memory ended while compiling, got a request that the system refused");
}

bool fits(const Program& source, const CompileOptions& options) {
  check_pass_names();
  TotalBytes().of(source);
  BudgetSearch search(tools_for(source, options, !spill_directory(options).empty()));
  return search.fits(options.memory_budget.value());
}

std::vector<BudgetPoint> curve_of(const Program& source, const CompileOptions& options, int count) {
  check_pass_names();
  TotalBytes().of(source);
  BudgetSearch search(tools_for(source, options, !spill_directory(options).empty()));
  std::vector<BudgetPoint> points;
  for (const BudgetPoint* point : search.curve(count)) points.push_back(*point);
  return points;
}

}  // namespace reprise
