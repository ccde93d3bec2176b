// Splitting a scan between what is known now and what comes later.
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "control/scan_linear.h"
#include "program/effects.h"
#include "transform/partial_eval.h"

#include <algorithm>

namespace reprise {
namespace {

struct ScanSplit {
  PolicySplit body;
  std::vector<bool> unknown_in;  // after the carries have settled
};

// A known carry that becomes unknown in the body is unknown from the start.
ScanSplit split_body(const Program& body, const ScanShape& shape, std::vector<bool> unknown,
                     const Split& s) {
  for (;;) {
    SplitOutputs outputs;
    outputs.all_available = s.mode() == SplitMode::by_policy;
    outputs.unknown.assign(body.out.size(), false);
    for (std::size_t k = 0; k < shape.carry; ++k) outputs.unknown[k] = unknown[shape.consts + k];
    const std::vector<bool> available =
        s.mode() == SplitMode::by_policy ? std::vector<bool>(body.in.size(), true) : unknown;
    ScanSplit result{*shared_split(body, unknown, available, s.policy(), s.mode(), outputs),
                     unknown};
    if (s.mode() == SplitMode::once) drop_known_outputs(result.body);
    bool stable = true;
    for (std::size_t k = 0; k < shape.carry; ++k) {
      if (!result.body.unknown_out[k] || unknown[shape.consts + k]) continue;
      unknown[shape.consts + k] = true;
      stable = false;
    }
    if (stable) return result;
  }
}

std::size_t count_known(const std::vector<bool>& unknown, std::size_t begin, std::size_t end) {
  return static_cast<std::size_t>(std::count(unknown.begin() + static_cast<std::ptrdiff_t>(begin),
                                             unknown.begin() + static_cast<std::ptrdiff_t>(end),
                                             false));
}

// What is known runs as a call around the invariant part and the known loop; the whole loop is
// staged, taking saved values stacked (or as constants where they do not change).
void split_by_policy(const Equation& e, Split& s) {
  const ScanShape shape = scan_shape(e.params);
  const Program& body = *e.params.get<ProgramPtr>("jaxpr");
  const ScanSplit parts = split_body(body, shape, s.unknown_mask(e.in), s);
  const std::vector<bool>& unknown = parts.unknown_in;
  const std::size_t residuals = parts.body.residuals, split_at = shape.consts + shape.carry;
  const std::size_t known_consts = count_known(unknown, 0, shape.consts);
  const std::size_t known_outputs = parts.body.known.out.size() - residuals;
  const HoistPlan plan = plan_hoisting(parts.body.known, known_consts, known_outputs);

  ScanShape known_shape = shape;
  known_shape.consts = plan.needed;
  known_shape.carry = count_known(unknown, shape.consts, split_at);
  std::vector<Atom> known_in;
  Types known_types;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (unknown[i]) continue;
    known_in.push_back(e.in[i]);
    const Type t = e.in[i].is_var() ? s.type(e.in[i].var) : e.in[i].literal.type();
    known_types.push_back(t);
  }
  auto known = [&](const Arrays& args) {
    const Arrays outside = eval(*plan.outside, slice_of(args, 0, known_consts));
    const Arrays loop_args =
        concat(slice_of(outside, 0, plan.needed), slice_of(args, known_consts, args.size()));
    const Arrays loop = bind_scan(known_shape, plan.loop, loop_args);
    return concat(slice_of(outside, plan.needed, outside.size()), loop);
  };
  const AtEquation at(e.at, e.phase);
  const Traced traced =
      trace(known, known_types, {.transform = "checkpoint", .name = body.name, .body = true});

  Equation call{&closed_call_p, {{"call_jaxpr", traced.program}}, known_in, {}, e.at, e.phase};
  std::vector<Var> constant, per_step;
  std::vector<std::size_t> order;  // of the staged body's inputs
  std::vector<std::size_t> moved;
  for (std::size_t r = 0; r < residuals; ++r) {
    const Type& t = parts.body.staged.type(parts.body.staged.in[r]);
    if (plan.invariant[r]) {
      constant.push_back(s.fresh(t));
      order.push_back(r);
    } else {
      per_step.push_back(s.fresh(stacked(t, shape.length)));
      moved.push_back(r);
    }
  }
  call.out = constant;
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!parts.body.unknown_out[k]) call.out.push_back(e.out[k]);
  }
  call.out.insert(call.out.end(), per_step.begin(), per_step.end());
  if (does_something(call)) s.add_known(std::move(call));

  for (std::size_t i = 0; i < body.in.size(); ++i) order.push_back(residuals + i);
  order.insert(order.end(), moved.begin(), moved.end());
  ScanShape staged_shape = shape;
  staged_shape.consts += constant.size();
  Equation staged{&scan_p, scan_params(staged_shape, permute_inputs(parts.body.staged, order)),
                  {},      e.out,
                  e.at,    e.phase};
  for (Var v : constant) staged.in.push_back(Atom::of(v));
  for (const Atom& a : e.in) {
    if (!s.is_available(a)) s.save(a.var);
    staged.in.push_back(a);
  }
  for (Var v : per_step) staged.in.push_back(Atom::of(v));
  for (std::size_t k = 0; k < e.out.size(); ++k) s.set(e.out[k], parts.body.unknown_out[k], true);
  s.add_staged(std::move(staged));
}

