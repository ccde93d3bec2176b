// Who watches calls of modules: the table of tabulate, and capture_intermediates.
#include "nn/module_state.h"

#include <algorithm>

namespace reprise::nn::detail {
namespace {

struct Call {
  std::uint64_t order;
  Path path;
  std::string class_name, inputs, outputs;
};
// Null: none. Objects of a thread with destructors are gone when those of the process are
// destroyed.
thread_local std::vector<std::vector<Call>>* logs = nullptr;

std::string type_text(const Type& type) {
  return str(long_name(type.dtype), "[", join(type.shape, ","), "]");
}

std::string list_text(const Arrays& arrays) {
  std::vector<std::string> types;
  for (const Array& array : arrays) types.push_back(type_text(array.type()));
  return join(types, "\n");
}

}  // namespace

CallLog::CallLog() {
  if (logs == nullptr) logs = new std::vector<std::vector<Call>>;
  logs->emplace_back();
}
CallLog::~CallLog() {
  logs->pop_back();
  if (!logs->empty()) return;
  delete logs;
  logs = nullptr;
}

bool calls_are_watched(const ModuleBase& module) {
  const ScopePtr& scope = ModuleState::of(module)->scope;
  return logs != nullptr || (scope && scope->frame->captures_calls);
}

void note_call(ModuleBase& module, std::uint64_t order, const char* method,
               const std::vector<Arrays>& inputs, const Arrays& outputs) {
  const ScopePtr& scope = scope_of(module);
  if (scope->frame->captures_calls && *method != '\0') {
    for (const Array& out : outputs) module.sow("intermediates", method, out);
  }
  if (logs == nullptr) return;
  Arrays in;
  for (const Arrays& leaves : inputs) in.insert(in.end(), leaves.begin(), leaves.end());
  logs->back().push_back(
      {order, scope->path, module.class_name(), list_text(in), list_text(outputs)});
}

// ------------------------------------------------------------------------------------------- table
namespace {

struct Total {
  std::int64_t elements = 0;
  std::size_t bytes = 0;
};

std::string size_text(std::size_t bytes) {
  static const char* const units[] = {"B", "KB", "MB", "GB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (amount >= 1000 && unit < 3) amount /= 1000, ++unit;
  if (unit == 0) return str(bytes, " B");
  const auto tenths = static_cast<std::int64_t>(amount * 10 + 0.5);
  return str(tenths / 10, ".", tenths % 10, " ", units[unit]);
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::int64_t at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string total_text(const Total& total) {
  return total.elements == 0 ? "" : str(grouped(total.elements), " (", size_text(total.bytes), ")");
}

void add_arrays(const Dict& tree, Total& total) {
  for (const Array& leaf : tree_leaves(tree)) {
    total.elements += leaf.size();
    total.bytes += leaf.nbytes();
  }
}

// The variables of one module itself: "kernel: float32[4,4]" per line, then their size.
std::string own_variables(const Dict& here) {
  Total total;
  std::vector<std::string> lines;
  for (const auto& [name, node] : here.items()) {
    const Array* array = std::get_if<Array>(&node);
    if (array == nullptr) continue;
    lines.push_back(name + ": " + type_text(array->type()));
    total.elements += array->size();
    total.bytes += array->nbytes();
  }
  if (lines.empty()) return "";
  lines.push_back("");
  lines.push_back(total_text(total));
  return join(lines, "\n");
}

using Row = std::vector<std::string>;  // cells of several lines

std::vector<std::string> lines_of(const std::string& cell) {
  std::vector<std::string> lines(1);
  for (const char c : cell) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back().push_back(c);
    }
  }
  return lines;
}

std::string rule(const std::vector<std::size_t>& widths, char line) {
  std::string text = "+";
  for (const std::size_t width : widths) text += std::string(width + 2, line) + "+";
  return text + "\n";
}

std::string draw(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (const std::string& line : lines_of(row[i])) widths[i] = std::max(widths[i], line.size());
    }
  }
  std::string text = rule(widths, '-');
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 0;
    for (const std::string& cell : rows[r]) {
      cells.push_back(lines_of(cell));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      text += "|";
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string part = line < cells[i].size() ? cells[i][line] : "";
        text += " " + part + std::string(widths[i] - part.size(), ' ') + " |";
      }
      text += "\n";
    }
    text += rule(widths, r == 0 ? '=' : '-');
  }
  return text;
}

}  // namespace

std::string CallLog::table(const std::string& title, const Dict& variables) const {
  std::vector<std::string> collections;
  for (const auto& [name, node] : variables.items()) collections.push_back(name);
  std::vector<Row> rows = {{"path", "module", "inputs", "outputs"}};
  rows[0].insert(rows[0].end(), collections.begin(), collections.end());

  std::vector<Call> calls = logs->back();
  // Noted when they ended, listed as they began.
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return a.order < b.order; });
  std::set<Path> shown;
  for (const Call& call : calls) {
    Row row = {join(call.path, "/"), call.class_name, call.inputs, call.outputs};
    const bool is_first = shown.insert(call.path).second;  // variables count once
    for (const std::string& collection : collections) {
      const Dict* here = dict_at(variables.dict(collection), call.path);
      row.push_back(here != nullptr && is_first ? own_variables(*here) : "");
    }
    rows.push_back(std::move(row));
  }

  Row totals = {"", "", "", "Total"};
  Total all;
  for (const std::string& collection : collections) {
    Total total;
    add_arrays(variables.dict(collection), total);
    add_arrays(variables.dict(collection), all);
    totals.push_back(total_text(total));
  }
  rows.push_back(std::move(totals));
  return title + " Summary\n" + draw(rows) + "Total Parameters: " + total_text(all) + "\n";
}

}  // namespace reprise::nn::detail
