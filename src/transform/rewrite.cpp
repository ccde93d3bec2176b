#include "transform/rewrite.h"

#include "base/work.h"
#include "program/check.h"

#include <algorithm>
#include <optional>

namespace reprise {

std::vector<Atom> splice(const Program& body, const std::vector<Atom>& args,
                         const AddEquation& add) {
  std::vector<Atom> now(body.types.size());
  auto read = [&](const Atom& a) { return a.is_var() ? now[static_cast<std::size_t>(a.var)] : a; };
  for (std::size_t i = 0; i < body.in.size(); ++i)
    now[static_cast<std::size_t>(body.in[i])] = args[i];
  for (const Equation& e : body.eqns) {
    Equation copy = e;
    for (Atom& a : copy.in) a = read(a);
    const std::vector<Atom> out = add(std::move(copy));
    for (std::size_t k = 0; k < e.out.size(); ++k) now[static_cast<std::size_t>(e.out[k])] = out[k];
  }
  std::vector<Atom> out;
  for (const Atom& a : body.out) out.push_back(read(a));
  return out;
}

std::vector<Atom> rename_results(Equation& e, const Program& body,
                                 const std::function<Var(const Type&)>& fresh) {
  std::vector<Atom> out;
  for (Var& v : e.out) {
    v = fresh(body.type(v));
    out.push_back(Atom::of(v));
  }
  return out;
}

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
  return reprise::splice(body, args, [&](Equation e) {
    e.phase = inside(call, e.phase);
    std::vector<Atom> out = rename_results(e, body, [&](const Type& t) { return fresh(t); });
    append(std::move(e));
    return out;
  });
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
    if (const auto* one = std::get_if<ProgramPtr>(&param.value))
      out = out.with(param.key, mapped(*one));
    if (const auto* several = std::get_if<Programs>(&param.value)) {
      Programs all;
      for (const ProgramPtr& p : *several) all.push_back(mapped(p));
      out = out.with(param.key, std::move(all));
    }
  }
  return out;
}

namespace {

// Bodies are opened where they stand: a pass over each body on its own would copy what is inside
// the innermost one once per level.
class Opener {
 public:
  Opener(const Program& p, const Opening& how) : p_(p), how_(how), rewrite_(p) {}

  Program run() {
    for (const Equation& e : p_.eqns) {
      Equation now = e;
      now.in = rewrite_.read_all(e.in);
      if (const auto out = opened(now)) {
        for (std::size_t k = 0; k < e.out.size(); ++k) rewrite_.replace(e.out[k], (*out)[k]);
      } else {
        rewrite_.append(std::move(now));
      }
    }
    return rewrite_.finish();
  }

 private:
  // The results of a call that is opened; none: the equation is ready to be appended.
  std::optional<std::vector<Atom>> opened(Equation& e) {
    count_work();
    if (const char* body = how_.opened(e))
      return opened_body(*e.params.get<ProgramPtr>(body), e.in, e.phase);
    e.params = map_programs(e.params, how_.pass, how_.pass_itself);
    return std::nullopt;
  }
  std::vector<Atom> opened_body(const Program& body, const std::vector<Atom>& args, Phase call) {
    return splice(body, args, [&](Equation e) {
      e.phase = inside(call, e.phase);
      if (auto out = opened(e)) return *std::move(out);
      std::vector<Atom> out =
          rename_results(e, body, [&](const Type& t) { return rewrite_.fresh(t); });
      rewrite_.append(std::move(e));
      return out;
    });
  }

  const Program& p_;
  const Opening& how_;
  Rewriter rewrite_;
};

}  // namespace

Program open_calls(const Program& p, const Opening& how) { return Opener(p, how).run(); }

Program map_bodies(const Program& p, const char* pass, Program (*f)(const Program&)) {
  Program out = p;
  for (Equation& e : out.eqns) e.params = map_programs(e.params, pass, f);
  return out;
}

Program replace_by_formulas(const Program& p, const char* pass,
                            Program (*pass_itself)(const Program&), Formula formula_of) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, pass, pass_itself);
    Types in;
    for (const Atom& a : e.in) in.push_back(p.type(a));
    const bool has_variables =
        std::any_of(e.in.begin(), e.in.end(), [](const Atom& a) { return a.is_var(); });
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
