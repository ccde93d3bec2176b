// Residual reports: every saved value with its size, the rule that lets it be saved, its makers and
// readers.
#include "api/linear_map.h"
#include "api/residual_list.h"
#include "api/residual_trail.h"
#include "ops/records.h"
#include "remat/checkpoint.h"
#include "reprise/errors.h"

#include <algorithm>
#include <ostream>

namespace reprise {
namespace {

std::string count_text(std::size_t n, const char* what) {
  return str(n, " ", what, n == 1 ? "" : "s");
}

bool saves(const Policy::Answer& a) { return !std::holds_alternative<Recompute>(a); }

// The names of what an equation makes: its own, and those of the name equations that read it.
OutputNames names_of(const Program& p, const Equation& e) {
  OutputNames names;
  if (e.prim == &name_p) names.push_back(e.params.get<std::string>("name"));
  std::vector<Var> same = e.out;
  for (const Equation& reader : p.eqns) {
    if (reader.prim != &name_p && reader.prim != &reduce_precision_p) continue;
    if (std::find(same.begin(), same.end(), reader.in[0].var) == same.end()) continue;
    same.push_back(reader.out[0]);
    if (reader.prim == &name_p) names.push_back(reader.params.get<std::string>("name"));
  }
  return names;
}

// Which parts of p | q let the value through: ", by q"; nothing for a policy without parts.
std::string deciding_parts(const Policy& policy, const detail::MadeBy& made) {
  const std::vector<Policy> parts = policy.alternatives();
  if (parts.size() == 1 || made.equation == nullptr) return "";
  const EquationInfo info =
      describe(*made.program, *made.equation, names_of(*made.program, *made.equation));
  std::vector<std::string> yes;
  for (const Policy& p : parts) {
    if (saves(p(info))) yes.push_back(p.str());
  }
  return yes.empty() ? "" : ", by " + join(yes, " and ");
}

constexpr const char* no_checkpoint = "no checkpoint: the derivative reads it";

}  // namespace

namespace detail {

void explain(const Program& reading, Var v, const MadeBy& made, ResidualDetail& r) {
  std::vector<std::string> reasons;
  auto add = [&](std::string reason) {
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(std::move(reason));
  };
  for_each_reader(reading, v, [&](const Equation& e, std::size_t operand) {
    if (e.prim != &remat_p) {
      if (e.prim->kind == Kind::call) return true;
      add(no_checkpoint);
      return false;
    }
    const std::vector<std::string>& inputs = e.params.get<ProgramPtr>("jaxpr")->arg_names;
    if (operand < inputs.size() && inputs[operand] == saved_by_policy) {
      const Policy policy = policy_of(e.params);
      r.policy = policy.str();
      const char* does =
          r.type.memory_space == MemorySpace::host ? " moves it to the host" : " allows it";
      add("policy " + policy.str() + does + deciding_parts(policy, made));
    } else {
      const std::string place = to_string(e.at);
      add("an input of the checkpoint" + (place.empty() ? "" : " at " + place));
    }
    return false;
  });
  if (reasons.empty())
    reasons.emplace_back(no_checkpoint);  // a call itself reads it, such as the index of a cond
  r.reason = join(reasons, "; ");
}

ResidualReport residual_report(const Callee& f, const Arrays& args) {
  return residual_report(f, args, floating_mask(args));
}

ResidualReport residual_report(const Callee& f, const Arrays& args,
                               const std::vector<bool>& active) {
  const AtUser at(f.at);
  const ForwardProgram forward = trace_forward(f, args, active);
  const ProgramPtr backward = trace_backward(forward.map).program;
  const LinearMap& map = *forward.map.map;
  ResidualReport report;
  for (const ListedResidual& listed : list_residuals(forward, f.arg_names)) {
    ResidualDetail r;
    static_cast<SavedResidual&>(r) = listed.shown;
    r.computed = listed.computed;
    MadeBy made;
    if (listed.computed) made = made_by(forward.traced.program, listed.var);
    for (std::size_t position : listed.positions) {
      for (EquationPlace& place :
           read_by(*backward, backward->in[backward->num_consts + position])) {
        if (std::find(r.read_by.begin(), r.read_by.end(), place) == r.read_by.end()) {
          r.read_by.push_back(std::move(place));
        }
      }
      if (listed.computed) explain(*map.linear, map.linear->in[map.listed[position]], made, r);
    }
    if (!listed.computed) {
      const bool argument = r.origin.find("argument") != std::string::npos;
      r.reason = argument ? "an argument" : listed.var < 0 ? "a literal" : "a constant";
    }
    r.made_by = std::move(made.places);
    r.steps = std::move(made.steps);
    report.residuals.push_back(std::move(r));
  }
  return report;
}

}  // namespace detail

bool EquationPlace::operator==(const EquationPlace& other) const {
  return what == other.what && to_string(at) == to_string(other.at) && inside == other.inside;
}

std::ostream& operator<<(std::ostream& out, const EquationPlace& p) {
  out << p.what;
  if (p.at.line != 0) out << " at " << to_string(p.at);
  for (const std::string& call : p.inside) out << ", in " << call;
  return out;
}

std::size_t ResidualReport::bytes() const {
  std::size_t total = 0;
  for (const ResidualDetail& r : residuals) total += r.bytes;
  return total;
}
std::size_t ResidualReport::computed_bytes() const {
  std::size_t total = 0;
  for (const ResidualDetail& r : residuals) total += r.computed ? r.bytes : 0;
  return total;
}

namespace {

constexpr std::size_t shown_readers = 6;

// "8 x f32[4,4]": one value per step.
std::string stacked_text(const ResidualDetail& r) {
  if (r.steps.empty() || r.steps.size() > r.type.shape.size()) return "";
  std::string text = ", ";
  Type one = r.type;
  for (std::int64_t n : r.steps) {
    text += str(n, " x ");
    one.shape.erase(one.shape.begin());
  }
  return text + to_string(one);
}

void print_places(std::ostream& out, const char* title, const std::vector<EquationPlace>& places) {
  out << "  " << title;
  for (std::size_t i = 0; i < std::min(places.size(), shown_readers); ++i) {
    out << (i == 0 ? "" : "           ") << places[i] << "\n";
  }
  if (places.empty()) out << "no equation\n";
  if (places.size() > shown_readers)
    out << "           and " << places.size() - shown_readers << " more\n";
}

// The line of the value says it already.
bool is_told(const ResidualDetail& r) {
  return r.made_by.empty() || (r.made_by.size() == 1 && r.made_by[0].inside.empty() &&
                               to_string(r.made_by[0].at) == to_string(r.at));
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ResidualReport& report) {
  std::size_t computed = 0;
  for (const ResidualDetail& r : report.residuals) {
    computed += r.computed ? 1 : 0;
    out << static_cast<const SavedResidual&>(r) << "\n";
    out << "  size     " << count_text(r.bytes, "byte") << stacked_text(r) << "\n";
    if (!is_told(r)) print_places(out, "made by  ", r.made_by);
    out << "  saved    " << r.reason << "\n";
    print_places(out, "read by  ", r.read_by);
  }
  return out << "total      " << count_text(report.residuals.size(), "value") << ", "
             << count_text(report.bytes(), "byte")
             << "; computed by the forward pass: " << count_text(computed, "value") << ", "
             << count_text(report.computed_bytes(), "byte") << "\n";
}

}  // namespace reprise
