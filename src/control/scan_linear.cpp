//   linearize:  scan: (consts, init, xs) -> (carry, ys)
//     =>  outside:     consts -> loop-invariant values
//         primal scan: (used constants, init, xs) -> (carry, ys, stacked residuals)
//         linear scan: (constant residuals, dconsts, dinit, dxs, stacked residuals) -> (dcarry, dys)
#include "control/scan_linear.h"

#include "control/body.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "ops/lax.h"
#include "program/effects.h"
#include "transform/closure_order.h"
#include "transform/jvp.h"
#include "transform/partial_eval.h"
#include "transform/transpose.h"

#include <algorithm>

namespace reprise {
namespace {

// The linearized body for the smallest set of carries that can be nonzero.
std::shared_ptr<const LinearizedProgram> linearize_body(const Program& body, const ScanShape& s,
                                                        std::vector<bool>& active) {
  std::vector<bool> may_forward(body.in.size(), true);  // a carry changes: never forwarded
  for (std::size_t k = 0; k < s.carry; ++k) may_forward[s.consts + k] = false;
  for (;;) {
    std::vector<bool> instantiate(body.out.size());
    for (std::size_t k = 0; k < s.carry; ++k) instantiate[k] = active[s.consts + k];
    auto lin = linearize_program(body, active, instantiate, may_forward);
    bool stable = true;
    for (std::size_t k = 0; k < s.carry; ++k) {
      if (!lin->nonzero[k] || active[s.consts + k]) continue;
      active[s.consts + k] = true;
      stable = false;
    }
    if (stable) return lin;
  }
}

// Whole equations only: JAX does not look into calls here.
void drop_unread(Program& p) {
  std::vector<bool> read(p.types.size());
  const auto mark = [&](const Atom& a) {
    if (a.is_var()) read[static_cast<std::size_t>(a.var)] = true;
  };
  std::for_each(p.out.begin(), p.out.end(), mark);
  std::vector<Equation> kept;
  for (std::size_t i = p.eqns.size(); i-- > 0;) {
    Equation& e = p.eqns[i];
    const bool is_read = std::any_of(e.out.begin(), e.out.end(),
                                     [&](Var v) { return read[static_cast<std::size_t>(v)]; });
    if (!is_read && !effect_of(e).is_kept) continue;
    std::for_each(e.in.begin(), e.in.end(), mark);
    kept.push_back(std::move(e));
  }
  p.eqns.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

// Those residuals that are still read: as a program lists what it closes over, then what only
// effects read.
std::vector<Var> read_in_order(const Program& p, const std::vector<Var>& residuals) {
  std::vector<bool> is_open(p.types.size());
  for (Var v : residuals) is_open[static_cast<std::size_t>(v)] = true;
  std::vector<Var> order = closure_order(p, is_open);
  for (Var v : order) is_open[static_cast<std::size_t>(v)] = false;
  for (const Equation& e : p.eqns) {
    for (const Atom& a : e.in) {
      if (!a.is_var() || !is_open[static_cast<std::size_t>(a.var)]) continue;
      is_open[static_cast<std::size_t>(a.var)] = false;
      order.push_back(a.var);
    }
  }
  return order;
}

}  // namespace

HoistPlan plan_hoisting(const Program& body, std::size_t consts, std::size_t primal_outputs) {
  std::vector<bool> varying(consts, false);
  varying.resize(body.in.size(), true);
  SplitOutputs outputs;  // the loop returns its primal outputs also where they do not vary
  outputs.unknown.assign(primal_outputs, true);
  PolicySplit parts = split_invariant(body, varying, outputs);
  drop_known_outputs(parts);
  Program &outside = parts.known, &loop = parts.staged;
  drop_unread(loop);
  const auto first_input = loop.in.begin() + static_cast<std::ptrdiff_t>(parts.residuals);
  const std::vector<Var> residuals(loop.in.begin(), first_input);
  loop.in.erase(loop.in.begin(), first_input);
  const std::vector<Var> needed = read_in_order(loop, residuals);
  loop.in.insert(loop.in.begin(), needed.begin(), needed.end());

  HoistPlan plan;
  plan.needed = needed.size();
  for (std::size_t k = primal_outputs; k < body.out.size(); ++k)
    plan.invariant.push_back(!parts.unknown_out[k]);
  outside.out.resize(outside.out.size() - parts.residuals);
  for (std::size_t i = needed.size(); i-- > 0;)
    outside.out.insert(outside.out.begin(), Atom::of(needed[i]));
  plan.outside = std::make_shared<const Program>(std::move(outside));
  plan.loop = std::make_shared<const Program>(std::move(loop));
  return plan;
}

Duals scan_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  const ScanShape s = scan_shape(params);
  if (s.checkpoints > 0) {
    Duals d = linearize_checkpointed(checkpointed_scan_p, x, dx, params);
    d.out.resize(d.tangents.size());
    return d;
  }
  const Program& body = *params.get<ProgramPtr>("jaxpr");
  std::vector<bool> active = nonzero_mask(dx);
  const auto lin = linearize_body(body, s, active);
  const std::size_t consts = lin->consts.size() + s.consts;
  const auto plan = derive<HoistPlan>(*lin->known, str("hoist", consts), [&] {
    return plan_hoisting(*lin->known, consts, body.out.size());
  });
  const Arrays outside = eval(*plan->outside, concat(lin->consts, slice_of(x, 0, s.consts)));
  ScanShape primal = s;
  primal.consts = plan->needed;
  Arrays out;
  if (!plan->loop->out.empty() || effects_of(*plan->loop).is_kept) {
    out = bind_scan(primal, plan->loop,
                    concat(slice_of(outside, 0, plan->needed), slice_of(x, s.consts, x.size())));
  }
  // Residuals that differ from step to step come stacked, after the tangents.
  Arrays constant, stacked;
  std::vector<std::size_t> order, stacked_order;
  std::size_t next_out = body.out.size(), next_invariant = plan->needed, next_residual = 0;
  for (std::size_t r = 0; r < lin->forwarded.size(); ++r) {
    const auto& input = lin->forwarded[r];
    const bool is_constant = input ? *input < s.consts : plan->invariant[next_residual];
    Array value;
    if (input) {
      value = x[*input];
    } else {
      value = plan->invariant[next_residual++] ? outside[next_invariant++] : out[next_out++];
    }
    (is_constant ? constant : stacked).push_back(value);
    (is_constant ? order : stacked_order).push_back(r);
  }
  ScanShape linear = s;
  linear.consts = constant.size();
  linear.carry = 0;
  Arrays args = constant;
  std::size_t binder = lin->forwarded.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!active[i]) continue;
    args.push_back(dx[i] ? *dx[i] : linear_zeros(dx, x[i].type()));
    order.push_back(binder++);
    linear.consts += i < s.consts ? 1 : 0;
    linear.carry += i >= s.consts && i < s.consts + s.carry ? 1 : 0;
  }
  order.insert(order.end(), stacked_order.begin(), stacked_order.end());
  const auto linear_body =
      derive<ProgramPtr>(*lin->linear, str("scan_linear", s.consts, ",", s.carry),
                         [&] { return permute_inputs(*lin->linear, order); });
  const Arrays tangents = bind_scan(linear, *linear_body, concat(args, stacked));
  out.resize(body.out.size());
  return {std::move(out), spread(lin->nonzero, tangents)};
}

