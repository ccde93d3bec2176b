#include "plan/host_values.h"

#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "ops/records.h"
#include "program/primitive.h"

#include <algorithm>

namespace reprise::plan {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

bool on_host(const Type& t) { return t.memory_space == MemorySpace::host; }

bool is_carried(const ScanShape& s, std::size_t operand) {
  return operand >= s.consts && operand < s.consts + s.carry;
}

// Whether the transfers of one program, bodies of its scans included, are all that touch a value.
class HostFinder {
 public:
  explicit HostFinder(const Program& p)
      : p_(p),
        maker_(p.types.size(), nullptr),
        other_use_(p.types.size(), false),
        returned_(p.types.size(), 0) {
    for (const Equation& e : p.eqns) {
      for (Var v : e.out) maker_[at(v)] = &e;
      for (std::size_t k = 0; k < e.in.size(); ++k) {
        if (e.in[k].is_var() && on_host(p.type(e.in[k].var)) && !may_read(e, k))
          other_use_[at(e.in[k].var)] = true;
      }
    }
    for (const Atom& a : p.out) {
      if (a.is_var()) ++returned_[at(a.var)];
    }
  }

  bool is_candidate(Var v) const {
    return on_host(p_.type(v)) && p_.type(v).nbytes() > 0 && !other_use_[at(v)];
  }
  bool is_returned(Var v) const { return returned_[at(v)] > 0; }
  bool can_be_input(Var v) const { return is_candidate(v) && !is_returned(v); }
  bool can_be_output(const Atom& a) const {
    return a.is_var() && is_candidate(a.var) && returned_[at(a.var)] == 1 && is_made_here(a.var);
  }
  bool is_made_here(Var v) const {
    const Equation* e = maker_[at(v)];
    if (e == nullptr) return false;
    if (is_checkpointed(e->prim)) return true;
    if (e->prim != &scan_p) return is_put_to_host(p_, *e);
    const auto k =
        static_cast<std::size_t>(std::find(e->out.begin(), e->out.end(), v) - e->out.begin());
    const Program& body = *e->params.get<ProgramPtr>("jaxpr");
    return k >= scan_shape(e->params).carry && HostFinder(body).can_be_output(body.out[k]);
  }

 private:
  bool may_read(const Equation& e, std::size_t k) const {
    if (is_put_to_device(p_, e)) return true;
    if (e.prim == &checkpointed_reverse_p) return is_kept_on_disk(e, k);
    if (e.prim != &scan_p || is_carried(scan_shape(e.params), k)) return false;
    const Program& body = *e.params.get<ProgramPtr>("jaxpr");
    return HostFinder(body).can_be_input(body.in[k]);
  }

  const Program& p_;
  std::vector<const Equation*> maker_;
  std::vector<bool> other_use_;
  std::vector<int> returned_;
};

}  // namespace

bool is_put_to_host(const Program& p, const Equation& e) {
  return e.prim == &device_put_p && !on_host(p.type(e.in[0])) && on_host(p.type(e.out[0]));
}
bool is_put_to_device(const Program& p, const Equation& e) {
  return e.prim == &device_put_p && on_host(p.type(e.in[0])) && !on_host(p.type(e.out[0]));
}

std::vector<bool> find_host_values(const Program& p, const HostBorder& border) {
  std::vector<bool> out(p.types.size(), false);
  if (std::none_of(p.types.begin(), p.types.end(), on_host)) return out;
  const HostFinder finder(p);
  for (std::size_t v = 0; v < out.size(); ++v) {
    const auto var = static_cast<Var>(v);
    out[v] = finder.is_candidate(var) && !finder.is_returned(var) && finder.is_made_here(var);
  }
  for (std::size_t k = 0; k < border.inputs.size(); ++k) {
    if (border.inputs[k]) out[at(p.in[k])] = true;
  }
  for (std::size_t k = 0; k < border.outputs.size(); ++k) {
    if (border.outputs[k]) out[at(p.out[k].var)] = true;
  }
  return out;
}

HostBorder border_of(const Equation& loop, const std::vector<bool>& on_host) {
  if (loop.prim != &scan_p) return {};
  HostBorder b;
  for (const Atom& a : loop.in) b.inputs.push_back(a.is_var() && on_host[at(a.var)]);
  for (Var v : loop.out) b.outputs.push_back(on_host[at(v)]);
  return b;
}

}  // namespace reprise::plan
