// Splitting cond and while between what is known now and what comes later.
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/cond.h"
#include "control/records.h"
#include "program/effects.h"
#include "transform/dce.h"
#include "transform/partial_eval.h"

#include <algorithm>

namespace reprise {
namespace {

bool any(const std::vector<bool>& mask) {
  return std::any_of(mask.begin(), mask.end(), [](bool b) { return b; });
}

std::vector<PolicySplit> split_branches(const Programs& branches, const std::vector<bool>& unknown,
                                        const Split& s) {
  const bool by_policy = s.is_by_policy();
  const std::vector<bool> available = by_policy ? std::vector<bool>(unknown.size(), true) : unknown;
  SplitOutputs outputs;
  outputs.all_available = by_policy;
  outputs.unknown.assign(branches[0]->out.size(), false);
  // An output is unknown if it is in any branch.
  for (const ProgramPtr& b : branches) {
    const auto parts = shared_split(*b, unknown, available, s.policy(), s.mode(), outputs);
    for (std::size_t k = 0; k < parts->unknown_out.size(); ++k) {
      outputs.unknown[k] = outputs.unknown[k] || parts->unknown_out[k];
    }
  }
  std::vector<PolicySplit> all;
  for (const ProgramPtr& b : branches) {
    all.push_back(*shared_split(*b, unknown, available, s.policy(), s.mode(), outputs));
    if (!by_policy) drop_known_outputs(all.back());
  }
  return all;
}

Types residual_types(const PolicySplit& parts) {
  const Types in = parts.staged.in_types();
  return {in.begin(), in.begin() + static_cast<std::ptrdiff_t>(parts.residuals)};
}

}  // namespace

void cond_partial_eval(const Equation& e, Split& s) {
  std::vector<bool> unknown = s.unknown_mask(e.in);
  const bool index_unknown = unknown[0];
  if (index_unknown || (!s.is_by_policy() && !any(unknown))) return s.split_plain(e);
  unknown.erase(unknown.begin());
  const std::vector<PolicySplit> parts =
      split_branches(e.params.get<Programs>("branches"), unknown, s);
  std::vector<Types> residuals;
  for (const PolicySplit& p : parts) residuals.push_back(residual_types(p));
  const Slots slots = merge_residuals(residuals);
  Programs known_branches, staged_branches;
  for (std::size_t b = 0; b < parts.size(); ++b) {
    const std::size_t outputs = parts[b].known.out.size() - parts[b].residuals;
    known_branches.push_back(
        with_all_residuals(parts[b].known, outputs, slots.types, slots.of_branch[b]));
    staged_branches.push_back(
        taking_all_residuals(parts[b].staged, slots.types, slots.of_branch[b]));
  }
  Equation known{&cond_p, e.params.with("branches", known_branches), {e.in[0]}, {}, e.at, e.phase};
  Equation staged{&cond_p, e.params.with("branches", staged_branches), {e.in[0]}, {}, e.at,
                  e.phase};
  std::vector<Var> saved;
  for (const Type& t : slots.types) {
    saved.push_back(s.fresh(t));
    staged.in.push_back(Atom::of(saved.back()));
  }
  const bool by_policy = s.is_by_policy();
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const Atom& operand = e.in[i + 1];
    if (!unknown[i]) known.in.push_back(operand);
    if (by_policy || unknown[i]) staged.in.push_back(operand);
  }
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    const bool unknown_out = parts[0].unknown_out[k];
    if (!unknown_out) known.out.push_back(e.out[k]);
    if (by_policy || unknown_out) staged.out.push_back(e.out[k]);
    s.set(e.out[k], unknown_out, by_policy || unknown_out);
  }
  known.out.insert(known.out.end(), saved.begin(), saved.end());
  if (does_something(known)) s.add_known(std::move(known));
  s.add_staged(std::move(staged));
}

