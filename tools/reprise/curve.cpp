// reprise curve: predicted time against planned memory.
#include "api/jit_entry.h"
#include "commands.h"
#include "gradient.h"
#include "json.h"
#include "reprise/report.h"
#include "table.h"

#include <cstdio>
#include <ostream>

namespace reprise::cli {
namespace {

// As reports take it: planned and never called.
using Plans = Compiled<Arrays (*)(const Arrays&)>;

std::string percent_more(double value, double base) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", base > 0 ? 100 * (value / base - 1) : 0);
  return text;
}

}  // namespace

std::shared_ptr<const detail::JitEntry> traced_entry(const TypedFunction& f,
                                                     const JitOptions& options) {
  std::vector<std::size_t> argument_of;
  for (std::size_t i = 0; i < f.args.size(); ++i) argument_of.push_back(i);
  return detail::trace_jit(f.function, f.args, options, argument_of, f.args.size());
}

void draw_curve(const CurveOptions& options, std::ostream& out) {
  const std::vector<PolicyChoice> choices = parse_policies(options.policies);
  const Input input = read_input(options.file);
  const std::vector<bool> wrt = wrt_mask(input, options.wrt);
  Json json{{"file", input.file}, {"wrt", names_in(input, wrt)}, {"curves", Json::array()}};
  Table table({"policy", "peak", "time", "flops"});
  std::vector<NamedCompiled> programs;
  std::vector<detail::CurveData> first;
  for (const PolicyChoice& choice : choices) {
    auto entry = traced_entry(with_gradients(input, choice, wrt), {});
    const auto points = detail::curve_of(*entry);
    if (programs.empty()) first = points;
    programs.emplace_back(choice.text, Plans{jit<Arrays (*)(const Arrays&)>(nullptr), entry, ""});
    Json rows = Json::array();
    for (const detail::CurveData& p : points) {
      rows.push_back({{"peak_bytes", p.peak_bytes}, {"seconds", p.seconds}, {"flops", p.flops}});
      table.add({choice.text, grouped(p.peak_bytes), percent_more(p.seconds, points.back().seconds),
                 percent_more(p.flops, points.back().flops)});
    }
    json["curves"].push_back({{"policy", choice.text}, {"points", std::move(rows)}});
  }
  if (!options.report.empty()) detail::write_report(programs, options.report, first);
  if (options.json)
    write_json(json, out);
  else
    out << table;
}

}  // namespace reprise::cli
