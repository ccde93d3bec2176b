// Splitting a scan between what is known now and what comes later.
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "control/scan_linear.h"
#include "program/effects.h"
#include "transform/forward.h"
#include "transform/partial_eval.h"

#include <algorithm>

namespace reprise {
namespace {

struct ScanSplit {
  PolicySplit body;
  std::vector<bool> unknown_in;  // after the carries have settled
  std::size_t known_outputs() const { return body.known.out.size() - body.residuals; }
};

// A known carry that becomes unknown in the body is unknown from the start.
ScanSplit split_settled(const Program& body, const ScanShape& shape, std::vector<bool> unknown,
                        const Split& s) {
  for (;;) {
    SplitOutputs outputs;
    outputs.all_available = s.is_by_policy();
    outputs.unknown.assign(body.out.size(), false);
    for (std::size_t k = 0; k < shape.carry; ++k) outputs.unknown[k] = unknown[shape.consts + k];
    const std::vector<bool> available =
        s.is_by_policy() ? std::vector<bool>(body.in.size(), true) : unknown;
    ScanSplit result{*shared_split(body, unknown, available, s.policy(), s.mode(), outputs),
                     unknown};
    if (!s.is_by_policy()) drop_known_outputs(result.body);
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

// The known loop, with the constants that the plan leaves it.
ScanShape known_shape(const ScanShape& shape, const HoistPlan& plan,
                      const std::vector<bool>& unknown) {
  ScanShape known = shape;
  known.consts = plan.needed;
  known.carry = count_known(unknown, shape.consts, shape.consts + shape.carry);
  return known;
}

// Residuals as operands of the staged loop: those that no step changes come first, as constants,
// the others last, stacked.
struct LoopResiduals {
  std::vector<Atom> constant, per_step;
  std::vector<std::size_t> constant_at, per_step_at;  // among the inputs of the staged body

  void add(std::size_t r, const Atom& value, bool is_constant) {
    (is_constant ? constant : per_step).push_back(value);
    (is_constant ? constant_at : per_step_at).push_back(r);
  }
  // The staged body's inputs in the order of the loop's operands: `others` of them, from `first`.
  std::vector<std::size_t> order(std::size_t first, std::size_t others) const {
    std::vector<std::size_t> all = constant_at;
    for (std::size_t i = 0; i < others; ++i) all.push_back(first + i);
    all.insert(all.end(), per_step_at.begin(), per_step_at.end());
    return all;
  }
};

// The invariant part and the known loop as one program.
Traced known_loop(const Equation& e, const Split& s, const ScanSplit& parts, const HoistPlan& plan,
                  const std::vector<Atom>& operands) {
  const ScanShape shape = scan_shape(e.params);
  const std::size_t consts = count_known(parts.unknown_in, 0, shape.consts);
  Types types;
  for (const Atom& a : operands) {
    const Type t = a.is_var() ? s.type(a.var) : a.literal.type();
    types.push_back(t);
  }
  auto known = [&](const Arrays& args) {
    const Arrays outside = eval(*plan.outside, slice_of(args, 0, consts));
    const Arrays loop_args =
        concat(slice_of(outside, 0, plan.needed), slice_of(args, consts, args.size()));
    const Arrays loop = bind_scan(known_shape(shape, plan, parts.unknown_in), plan.loop, loop_args);
    return concat(slice_of(outside, plan.needed, outside.size()), loop);
  };
  const AtEquation at(e.at, e.phase);
  const std::string& name = e.params.get<ProgramPtr>("jaxpr")->name;
  return trace(known, types, {.transform = "checkpoint", .name = name, .body = true});
}

// What is known runs as a call around the invariant part and the known loop; the whole loop is
// staged, taking saved values stacked (or as constants where they do not change).
void split_repeated_scan(const Equation& e, Split& s) {
  const ScanShape shape = scan_shape(e.params);
  const Program& body = *e.params.get<ProgramPtr>("jaxpr");
  const ScanSplit parts = split_settled(body, shape, s.unknown_mask(e.in), s);
  const std::size_t residuals = parts.body.residuals;
  const HoistPlan plan = plan_hoisting(
      parts.body.known, count_known(parts.unknown_in, 0, shape.consts), parts.known_outputs());
  Equation call{&closed_call_p, {}, {}, {}, e.at, e.phase};
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!parts.unknown_in[i]) call.in.push_back(e.in[i]);
  }
  call.params = {{"call_jaxpr", known_loop(e, s, parts, plan, call.in).program}};
  LoopResiduals saved;
  for (std::size_t r = 0; r < residuals; ++r) {
    const Type& t = parts.body.staged.type(parts.body.staged.in[r]);
    const Type& made = plan.invariant[r] ? t : stacked(t, shape.length);
    saved.add(r, Atom::of(s.fresh(made)), plan.invariant[r]);
  }
  for (const Atom& a : saved.constant) call.out.push_back(a.var);
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!parts.body.unknown_out[k]) call.out.push_back(e.out[k]);
  }
  for (const Atom& a : saved.per_step) call.out.push_back(a.var);
  if (does_something(call)) s.add_known(std::move(call));

