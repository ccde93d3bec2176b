#include "transform/dce.h"

#include <algorithm>

#include "program/check.h"

namespace reprise {

DceProgram dce(const Program& p, const std::vector<bool>& wanted_outputs) {
  std::vector<bool> live(p.types.size());
  auto mark = [&](const Atom& a) {
    if (a.is_var()) live[static_cast<std::size_t>(a.var)] = true;
  };
  DceProgram result;
  Program& q = result.program;
  q.types = p.types;
  q.in = p.in;
  q.num_consts = p.num_consts;
  q.name = p.name;
  q.arg_names = p.arg_names;
  for (std::size_t i = 0; i < p.out.size(); ++i) {
    if (!wanted_outputs[i]) continue;
    q.out.push_back(p.out[i]);
    mark(p.out[i]);
  }
  std::vector<Equation> kept;
  for (std::size_t i = p.eqns.size(); i-- > 0;) {
    const Equation& e = p.eqns[i];
    std::vector<bool> used;
    used.reserve(e.out.size());
    for (Var v : e.out) used.push_back(live[static_cast<std::size_t>(v)]);
    if (std::none_of(used.begin(), used.end(), [](bool u) { return u; })) continue;
    std::optional<Equation> shrunk = e.prim->dce ? e.prim->dce(p, e, used) : e;
    if (!shrunk) continue;
    for (const Atom& a : shrunk->in) mark(a);
    kept.push_back(std::move(*shrunk));
  }
  q.eqns.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  for (Var v : q.in) result.used_inputs.push_back(live[static_cast<std::size_t>(v)]);
  check_after("dce", q);
  return result;
}

Program drop_dead(const Program& p) { return dce(p, std::vector<bool>(p.out.size(), true)).program; }

Program keep_inputs(DceProgram live, const std::function<bool(std::size_t, bool)>& keep) {
  Program& p = live.program;
  std::vector<Var> in;
  std::vector<std::string> names;
  std::size_t consts = 0;
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    if (!keep(i, live.used_inputs[i])) continue;
    in.push_back(p.in[i]);
    if (i < p.num_consts) ++consts;
    if (i >= p.num_consts && i - p.num_consts < p.arg_names.size()) {
      names.push_back(p.arg_names[i - p.num_consts]);
    }
  }
  p.in = std::move(in);
  p.num_consts = consts;
  p.arg_names = std::move(names);
  return std::move(p);
}

Equation with_only(const Equation& e, const std::vector<bool>& operands, const std::vector<bool>& results) {
  Equation out = e;
  out.in.clear();
  out.out.clear();
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (operands[i]) out.in.push_back(e.in[i]);
  }
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (results[k]) out.out.push_back(e.out[k]);
  }
  return out;
}

std::shared_ptr<const DceBody> dce_body(const Program& body, const std::vector<bool>& wanted) {
  return derive<DceBody>(body, mask_key("dce", wanted), [&] {
    DceProgram live = dce(body, wanted);
    DceBody result;
    result.used_inputs = live.used_inputs;
    result.program = std::make_shared<const Program>(
        keep_inputs(std::move(live), [](std::size_t, bool used) { return used; }));
    return result;
  });
}

}  // namespace reprise
