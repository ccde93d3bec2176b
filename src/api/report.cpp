// The data of a report: what compiled programs know about their memory, as one JSON object.
//
//   { strings: [text], programs: [{ name, memory, cost, gap, bodies, steps, values, rules }],
//     curve: [[peak, seconds]] }
//
// Texts are numbers of strings. The layouts of steps, values and rules stand where they are
// written.
#include "reprise/report.h"

#include "api/jit_entry.h"
#include "api/residual_list.h"
#include "plan/cost.h"
#include "plan/stages.h"
#include "report/json.h"
#include "report/page.h"
#include "reprise/errors.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace reprise::detail {
namespace {

std::string loop_json(const LoopDrawing& l) {
  return str("{\"steps\":", l.steps, ",\"evaluations\":", l.evaluations, ",\"disk\":", l.disk,
             ",\"advances\":", json_list(l.advances), ",\"reversals\":", json_list(l.reversals),
             ",\"kept\":", json_list(l.kept), "}");
}

constexpr std::size_t most_places = 16;  // makers or readers of one value that are listed

std::string whole(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f", x);
  return text;
}
std::string number(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}
std::string stage_number(Stage s) { return std::to_string(static_cast<int>(s)); }

class ProgramWriter {
 public:
  ProgramWriter(JsonStrings& strings, const NamedCompiled& program)
      : strings_(strings),
        program_(program),
        entry_(program.entry()),
        compiled_(entry_.planned()) {}

  std::string text() {
    const Timeline timeline = compiled_->timeline(entry_.program->arg_names);
    std::vector<std::string> bodies, steps, values, rules;
    for (const TimelineBody& b : timeline.bodies) {
      std::vector<std::string> body{strings_.number(b.label), std::to_string(b.outer)};
      if (b.loop.evaluations > 0) body.push_back(loop_json(b.loop));
      bodies.push_back(json_list(body));
    }
    for (const TimelineStep& s : timeline.steps) steps.push_back(step(s));
    for (const TimelineValue& v : timeline.values) values.push_back(value(v));
    for (const ResidualDetail& r : residuals_inside(entry_.program)) rules.push_back(rule(r));
    return "{\"name\":" + json_quoted(program_.name()) + ",\"memory\":" + memory() +
           ",\"cost\":" + cost() + ",\"gap\":" + std::to_string(timeline.gap) +
           ",\"bodies\":" + json_list(bodies) + ",\"steps\":" + json_list(steps) +
           ",\"values\":" + json_list(values) + ",\"rules\":" + json_list(rules) + "}";
  }

 private:
  std::string memory() const {
    const MemoryAnalysis m = memory_of(entry_);
    return str("{\"arguments\":", m.argument_bytes, ",\"outputs\":", m.output_bytes,
               ",\"temporaries\":", m.temp_bytes, ",\"peak\":", m.peak_bytes,
               ",\"alias\":", m.alias_bytes, ",\"host\":", m.host_temp_bytes,
               ",\"on_disk\":", m.host_on_disk ? "true" : "false", "}");
  }
  std::string cost() const {
    const Program& p = compiled_->lowered();
    const plan::Cost all = plan::cost_of(p), again = recomputed_cost(p);
    return "{\"flops\":" + whole(all.flops) + ",\"matmul\":" + whole(all.matmul_flops) +
           ",\"recomputed\":" + whole(again.flops) +
           ",\"recomputed_matmul\":" + whole(again.matmul_flops) +
           ",\"bytes\":" + whole(all.bytes) + ",\"communicated\":" + whole(all.communicated) +
           ",\"communicated_again\":" + whole(again.communicated) +
           ",\"seconds\":" + number(compiled_->seconds()) + "}";
  }
  // [what, stage, body, [operation, location, stage, ...], [values read], [values written]]
  std::string step(const TimelineStep& s) {
    std::vector<std::string> operations;
    for (const TimelineOperation& o : s.operations) {
      operations.push_back(strings_.number(o.what));
      operations.push_back(strings_.number(to_string(o.at)));
      operations.push_back(stage_number(o.stage));
    }
    return json_list({strings_.number(s.what), stage_number(s.stage), std::to_string(s.body),
                      json_list(operations), json_list(s.reads), json_list(s.writes)});
  }
  // [name, type, bytes, bytes held beyond the arguments, holder, operation, location, stage, place,
  // first step, last step,
  //  reason to keep it for the backward pass]
  std::string value(const TimelineValue& v) {
    return json_list({strings_.number(v.name), strings_.number(v.type), std::to_string(v.bytes),
                      std::to_string(held_bytes(v)), std::to_string(static_cast<int>(v.holder)),
                      strings_.number(v.made_by.what), strings_.number(to_string(v.made_by.at)),
                      stage_number(v.made_by.stage), strings_.number(v.place),
                      std::to_string(v.first), std::to_string(v.last),
                      strings_.number(v.kept_because)});
  }
  // [type, bytes, origin, computed by the forward pass, reason, [makers], [readers], number of
  // readers]
  std::string rule(const ResidualDetail& r) {
    return json_list({strings_.number(to_string(r.type)), std::to_string(r.bytes),
                      strings_.number(r.origin), r.computed ? "1" : "0", strings_.number(r.reason),
                      places(r.made_by), places(r.read_by), std::to_string(r.read_by.size())});
  }
  std::string places(const std::vector<EquationPlace>& all) {
    std::vector<std::string> numbers;
    for (std::size_t i = 0; i < std::min(all.size(), most_places); ++i)
      numbers.push_back(strings_.number(str(all[i])));
    return json_list(numbers);
  }

  JsonStrings& strings_;
  const NamedCompiled& program_;
  const JitEntry& entry_;
  std::shared_ptr<const CompiledProgram> compiled_;
};

void check_names(const std::vector<NamedCompiled>& programs) {
  if (programs.empty())
    fail<TypeError>("write_report: one compiled function or more is needed, got none");
  std::set<std::string> names;
  for (const NamedCompiled& p : programs) {
    if (!names.insert(p.name()).second)
      fail<TypeError>("write_report: names must differ, got '", p.name(), "' twice");
  }
}

}  // namespace

std::string program_name(const JitEntry& entry) { return entry.program->name; }

std::string report_page(const std::vector<NamedCompiled>& programs,
                        const std::vector<CurveData>& curve) {
  check_names(programs);
  JsonStrings strings;
  std::vector<std::string> written, names;
  for (const NamedCompiled& p : programs) {
    written.push_back(ProgramWriter(strings, p).text());
    names.push_back(p.name());
  }
  std::vector<std::string> points;
  for (const CurveData& p : curve)
    points.push_back(json_list({std::to_string(p.peak_bytes), number(p.seconds)}));
  return page_with("Reprise: " + join(names, ", "), "{\"strings\":" + strings.list() +
                                                        ",\"programs\":" + json_list(written) +
                                                        ",\"curve\":" + json_list(points) + "}");
}

}  // namespace reprise::detail
