// The data inside of a page, read back.
#pragma once

#include <reprise/report.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace report_data {

using nlohmann::json;

// The columns of a value, a step and a rule, as src/api/report.cpp writes them.
enum ValueColumn {
  name,
  type,
  bytes,
  held,
  holder,
  operation,
  at,
  stage,
  place,
  first,
  last,
  because
};
enum StepColumn { what, step_stage, body, operations, reads, writes };
enum RuleColumn { rule_type, rule_bytes, origin, computed, reason, makers, readers, reader_count };
enum Holder { argument, output, residual, temporary, host };
enum Stage { forward, recompute, backward, after };

inline json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin);
  REQUIRE(from != std::string::npos);
  const std::size_t to = page.find("</script>", from);
  return json::parse(page.substr(from + begin.size(), to - from - begin.size()));
}

template <class F>
json data_of(const reprise::Compiled<F>& compiled) {
  return data_of(reprise::detail::report_page({{"program", compiled}}));
}

inline std::string text(const json& data, const json& number) {
  return data["strings"][number.get<std::size_t>()];
}

// Bytes of the bands above the axis, per step.
inline std::vector<std::size_t> stacked(const json& program) {
  std::vector<std::size_t> sums(program["steps"].size(), program["gap"].get<std::size_t>());
  for (const json& v : program["values"]) {
    if (v[holder] == host && program["memory"]["on_disk"] == true) continue;
    for (std::size_t i = v[first]; i <= v[last]; ++i) sums[i] += v[held].get<std::size_t>();
  }
  return sums;
}

// The stages of all steps, in order, each run of equal ones once: "forward recompute backward".
inline std::string passes(const json& program) {
  static const std::string names[] = {"forward", "recompute", "backward", "after"};
  std::string out;
  int before = -1;
  for (const json& s : program["steps"]) {
    if (s[step_stage] == before) continue;
    before = s[step_stage];
    out += (out.empty() ? "" : " ") + names[before];
  }
  return out;
}

inline std::size_t steps_of(const json& program, Stage wanted) {
  return static_cast<std::size_t>(
      std::count_if(program["steps"].begin(), program["steps"].end(),
                    [&](const json& s) { return s[step_stage] == wanted; }));
}

}  // namespace report_data
