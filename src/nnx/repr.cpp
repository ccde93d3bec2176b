#include "nnx/repr.h"

#include "reprise/errors.h"
#include "reprise/nnx/graph.h"
#include "reprise/random.h"

#include <cstdio>
#include <ostream>
#include <unordered_set>

namespace reprise::nnx {
namespace detail {

std::string repr_text(const std::string& text) { return "'" + text + "'"; }
std::string repr_number(double x) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  const std::string number = text;
  const bool plain = number.find_first_not_of("-0123456789") == std::string::npos;
  return plain ? number + ".0" : number;
}
std::string repr_dtype(Dtype dtype) { return std::string(long_name(dtype)); }

const Kind& family(const Kind& kind) {
  const Kind& random = kind_of<RngState>();
  return kind.is(random) ? random : kind;
}

void Tally::add(const Kind& kind, const Array& value) {
  const std::string& name = family(kind).name;
  Row* row = nullptr;
  for (Row& r : rows) {
    if (r.kind == name) row = &r;
  }
  if (row == nullptr) row = &rows.emplace_back(Row{name});
  if (!value.defined()) return;
  row->count += value.size();
  row->bytes += value.nbytes();
}
Tally::Row Tally::total() const {
  Row sum{"Total"};
  for (const Row& r : rows) {
    sum.count += r.count;
    sum.bytes += r.bytes;
  }
  return sum;
}

std::string size_text(std::int64_t count, std::size_t bytes) {
  std::string number = std::to_string(count);
  for (std::size_t i = number.size(); i > 3; i -= 3) number.insert(i - 3, ",");
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  double size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 1000 && unit + 1 < std::size(units)) {
    size /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f" : "%.1f", size);
  return str(number, " (", text, " ", units[unit], ")");
}

std::string indented(const std::string& text, const std::string& indent) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out;
}

namespace {

std::string numbers(const Array& a) {
  if (a.dtype() == Dtype::key) {
    return str("Array(", a.ndim() == 0 ? "()" : "...", ", dtype=key<fry>) overlaying:\n",
               random::key_data(a));
  }
  return str("Array(", indented(to_string(a), "       "), ", dtype=", long_name(a.dtype()), ")");
}
std::string shape_text(const Shape& shape) {
  return "(" + join(shape, ", ") + (shape.size() == 1 ? ",)" : ")");
}
// Traced values have no numbers to print.
std::string value_text(const Array& a, bool with_numbers) {
  if (!a.defined()) return "None";
  if (with_numbers || a.size() == 1) {
    try {
      return numbers(a);
    } catch (const TraceError&) {
    }
  }
  return str("Array(shape=", shape_text(a.shape()), ", dtype=dtype('", long_name(a.dtype()), "'))");
}
std::string leaf_text(const Leaf& leaf, bool with_numbers) {
  if (leaf.kind == nullptr) return value_text(leaf.value, with_numbers);
  const bool there = leaf.value.defined();
  std::string text = leaf.kind->name + "( # " +
                     size_text(there ? leaf.value.size() : 0, there ? leaf.value.nbytes() : 0) +
                     "\n  value=" + indented(value_text(leaf.value, with_numbers), "  ");
  if (!leaf.tag.empty()) text += ",\n  tag='" + leaf.tag + "'";
  return text + "\n)";
}

class ModuleText {
 public:
  std::string module(Module& m) {
    const std::string name = type_name(typeid(m));
    if (!open_.insert(&m).second) return name + "(...)";
    const bool list = name.starts_with("List<"), dict = name.starts_with("Dict<");
    std::vector<std::string> parts;
    Fields fields;
    m.reprise_visit(fields);
    for (const Field& f : fields.list()) {
      const std::string value = indented(text(f), "  ");
      const std::string key = dict ? "'" + f.key.name() + "': " : list ? "" : f.key.name() + "=";
      parts.push_back("\n  " + key + value);
    }
    open_.erase(&m);
    if (list) return "List([" + join(parts, ",") + (parts.empty() ? "])" : "\n])");
    if (dict) return "Dict({" + join(parts, ",") + (parts.empty() ? "})" : "\n})");
    return name + "(" + header(m) + join(parts, ",") + (parts.empty() ? ")" : "\n)");
  }

 private:
  static std::string header(const Module& m) {
    Tally tally;
    for (const Slot& slot : slots_of(m)) {
      if (slot.box) tally.add(*slot.box->kind, slot.box->value);
    }
    if (tally.rows.empty()) return "";
    std::vector<std::string> rows;
    for (const Tally::Row& r : tally.rows)
      rows.push_back(r.kind + ": " + size_text(r.count, r.bytes));
    const Tally::Row total = tally.total();
    if (rows.size() > 1) rows.push_back("Total: " + size_text(total.count, total.bytes));
    return " # " + join(rows, ", ");
  }
  std::string text(const Field& f) {
    return std::visit([this](const auto& what) { return one(what); }, f.what);
  }
  std::string one(NoValue) { return "None"; }
  std::string one(Variable* v) {
    return v->defined() ? leaf_text(Slot{{}, v->box(), nullptr}.leaf(), false) : "None";
  }
  std::string one(Array* a) { return value_text(*a, false); }
  std::string one(Module* m) { return module(*m); }
  std::string one(const ModulePointer& p) { return module(*p.target); }
  std::string one(const StaticValue& s) { return s.type->repr(s.address); }
  std::string one(const std::vector<Field>& list) {
    std::vector<std::string> parts;
    for (const Field& f : list) parts.push_back(text(f));
    return "(" + join(parts, ", ") + ")";
  }
  std::unordered_set<const Module*> open_;
};

// { 'a': { 0: value } }, of the leaves [begin, end) that agree in the first `depth` steps.
std::string nested(const std::vector<Leaf>& leaves, std::size_t begin, std::size_t end,
                   std::size_t depth) {
  std::vector<std::string> parts;
  for (std::size_t i = begin; i < end;) {
    const Key& key = leaves[i].path[depth];
    std::size_t j = i + 1;
    while (j < end && leaves[j].path[depth] == key) ++j;
    const bool is_leaf = leaves[i].path.size() == depth + 1;
    const std::string value =
        is_leaf ? leaf_text(leaves[i], true) : nested(leaves, i, j, depth + 1);
    parts.push_back("\n  " + to_string(key) + ": " + indented(value, "  "));
    i = j;
  }
  return "{" + join(parts, ",") + (parts.empty() ? "}" : "\n}");
}

}  // namespace
}  // namespace detail

std::string to_string(const Variable& v) {
  return v.defined() ? detail::leaf_text(detail::Slot{{}, v.box(), nullptr}.leaf(), true)
                     : "Variable()";
}
std::ostream& operator<<(std::ostream& out, const Variable& v) { return out << to_string(v); }
std::string to_string(const Module& module) {
  return detail::ModuleText().module(const_cast<Module&>(module));
}
std::ostream& operator<<(std::ostream& out, const Module& module) {
  return out << to_string(module);
}
std::string to_string(const State& state) {
  const std::vector<Leaf> leaves = state.leaves();
  return "State(" + detail::nested(leaves, 0, leaves.size(), 0) + ")";
}
std::ostream& operator<<(std::ostream& out, const State& state) { return out << to_string(state); }

}  // namespace reprise::nnx
