#include "control/split.h"

#include "control/records.h"
#include "program/effects.h"
#include "transform/partial_eval.h"

#include <algorithm>

namespace reprise {
namespace {

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

// A jit call in two: which operands and results each half has.
struct SplitCall {
  ProgramPtr known, unknown;
  std::vector<std::optional<Atom>> known_out;  // per output: its variable in the body, if known
  std::vector<Var> known_results;              // what the known call returns
  std::vector<Var> residuals;                  // what the unknown call takes besides its operands
};

bool contains(const std::vector<Var>& vars, Var v) {
  return std::find(vars.begin(), vars.end(), v) != vars.end();
}

// Variables of the known side that the unknown side reads, in order of first use.
std::vector<Var> residuals_of(const SplitProgram& s) {
  std::vector<Var> residuals;
  for (const Equation& e : s.unknown.eqns) {
    for (const Atom& a : e.in) {
      if (a.is_var() && s.is_known[at(a.var)] && !contains(residuals, a.var))
        residuals.push_back(a.var);
    }
  }
  return residuals;
}

SplitCall split_call(const Program& body, const std::vector<bool>& known_inputs) {
  SplitProgram s = split_known(body, known_inputs);
  SplitCall call;
  call.residuals = residuals_of(s);
  std::vector<Var> inputs;
  for (std::size_t i = 0; i < body.in.size(); ++i) {
    (known_inputs[i] ? inputs : s.unknown.in).push_back(body.in[i]);
  }
  auto give = [&](Var v) {
    if (contains(inputs, v) || contains(call.known_results, v)) return;
    call.known_results.push_back(v);
    s.known.out.push_back(Atom::of(v));
  };
  for (const Atom& a : s.out) {
    const bool known = !a.is_var() || s.is_known[at(a.var)];
    call.known_out.push_back(known ? std::optional(a) : std::nullopt);
    if (!known) s.unknown.out.push_back(a);
    if (known && a.is_var()) give(a.var);
  }
  for (Var v : call.residuals) give(v);
  s.known.in = inputs;
  s.unknown.in.insert(s.unknown.in.end(), call.residuals.begin(), call.residuals.end());
  call.known = std::make_shared<const Program>(std::move(s.known));
  call.unknown = std::make_shared<const Program>(std::move(s.unknown));
  return call;
}

class Splitter {
 public:
  explicit Splitter(const Program& p)
      : types_(p.types), known_(p.types.size()), now_(p.types.size()) {}

  SplitProgram run(const Program& p, const std::vector<bool>& known_inputs) {
    for (std::size_t i = 0; i < p.in.size(); ++i) {
      known_[at(p.in[i])] = known_inputs[i];
      now_[at(p.in[i])] = Atom::of(p.in[i]);
    }
    for (const Equation& e : p.eqns) step(e, e.out);
    SplitProgram result;
    for (const Atom& a : p.out) result.out.push_back(read(a));
    inside_.types = types_;
    outside_.types = types_;
    inside_.name = outside_.name = p.name;
    result.known = std::move(outside_);
    result.unknown = std::move(inside_);
    result.is_known = std::move(known_);
    return result;
  }

 private:
  Atom read(const Atom& a) const { return a.is_var() ? now_[at(a.var)] : a; }
  bool is_known(const Atom& a) const { return !a.is_var() || known_[at(a.var)]; }
  Var fresh(const Type& t, bool known) {
    types_.push_back(t);
    known_.push_back(known);
    const Var v = static_cast<Var>(types_.size()) - 1;
    now_.push_back(Atom::of(v));
    return v;
  }
  // Binds the result variables to themselves, on one side.
  void record(Equation e, bool known) {
    for (Var v : e.out) {
      known_[at(v)] = known;
      now_[at(v)] = Atom::of(v);
    }
    (known ? outside_ : inside_).eqns.push_back(std::move(e));
  }

