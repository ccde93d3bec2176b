#include "transform/split_call.h"

#include <algorithm>

namespace reprise {
namespace {

// The body of a call in two, and where the caller finds what the known part returned.
struct CalleeSplit {
  PolicySplit split;
  ProgramPtr known, staged;        // staged null: the body itself, split before by this policy
  std::vector<OutputSource> from;  // per output of split.known
  std::size_t outputs() const { return split.known.out.size() - split.residuals; }
};

CalleeSplit split_callee(const Program& body, const std::vector<bool>& unknown,
                         const std::vector<bool>& available, const Split& s, bool forward) {
  CalleeSplit result;
  result.split = split(body, unknown, available, s.policy(), s.mode());
  Forwarding which;
  if (forward) which.first_input = which.first_repeated = result.outputs();
  Forwarded known = forward_outputs(result.split.known, which);
  result.known = std::move(known.program);
  result.from = std::move(known.from);
  // What was staged before stays as it is: else each level of a nest would make all below it anew.
  // Where something is known the parts are new, as JAX's are: sharing shows in printed programs.
  const bool is_staged =
      result.split.known.out.empty() && same_structure(result.split.staged, body);
  if (!is_staged) result.staged = std::make_shared<const Program>(result.split.staged);
  return result;
}

std::shared_ptr<const CalleeSplit> shared_callee_split(const Program& body, const Equation& e,
                                                       const Split& s, bool forward) {
  const std::vector<bool> unknown = s.unknown_mask(e.in), available = s.available_mask(e.in);
  const auto make = [&] { return split_callee(body, unknown, available, s, forward); };
  const std::string name = s.is_by_policy() ? "split:" + s.policy().key : "once";
  const bool is_shared = !s.is_by_policy() || !s.policy().key.empty();
  if (!is_shared) return std::make_shared<const CalleeSplit>(make());
  return derive<CalleeSplit>(body, mask_key(name, unknown) + mask_key("/", available), make);
}

CalleeSplit split_invariant_callee(const Program& body, const std::vector<bool>& varying) {
  CalleeSplit result;
  result.split = split_invariant(body, varying);
  drop_known_outputs(result.split);
  Forwarded known = forward_outputs(result.split.known, {0, 0, true});
  result.known = std::move(known.program);
  result.from = std::move(known.from);
  auto staged = std::make_shared<Program>(result.split.staged);
  const auto residuals_end =
      staged->in.begin() + static_cast<std::ptrdiff_t>(result.split.residuals);
  std::rotate(staged->in.begin(), residuals_end, staged->in.end());
  result.staged = std::move(staged);
  return result;
}

std::vector<Atom> where(const std::vector<Atom>& atoms, const std::vector<bool>& mask,
                        bool is_set) {
  std::vector<Atom> some;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (mask[i] == is_set) some.push_back(atoms[i]);
  }
  return some;
}

void adjust_params(const CallSplitOptions& options, const CalleeSplit& parts,
                   const std::vector<bool>& unknown, const std::vector<bool>& available,
                   Params& known, Params& staged) {
  if (options.adjust) options.adjust(unknown, available, known, staged);
  if (!options.adjust_parts) return;
  const Program& inner = parts.split.staged;
  Types residuals;
  for (std::size_t r = 0; r < parts.split.residuals; ++r)
    residuals.push_back(inner.type(inner.in[r]));
  const std::vector<OutputSource> from(
      parts.from.begin() + static_cast<std::ptrdiff_t>(parts.outputs()), parts.from.end());
  options.adjust_parts(
      {unknown, available, parts.split.unknown_out, parts.split.available_out, residuals, from},
      known, staged);
}

}  // namespace

void split_call(const Equation& e, Split& s, const CallSplitOptions& options) {
  const ProgramPtr& body = e.params.get<ProgramPtr>(options.body);
  const std::vector<bool> unknown = s.unknown_mask(e.in), available = s.available_mask(e.in);
  const auto parts = shared_callee_split(*body, e, s, options.forward);
  Params known_params = e.params.with(options.body, parts->known);
  Params staged_params = e.params.with(options.body, parts->staged ? parts->staged : body);
  adjust_params(options, *parts, unknown, available, known_params, staged_params);

  Equation known{e.prim, std::move(known_params), where(e.in, unknown, false), {}, e.at, e.phase};
  Equation staged{e.prim, std::move(staged_params), {}, {}, e.at, e.phase};
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!parts->split.unknown_out[k]) known.out.push_back(e.out[k]);
    if (parts->split.available_out[k]) staged.out.push_back(e.out[k]);
  }
  for (std::size_t r = 0; r < parts->split.residuals; ++r) {
    const OutputSource& from = parts->from[parts->outputs() + r];
    if (from.is_returned()) {
      const Program& inner = parts->split.staged;
      known.out.push_back(s.fresh(inner.type(inner.in[r])));
    }
    staged.in.push_back(from.of(known.in, known.out));
  }
  for (const Atom& a : where(e.in, available, true)) staged.in.push_back(a);
  s.add_known(std::move(known));
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    s.set(e.out[k], parts->split.unknown_out[k], parts->split.available_out[k]);
  }
  s.add_staged(std::move(staged));
}

void split_invariant_call(const Equation& e, Split& s, const char* body_key) {
  const std::vector<bool> varying = s.unknown_mask(e.in);
  const Program& body = *e.params.get<ProgramPtr>(body_key);
  const auto parts = derive<CalleeSplit>(body, mask_key("invariant", varying),
                                         [&] { return split_invariant_callee(body, varying); });
  Equation known{
      e.prim, e.params.with(body_key, parts->known), where(e.in, varying, false), {}, e.at,
      e.phase};
  std::vector<Atom> results;  // of the known part
  for (std::size_t k = 0; k < parts->from.size(); ++k) {
    const Program& inner = parts->split.known;
    if (parts->from[k].is_returned()) known.out.push_back(s.fresh(inner.type(inner.out[k])));
    results.push_back(parts->from[k].of(known.in, known.out));
  }
  s.add_known(std::move(known));
  Equation staged{
      e.prim, e.params.with(body_key, parts->staged), where(e.in, varying, true), {}, e.at,
      e.phase};
  const auto residuals = results.begin() + static_cast<std::ptrdiff_t>(parts->outputs());
  staged.in.insert(staged.in.end(), residuals, results.end());
  for (std::size_t k = 0, next = 0; k < e.out.size(); ++k) {
    if (parts->split.unknown_out[k])
      staged.out.push_back(e.out[k]);
    else
      s.alias(e.out[k], results[next++]);
  }
  if (!staged.out.empty()) s.stage(staged);
}

}  // namespace reprise
