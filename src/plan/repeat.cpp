#include "plan/repeat.h"

#include "ops/device_put.h"
#include "ops/records.h"
#include "plan/min_cut.h"

namespace reprise::plan {

bool may_repeat(const Equation& e) {
  if (e.prim == &reduce_precision_p) return false;
  // What a policy offloads stays offloaded; it may be read back more than once.
  if (e.prim == &device_put_p) return space_of(e) == MemorySpace::device;
  return e.prim->kind == Kind::elementwise || e.prim->kind == Kind::reduce ||
         e.prim->kind == Kind::shape || e.prim->kind == Kind::constant;
}

std::vector<Var> smallest_cut(const Program& p, const CutQuestion& ask) {
  const auto at = [](Var v) { return static_cast<std::size_t>(v); };
  MinCut graph(p.types.size());
  std::vector<bool> seen(p.types.size(), false);
  std::vector<Var> queue;
  const auto visit = [&](Var v) {
    if (!seen[at(v)]) queue.push_back(v);
    seen[at(v)] = true;
  };
  for (Var v : ask.needed) {
    if (!seen[at(v)]) graph.to_sink(at(v));
    visit(v);
  }
  while (!queue.empty()) {
    const Var v = queue.back();
    queue.pop_back();
    graph.set_capacity(at(v), ask.capacity(v));
    const Equation* e = ask.maker(v);
    if (e == nullptr) {
      graph.from_source(at(v));
      continue;
    }
    for (const Atom& a : e->in) {
      if (!a.is_var()) continue;
      visit(a.var);
      graph.connect(at(a.var), at(v));
    }
  }
  std::vector<Var> out;
  for (std::size_t v : graph.solve()) out.push_back(static_cast<Var>(v));
  return out;
}

}  // namespace reprise::plan
