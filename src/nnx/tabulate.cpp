#include "nnx/lift.h"
#include "nnx/record.h"
#include "nnx/repr.h"
#include "reprise/errors.h"
#include "reprise/nnx/summary.h"
#include "reprise/program.h"

#include <algorithm>
#include <iostream>
#include <map>

namespace reprise::nnx::detail {

// --------------------------------------------------------------------------------------- recording
namespace {
thread_local Recorder* recorder = nullptr;
}

Recorder::Recorder() : outer_(recorder) { recorder = this; }
Recorder::~Recorder() { recorder = outer_; }

const Array& recorded(const Module& module, const Array& input, const Array& output) {
  if (recorder != nullptr) recorder->calls_.push_back({&module, input.type(), output.type()});
  return output;
}

void print(const std::string& text) { std::cout << text << '\n'; }

// ------------------------------------------------------------------------------------------- table
namespace {

using Cell = std::vector<std::string>;  // lines
struct Row {
  std::vector<Cell> cells;
};

std::size_t width_of(const std::string& text) {  // in characters, not bytes
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}
std::string repeated(const char* text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}
std::string centred(const std::string& text, std::size_t width) {
  const std::size_t space = width > width_of(text) ? width - width_of(text) : 0;
  return std::string(space / 2, ' ') + text + std::string(space - space / 2, ' ');
}

class Table {
 public:
  explicit Table(std::vector<std::string> headings) {
    for (std::string& h : headings) heading_.cells.push_back({std::move(h)});
  }
  void add(Row row) { rows_.push_back(std::move(row)); }
  std::string text(const std::string& title, const std::string& below) {
    measure();
    std::size_t total = 1;
    for (std::size_t w : widths_) total += w + 3;
    std::string out = centred(title, total) + "\n";
    out += rule("┏", "━", "┳", "┓") + lines(heading_, "┃") + rule("┡", "━", "╇", "┩");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out += lines(rows_[i], "│");
      out += i + 1 < rows_.size() ? rule("├", "─", "┼", "┤") : rule("└", "─", "┴", "┘");
    }
    return out + "\n" + centred(below, total) + "\n";
  }

 private:
  void measure() {
    widths_.assign(heading_.cells.size(), 0);
    auto count = [this](const Row& row) {
      for (std::size_t c = 0; c < widths_.size(); ++c) {
        for (const std::string& line : row.cells[c])
          widths_[c] = std::max(widths_[c], width_of(line));
      }
    };
    count(heading_);
    for (const Row& row : rows_) count(row);
  }
  std::string rule(const char* left, const char* line, const char* cross, const char* right) const {
    std::string out = left;
    for (std::size_t c = 0; c < widths_.size(); ++c) {
      out += repeated(line, widths_[c] + 2) + (c + 1 < widths_.size() ? cross : right);
    }
    return out + "\n";
  }
  std::string lines(const Row& row, const char* bar) const {
    std::size_t height = 1;
    for (const Cell& cell : row.cells) height = std::max(height, cell.size());
    std::string out;
    for (std::size_t l = 0; l < height; ++l) {
      out += bar;
      for (std::size_t c = 0; c < widths_.size(); ++c) {
        const std::string text = l < row.cells[c].size() ? row.cells[c][l] : "";
        out += " " + text + std::string(widths_[c] - width_of(text), ' ') + " " + bar;
      }
      out += "\n";
    }
    return out;
  }
  Row heading_;
  std::vector<Row> rows_;
  std::vector<std::size_t> widths_;
};

std::string type_text(const Type& t) {
  return str(long_name(t.dtype), "[", join(t.shape, ","), "]");
}

class Summary {
 public:
  explicit Summary(Module& root) : root_(root), modules_(iter_modules(root)) {
    for (const Slot& slot : slots_of(root)) {
      if (!slot.box) continue;
      total_.add(*slot.box->kind, slot.box->value);
      slots_.push_back(slot);
    }
    for (const Tally::Row& row : total_.rows) kinds_.push_back(row.kind);
    std::sort(kinds_.begin(), kinds_.end());
  }

