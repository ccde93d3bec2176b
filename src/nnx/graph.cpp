#include "reprise/nnx/graph.h"

#include "nnx/walk.h"
#include "reprise/errors.h"
#include "reprise/program.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

namespace reprise::nnx {
namespace detail {
namespace {

// Gives a copied module its own boxes and its own shared modules; what was shared stays shared.
class Detach {
 public:
  explicit Detach(bool keep_values) : keep_values_(keep_values) {}
  void module(Module& m) {
    if (!done_.insert(&m).second) return;
    if (m.reprise_sown()) m.reprise_sown() = std::make_shared<Sown>(*m.reprise_sown());
    fields(sorted_fields(m));
  }
  void fields(const std::vector<Field>& list) {
    for (const Field& f : list) std::visit([this](const auto& what) { visit(what); }, f.what);
  }

 private:
  void visit(NoValue) {}
  void visit(const StaticValue&) {}
  void visit(Array* a) {
    if (!keep_values_) *a = placeholder(*a);
  }
  void visit(Variable* v) {
    if (!v->defined()) return;
    std::shared_ptr<Box>& fresh = boxes_[v->box().get()];
    if (!fresh) {
      fresh = std::make_shared<Box>(*v->box());
      fresh->trace = reprise::detail::current_trace();
      if (!keep_values_) fresh->value = {};
      kept_.push_back(v->box());  // its address must stay taken
    }
    v->rebind(fresh);
  }
  void visit(Module* m) { module(*m); }
  void visit(const ModulePointer& p) {
    std::shared_ptr<Module>& fresh = modules_[p.target];
    if (!fresh) {
      fresh = p.target->reprise_copy();
      const Module &copy = *fresh, &original = *p.target;
      if (typeid(copy) != typeid(original)) {
        fail_with_hint<TypeError>(
            "list its members, those of its base too: REPRISE_FIELDS(...)",
            "nnx: a class derived from a module needs REPRISE_FIELDS of its own, got a ",
            type_name(typeid(original)));
      }
      held_.push_back(fresh);
      module(*fresh);
    }
    p.set(p.member, fresh);
  }
  void visit(const std::vector<Field>& list) { fields(list); }

  // An Array member must stay defined, or the structure would lose it.
  static Array placeholder(const Array& a) { return a.defined() ? Array(0) : a; }

  bool keep_values_;
  std::unordered_map<const Box*, std::shared_ptr<Box>> boxes_;
  std::unordered_map<const Module*, std::shared_ptr<Module>> modules_;
  std::unordered_set<const Module*> done_;
  std::vector<std::shared_ptr<Box>> kept_;
  std::vector<std::shared_ptr<Module>> held_;
};

}  // namespace

std::vector<State> partition(const Module& module, const std::vector<Filter>& filters) {
  std::vector<std::vector<Leaf>> parts(filters.size() + 1);
  for (const Slot& slot : slots_of(module)) {
    Leaf leaf = slot.leaf();
    std::size_t i = 0;
    while (i < filters.size() && !filters[i](leaf)) ++i;
    parts[i].push_back(std::move(leaf));
  }
  std::vector<State> states;
  for (auto& part : parts) states.emplace_back(std::move(part));
  return states;
}

void check_exhaustive(const State& remainder, Location at) {
  if (remainder.empty()) return;
  const AtUser scope(at);
  std::vector<std::string> left;
  for (const Leaf& leaf : remainder.leaves()) {
    if (left.size() == 8) {
      left.push_back("...");
      break;
    }
    left.push_back(to_string(leaf.path) +
                   (leaf.kind == nullptr ? "" : " of kind " + leaf.kind->name));
  }
  fail_with_hint<TypeError>("add rp::ellipsis as the last filter: it takes all the others",
                            "split: every leaf must match a filter, got ", join(left, ", "),
                            " that match none");
}

void update_graph(const Module& module, const State& state, bool all, Location at) {
  const AtUser scope(at);
  const std::vector<Slot> slots = slots_of(module);
  std::size_t used = 0;
  for (const Slot& slot : slots) {
    if (!state.contains(slot.path)) {
      if (!all) continue;
      fail<TypeError>("merge: a value is missing, got none for ", to_string(slot.path));
    }
    ++used;
    const Array& value = state.at(slot.path);
    if (slot.box) {
      Variable(slot.box).set_value(value, Location{});
    } else {
      *slot.array = value;
    }
  }
  if (used == state.size()) return;
  for (const Leaf& leaf : state.leaves()) {
    bool found = false;
    for (const Slot& slot : slots) found = found || slot.path == leaf.path;
    if (!found)
      fail<TypeError>(all ? "merge" : "update", ": the module has no such path, got ",
                      to_string(leaf.path));
  }
}

void detach_graph(Module& copy, bool keep_values) { Detach(keep_values).module(copy); }
void detach_fields(const Fields& fields, bool keep_values) {
  Detach(keep_values).fields(fields.list());
}

std::string describe_graph(const Module& module) {
  std::string text;
  slots_of(module, &text);
  return text;
}

State pop_sown(Module& module, const Filter& filter) {
  std::vector<Leaf> taken;
  for (auto& [path, m] : iter_modules(module)) {
    if (!m->reprise_sown()) continue;
    auto& values = m->reprise_sown()->values;
    for (auto it = values.begin(); it != values.end();) {
      std::vector<Variable> kept;
      for (std::size_t i = 0; i < it->second.size(); ++i) {
        Path where = path;
        where.push_back(it->first);
        where.push_back(i);
        const Leaf leaf = Slot{where, it->second[i].box(), nullptr}.leaf();
        if (filter(leaf)) {
          taken.push_back(leaf);
        } else {
          kept.push_back(it->second[i]);
        }
      }
      it->second = std::move(kept);
      it = it->second.empty() ? values.erase(it) : std::next(it);
    }
  }
  return State(std::move(taken));
}

}  // namespace detail

namespace {
class Modules {
 public:
  std::vector<std::pair<Path, Module*>> found;
  void module(Module& m) {
    if (!seen_.insert(&m).second) return;
    found.emplace_back(path_, &m);
    fields(detail::sorted_fields(m));
  }

 private:
  void fields(const std::vector<Field>& list) {
    for (const Field& f : list) {
      path_.push_back(f.key);
      if (auto* const* m = std::get_if<Module*>(&f.what)) module(**m);
      if (const auto* p = std::get_if<detail::ModulePointer>(&f.what)) module(*p->target);
      if (const auto* inner = std::get_if<std::vector<Field>>(&f.what))
        fields(detail::sorted(*inner));
      path_.pop_back();
    }
  }
  Path path_;
  std::unordered_set<const Module*> seen_;
};
}  // namespace

std::vector<std::pair<Path, Module*>> iter_modules(Module& module) {
  Modules walk;
  walk.module(module);
  return std::move(walk.found);
}

}  // namespace reprise::nnx
