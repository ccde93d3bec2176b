#include "api/residual_list.h"

#include "control/checkpointed.h"
#include "ops/records.h"

#include <algorithm>

namespace reprise::detail {
namespace {

SavedResidual residual_of(const Type& type, std::string origin, const Location& at = {},
                          std::string name = {}) {
  return {type, type.nbytes(), std::move(origin), std::move(name), at};
}

}  // namespace

SavedResidual produced_by(const Equation& e, Var result, const Type& type) {
  const std::string place = " from " + to_string(e.at);
  const auto number = std::find(e.out.begin(), e.out.end(), result) - e.out.begin();
  const std::string kept = kept_text(e, static_cast<std::size_t>(number), type);
  if (!kept.empty()) return residual_of(type, kept + place, e.at);
  if (e.prim == &name_p) {
    const std::string name = e.params.get<std::string>("name");
    return residual_of(type, "named '" + name + "'" + place, e.at, name);
  }
  if (std::string_view(e.prim->name) == "jit") {
    return residual_of(
        type, "output of jitted function '" + e.params.get<std::string>("name") + "'" + place,
        e.at);
  }
  return residual_of(type, str("output of ", e.prim->name, place), e.at);
}

SavedResidual given_as(const Program& p, std::size_t input,
                       const std::vector<std::string>& arg_names) {
  const std::size_t consts = p.in.size() - std::min(p.in.size(), arg_names.size());
  return residual_of(p.type(p.in[input]), input < consts
                                              ? "from a constant"
                                              : "from the argument " + arg_names[input - consts]);
}

std::unordered_map<Var, Var> rounded_values(const Program& p) {
  std::unordered_map<Var, Var> rounded;
  for (const Equation& e : p.eqns) {
    if (e.prim == &reduce_precision_p && e.in[0].is_var()) rounded[e.out[0]] = e.in[0].var;
  }
  return rounded;
}

std::vector<ListedResidual> list_residuals(const ForwardProgram& forward,
                                           const std::vector<std::string>& arg_names) {
  const Program& p = *forward.traced.program;
  const std::unordered_map<Var, Var> rounded = rounded_values(p);
  std::vector<ListedResidual> list;
  std::vector<std::vector<std::size_t>> positions(p.types.size());
  for (std::size_t k = forward.outputs; k < p.out.size(); ++k) {
    const std::size_t position = k - forward.outputs;
    if (!p.out[k].is_var()) {
      list.push_back({residual_of(p.out[k].literal.type(), "from a literal"), -1, {position}});
      continue;
    }
    const auto it = rounded.find(p.out[k].var);
    positions[static_cast<std::size_t>(it == rounded.end() ? p.out[k].var : it->second)].push_back(
        position);
  }
  auto add = [&](Var v, SavedResidual shown, bool computed) {
    list.push_back({std::move(shown), v, positions[static_cast<std::size_t>(v)], computed});
  };
  auto is_saved = [&](Var v) { return !positions[static_cast<std::size_t>(v)].empty(); };
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    if (!is_saved(p.in[i])) continue;
    add(p.in[i], given_as(p, i, arg_names), false);
  }
  for (const Equation& e : p.eqns) {
    for (Var v : e.out) {
      if (is_saved(v)) add(v, produced_by(e, v, p.type(v)), true);
    }
  }
  return list;
}

std::vector<SavedResidual> saved_residuals(const Callee& f, const Arrays& args) {
  const AtUser at(f.at);
  std::vector<SavedResidual> list;
  for (ListedResidual& r : list_residuals(trace_forward(f, args), f.arg_names))
    list.push_back(std::move(r.shown));
  return list;
}

}  // namespace reprise::detail