  // `from` is an equation whose operands and results are already in terms of this program.
  void step(const Equation& from, const std::vector<Var>& out) {
    Equation e = from;
    e.out = out;
    for (Atom& a : e.in) a = read(a);
    const bool none =
        std::none_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return is_known(a); });
    const bool all =
        std::all_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return is_known(a); });
    if (effect_of(e).is_any()) {  // it happens at every step
      record(std::move(e), false);
    } else if (e.prim->partial_eval && e.prim != &jit_p) {
      split_by_rule(e);
    } else if (all) {
      record(std::move(e), true);
    } else if (e.prim == &custom_jvp_call_p) {
      open(*e.params.get<ProgramPtr>("call_jaxpr"), e);
    } else if (e.prim == &jit_p) {
      split(e);
    } else {
      if (e.prim == &custom_vjp_call_p && none) empty_call(e);
      record(std::move(e), false);
    }
  }

  // A program of this equation alone, split by the equation's own rule.
  void split_by_rule(const Equation& e) {
    Program alone;
    Equation copy = e;
    std::vector<bool> unknown;
    std::vector<Atom> known_args, unknown_args;
    for (Atom& a : copy.in) {
      if (!a.is_var()) continue;
      unknown.push_back(!is_known(a));
      (unknown.back() ? unknown_args : known_args).push_back(a);
      a = Atom::of(alone.fresh(types_[at(a.var)]));
      alone.in.push_back(a.var);
    }
    for (Var& v : copy.out) {
      v = alone.fresh(types_[at(v)]);
      alone.out.push_back(Atom::of(v));
    }
    alone.eqns.push_back(std::move(copy));
    const PolicySplit parts = reprise::split(alone, unknown, unknown, {}, SplitMode::once);
    std::vector<Atom> known = splice(parts.known, known_args, true);
    const auto residuals = known.end() - static_cast<std::ptrdiff_t>(parts.residuals);
    unknown_args.insert(unknown_args.begin(), residuals, known.end());
    const std::vector<Atom> staged = splice(parts.staged, unknown_args, false);
    std::size_t next_known = 0, next_staged = 0;
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      const Atom& out = parts.unknown_out[k] ? staged[next_staged] : known[next_known];
      next_staged += parts.available_out[k] ? 1 : 0;
      next_known += parts.unknown_out[k] ? 0 : 1;
      now_[at(e.out[k])] = out;
    }
  }
  std::vector<Atom> splice(const Program& p, const std::vector<Atom>& args, bool known) {
    std::vector<Atom> stands(p.types.size());
    for (std::size_t i = 0; i < p.in.size(); ++i) stands[at(p.in[i])] = args[i];
    auto atom = [&](const Atom& a) { return a.is_var() ? stands[at(a.var)] : a; };
    for (const Equation& e : p.eqns) {
      Equation here = e;
      for (Atom& a : here.in) a = atom(a);
      for (Var& v : here.out) {
        const Var inner = v;
        v = fresh(p.type(inner), known);
        stands[at(inner)] = Atom::of(v);
      }
      record(std::move(here), known);
    }
    std::vector<Atom> out;
    for (const Atom& a : p.out) out.push_back(atom(a));
    return out;
  }

  void empty_call(const Equation& e) {
    Equation empty = e;
    empty.in.clear();
    empty.out.clear();
    empty.params = e.params.with("call_jaxpr", std::make_shared<const Program>());
    record(std::move(empty), true);
  }

  void open(const Program& body, const Equation& call) {
    std::vector<Atom> stands(body.types.size());
    for (std::size_t i = 0; i < body.in.size(); ++i) stands[at(body.in[i])] = call.in[i];
    auto atom = [&](const Atom& a) { return a.is_var() ? stands[at(a.var)] : a; };
    for (const Equation& e : body.eqns) {
      Equation here = e;
      for (Atom& a : here.in) a = atom(a);
      here.out.clear();
      for (Var v : e.out) {
        here.out.push_back(fresh(body.type(v), false));
        stands[at(v)] = Atom::of(here.out.back());
      }
      step(here, here.out);
    }
    for (std::size_t k = 0; k < call.out.size(); ++k)
      now_[at(call.out[k])] = read(atom(body.out[k]));
  }

  void split(const Equation& e) {
    const ProgramPtr& body = e.params.get<ProgramPtr>("jaxpr");
    std::vector<bool> known_inputs;
    Equation known = e, unknown = e;
    known.in.clear();
    known.out.clear();
    unknown.in.clear();
    unknown.out.clear();
    for (const Atom& a : e.in) {
      known_inputs.push_back(is_known(a));
      (is_known(a) ? known : unknown).in.push_back(a);
    }
    const auto call = derive<SplitCall>(*body, mask_key("split", known_inputs),
                                        [&] { return split_call(*body, known_inputs); });
    std::vector<Atom> outer(call->known->types.size());  // of variables of the known body
    for (std::size_t i = 0, k = 0; i < e.in.size(); ++i) {
      if (known_inputs[i]) outer[at(call->known->in[k++])] = e.in[i];
    }
    for (Var v : call->known_results) {
      known.out.push_back(fresh(call->known->type(v), true));
      outer[at(v)] = Atom::of(known.out.back());
    }
    known.params = e.params.with("jaxpr", call->known);
    record(std::move(known), true);
    for (Var v : call->residuals) unknown.in.push_back(outer[at(v)]);
    for (std::size_t k = 0; k < e.out.size(); ++k) {
      const auto& out = call->known_out[k];
      if (out) now_[at(e.out[k])] = out->is_var() ? outer[at(out->var)] : *out;
      if (!out) unknown.out.push_back(e.out[k]);
    }
    if (unknown.out.empty()) return;
    unknown.params = e.params.with("jaxpr", call->unknown);
    record(std::move(unknown), false);
  }

  std::vector<Type> types_;
  std::vector<bool> known_;
  std::vector<Atom> now_;  // what a variable of the program stands for
  Program outside_, inside_;
};

}  // namespace

SplitProgram split_known(const Program& p, const std::vector<bool>& known_inputs) {
  return Splitter(p).run(p, known_inputs);
}

}  // namespace reprise