  std::string text(const std::vector<LayerCall>& calls, const Cell& inputs, const Cell& outputs) {
    std::vector<std::string> headings{"path", "type", "inputs", "outputs"};
    headings.insert(headings.end(), kinds_.begin(), kinds_.end());
    Table table(headings);
    const std::string name = type_name(typeid(root_));
    table.add(with_totals({{""}, {name}, inputs, outputs}));
    for (const auto& [path, module] : ordered(calls)) {
      std::vector<Cell> in_out{{}, {}};
      for (const LayerCall& call : calls) {
        if (call.module != module) continue;
        in_out[0].push_back(type_text(call.input));
        in_out[1].push_back(type_text(call.output));
      }
      table.add(module_row(path, *module, in_out));
    }
    table.add(with_totals({{}, {}, {}, {"Total"}}));
    const Tally::Row total = total_.total();
    return table.text(name + " Summary",
                      "Total Parameters: " + size_text(total.count, total.bytes));
  }

 private:
  using Entry = std::pair<Path, Module*>;
  // In the order of their first call; then those that have variables but were not seen.
  std::vector<Entry> ordered(const std::vector<LayerCall>& calls) const {
    std::vector<Entry> rows;
    auto known = [&](const Module* m) {
      return m == &root_ ||
             std::any_of(rows.begin(), rows.end(), [m](const Entry& e) { return e.second == m; });
    };
    for (const LayerCall& call : calls) {
      for (const Entry& e : modules_) {
        if (e.second == call.module && !known(e.second)) rows.push_back(e);
      }
    }
    for (const Entry& e : modules_) {
      bool below = false;  // a part of a module that has a row
      for (const Entry& row : rows) {
        below = below || (row.first.size() < e.first.size() &&
                          std::equal(row.first.begin(), row.first.end(), e.first.begin()));
      }
      const bool owns = std::any_of(slots_.begin(), slots_.end(),
                                    [&](const Slot& s) { return is_parent(e.first, s); });
      if (owns && !below && !known(e.second)) rows.push_back(e);
    }
    return rows;
  }
  static bool is_parent(const Path& path, const Slot& slot) {
    return slot.path.size() == path.size() + 1 &&
           std::equal(path.begin(), path.end(), slot.path.begin());
  }

  Row with_totals(std::vector<Cell> cells) const {
    for (const std::string& kind : kinds_) {
      for (const Tally::Row& row : total_.rows) {
        if (row.kind == kind) cells.push_back({size_text(row.count, row.bytes)});
      }
    }
    return {std::move(cells)};
  }
  Row module_row(const Path& path, const Module& module, const std::vector<Cell>& in_out) const {
    std::vector<Cell> cells{{joined(path, "/")}, {type_name(typeid(module))}, in_out[0], in_out[1]};
    for (const std::string& kind : kinds_) {
      Cell cell;
      Tally tally;
      for (const Slot& slot : slots_) {
        const bool inside = slot.path.size() > path.size() &&
                            std::equal(path.begin(), path.end(), slot.path.begin());
        if (!inside || family(*slot.box->kind).name != kind) continue;
        if (is_parent(path, slot))
          cell.push_back(joined({slot.path.back()}, "") + ": " + type_text(slot.box->value.type()));
        tally.add(*slot.box->kind, slot.box->value);
      }
      if (!cell.empty()) cell.push_back("");
      if (!tally.rows.empty()) cell.push_back(size_text(tally.total().count, tally.total().bytes));
      cells.push_back(std::move(cell));
    }
    return {std::move(cells)};
  }

  Module& root_;
  std::vector<Entry> modules_;
  std::vector<Slot> slots_;
  Tally total_;
  std::vector<std::string> kinds_;
};

}  // namespace

std::string tabulate(Module& root, Target& call) {
  Lift lift(call);
  const Arrays values = lift.values();
  const Recorder calls;
  const Arrays out = reprise::detail::trace_to_shapes(lift.callee(), values);
  Cell inputs, outputs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (lift.root(i) != 0) inputs.push_back(type_text(values[i].type()));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (lift.outputs()[i].is_result) outputs.push_back(type_text(out[i].type()));
  }
  return Summary(root).text(calls.calls(), inputs, outputs);
}

}  // namespace reprise::nnx::detail
