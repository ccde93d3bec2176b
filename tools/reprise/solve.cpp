// reprise solve: schedules of abstract graphs within budgets.
#include "plan/budget/solve.h"

#include "commands.h"
#include "input.h"
#include "json.h"
#include "reprise/errors.h"

#include <limits>
#include <ostream>

namespace reprise::cli {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& reason) {
  throw InputError(str(where, ": error: ", reason));
}

const Json& member(const Json& json, const char* name, const std::string& where) {
  if (!json.is_object()) refuse(where, "an object is expected");
  if (!json.contains(name)) refuse(where, str("the member `", name, "` is missing"));
  return json[name];
}

std::int64_t whole_number(const Json& json, const std::string& where) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits =
      json.is_number_unsigned() ? json.get<std::uint64_t>() <= most : json.is_number_integer();
  if (!fits) refuse(where, "a whole number of at most 64 bits is expected");
  return json.get<std::int64_t>();
}

const Json& list(const Json& json, const std::string& where) {
  if (!json.is_array()) refuse(where, "an array is expected");
  return json;
}

budget::Node node_of(const Json& json, const std::string& where) {
  budget::Node node;
  node.bytes = whole_number(member(json, "bytes", where), where + ".bytes");
  const Json& cost = member(json, "cost", where);
  if (!cost.is_number()) refuse(where + ".cost", "a number is expected");
  node.cost = cost.get<double>();
  for (const Json& operand : list(member(json, "operands", where), where + ".operands")) {
    const std::int64_t number = whole_number(operand, where + ".operands");
    if (number < 0 || number > std::numeric_limits<int>::max()) {
      refuse(where + ".operands", "an earlier node is expected");
    }
    node.operands.push_back(static_cast<int>(number));
  }
  if (json.contains("output")) {
    if (!json["output"].is_boolean()) refuse(where + ".output", "true or false is expected");
    node.output = json["output"].get<bool>();
  }
  return node;
}

budget::Graph graph_of(const Json& json, const std::string& where) {
  std::vector<budget::Node> nodes;
  for (const Json& node : list(member(json, "nodes", where), where + ".nodes")) {
    nodes.push_back(node_of(node, str(where, ".nodes[", nodes.size(), "]")));
  }
  try {
    return budget::Graph(std::move(nodes));
  } catch (const std::invalid_argument& error) {
    refuse(where, error.what());
  }
}

Json row_of(const std::string& name, const budget::Solution& solution) {
  Json row{{"name", name}, {"budget", solution.budget}, {"schedule", nullptr}};
  if (!solution.schedule) {
    row["least_peak"] = solution.outcome.peak;
    return row;
  }
  row["schedule"] = *solution.schedule;
  row["peak"] = solution.outcome.peak;
  row["cost"] = solution.outcome.cost;
  row["lower"] = solution.lower;
  return row;
}

void solve_graph(const Json& json, const std::string& where, std::ostream& out) {
  const Json& name = member(json, "name", where);
  if (!name.is_string()) refuse(where + ".name", "a string is expected");
  const budget::Graph graph = graph_of(json, where);
  std::vector<std::int64_t> budgets;
  for (const Json& row : list(member(json, "rows", where), where + ".rows")) {
    const std::string at = str(where, ".rows[", budgets.size(), "]");
    budgets.push_back(whole_number(member(row, "budget", at), at + ".budget"));
  }
  for (const budget::Solution& solution : budget::solve(graph, budgets)) {
    const Json row = row_of(name.get<std::string>(), solution);
    out << row.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  }
  out.flush();
}

}  // namespace

void solve_graphs(const SolveOptions& options, std::ostream& out) {
  const std::string file = options.file == "-" ? "<stdin>" : options.file;
  Json graphs;
  try {
    graphs = Json::parse(read_text(options.file));
  } catch (const Json::parse_error& error) {
    refuse(file, str("not JSON: ", error.what()));
  }
  list(graphs, file);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    solve_graph(graphs[i], str(file, ": graphs[", i, "]"), out);
  }
}

}  // namespace reprise::cli
