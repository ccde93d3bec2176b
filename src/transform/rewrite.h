// Rebuilding a program equation by equation: what passes that replace values share.
#pragma once

#include "program/primitive.h"
#include "program/trace.h"

#include <functional>

namespace reprise {

// Reads the equations of a body in the place of its call, whose operands `args` stand for the
// body's inputs; its outputs there. `add` is given each equation with operands of the caller and
// results that are still the body's, and answers what stands for those.
using AddEquation = std::function<std::vector<Atom>(Equation)>;
std::vector<Atom> splice(const Program& body, const std::vector<Atom>& args,
                         const AddEquation& add);
// Gives an equation of `body` results that are new variables of the caller.
std::vector<Atom> rename_results(Equation& e, const Program& body,
                                 const std::function<Var(const Type&)>& fresh);

class Rewriter {
 public:
  explicit Rewriter(const Program& p);
  Atom read(const Atom&) const;  // what stands for this value now
  void replace(Var v, const Atom& by) { now_[static_cast<std::size_t>(v)] = by; }
  std::vector<Atom> read_all(const std::vector<Atom>&) const;
  Var fresh(const Type& t);
  Type type(const Atom& a) const { return program_.type(a); }
  void append(Equation e) { program_.eqns.push_back(std::move(e)); }
  // Appends the equations of a call's program, its inputs standing for `args`; its outputs.
  std::vector<Atom> splice(const Program& body, const std::vector<Atom>& args, Phase call);
  Program finish();

 private:
  const Program& from_;
  Program program_;
  std::vector<Atom> now_;
};

// Applies a pass to every program inside an equation's params, once per program object.
Params map_programs(const Params&, const char* pass, Program (*f)(const Program&));

// The program with calls replaced by the equations of their bodies, those inside them too: `opened`
// names the param that holds the body, null: the call stays. Programs inside other equations
// likewise, by the pass itself.
struct Opening {
  const char* pass;
  Program (*pass_itself)(const Program&);
  const char* (*opened)(const Equation&);
};
Program open_calls(const Program&, const Opening&);

// The program with the pass applied to the programs inside its equations, and to those only.
Program map_bodies(const Program&, const char* pass, Program (*f)(const Program&));

// What computes the only result of an equation instead, from operands that are all variables; null:
// nothing does.
using Formula = FlatFunction (*)(const Equation&, const Types& in, const Type& out);

// The program, and those inside its equations, with equations replaced by their formulas.
Program replace_by_formulas(const Program&, const char* pass,
                            Program (*pass_itself)(const Program&), Formula);

}  // namespace reprise
