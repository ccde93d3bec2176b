#include "transform/rewrite.h"

#include <algorithm>

#include "program/check.h"

namespace reprise {

Rewriter::Rewriter(const Program& p) : from_(p) {
  program_.types = p.types;
  program_.in = p.in;
  program_.num_consts = p.num_consts;
  program_.name = p.name;
  program_.arg_names = p.arg_names;
  now_.reserve(p.types.size());
  for (std::size_t v = 0; v < p.types.size(); ++v) now_.push_back(Atom::of(static_cast<Var>(v)));
}

Atom Rewriter::read(const Atom& a) const {
  return a.is_var() ? now_[static_cast<std::size_t>(a.var)] : a;
}
std::vector<Atom> Rewriter::read_all(const std::vector<Atom>& atoms) const {
  std::vector<Atom> out;
  out.reserve(atoms.size());
  for (const Atom& a : atoms) out.push_back(read(a));
  return out;
}

Var Rewriter::fresh(const Type& t) { return program_.fresh(t); }

std::vector<Atom> Rewriter::splice(const Program& body, const std::vector<Atom>& args, Phase call) {
  std::vector<Atom> inner(body.types.size());
  auto read_inner = [&](const Atom& a) { return a.is_var() ? inner[static_cast<std::size_t>(a.var)] : a; };
  for (std::size_t i = 0; i < body.in.size(); ++i) inner[static_cast<std::size_t>(body.in[i])] = args[i];
  for (const Equation& e : body.eqns) {
    Equation copy = e;
    copy.phase = inside(call, e.phase);
    for (Atom& a : copy.in) a = read_inner(a);
    for (Var& v : copy.out) {
      const Var fresh = program_.fresh(body.type(v));
      inner[static_cast<std::size_t>(v)] = Atom::of(fresh);
      v = fresh;
    }
    program_.eqns.push_back(std::move(copy));
  }
  std::vector<Atom> out;
  for (const Atom& a : body.out) out.push_back(read_inner(a));
  return out;
}

Program Rewriter::finish() {
  program_.out = read_all(from_.out);
  check_after("rewrite", program_);
  return std::move(program_);
}

Params map_programs(const Params& params, const char* pass, Program (*f)(const Program&)) {
  auto mapped = [&](const ProgramPtr& p) {
    return *derive<ProgramPtr>(*p, pass, [&] { return std::make_shared<const Program>(f(*p)); });
  };
  Params out = params;
  for (const Param& param : params.items()) {
    if (const auto* one = std::get_if<ProgramPtr>(&param.value)) out = out.with(param.key, mapped(*one));
    if (const auto* several = std::get_if<Programs>(&param.value)) {
      Programs all;
      for (const ProgramPtr& p : *several) all.push_back(mapped(p));
      out = out.with(param.key, std::move(all));
    }
  }
  return out;
}

Program map_bodies(const Program& p, const char* pass, Program (*f)(const Program&)) {
  Program out = p;
  for (Equation& e : out.eqns) e.params = map_programs(e.params, pass, f);
  return out;
}

Program replace_by_formulas(const Program& p, const char* pass, Program (*pass_itself)(const Program&), Formula formula_of) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, pass, pass_itself);
    Types in;
    for (const Atom& a : e.in) in.push_back(p.type(a));
    const bool has_variables = std::all_of(e.in.begin(), e.in.end(), [](const Atom& a) { return a.is_var(); });
    const bool is_candidate = !e.in.empty() && e.out.size() == 1 && has_variables;
    const FlatFunction formula = is_candidate ? formula_of(e, in, p.type(e.out[0])) : nullptr;
    if (!formula) {
      rewrite.append(std::move(now));
      continue;
    }
    const AtEquation at(e.at);
    const Traced traced = trace(formula, in, {.transform = pass, .body = true});
    rewrite.replace(e.out[0], rewrite.splice(*traced.program, now.in, e.phase)[0]);
  }
  return rewrite.finish();
}

}  // namespace reprise