namespace {

// The body whose carry has the weakness of its results: cotangents of the carry start with theirs.
Program with_settled_carry(const Program& body, const ScanShape& s) {
  Program settled = body;
  for (std::size_t k = 0; k < s.carry; ++k) {
    const auto carry = static_cast<std::size_t>(body.in[s.consts + k]);
    settled.types[carry].weak_type = body.type(body.out[k]).weak_type;
  }
  return settled;
}

// Which inputs of a linear scan are linear, and how many of them there are.
struct LinearScan {
  ScanShape shape;
  std::vector<bool> linear;  // per input; a carry whose tangent starts as zero is linear, too

  LinearScan(const ScanShape& s, const Primals& x) : shape(s) {
    for (std::size_t i = 0; i < x.size(); ++i)
      linear.push_back(!x[i] || (i >= s.consts && i < first_x()));
  }
  std::size_t first_x() const { return shape.consts + shape.carry; }
  std::size_t count(std::size_t begin, std::size_t end) const {
    return static_cast<std::size_t>(std::count(linear.begin() + static_cast<std::ptrdiff_t>(begin),
                                               linear.begin() + static_cast<std::ptrdiff_t>(end),
                                               true));
  }
  std::size_t linear_consts() const { return count(0, shape.consts); }
};

// One step of the transposed loop: [constant residuals, ct of consts, ct carry, ct ys, stacked
// residuals] -> [ct of consts, ct carry, ct of xs].
Arrays transposed_step(const Program& settled, const LinearScan& l, const std::vector<bool>& given,
                       const Arrays& a) {
  const Types body_in = settled.in_types();
  const std::size_t inputs = l.linear.size(), first_x = l.first_x();
  std::size_t next = 0, stacked = a.size() - (inputs - first_x - l.count(first_x, inputs));
  Primals primals(inputs);
  for (std::size_t i = 0; i < l.shape.consts; ++i) {
    if (!l.linear[i]) primals[i] = a[next++];
  }
  for (std::size_t i = first_x; i < inputs; ++i) {
    if (!l.linear[i]) primals[i] = a[stacked++];
  }
  Tangents initial, cts;
  for (std::size_t i = 0; i < l.linear_consts(); ++i) initial.emplace_back(a[next++]);
  initial.resize(l.count(0, inputs));
  for (bool g : given) cts.push_back(g ? Tangent(a[next++]) : std::nullopt);
  Arrays out;
  const Tangents back = backward(settled, std::move(primals), std::move(cts), std::move(initial));
  std::size_t input = 0;
  for (std::size_t k = 0; k < back.size(); ++k, ++input) {
    while (!l.linear[input]) ++input;
    out.push_back(back[k] ? *back[k] : lax::zeros(body_in[input]));
  }
  return out;
}

}  // namespace