// The known loop runs once and returns what the unknown loop needs; inputs are forwarded.
void split_once(const Equation& e, Split& s) {
  const ScanShape shape = scan_shape(e.params);
  const Program& body = *e.params.get<ProgramPtr>("jaxpr");
  const ScanSplit parts = split_body(body, shape, s.unknown_mask(e.in), s);
  const std::vector<bool>& unknown = parts.unknown_in;
  if (shape.checkpoints > 0)
    return split_checkpointed_scan(e, s, parts.body.known, unknown, parts.body.unknown_out);
  const std::size_t split_at = shape.consts + shape.carry, residuals = parts.body.residuals;

  // Residuals that are constants or scanned inputs come straight from the operands.
  std::vector<std::optional<std::size_t>> from(residuals);
  Program known = parts.body.known;
  const std::size_t known_outputs = known.out.size() - residuals;
  std::vector<Atom> out(known.out.begin(),
                        known.out.begin() + static_cast<std::ptrdiff_t>(known_outputs));
  for (std::size_t r = 0; r < residuals; ++r) {
    const Var v = known.out[known_outputs + r].var;
    for (std::size_t i = 0; i < body.in.size(); ++i) {
      const bool carry = i >= shape.consts && i < split_at;
      if (body.in[i] == v && !carry) from[r] = i;
    }
    if (!from[r]) out.push_back(known.out[known_outputs + r]);
  }
  known.out = std::move(out);
  const std::size_t known_consts = count_known(unknown, 0, shape.consts);
  const HoistPlan plan = plan_hoisting(known, known_consts, known_outputs);

  std::vector<Atom> const_args, loop_args;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!unknown[i]) (i < shape.consts ? const_args : loop_args).push_back(e.in[i]);
  }
  const std::vector<Atom> outside = s.splice_known(*plan.outside, const_args);
  ScanShape known_shape = shape;
  known_shape.consts = plan.needed;
  known_shape.carry = count_known(unknown, shape.consts, split_at);
  Equation loop{&scan_p, scan_params(known_shape, plan.loop), {}, {}, e.at, e.phase};
  loop.in.assign(outside.begin(), outside.begin() + static_cast<std::ptrdiff_t>(plan.needed));
  loop.in.insert(loop.in.end(), loop_args.begin(), loop_args.end());
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!parts.body.unknown_out[k]) loop.out.push_back(e.out[k]);
  }
  std::vector<Atom> constant, per_step;
  std::vector<std::size_t> order, moved;
  std::size_t next_hoisted = plan.needed, next_residual = 0;
  for (std::size_t r = 0; r < residuals; ++r) {
    Atom value;
    bool is_constant;
    if (from[r]) {
      value = e.in[*from[r]];
      is_constant = *from[r] < shape.consts;
    } else if (plan.invariant[next_residual++]) {
      value = outside[next_hoisted++];
      is_constant = true;
    } else {
      const Type& t = parts.body.staged.type(parts.body.staged.in[r]);
      loop.out.push_back(s.fresh(stacked(t, shape.length)));
      value = Atom::of(loop.out.back());
      is_constant = false;
    }
    (is_constant ? constant : per_step).push_back(value);
    (is_constant ? order : moved).push_back(r);
  }
  if (does_something(loop)) s.add_known(std::move(loop));

  ScanShape staged_shape = shape;
  staged_shape.consts = constant.size();
  staged_shape.carry = 0;
  Equation staged{&scan_p, {}, constant, {}, e.at, e.phase};
  std::size_t binder = residuals;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!unknown[i]) continue;
    staged.in.push_back(e.in[i]);
    order.push_back(binder++);
    staged_shape.consts += i < shape.consts ? 1 : 0;
    staged_shape.carry += i >= shape.consts && i < split_at ? 1 : 0;
  }
  staged.in.insert(staged.in.end(), per_step.begin(), per_step.end());
  order.insert(order.end(), moved.begin(), moved.end());
  staged.params = scan_params(staged_shape, permute_inputs(parts.body.staged, order));
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (parts.body.unknown_out[k]) staged.out.push_back(e.out[k]);
    s.set(e.out[k], parts.body.unknown_out[k], parts.body.unknown_out[k]);
  }
  s.add_staged(std::move(staged));
}

}  // namespace

void scan_partial_eval(const Equation& e, Split& s) {
  if (s.mode() == SplitMode::by_policy) return split_by_policy(e, s);
  const std::vector<bool> unknown = s.unknown_mask(e.in);
  const bool any = std::any_of(unknown.begin(), unknown.end(), [](bool u) { return u; });
  if (any)
    split_once(e, s);
  else
    s.split_plain(e);
}

}  // namespace reprise
