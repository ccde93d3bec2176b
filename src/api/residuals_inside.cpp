// Residuals of a program that holds both passes, told apart by the phases of its equations.
#include "api/residual_list.h"
#include "api/residual_trail.h"
#include "program/primitive.h"

#include <algorithm>

namespace reprise::detail {
namespace {

class Collector {
 public:
  explicit Collector(std::vector<ResidualDetail>& out) : out_(out) {}

  void program(const ProgramPtr& p, const std::vector<std::string>& around) {
    Program later =
        *p;  // recomputation and the backward pass alone: who reads, and through which checkpoint
    std::erase_if(later.eqns, [](const Equation& e) { return e.phase == Phase::forward; });
    if (!later.eqns.empty()) list(p, later, around);
    for (const Equation& e : p->eqns) {
      if (e.phase != Phase::forward) continue;
      for_each_program(e.params, [&](const ProgramPtr& body) {
        std::vector<std::string> inside = {call_text(e)};
        inside.insert(inside.end(), around.begin(), around.end());
        program(body, inside);
      });
    }
  }

 private:
  void list(const ProgramPtr& p, const Program& later, const std::vector<std::string>& around) {
    const std::unordered_map<Var, Var> rounded = rounded_values(*p);
    std::vector<std::vector<Var>> read_as(p->types.size());  // a value and its rounded form are one
    std::vector<bool> seen(p->types.size());
    for (const Equation& e : later.eqns) {
      for (const Atom& a : e.in) {
        if (!a.is_var() || seen[static_cast<std::size_t>(a.var)]) continue;
        seen[static_cast<std::size_t>(a.var)] = true;
        const auto it = rounded.find(a.var);
        read_as[static_cast<std::size_t>(it == rounded.end() ? a.var : it->second)].push_back(
            a.var);
      }
    }
    const auto readers = [&](Var v) -> const std::vector<Var>& {
      return read_as[static_cast<std::size_t>(v)];
    };
    for (std::size_t i = 0; i < p->in.size(); ++i) {
      if (!readers(p->in[i]).empty())
        add(p, later, p->in[i], readers(p->in[i]), given(*p, i), around);
    }
    for (const Equation& e : p->eqns) {
      if (e.phase != Phase::forward) continue;
      for (Var v : e.out) {
        if (!readers(v).empty())
          add(p, later, v, readers(v), computed(produced_by(e, v, p->type(v))), around);
      }
    }
  }
  static ResidualDetail computed(SavedResidual shown) {
    ResidualDetail r;
    static_cast<SavedResidual&>(r) = std::move(shown);
    r.computed = true;
    return r;
  }
  static ResidualDetail given(const Program& p, std::size_t input) {
    ResidualDetail r;
    static_cast<SavedResidual&>(r) = given_as(p, input, p.arg_names);
    r.reason = input + p.arg_names.size() < p.in.size() ? "a constant" : "an argument";
    return r;
  }
  void add(const ProgramPtr& p, const Program& later, Var v, const std::vector<Var>& read_as,
           ResidualDetail r, const std::vector<std::string>& around) {
    MadeBy made;
    if (r.computed) made = made_by(p, v);
    std::vector<std::string> reasons;
    for (Var read : read_as) {
      for (EquationPlace& place : read_by(later, read)) {
        if (std::find(r.read_by.begin(), r.read_by.end(), place) == r.read_by.end())
          r.read_by.push_back(std::move(place));
      }
      if (!r.computed) continue;
      explain(later, read, made, r);
      if (std::find(reasons.begin(), reasons.end(), r.reason) == reasons.end())
        reasons.push_back(r.reason);
    }
    if (r.computed) r.reason = join(reasons, "; ");
    r.made_by = std::move(made.places);
    r.steps = std::move(made.steps);
    for (std::vector<EquationPlace>* places : {&r.made_by, &r.read_by}) {
      for (EquationPlace& place : *places)
        place.inside.insert(place.inside.end(), around.begin(), around.end());
    }
    out_.push_back(std::move(r));
  }

  std::vector<ResidualDetail>& out_;
};

}  // namespace

std::vector<ResidualDetail> residuals_inside(const ProgramPtr& p) {
  std::vector<ResidualDetail> out;
  Collector(out).program(p, {});
  return out;
}

}  // namespace reprise::detail
