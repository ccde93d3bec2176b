#include "api/residual_trail.h"

#include "control/records.h"
#include "ops/records.h"
#include "remat/checkpoint.h"
#include "reprise/errors.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace reprise::detail {
namespace {

// A program of a call and what its inputs stand for.
struct Body {
  ProgramPtr program;
  std::string label;
  std::vector<std::size_t> operands;  // per input: which operand of the call it is
};

std::vector<std::size_t> counting(std::size_t first, std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::string what_of(const Equation& e) {
  const auto* name = e.params.find("name");
  const auto* text = name == nullptr ? nullptr : std::get_if<std::string>(name);
  return text == nullptr ? e.prim->name : str(e.prim->name, " '", *text, "'");
}

std::string label_of(const Equation& e) {
  if (e.prim == &remat_p) return "checkpoint";
  if (e.prim == &scan_p) return str("scan of ", e.params.get<std::int64_t>("length"), " steps");
  if (e.prim == &closed_call_p) return "";  // only holds a scan together
  return what_of(e);
}

std::vector<Body> while_bodies(const Equation& e) {
  const auto cond_consts = static_cast<std::size_t>(e.params.get<std::int64_t>("cond_nconsts"));
  const auto body_consts = static_cast<std::size_t>(e.params.get<std::int64_t>("body_nconsts"));
  const std::vector<std::size_t> carry =
      counting(cond_consts + body_consts, e.in.size() - cond_consts - body_consts);
  auto with_carry = [&](std::vector<std::size_t> consts) {
    consts.insert(consts.end(), carry.begin(), carry.end());
    return consts;
  };
  return {{e.params.get<ProgramPtr>("body_jaxpr"), "while",
           with_carry(counting(cond_consts, body_consts))},
          {e.params.get<ProgramPtr>("cond_jaxpr"), "condition of while",
           with_carry(counting(0, cond_consts))}};
}

std::vector<Body> bodies_of(const Equation& e) {
  if (e.prim == &while_p) return while_bodies(e);
  std::vector<Body> bodies;
  const bool is_cond = e.prim == &cond_p;
  const std::size_t first = is_cond ? 1 : 0;  // behind the index
  for_each_program(e.params, [&](const ProgramPtr& p) {
    if (p->in.size() + first != e.in.size()) return;
    std::string label = is_cond ? str("branch ", bodies.size(), " of cond") : label_of(e);
    bodies.push_back({p, std::move(label), counting(first, p->in.size())});
  });
  return bodies;
}

// Equations that hand a value on: the value is made and read elsewhere.
bool passes_on(const Equation& e) {
  return e.prim == &reduce_precision_p || e.prim == &device_put_p;
}

std::vector<std::string> inside_of(const std::string& label,
                                   const std::vector<std::string>& around) {
  std::vector<std::string> inside;
  if (!label.empty()) inside.push_back(label);
  inside.insert(inside.end(), around.begin(), around.end());
  return inside;
}

void add_once(std::vector<EquationPlace>& places, EquationPlace place) {
  if (std::find(places.begin(), places.end(), place) == places.end())
    places.push_back(std::move(place));
}

// ------------------------------------------------------------------------------------------ makers

struct Frame {
  ProgramPtr program;
  std::string label;
  const Body* body = nullptr;  // null: the whole program
  const Equation* call = nullptr;
  const Frame* outer = nullptr;
  std::int64_t steps = 0;  // the call is a scan and the value is one of those it stacks
  bool is_carry = false;
};

class Makers {
 public:
  void value(const Frame& f, const Atom& a) {
    if (!a.is_var()) return add(f, "literal", {}, nullptr);
    const auto& producers = producers_of(*f.program);
    const auto it = producers.find(a.var);
    if (it == producers.end()) return input(f, a.var);
    const Equation& e = f.program->eqns[it->second];
    if (passes_on(e)) return value(f, e.in[0]);
    if (is_filler(f, e)) return;
    const auto k =
        static_cast<std::size_t>(std::find(e.out.begin(), e.out.end(), a.var) - e.out.begin());
    result(f, e, k);
  }
  MadeBy made;

 private:
  // What a branch returns in the place of a value that only another branch makes.
  bool is_filler(const Frame& f, const Equation& e) {
    if (e.prim == &empty2_p) return true;
    if (e.prim != &broadcast_in_dim_p || !e.in[0].is_var()) return false;
    const auto& producers = producers_of(*f.program);
    const auto it = producers.find(e.in[0].var);
    return it != producers.end() && f.program->eqns[it->second].prim == &empty2_p;
  }

  void result(const Frame& f, const Equation& e, std::size_t k) {
    bool inside = false;
    for (const Body& b : bodies_of(e)) {
      if (b.program->out.size() != e.out.size()) continue;
      inside = true;
      const bool stacks = e.prim == &scan_p && k >= num_carry(e);
      const std::int64_t steps = stacks ? e.params.get<std::int64_t>("length") : 0;
      value({b.program, b.label, &b, &e, &f, steps, false}, b.program->out[k]);
    }
    if (!inside) add(f, what_of(e), e.at, &e);
  }

  void input(const Frame& f, Var v) {
    const Program& p = *f.program;
    const auto i = static_cast<std::size_t>(std::find(p.in.begin(), p.in.end(), v) - p.in.begin());
    if (f.outer == nullptr) {
      const bool named = i >= p.num_consts && i - p.num_consts < p.arg_names.size();
      return add(f, named ? "argument " + p.arg_names[i - p.num_consts] : "constant", {}, nullptr);
    }
    if (f.call->prim == &scan_p && !f.is_carry) {
      const auto consts = static_cast<std::size_t>(f.call->params.get<std::int64_t>("num_consts"));
      if (i >= consts && i < consts + num_carry(*f.call)) {
        Frame carry = f;  // each step reads what the one before made
        carry.label = "carry of " + f.label;
        carry.is_carry = true;
        return value(carry, p.out[i - consts]);
      }
    }
    value(*f.outer, f.call->in[f.body->operands[i]]);
  }

  void add(const Frame& f, std::string what, const Location& at, const Equation* e) {
    EquationPlace place{std::move(what), at, {}};
    std::vector<std::int64_t> steps;
    for (const Frame* g = &f; g != nullptr; g = g->outer) {
      if (!g->label.empty()) place.inside.push_back(g->label);
      if (g->steps > 0) steps.insert(steps.begin(), g->steps);
    }
    if (made.places.empty()) {
      made.steps = std::move(steps);
      made.program = f.program;
      made.equation = e;
    }
    add_once(made.places, std::move(place));
  }

  static std::size_t num_carry(const Equation& e) {
    return static_cast<std::size_t>(e.params.get<std::int64_t>("num_carry"));
  }

  const std::map<Var, std::size_t>& producers_of(const Program& p) {
    auto [it, is_new] = producers_.try_emplace(&p);
    if (is_new) {
      for (std::size_t i = 0; i < p.eqns.size(); ++i) {
        for (Var v : p.eqns[i].out) it->second[v] = i;
      }
    }
    return it->second;
  }
  std::map<const Program*, std::map<Var, std::size_t>> producers_;
};

// ----------------------------------------------------------------------------------------- readers

// The input of a body that an operand of its call is; -1: none.
Var input_for(const Body& b, std::size_t operand) {
  const auto it = std::find(b.operands.begin(), b.operands.end(), operand);
  return it == b.operands.end() ? -1
                                : b.program->in[static_cast<std::size_t>(it - b.operands.begin())];
}

using Places = std::vector<EquationPlace>;
bool collect_readers(const Program& p, Var v, const std::vector<std::string>& around,
                     Places& places);

// Whether an operand is read: inside of the call, or by the equation itself, which a call does with
// values that it only hands on. A body may also have inputs that it ignores.
bool collect_operand(const Program& p, const Equation& e, std::size_t operand,
                     const std::vector<std::string>& around, Places& places) {
  if (passes_on(e)) return collect_readers(p, e.out[0], around, places);
  bool inside = false, in_body = false, handed_on = false;
  for (const Body& b : bodies_of(e)) {
    const Var inner = input_for(b, operand);
    if (inner < 0) continue;
    in_body = true;
    const auto& out = b.program->out;
    handed_on = handed_on || std::find(out.begin(), out.end(), Atom::of(inner)) != out.end();
    inside = collect_readers(*b.program, inner, inside_of(b.label, around), places) || inside;
  }
  const bool itself = !in_body || handed_on;
  if (!inside && itself) add_once(places, {what_of(e), e.at, around});
  return inside || itself;
}

bool collect_readers(const Program& p, Var v, const std::vector<std::string>& around,
                     Places& places) {
  bool found = false;
  for (const Equation& e : p.eqns) {
    for (std::size_t i = 0; i < e.in.size(); ++i) {
      if (e.in[i].var == v) found = collect_operand(p, e, i, around, places) || found;
    }
  }
  return found;
}

}  // namespace

std::string call_text(const Equation& e) { return label_of(e); }

MadeBy made_by(const ProgramPtr& p, Var v) {
  Makers makers;
  makers.value({p, "", nullptr, nullptr, nullptr, 0, false}, Atom::of(v));
  return std::move(makers.made);
}

std::vector<EquationPlace> read_by(const Program& p, Var v) {
  std::vector<EquationPlace> places;
  collect_readers(p, v, {}, places);
  return places;
}

void for_each_reader(const Program& p, Var v, const VisitReader& visit) {
  for (const Equation& e : p.eqns) {
    for (std::size_t i = 0; i < e.in.size(); ++i) {
      if (e.in[i].var != v || !visit(e, i)) continue;
      for (const Body& b : bodies_of(e)) {
        const Var inner = input_for(b, i);
        if (inner >= 0) for_each_reader(*b.program, inner, visit);
      }
    }
  }
}

}  // namespace reprise::detail
