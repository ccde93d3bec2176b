#include "transform/dce.h"

#include "base/work.h"
#include "program/check.h"
#include "program/effects.h"

#include <algorithm>

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
    count_work();
    std::vector<bool> used;
    used.reserve(e.out.size());
    for (Var v : e.out) used.push_back(live[static_cast<std::size_t>(v)]);
    const bool is_read = std::any_of(used.begin(), used.end(), [](bool u) { return u; });
    if (!is_read && !effect_of(e).is_kept) continue;
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

Program drop_dead(const Program& p) {
  return dce(p, std::vector<bool>(p.out.size(), true)).program;
}

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

Equation with_only(const Equation& e, const std::vector<bool>& operands,
                   const std::vector<bool>& results) {
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

namespace {

bool all_of(const std::vector<bool>& mask) {
  return std::all_of(mask.begin(), mask.end(), [](bool b) { return b; });
}

// Of a program where nothing is dead: the inputs that it reads.
struct LiveInputs {
  std::vector<bool> used;
};
const DerivedPrograms::Key& live_key() {
  static const DerivedPrograms::Key key{typeid(LiveInputs), false, "live"};
  return key;
}
void mark_live(const Program& p, std::vector<bool> used) {
  p.derived.insert(live_key(), std::make_shared<const LiveInputs>(LiveInputs{std::move(used)}));
}
const std::vector<bool>* marked_live(const Program& p) {
  const auto* live = static_cast<const LiveInputs*>(p.derived.find(live_key()).get());
  return live == nullptr ? nullptr : &live->used;
}

std::shared_ptr<const DceProgram> shared_dce(const Program& body, const std::vector<bool>& wanted) {
  return derive<DceProgram>(body, mask_key("dce", wanted), [&] { return dce(body, wanted); });
}

}  // namespace

bool is_live(const Program& p) {
  const std::vector<bool>* used = marked_live(p);
  return used != nullptr && all_of(*used);
}
ProgramPtr as_live(Program p) {
  auto live = std::make_shared<const Program>(std::move(p));
  mark_live(*live, std::vector<bool>(live->in.size(), true));
  return live;
}

std::vector<bool> live_inputs(const ProgramPtr& body, const std::vector<bool>& wanted) {
  const std::vector<bool>* live = all_of(wanted) ? marked_live(*body) : nullptr;
  return live != nullptr ? *live : shared_dce(*body, wanted)->used_inputs;
}

ProgramPtr dce_body(const ProgramPtr& body, const std::vector<bool>& wanted,
                    const std::vector<bool>& keep) {
  if (all_of(wanted) && all_of(keep) && marked_live(*body) != nullptr) return body;
  const std::vector<bool> used = live_inputs(body, wanted);
  const std::string key = mask_key("dce", wanted) + mask_key("/", keep);
  return *derive<ProgramPtr>(*body, key, [&] {
    std::vector<bool> kept_used;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i]) kept_used.push_back(used[i]);
    }
    auto live = std::make_shared<const Program>(keep_inputs(
        DceProgram(*shared_dce(*body, wanted)), [&](std::size_t i, bool) { return keep[i]; }));
    mark_live(*live, std::move(kept_used));
    return ProgramPtr(std::move(live));
  });
}

DceBody dce_body(const ProgramPtr& body, const std::vector<bool>& wanted) {
  std::vector<bool> used = live_inputs(body, wanted);
  ProgramPtr live = dce_body(body, wanted, used);
  return {std::move(live), std::move(used)};
}

}  // namespace reprise