  ScanShape staged_shape = shape;
  staged_shape.consts += saved.constant.size();
  const std::vector<std::size_t> order = saved.order(residuals, body.in.size());
  Equation staged{&scan_p, scan_params(staged_shape, permute_inputs(parts.body.staged, order)),
                  {},      e.out,
                  e.at,    e.phase};
  staged.in = saved.constant;
  for (const Atom& a : e.in) {
    if (!s.is_available(a)) s.save(a.var);
    staged.in.push_back(a);
  }
  staged.in.insert(staged.in.end(), saved.per_step.begin(), saved.per_step.end());
  for (std::size_t k = 0; k < e.out.size(); ++k) s.set(e.out[k], parts.body.unknown_out[k], true);
  s.add_staged(std::move(staged));
}

// The known loop, added to the known side; the residuals that it gives the staged loop. Those that
// are constants or scanned inputs come straight from the operands.
LoopResiduals add_known_loop(const Equation& e, Split& s, const ScanShape& shape,
                             const ScanSplit& parts) {
  const std::vector<bool>& unknown = parts.unknown_in;
  const std::size_t known_consts = count_known(unknown, 0, shape.consts);
  std::vector<Atom> operands;
  std::vector<bool> is_same;  // in every step, or the step's own
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (unknown[i]) continue;
    operands.push_back(e.in[i]);
    is_same.push_back(i < shape.consts || i >= shape.consts + shape.carry);
  }
  const Forwarded known =
      forward_outputs(parts.body.known, {parts.known_outputs(), Forwarding::never, false, is_same});
  const HoistPlan plan = plan_hoisting(*known.program, known_consts, parts.known_outputs());

  const auto loop_operands = operands.begin() + static_cast<std::ptrdiff_t>(known_consts);
  const std::vector<Atom> outside =
      s.splice_known(*plan.outside, {operands.begin(), loop_operands});
  Equation loop{&scan_p, scan_params(known_shape(shape, plan, unknown), plan.loop), {}, {}, e.at,
                e.phase};
  loop.in.assign(outside.begin(), outside.begin() + static_cast<std::ptrdiff_t>(plan.needed));
  loop.in.insert(loop.in.end(), loop_operands, operands.end());
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!parts.body.unknown_out[k]) loop.out.push_back(e.out[k]);
  }
  LoopResiduals result;
  std::size_t next_hoisted = plan.needed, next_residual = 0;
  for (std::size_t r = 0; r < parts.body.residuals; ++r) {
    const OutputSource& from = known.from[parts.known_outputs() + r];
    if (from.is_input()) {
      result.add(r, operands[from.index], from.index < known_consts);
    } else if (plan.invariant[next_residual++]) {
      result.add(r, outside[next_hoisted++], true);
    } else {
      const Type& t = parts.body.staged.type(parts.body.staged.in[r]);
      loop.out.push_back(s.fresh(stacked(t, shape.length)));
      result.add(r, Atom::of(loop.out.back()), false);
    }
  }
  if (does_something(loop)) s.add_known(std::move(loop));
  return result;
}

// The known loop runs once and returns what the unknown loop needs.
void split_scan_once(const Equation& e, Split& s) {
  const ScanShape shape = scan_shape(e.params);
  const Program& body = *e.params.get<ProgramPtr>("jaxpr");
  const ScanSplit parts = split_settled(body, shape, s.unknown_mask(e.in), s);
  const std::vector<bool>& unknown = parts.unknown_in;
  if (shape.checkpoints > 0)
    return split_checkpointed_scan(e, s, parts.body.known, unknown, parts.body.unknown_out);
  const LoopResiduals saved = add_known_loop(e, s, shape, parts);
  ScanShape staged_shape = shape;
  staged_shape.consts = saved.constant.size();
  staged_shape.carry = 0;
  Equation staged{&scan_p, {}, saved.constant, {}, e.at, e.phase};
  std::size_t operands = 0;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!unknown[i]) continue;
    staged.in.push_back(e.in[i]);
    ++operands;
    staged_shape.consts += i < shape.consts ? 1 : 0;
    staged_shape.carry += i >= shape.consts && i < shape.consts + shape.carry ? 1 : 0;
  }
  staged.in.insert(staged.in.end(), saved.per_step.begin(), saved.per_step.end());
  const std::vector<std::size_t> order = saved.order(parts.body.residuals, operands);
  staged.params = scan_params(staged_shape, permute_inputs(parts.body.staged, order));
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (parts.body.unknown_out[k]) staged.out.push_back(e.out[k]);
    s.set(e.out[k], parts.body.unknown_out[k], parts.body.unknown_out[k]);
  }
  s.add_staged(std::move(staged));
}

}  // namespace

void scan_partial_eval(const Equation& e, Split& s) {
  if (s.is_by_policy()) return split_repeated_scan(e, s);
  const std::vector<bool> unknown = s.unknown_mask(e.in);
  const bool any = std::any_of(unknown.begin(), unknown.end(), [](bool u) { return u; });
  if (any)
    split_scan_once(e, s);
  else
    s.split_plain(e);
}

}  // namespace reprise
