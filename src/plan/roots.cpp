#include "plan/roots.h"

#include "ops/records.h"
#include "plan/host_values.h"

#include <algorithm>

namespace reprise::plan {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

}  // namespace

Roots find_roots(const Program& p) {
  const std::size_t n = p.types.size();
  Roots r{std::vector<Var>(n, -1), std::vector<bool>(n, false), std::vector<std::size_t>(n, 0),
          std::vector<std::size_t>(n, 0), std::vector<std::size_t>(n, 0)};
  std::vector<View> views(n);
  const std::vector<bool> on_host = find_host_values(p);
  for (Var v : p.in) {
    views[at(v)] = dense_view(v, p.type(v).shape);
    r.of[at(v)] = v;
  }
  for (std::size_t i = 0; i < p.eqns.size(); ++i) {
    const Equation& e = p.eqns[i];
    for (const Atom& a : e.in) {
      if (a.is_var()) r.last_read[at(r.of[at(a.var)])] = i;
    }
    const bool of_variable = !e.in.empty() && e.in[0].is_var();
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      const Var v = e.out[k];
      const View from = of_variable ? views[at(e.in[0].var)] : View{v, 0, {}, {}};
      const auto view = e.in.empty() ? std::nullopt : view_of(e, k, from, p.type(v));
      const bool free = e.prim == &iota_p || (view && !of_variable);
      views[at(v)] = view ? *view : dense_view(v, p.type(v).shape);
      r.of[at(v)] = views[at(v)].root;
      r.is_view[at(v)] = view.has_value() || free;
      if (r.of[at(v)] != v) continue;
      r.made[at(v)] = r.last_read[at(v)] = i;
      r.bytes[at(v)] = free || on_host[at(v)] ? 0 : p.type(v).nbytes();
    }
  }
  for (const Atom& a : p.out) {
    if (a.is_var()) r.last_read[at(r.of[at(a.var)])] = p.eqns.size();
  }
  return r;
}

std::vector<std::size_t> live_bytes(const Program& p, const Roots& r) {
  std::vector<std::ptrdiff_t> change(p.eqns.size() + 2, 0);
  for (std::size_t v = 0; v < p.types.size(); ++v) {
    if (r.bytes[v] == 0) continue;
    change[r.made[v]] += static_cast<std::ptrdiff_t>(r.bytes[v]);
    change[r.last_read[v] + 1] -= static_cast<std::ptrdiff_t>(r.bytes[v]);
  }
  std::vector<std::size_t> live(p.eqns.size(), 0);
  std::ptrdiff_t now = 0;
  for (std::size_t i = 0; i < live.size(); ++i)
    live[i] = static_cast<std::size_t>(now += change[i]);
  return live;
}

}  // namespace reprise::plan