// Binders of the linear scan: [constant residuals, dconsts, dcarry, dxs, stacked residuals].
// Transposed: consts [constant residuals], carry [ct of consts, ct carry], xs [ct ys, stacked
// residuals]; results: ct of consts, ct carry, ct of xs.
Tangents scan_transpose(const Tangents& ct, const Primals& x, const Types& in,
                        const Params& params) {
  const ScanShape s = scan_shape(params);
  const Program& body = *params.get<ProgramPtr>("jaxpr");
  const Types body_in = body.in_types(), body_out = body.out_types();
  const LinearScan l(s, x);
  Arrays args;
  Types types;
  auto take = [&](const Array& a, const Type& t) {
    args.push_back(a);
    types.push_back(t);
  };
  for (std::size_t i = 0; i < s.consts; ++i) {
    if (!l.linear[i]) take(*x[i], body_in[i]);
  }
  const std::size_t residuals = args.size();
  Arrays ct_carry;
  for (std::size_t k = 0; k < s.carry; ++k)
    ct_carry.push_back(ct[k] ? *ct[k] : lax::zeros(body_out[k]));
  for (std::size_t i = 0; i < s.consts; ++i) {
    if (l.linear[i]) take(lax::zeros(in[i]), body_in[i]);
  }
  for (std::size_t k = 0; k < s.carry; ++k) take(ct_carry[k], body_out[k]);
  std::vector<bool> given(body.out.size(), true);
  for (std::size_t k = s.carry; k < body.out.size(); ++k) {
    given[k] = ct[k].has_value();
    if (ct[k]) take(*ct[k], body_out[k]);
  }
  for (std::size_t i = l.first_x(); i < x.size(); ++i) {
    if (!l.linear[i]) take(*x[i], body_in[i]);
  }
  const std::string key =
      mask_key(str("scan_transpose", s.consts, ",", s.carry), l.linear) + mask_key("/", given);
  const auto transposed = derive<Traced>(body, key, [&] {
    const Program settled = with_settled_carry(body, s);
    auto step = [&](const Arrays& a) { return transposed_step(settled, l, given, a); };
    return trace(step, types, {.transform = "transpose", .name = body.name, .body = true});
  });
  ScanShape shape = s;
  shape.reverse = !s.reverse;
  shape.consts = transposed->consts.size() + residuals;
  shape.carry = l.count(0, l.first_x());
  const Arrays back = bind_scan(shape, transposed->program, concat(transposed->consts, args));
  Tangents result(x.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (l.linear[i]) result[i] = back[next++];
  }
  return result;
}

}  // namespace reprise
