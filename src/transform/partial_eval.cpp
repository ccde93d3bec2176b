#include "transform/partial_eval.h"

#include "base/work.h"
#include "ops/device_put.h"
#include "ops/records.h"
#include "program/check.h"
#include "transform/closure_order.h"
#include "transform/dce.h"

#include <algorithm>
#include <unordered_map>

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

void Split::split_plain(const Equation& e) {
  if (std::any_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return is_unknown(a); })) {
    add_staged(e);
    for (Var v : e.out) set(v, true, true);
    return;
  }
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

void Split::run() {
  for (const Equation& original : p_.eqns) {
    count_work();
    Equation e = original;
    for (Atom& a : e.in) a = resolved(a);
    if (e.prim->partial_eval) {
      e.prim->partial_eval(e, *this);
    } else {
      split_plain(e);
    }
  }
}

std::vector<Atom> Split::splice_known(const Program& p, const std::vector<Atom>& args) {
  std::vector<Atom> now(p.types.size());
  auto read = [&](const Atom& a) { return a.is_var() ? now[at(a.var)] : a; };
  for (std::size_t i = 0; i < p.in.size(); ++i) now[at(p.in[i])] = args[i];
  for (const Equation& inner : p.eqns) {
    Equation copy = inner;
    for (Atom& a : copy.in) a = read(a);
    for (Var& v : copy.out) {
      const Var renamed = fresh(p.type(v));
      now[at(v)] = Atom::of(renamed);
      v = renamed;
    }
    add_known(std::move(copy));
  }
  std::vector<Atom> out;
  for (const Atom& a : p.out) out.push_back(read(a));
  return out;
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
  if (mode_ == SplitMode::once) sort_residuals(staged);
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

// ------------------------------------------------------------------------------------- call bodies
namespace {

struct SharedSplit {
  PolicySplit split;
  ProgramPtr known, staged;  // staged null: the body itself, split before by this policy
  // Per residual: the operand or known output of the known call that it already is.
  std::vector<std::optional<std::size_t>> from_input, from_output;
};

SharedSplit split_body(const Program& body, const std::vector<bool>& unknown,
                       const std::vector<bool>& available, const Split& s, bool forward) {
  SharedSplit result;
  result.split = split(body, unknown, available, s.policy(), s.mode());
  Program known = result.split.known;
  const std::size_t outputs = known.out.size() - result.split.residuals;
  result.from_input.resize(result.split.residuals);
  result.from_output.resize(result.split.residuals);
  if (forward) {
    std::unordered_map<Var, std::size_t> input_at, output_at;
    for (std::size_t i = 0; i < known.in.size(); ++i) input_at[known.in[i]] = i;
    for (std::size_t k = 0; k < outputs; ++k) {
      if (known.out[k].is_var()) output_at[known.out[k].var] = k;
    }
    std::vector<Atom> out(known.out.begin(),
                          known.out.begin() + static_cast<std::ptrdiff_t>(outputs));
    for (std::size_t r = 0; r < result.split.residuals; ++r) {
      const Var v = known.out[outputs + r].var;
      if (const auto o = output_at.find(v); o != output_at.end()) {
        result.from_output[r] = o->second;
      } else if (const auto i = input_at.find(v); i != input_at.end()) {
        result.from_input[r] = i->second;
      } else {
        out.push_back(known.out[outputs + r]);
      }
    }
    known.out = std::move(out);
  }
  result.known = std::make_shared<const Program>(std::move(known));
  // What was staged before stays as it is: else each level of a nest would make all below it anew.
  // Where something is known the parts are new, as JAX's are: sharing shows in printed programs.
  const bool is_staged =
      result.split.known.out.empty() && same_structure(result.split.staged, body);
  if (!is_staged) result.staged = std::make_shared<const Program>(result.split.staged);
  return result;
}

}  // namespace

void split_call(const Equation& e, Split& s, const CallSplitOptions& options) {
  const ProgramPtr& whole = e.params.get<ProgramPtr>(options.body);
  const Program& body = *whole;
  const std::vector<bool> unknown = s.unknown_mask(e.in), available = s.available_mask(e.in);
  const auto make = [&] { return split_body(body, unknown, available, s, options.forward); };
  const std::string key =
      mask_key(s.mode() == SplitMode::once ? "once" : "split:" + s.policy().key, unknown) +
      mask_key("/", available);
  const bool shared = s.mode() == SplitMode::once || !s.policy().key.empty();
  const auto parts =
      shared ? derive<SharedSplit>(body, key, make) : std::make_shared<const SharedSplit>(make());

  Equation known = e, staged = e;
  known.params = e.params.with(options.body, parts->known);
  staged.params = e.params.with(options.body, parts->staged ? parts->staged : whole);
  if (options.adjust) options.adjust(unknown, available, known.params, staged.params);
  known.in.clear();
  known.out.clear();
  staged.in.clear();
  staged.out.clear();
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!unknown[i]) known.in.push_back(e.in[i]);
  }
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!parts->split.unknown_out[k]) known.out.push_back(e.out[k]);
  }
  std::vector<Var> fresh;
  for (std::size_t r = 0; r < parts->split.residuals; ++r) {
    Atom residual;
    if (parts->from_output[r]) {
      residual = Atom::of(known.out[*parts->from_output[r]]);
    } else if (parts->from_input[r]) {
      residual = known.in[*parts->from_input[r]];
    } else {
      const Var inner = parts->split.staged.in[r];
      fresh.push_back(s.fresh(parts->split.staged.type(inner)));
      residual = Atom::of(fresh.back());
    }
    staged.in.push_back(residual);
  }
  known.out.insert(known.out.end(), fresh.begin(), fresh.end());
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (available[i]) staged.in.push_back(e.in[i]);
  }
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (parts->split.available_out[k]) staged.out.push_back(e.out[k]);
  }
  s.add_known(std::move(known));
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    s.set(e.out[k], parts->split.unknown_out[k], parts->split.available_out[k]);
  }
  for (const Atom& a : staged.in) {
    if (!s.is_available(a)) s.save(a.var);
  }
  s.add_staged(std::move(staged));
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
