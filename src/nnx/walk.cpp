#include "nnx/walk.h"

#include "reprise/nnx/module.h"

#include <algorithm>
#include <unordered_map>

namespace reprise::nnx::detail {
namespace {

class Walk {
 public:
  explicit Walk(std::string* key) : key_(key) {}
  std::vector<Slot> slots;

  void fields(const std::vector<Field>& members) {
    note(members.size());
    for (const Field& f : members) {
      path_.push_back(f.key);
      note(f.key);
      std::visit([this](const auto& what) { visit(what); }, f.what);
      path_.pop_back();
    }
  }

 private:
  enum Mark : char { no_value, unset, variable, array, module, list };
  void note(Mark mark) {
    if (key_ != nullptr) *key_ += mark;
  }
  void note(std::size_t number) {
    if (key_ != nullptr) tree::append_bits(*key_, number);
  }
  void note(const void* address) {
    if (key_ != nullptr) tree::append_bits(*key_, address);
  }
  void note(const Key& k) {
    if (key_ == nullptr) return;
    tree::append_bits(*key_, k.is_name());
    tree::append_bits(*key_, k.position());
    tree::append_text(*key_, k.name());
  }
  void visit(NoValue) { note(no_value); }
  void visit(Variable* v) {
    if (!v->defined()) return note(unset);
    const auto [it, is_new] = boxes_.try_emplace(v->box().get(), slots.size());
    note(variable);
    note(&v->kind());  // one for each C++ type
    if (key_ != nullptr) tree::append_text(*key_, v->tag());
    note(it->second);
    if (is_new) slots.push_back({path_, v->box(), nullptr});
  }
  void visit(Array* a) {
    note(a->defined() ? array : unset);
    if (a->defined()) slots.push_back({path_, nullptr, a});
  }
  void visit(Module* m) {
    const auto [it, is_new] = modules_.try_emplace(m, modules_.size());
    note(module);
    note(it->second);
    if (!is_new) return;
    note(&typeid(*m));
    fields(sorted_fields(*m));
  }
  void visit(const ModulePointer& p) { visit(p.target); }
  void visit(const std::vector<Field>& members) {
    note(list);
    fields(sorted(members));
  }
  void visit(const StaticValue& s) {
    if (key_ == nullptr) return;
    note(s.type);  // one for each C++ type
    s.type->describe(s.address, *key_);
  }

  std::string* key_;
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

std::vector<Slot> slots_of(std::vector<Field> roots, std::string* key) {
  Walk walk(key);
  walk.fields(sorted(std::move(roots)));
  return std::move(walk.slots);
}

std::vector<Slot> slots_of(const Module& module, std::string* key) {
  auto& root = const_cast<Module&>(module);
  if (key != nullptr) tree::append_bits(*key, &typeid(root));
  return slots_of(sorted_fields(root), key);
}

}  // namespace reprise::nnx::detail
