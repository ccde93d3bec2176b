// reprise plan: the memory of one run, planned before anything runs, under each policy.
#include "api/jit_entry.h"
#include "commands.h"
#include "gradient.h"
#include "json.h"
#include "plan/stages.h"
#include "reprise/report.h"
#include "table.h"

#include <algorithm>
#include <ostream>

namespace reprise::cli {
namespace {

// A program compiled from its text, as reports take it. It is planned and never called.
using PlannedProgram = Compiled<Arrays (*)(const Arrays&)>;

struct PlannedRun {
  std::string policy;
  PlannedProgram program;
  MemoryAnalysis memory = {};
  CostAnalysis cost = {};
  double recomputed_flops = 0;
};

PlannedProgram compiled(const TypedFunction& f) {
  auto entry = traced_entry(f, {});
  detail::compile_jit(*entry);
  return {jit<Arrays (*)(const Arrays&)>(nullptr), std::move(entry), ""};
}

PlannedRun planned(const std::string& policy, const TypedFunction& f) {
  PlannedRun run{policy, compiled(f)};
  run.memory = run.program.memory_analysis();
  run.cost = run.program.cost_analysis();
  const Program& planned_program = run.program.entry()->planned()->lowered();
  run.recomputed_flops = recomputed_cost(planned_program).flops;
  return run;
}

std::vector<PlannedRun> planned_runs(const PlanOptions& options, const Input& input,
                                     const std::vector<PolicyChoice>& choices,
                                     const std::vector<bool>& wrt) {
  if (options.forward) return {planned("forward", as_function(input))};
  std::vector<PlannedRun> runs;
  for (const PolicyChoice& choice : choices) {
    runs.push_back(planned(choice.text, with_gradients(input, choice, wrt)));
  }
  return runs;
}

std::uint64_t whole(double count) { return static_cast<std::uint64_t>(count); }

Json run_json(const PlannedRun& run, const PlanOptions& options) {
  Json json;
  if (!options.forward) json["policy"] = run.policy;
  json["argument_bytes"] = run.memory.argument_bytes;
  json["output_bytes"] = run.memory.output_bytes;
  json["temp_bytes"] = run.memory.temp_bytes;
  json["peak_bytes"] = run.memory.peak_bytes;
  json["host_temp_bytes"] = run.memory.host_temp_bytes;
  json["host_on_disk"] = run.memory.host_on_disk;
  json["flops"] = whole(run.cost.flops);
  json["matmul_flops"] = whole(run.cost.matmul_flops);
  if (!options.forward) json["recomputed_flops"] = whole(run.recomputed_flops);
  if (options.steps) json["steps"] = run.program.as_text();
  return json;
}

void write_table(const std::vector<PlannedRun>& runs, bool forward, std::ostream& out) {
  const bool offloads = std::any_of(runs.begin(), runs.end(), [](const PlannedRun& run) {
    return run.memory.host_temp_bytes > 0;
  });
  std::vector<std::string> titles{forward ? "" : "policy", "arguments", "outputs", "temporaries",
                                  "peak"};
  if (offloads) titles.emplace_back("offloaded");
  titles.emplace_back("flops");
  if (!forward) titles.emplace_back("recomputed flops");
  Table table(titles);
  for (const PlannedRun& run : runs) {
    const MemoryAnalysis& m = run.memory;
    std::vector<std::string> row{run.policy, grouped(m.argument_bytes), grouped(m.output_bytes),
                                 grouped(m.temp_bytes), grouped(m.peak_bytes)};
    if (offloads) row.push_back(grouped(m.host_temp_bytes));
    row.push_back(grouped(run.cost.flops));
    if (!forward) row.push_back(grouped(run.recomputed_flops));
    table.add(row);
  }
  out << table;
}

void write_page(const std::vector<PlannedRun>& runs, const std::string& path) {
  std::vector<NamedCompiled> programs;
  for (const PlannedRun& run : runs) programs.emplace_back(run.policy, run.program);
  write_report(programs, path);
}

}  // namespace

void plan_memory(const PlanOptions& options, std::ostream& out) {
  const std::vector<PolicyChoice> choices = parse_policies(options.policies);
  const Input input = read_input(options.file);
  const std::vector<bool> wrt =
      options.forward ? std::vector<bool>() : wrt_mask(input, options.wrt);
  const std::vector<PlannedRun> runs = planned_runs(options, input, choices, wrt);
  if (!options.report.empty()) write_page(runs, options.report);
  if (options.json) {
    Json json{{"file", input.file}, {"forward", options.forward}};
    if (!options.forward) json["wrt"] = names_in(input, wrt);
    json["plans"] = Json::array();
    for (const PlannedRun& run : runs) json["plans"].push_back(run_json(run, options));
    return write_json(json, out);
  }
  write_table(runs, options.forward, out);
  for (const PlannedRun& run : runs) {
    if (options.steps) out << "\n== " << run.policy << " ==\n" << run.program.as_text();
  }
}

}  // namespace reprise::cli
