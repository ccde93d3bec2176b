// reprise print: a program is read, checked and printed as make_jaxpr prints it.
#include "program/print.h"

#include "commands.h"
#include "control/body.h"
#include "input.h"
#include "json.h"

#include <map>
#include <ostream>

namespace reprise::cli {
namespace {

struct Counts {
  std::size_t equations = 0;
  std::map<std::string, std::size_t> by_primitive;
};

// Equations as they are written: those of a body once for each use.
void count(const Program& p, Counts& counts) {
  for (const Equation& e : p.eqns) {
    ++counts.equations;
    ++counts.by_primitive[e.prim->name];
    for_each_program(e.params, [&](const ProgramPtr& body) { count(*body, counts); });
  }
}

Json values_json(const std::vector<Type>& types, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (std::size_t i = 0; i < types.size(); ++i) {
    Json value;
    if (i < names.size()) value["name"] = names[i];
    value["type"] = to_string(types[i]);
    value["bytes"] = types[i].nbytes();
    list.push_back(std::move(value));
  }
  return list;
}

}  // namespace

void print_program(const PrintOptions& options, std::ostream& out) {
  const Input input = read_input(options.file);
  const std::string text = to_text(*input.program, {.width = options.width});
  if (!options.json) {
    out << text << "\n";
    return;
  }
  Counts counts;
  count(*input.program, counts);
  Json json{{"file", input.file}};
  json["inputs"] = values_json(input.program->in_types(), input.names);
  json["constants"] = input.program->num_consts;
  json["outputs"] = values_json(input.program->out_types(), {});
  json["equations"] = counts.equations;
  json["primitives"] = counts.by_primitive;
  json["text"] = text;
  write_json(json, out);
}

}  // namespace reprise::cli
