// reprise residuals: what the backward pass reads from the forward pass, value by value.
#include "api/inspect.h"
#include "commands.h"
#include "gradient.h"
#include "json.h"

#include <ostream>

namespace reprise::cli {
namespace {

Json place_json(const EquationPlace& place) {
  Json json{{"what", place.what}};
  if (place.at.line != 0) json["at"] = to_string(place.at);
  json["inside"] = place.inside;
  return json;
}
Json places_json(const std::vector<EquationPlace>& places) {
  Json list = Json::array();
  for (const EquationPlace& place : places) list.push_back(place_json(place));
  return list;
}

Json residual_json(const ResidualDetail& r) {
  Json json{{"type", to_string(r.type)}, {"bytes", r.bytes}, {"origin", r.origin}};
  if (!r.name.empty()) json["name"] = r.name;
  json["reason"] = r.reason;
  if (!r.policy.empty()) json["allowed_by"] = r.policy;
  json["computed"] = r.computed;
  if (!r.steps.empty()) json["steps"] = r.steps;
  json["made_by"] = places_json(r.made_by);
  json["read_by"] = places_json(r.read_by);
  return json;
}

Json report_json(const std::string& policy, const ResidualReport& report) {
  Json json{
      {"policy", policy}, {"bytes", report.bytes()}, {"computed_bytes", report.computed_bytes()}};
  json["residuals"] = Json::array();
  for (const ResidualDetail& r : report.residuals) json["residuals"].push_back(residual_json(r));
  return json;
}

}  // namespace

void list_residuals(const ResidualsOptions& options, std::ostream& out) {
  const std::vector<PolicyChoice> choices = parse_policies(options.policies);
  const Input input = read_input(options.file);
  const std::vector<bool> wrt = wrt_mask(input, options.wrt);
  Json json{{"file", input.file}, {"wrt", names_in(input, wrt)}, {"policies", Json::array()}};
  for (const PolicyChoice& choice : choices) {
    const TypedFunction f = checkpointed(input, choice);
    const ResidualReport report = detail::residual_report(f.function, f.args, wrt);
    if (options.json) {
      json["policies"].push_back(report_json(choice.text, report));
      continue;
    }
    if (choices.size() > 1)
      out << (&choice == &choices[0] ? "" : "\n") << "== " << choice.text << " ==\n";
    out << report;
  }
  if (options.json) write_json(json, out);
}

}  // namespace reprise::cli