// Nothing inside a while is ever saved: known carries are computed now, the full loop comes later.
namespace {

// The condition as the known loop has it.
ProgramPtr condition_of(const WhileLoop& l, const std::vector<bool>& known_carry) {
  auto cond = std::make_shared<Program>(*l.cond);
  cond->in.clear();
  for (std::size_t i = 0; i < l.cond->in.size(); ++i) {
    if (i < l.cond_consts || known_carry[i - l.cond_consts]) cond->in.push_back(l.cond->in[i]);
  }
  return cond;
}

// The known part keeps carries for the reversal of the rest.
void split_kept_while(const Equation& e, Split& s, const std::vector<bool>& unknown,
                      std::vector<bool> known_carry) {
  const WhileLoop l = loop_of(e.params);
  const LoopLength length{std::nullopt, false, l.checkpoints, l.disk_checkpoints};
  const std::vector<bool> in(unknown.begin() + static_cast<std::ptrdiff_t>(l.cond_consts),
                             unknown.end());
  SplitOutputs outputs;
  outputs.unknown = known_carry;
  outputs.unknown.flip();
  const auto parts = shared_split(*l.body, in, in, {}, SplitMode::once, outputs);
  Equation known{&checkpointed_while_p, {}, {}, {}, e.at, e.phase};
  Types carry;
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!known_carry[k]) continue;
    known.out.push_back(e.out[k]);
    carry.push_back(s.type(e.out[k]));
  }
  WhileLoop forward{nullptr,       known_part(parts->known, carry.size()),
                    l.cond_consts, 0,
                    l.checkpoints, l.disk_checkpoints};
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (i >= l.cond_consts && unknown[i]) continue;
    known.in.push_back(e.in[i]);
    forward.body_consts += i >= l.cond_consts && i < l.first_carry() ? 1 : 0;
  }
  forward.cond = condition_of(l, known_carry);
  known.params = while_params(forward);
  std::vector<Var> kept;
  for (const Type& t : kept_types(carry, length)) kept.push_back(s.fresh(t));
  known.out.insert(known.out.end(), kept.begin(), kept.end());
  s.add_known(std::move(known));
  known_carry.flip();
  stage_tangents(e, s, {l.body, length, l.body_consts, e.out.size(), 0}, kept, known_carry);
}

// A carry that the body makes unknown is unknown from the start; if the condition is, all are.
std::vector<bool> settled_unknown(const WhileLoop& l, std::vector<bool> unknown) {
  const std::size_t first = l.first_carry();
  for (bool stable = false; !stable;) {
    stable = true;
    const std::vector<bool> in = part_of(unknown, l.cond_consts, unknown.size());
    const auto parts = shared_split(*l.body, in, in, {}, SplitMode::once);
    std::vector<bool> cond_in = part_of(unknown, 0, l.cond_consts);
    const std::vector<bool> carry = part_of(unknown, first, unknown.size());
    cond_in.insert(cond_in.end(), carry.begin(), carry.end());
    const bool stops_unknown =
        shared_split(*l.cond, cond_in, cond_in, {}, SplitMode::once)->unknown_out[0];
    for (std::size_t k = 0; k < carry.size(); ++k) {
      if (unknown[first + k] || !(parts->unknown_out[k] || stops_unknown)) continue;
      unknown[first + k] = true;
      stable = false;
    }
  }
  return unknown;
}

// The loop over the known carries, on the known side.
void add_known_while(const Equation& e, Split& s, const WhileLoop& l,
                     const std::vector<bool>& known_carry) {
  std::vector<bool> keep = live_inputs(l.body, known_carry);
  std::copy(known_carry.begin(), known_carry.end(),
            keep.begin() + static_cast<std::ptrdiff_t>(l.body_consts));
  Equation known{&while_p, e.params, {}, {}, e.at, e.phase};
  std::int64_t kept_consts = 0;
  for (std::size_t i = 0; i < l.cond_consts; ++i) known.in.push_back(e.in[i]);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    known.in.push_back(e.in[l.cond_consts + i]);
    kept_consts += i < l.body_consts ? 1 : 0;
  }
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (known_carry[k]) known.out.push_back(e.out[k]);
  }
  known.params = e.params.with("body_jaxpr", dce_body(l.body, known_carry, keep))
                     .with("body_nconsts", kept_consts)
                     .with("cond_jaxpr", condition_of(l, known_carry));
  s.add_known(std::move(known));
}

}  // namespace

void while_partial_eval(const Equation& e, Split& s) {
  if (!s.is_by_policy() && !any(s.unknown_mask(e.in))) return s.split_plain(e);
  const WhileLoop l = loop_of(e.params);
  const std::vector<bool> unknown = settled_unknown(l, s.unknown_mask(e.in));
  std::vector<bool> known_carry = part_of(unknown, l.first_carry(), unknown.size());
  known_carry.flip();
  if (any(known_carry)) {
    if (l.checkpoints > 0 && !s.is_by_policy()) return split_kept_while(e, s, unknown, known_carry);
    add_known_while(e, s, l, known_carry);
  }
  Equation staged = e;
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    s.set(e.out[k], !known_carry[k], s.is_by_policy() || !known_carry[k]);
    // Computed again by the full loop, but nobody reads it there.
    if (!s.is_by_policy() && known_carry[k]) staged.out[k] = s.fresh(s.type(e.out[k]));
  }
  s.add_staged(std::move(staged));
}

}  // namespace reprise
