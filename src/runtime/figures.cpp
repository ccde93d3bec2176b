// What a compiled program says about itself.
#include "ops/shape.h"
#include "plan/cost.h"
#include "plan/seconds.h"
#include "runtime/executable.h"
#include "runtime/text.h"
#include "runtime/timeline.h"

#include <algorithm>

namespace reprise {
namespace {

double flops_of(const PlannedProgram& p) { return plan::cost_of(*p.code->schedule->program).flops; }

}  // namespace

double Executable::seconds() const { return plan::seconds_of(*code_->schedule); }

MemoryAnalysis Executable::memory() const {
  const plan::MemoryPlan& plan = code_->memory;
  const plan::Schedule& schedule = *code_->schedule;
  MemoryAnalysis m;
  m.argument_bytes = plan.argument_bytes;
  m.peak_bytes = plan.peak();
  m.alias_bytes = plan.alias_bytes;
  m.copied_donations = copied_donations();
  m.host_temp_bytes = plan.host_bytes;
  m.host_on_disk = plan.host_on_disk && plan.host_bytes > 0;
  for (const plan::View& v : schedule.outputs) {
    if (v.root < 0 ||
        plan.places[static_cast<std::size_t>(v.root)].region == plan::Region::argument)
      continue;
    m.output_bytes += schedule.types[static_cast<std::size_t>(v.root)].nbytes();
  }
  m.temp_bytes = m.peak_bytes - std::min(m.peak_bytes, m.output_bytes);
  return m;
}

BudgetAnalysis Executable::budget_analysis() const {
  BudgetAnalysis a;
  a.peak_bytes = a.plain_peak_bytes = code_->memory.peak();
  a.least_peak_bound = proven_peak(*code_);
  a.offloaded_bytes = code_->memory.host_bytes;
  a.seconds = a.plain_seconds = a.lower_seconds = plan::seconds_of(*code_->schedule);
  a.flops = a.plain_flops = plan::cost_of(*code_->schedule->program).flops;
  const BudgetOutcome* outcome = budget();
  if (outcome == nullptr || !outcome->budget) return a;
  a.budget = static_cast<std::int64_t>(*outcome->budget);
  a.plain_peak_bytes = outcome->plain.planned.peak();
  a.plain_seconds = outcome->plain.planned.seconds;
  a.seconds = outcome->chosen.planned.seconds;
  a.lower_seconds = std::min(outcome->chosen.lower_seconds, a.seconds);
  a.plain_flops = flops_of(outcome->plain.planned);
  for (const Repetition& r : outcome->chosen.repeated) {
    a.repeated.push_back({r.value, r.at, r.bytes, r.seconds, r.flops, r.times});
  }
  return a;
}

std::string Executable::text() const { return to_text(*code_); }

Timeline Executable::timeline(const std::vector<std::string>& argument_names) const {
  return timeline_of(*code_, argument_names);
}

void Executable::run_shown(Arrays args, const Wants& wants, const Show& show) const {
  const plan::Schedule& s = *code_->schedule;
  std::vector<std::size_t> complete(s.types.size(), 0);
  std::vector<plan::View> stored(s.types.size());
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    for (Var v : s.steps[i].writes) {
      complete[static_cast<std::size_t>(v)] = i;
      stored[static_cast<std::size_t>(v)] =
          plan::dense_view(v, s.types[static_cast<std::size_t>(v)].shape);
    }
    for (const plan::View& v : s.steps[i].results) {
      if (v.shape == s.types[static_cast<std::size_t>(v.root)].shape)
        stored[static_cast<std::size_t>(v.root)] = v;
    }
  }
  const Observer observer = [&](std::size_t i, std::byte* const* slots) {
    for (Var v : s.steps[i].writes) {
      const auto at = static_cast<std::size_t>(v);
      const std::byte* from = address_of(*code_, v, slots);
      if (at >= s.program->types.size() || complete[at] != i || from == nullptr || !wants(v))
        continue;
      NewArray copy(s.types[at]);
      copy_strided(from, stored[at].strides, copy.bytes(), row_major_strides(s.types[at].shape),
                   s.types[at].shape, itemsize(s.types[at].dtype));
      show(v, std::move(copy).finish());
    }
  };
  run(std::move(args), &observer);
}

}  // namespace reprise
