#include "transform/partial_eval.h"

#include "base/work.h"
#include "ops/device_put.h"
#include "ops/records.h"
#include "program/check.h"
#include "program/effects.h"
#include "transform/closure_order.h"
#include "transform/dce.h"
#include "transform/rewrite.h"

#include <algorithm>

namespace reprise {

Split::Split(const Program& p, const std::vector<bool>& unknown_in,
             const std::vector<bool>& available_in, SplitPolicy policy, SplitMode mode)
    : p_(p),
      policy_(std::move(policy)),
      types_(p.types),
      mode_(mode),
      unknown_in_(unknown_in),
      available_in_(available_in),
      unknown_(p.types.size()),
      available_(p.types.size()),
      is_residual_(p.types.size()),
      names_(p.types.size()) {
  for (std::size_t v = 0; v < p.types.size(); ++v) alias_.push_back(Atom::of(static_cast<Var>(v)));
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    unknown_[at(p.in[i])] = unknown_in[i];
    available_[at(p.in[i])] = available_in[i];
  }
  // A value is labelled by the names of the name equations that read it, and by theirs.
  for (std::size_t i = p.eqns.size(); i-- > 0;) {
    const Equation& e = p.eqns[i];
    if (e.prim != &name_p || !e.in[0].is_var()) continue;
    OutputNames& labels = names_[at(e.in[0].var)];
    labels.push_back(e.params.get<std::string>("name"));
    const OutputNames& further = names_[at(e.out[0])];
    labels.insert(labels.end(), further.begin(), further.end());
  }
}

Split Split::invariant(const Program& p, const std::vector<bool>& varying_in) {
  Split s(p, varying_in, varying_in, {}, SplitMode::once);
  s.is_invariant_ = true;
  return s;
}

Var Split::fresh(const Type& t) {
  types_.push_back(t);
  unknown_.push_back(false);
  available_.push_back(false);
  is_residual_.push_back(false);
  names_.emplace_back();
  const Var v = static_cast<Var>(types_.size()) - 1;
  alias_.push_back(Atom::of(v));
  return v;
}

std::vector<bool> Split::unknown_mask(const std::vector<Atom>& atoms) const {
  std::vector<bool> mask;
  for (const Atom& a : atoms) mask.push_back(is_unknown(a));
  return mask;
}
std::vector<bool> Split::available_mask(const std::vector<Atom>& atoms) const {
  std::vector<bool> mask;
  for (const Atom& a : atoms) mask.push_back(is_available(a));
  return mask;
}

void Split::set(Var v, bool unknown, bool available) {
  unknown_[at(v)] = unknown;
  available_[at(v)] = available;
}

void Split::save(Var v) {
  if (is_residual_[at(v)]) return;
  is_residual_[at(v)] = true;
  residuals_.push_back(v);
}

void Split::add_staged(Equation e) {
  for (const Atom& a : e.in) {
    if (!is_available(a)) save(a.var);
  }
  staged_.push_back(std::move(e));
}

OutputNames Split::names_of(const Equation& e) const {
  OutputNames all;
  if (e.prim == &name_p) all.push_back(e.params.get<std::string>("name"));
  for (Var v : e.out) all.insert(all.end(), names_[at(v)].begin(), names_[at(v)].end());
  return all;
}

void Split::stage(const Equation& e) {
  add_staged(e);
  for (Var v : e.out) set(v, true, true);
}

void Split::split_plain(const Equation& e) {
  if (std::any_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return is_unknown(a); }))
    return stage(e);
  add_known(e);
  const SplitDecision decision = mode_ == SplitMode::once || e.prim->effect.is_once
                                     ? SplitDecision(Keep{})
                                     : policy_.decide(p_, e, names_of(e));
  if (e.out.empty() && mode_ == SplitMode::by_policy) return repeat_effect(e, decision);
  if (std::holds_alternative<Keep>(decision)) {
    for (Var v : e.out) set(v, false, false);
    return;
  }
  if (std::holds_alternative<Repeat>(decision)) {
    add_staged(e);
    for (Var v : e.out) set(v, false, true);
    return;
  }
  // Offloaded: the value leaves to the host right away and comes back where it was made.
  for (Var v : e.out) {
    Type on_host = types_[at(v)];
    on_host.memory_space = MemorySpace::host;
    const Var moved = fresh(on_host);
    add_known(device_put_equation(Atom::of(v), moved, MemorySpace::host));
    save(moved);
    staged_.push_back(device_put_equation(Atom::of(moved), v, MemorySpace::device));
    set(v, false, true);
  }
}

// What has no result cannot be saved: it happens again, unless the policy would save it and an
// operand is missing.
void Split::repeat_effect(const Equation& e, const SplitDecision& decision) {
  const bool has_all =
      std::all_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return is_available(a); });
  const bool is_saved = !std::holds_alternative<Repeat>(decision);
  if (!e.prim->effect.is_once && (has_all || !is_saved)) add_staged(e);
}

void Split::split_equation(Equation e) {
  for (Atom& a : e.in) a = resolved(a);
  if (is_invariant_ && effect_of(e).is_any()) {
    stage(e);
  } else if (e.prim->partial_eval) {
    e.prim->partial_eval(e, *this);
  } else {
    split_plain(e);
  }
}

void Split::run() {
  for (const Equation& e : p_.eqns) {
    count_work();
    split_equation(e);
  }
}

std::vector<Atom> Split::splice_known(const Program& p, const std::vector<Atom>& args) {
  return splice(p, args, [&](Equation e) {
    std::vector<Atom> out = rename_results(e, p, [&](const Type& t) { return fresh(t); });
    add_known(std::move(e));
    return out;
  });
}

