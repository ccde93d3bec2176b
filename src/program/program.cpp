#include "program/program.h"

#include <algorithm>
#include <unordered_map>

namespace reprise {
namespace {
thread_local bool deriving = false;
}

bool in_derivation() { return deriving; }
InDerivation::InDerivation() : outer_(deriving) { deriving = true; }
InDerivation::~InDerivation() { deriving = outer_; }

std::shared_ptr<const void> DerivedPrograms::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = made_.find(key);
  return it == made_.end() ? nullptr : it->second;
}

std::shared_ptr<const void> DerivedPrograms::insert(Key key,
                                                    std::shared_ptr<const void> made) const {
  const std::lock_guard lock(mutex_);
  return made_.emplace(std::move(key), std::move(made)).first->second;  // the first one wins
}

std::vector<Type> Program::in_types() const {
  std::vector<Type> result;
  result.reserve(in.size());
  for (Var v : in) result.push_back(type(v));
  return result;
}
std::vector<Type> Program::out_types() const {
  std::vector<Type> result;
  result.reserve(out.size());
  for (const Atom& a : out) result.push_back(type(a));
  return result;
}

std::string mask_key(std::string_view name, const std::vector<bool>& mask) {
  std::string key(name);
  key += ':';
  for (bool b : mask) key += b ? '1' : '0';
  return key;
}

ProgramPtr as_body(const ProgramPtr& p) {
  if (p->num_consts == 0) return p;
  auto body = std::make_shared<Program>(*p);
  body->num_consts = 0;
  return body;
}

ProgramPtr intern(const std::string& identity, ProgramPtr p) {
  static std::mutex mutex;
  using Known = std::unordered_map<std::string, std::vector<std::weak_ptr<const Program>>>;
  static Known& known = *new Known;
  if (identity.empty()) return p;
  static std::size_t sweep_at = 1024;
  const std::lock_guard lock(mutex);
  if (known.size() > sweep_at) {  // functions made anew in a loop must not pile up
    std::erase_if(known, [](const auto& entry) {
      return std::all_of(entry.second.begin(), entry.second.end(),
                         [](const auto& c) { return c.expired(); });
    });
    sweep_at = 2 * known.size() + 1024;
  }
  auto& candidates = known[str(identity, "#", p->eqns.size(), "#", join(p->in_types(), " "))];
  std::erase_if(candidates, [](const auto& c) { return c.expired(); });
  for (const auto& c : candidates) {
    ProgramPtr old = c.lock();
    if (old && same_structure(*old, *p)) return old;
  }
  candidates.push_back(p);
  return p;
}

bool same_structure(const Program& a, const Program& b) {
  if (&a == &b) return true;
  // Variables are numbered in order of creation, so equal traces have equal numbers.
  if (a.in != b.in || a.num_consts != b.num_consts || a.out != b.out || a.types != b.types ||
      a.eqns.size() != b.eqns.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.eqns.size(); ++i) {
    const Equation &x = a.eqns[i], &y = b.eqns[i];
    if (x.prim != y.prim || x.in != y.in || x.out != y.out || !(x.params == y.params)) return false;
  }
  return true;
}

}  // namespace reprise
