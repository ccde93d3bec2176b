#include "nnx/walk.h"

#include "reprise/nnx/module.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::nnx::detail {
namespace {

class Walk {
 public:
  explicit Walk(std::string* text) : text_(text) {}
  std::vector<Slot> slots;

  void fields(const std::vector<Field>& list) {
    for (const Field& f : list) {
      path_.push_back(f.key);
      note(to_string(f.key));
      std::visit([this](const auto& what) { visit(what); }, f.what);
      path_.pop_back();
    }
  }

 private:
  void note(const std::string& part) {
    if (text_ != nullptr) (*text_ += part) += ' ';
  }
  void visit(NoValue) { note("none"); }
  void visit(Variable* v) {
    if (!v->defined()) return note("unset");
    const auto [it, is_new] = boxes_.try_emplace(v->box().get(), slots.size());
    note("variable " + v->kind().name + " " + v->tag() + " " + std::to_string(it->second));
    if (is_new) slots.push_back({path_, v->box(), nullptr});
  }
  void visit(Array* a) {
    note(a->defined() ? "array" : "unset");
    if (a->defined()) slots.push_back({path_, nullptr, a});
  }
  void visit(Module* m) {
    const auto [it, is_new] = modules_.try_emplace(m, modules_.size());
    note("module " + std::to_string(it->second));
    if (!is_new) return;
    if (text_ != nullptr) note(typeid(*m).name());
    note("{");
    fields(sorted_fields(*m));
    note("}");
  }
  void visit(const ModulePointer& p) { visit(p.target); }
  void visit(const std::vector<Field>& list) {
    note("(");
    fields(sorted(list));
    note(")");
  }
  void visit(const StaticValue& s) {
    if (text_ == nullptr) return;
    note(s.type->type->name());
    s.type->describe(s.address, *text_);
  }

  std::string* text_;
  Path path_;
  std::unordered_map<const Box*, std::size_t> boxes_;  // to the slot
  std::unordered_map<const Module*, std::size_t> modules_;
};

}  // namespace

Leaf Slot::leaf() const {
  return {path, box ? box->kind : nullptr, box ? box->tag : std::string(), value()};
}

std::vector<Field> sorted(std::vector<Field> fields) {
  std::stable_sort(fields.begin(), fields.end(),
                   [](const Field& a, const Field& b) { return a.key < b.key; });
  return fields;
}

std::vector<Field> sorted_fields(Module& module) {
  Fields fields;
  module.reprise_visit(fields);
  if (module.reprise_sown()) {
    for (auto& [name, variables] : module.reprise_sown()->values) fields.add(name, variables);
  }
  return sorted(std::move(fields.list()));
}

std::vector<Slot> slots_of(std::vector<Field> roots, std::string* text) {
  Walk walk(text);
  walk.fields(sorted(std::move(roots)));
  return std::move(walk.slots);
}

std::vector<Slot> slots_of(const Module& module, std::string* text) {
  auto& root = const_cast<Module&>(module);
  if (text != nullptr) *text += typeid(root).name();
  return slots_of(sorted_fields(root), text);
}

}  // namespace reprise::nnx::detail