void Split::split_opened(const Equation& call, const Program& body) {
  const std::vector<Atom> out = splice(body, call.in, [&](Equation e) {
    std::vector<Atom> results = rename_results(e, body, [&](const Type& t) { return fresh(t); });
    split_equation(std::move(e));
    for (Atom& a : results) a = resolved(a);
    return results;
  });
  for (std::size_t k = 0; k < call.out.size(); ++k) alias(call.out[k], out[k]);
}

// What is evaluated now closes the rest over its values: they are listed as such a rest lists them.
void Split::sort_residuals(Program& staged) {
  for (std::size_t i = 0; i < p_.in.size(); ++i) {
    if (available_in_[i]) staged.in.push_back(p_.in[i]);
  }
  std::vector<Var> sorted = closure_order(staged, is_residual_);
  for (Var v : sorted) is_residual_[at(v)] = false;
  for (Var v : residuals_) {  // read by what nobody reads
    if (is_residual_[at(v)]) sorted.push_back(v);
  }
  residuals_ = std::move(sorted);
}

PolicySplit Split::finish(const SplitOutputs& outputs) {
  PolicySplit result;
  Program &known = result.known, &staged = result.staged;
  known.name = staged.name = p_.name;
  for (std::size_t k = 0; k < p_.out.size(); ++k) {
    const Atom a = resolved(p_.out[k]);
    const bool forced = k < outputs.unknown.size() && outputs.unknown[k];
    const bool unknown = is_unknown(a) || forced;
    if ((forced || outputs.all_available) && !is_available(a)) {
      save(a.var);
      available_[at(a.var)] = true;
    }
    result.unknown_out.push_back(unknown);
    result.available_out.push_back(is_available(a));
    if (!unknown) known.out.push_back(a);
    if (is_available(a)) staged.out.push_back(a);
  }
  staged.eqns = std::move(staged_);
  staged.types = types_;
  if (mode_ == SplitMode::once && !is_invariant_) sort_residuals(staged);
  staged.in = residuals_;
  for (std::size_t i = 0; i < p_.in.size(); ++i) {
    if (!unknown_in_[i]) known.in.push_back(p_.in[i]);
    if (available_in_[i]) staged.in.push_back(p_.in[i]);
  }
  for (Var v : residuals_) known.out.push_back(Atom::of(v));
  result.residuals = residuals_.size();
  known.eqns = std::move(known_);
  known.types = std::move(types_);
  check_after("split", known);
  check_after("split", staged);
  return result;
}

PolicySplit split(const Program& p, const std::vector<bool>& unknown_in,
                  const std::vector<bool>& available_in, const SplitPolicy& policy, SplitMode mode,
                  const SplitOutputs& outputs) {
  Split s(p, unknown_in, available_in, policy, mode);
  s.run();
  return s.finish(outputs);
}

PolicySplit split_invariant(const Program& p, const std::vector<bool>& varying_in,
                            const SplitOutputs& outputs) {
  Split s = Split::invariant(p, varying_in);
  s.run();
  return s.finish(outputs);
}

std::shared_ptr<const PolicySplit> shared_split(const Program& body,
                                                const std::vector<bool>& unknown_in,
                                                const std::vector<bool>& available_in,
                                                const SplitPolicy& policy, SplitMode mode,
                                                const SplitOutputs& outputs) {
  const std::string name = mode == SplitMode::once ? "part" : "part:" + policy.key;
  const std::string key = mask_key(name, unknown_in) + mask_key("/", available_in) +
                          mask_key(outputs.all_available ? "/all" : "/", outputs.unknown);
  return derive<PolicySplit>(
      body, key, [&] { return split(body, unknown_in, available_in, policy, mode, outputs); });
}

void drop_known_outputs(PolicySplit& parts) {
  std::vector<Atom> unknown;
  std::size_t next = 0;
  for (std::size_t k = 0; k < parts.unknown_out.size(); ++k) {
    if (!parts.available_out[k]) continue;
    if (parts.unknown_out[k]) unknown.push_back(parts.staged.out[next]);
    ++next;
  }
  parts.staged.out = std::move(unknown);
  parts.available_out = parts.unknown_out;
}

std::shared_ptr<const Unzipped> unzip(const Program& p, const std::vector<bool>& is_linear) {
  return derive<Unzipped>(p, mask_key("unzip", is_linear), [&] {
    // the linear part sees known values as residuals only
    const std::vector<bool> available = is_linear;
    PolicySplit parts = split(p, is_linear, available, {}, SplitMode::once);
    Unzipped result;
    result.unknown_out = parts.unknown_out;
    std::vector<bool> wanted;
    for (std::size_t k = 0; k < p.out.size(); ++k) {
      if (parts.available_out[k]) wanted.push_back(parts.unknown_out[k]);
    }
    DceProgram live = dce(parts.staged, wanted);
    // Drop residuals nobody reads from both sides; all linear inputs stay.
    std::vector<bool> used(live.used_inputs.begin(),
                           live.used_inputs.begin() + static_cast<std::ptrdiff_t>(parts.residuals));
    const std::size_t residuals = parts.residuals, outputs = parts.known.out.size() - residuals;
    std::vector<Atom> known_out;
    for (std::size_t k = 0; k < parts.known.out.size(); ++k) {
      if (k < outputs || used[k - outputs]) known_out.push_back(parts.known.out[k]);
    }
    // JAX evaluates the known side as it is: a call that is left with nothing to do still shows.
    parts.known.out = std::move(known_out);
    result.linear = std::make_shared<const Program>(
        keep_inputs(std::move(live), [&](std::size_t i, bool u) { return i >= residuals || u; }));
    result.known = std::make_shared<const Program>(std::move(parts.known));
    return result;
  });
}

}  // namespace reprise
