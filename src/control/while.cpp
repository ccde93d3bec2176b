// while: repeat a body as long as a condition holds.
//
//   while: (cond consts, body consts, init) -> carry
#include "control/while.h"

#include "control/body.h"
#include "control/checkpointed.h"
#include "control/cond.h"
#include "control/records.h"
#include "ops/lax.h"
#include "transform/jvp.h"
#include "transform/vmap.h"

#include <algorithm>

namespace reprise {

WhileLoop loop_of(const Params& p) {
  return {p.get<ProgramPtr>("cond_jaxpr"),
          p.get<ProgramPtr>("body_jaxpr"),
          static_cast<std::size_t>(p.get<std::int64_t>("cond_nconsts")),
          static_cast<std::size_t>(p.get<std::int64_t>("body_nconsts")),
          count_or_none(p, "checkpoints"),
          count_or_none(p, "disk_checkpoints")};
}
Params while_params(const WhileLoop& l) {
  const Params params{{"body_jaxpr", l.body},
                      {"body_nconsts", static_cast<std::int64_t>(l.body_consts)},
                      {"cond_jaxpr", l.cond},
                      {"cond_nconsts", static_cast<std::int64_t>(l.cond_consts)}};
  return with_budget(params, l.checkpoints, l.disk_checkpoints);
}
Arrays bind_while(const WhileLoop& l, const Arrays& args) {
  return while_p.bind(args, while_params(l));
}

namespace {

Types while_type(const Types& in, const Params& params) {
  const auto cond_consts = params.get<std::int64_t>("cond_nconsts");
  const auto body_consts = params.get<std::int64_t>("body_nconsts");
  const auto operands = static_cast<std::int64_t>(in.size());
  if (cond_consts < 0 || body_consts < 0 || cond_consts > operands ||
      body_consts > operands - cond_consts) {
    fail<TypeError>("while: the counts do not fit, got ", cond_consts, " and ", body_consts,
                    " constants of ", operands, " operands");
  }
  check_budget("while_loop", params, std::nullopt);
  const WhileLoop l = loop_of(params);
  Types for_cond(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(l.cond_consts));
  for_cond.insert(for_cond.end(), in.begin() + static_cast<std::ptrdiff_t>(l.first_carry()),
                  in.end());
  check_operands("while", *l.cond, for_cond);
  check_operands("while", *l.body, in, l.cond_consts);
  const Types pred = l.cond->out_types();
  if (pred.size() != 1 || pred[0].dtype != Dtype::bool_) {
    fail<TypeError>("while_loop: the condition must return one bool, got ", join(pred, ", "));
  }
  check_decision("while_loop", pred[0], *l.cond);
  check_decision("while_loop", pred[0], *l.body);
  const Types out = l.body->out_types();
  bool same = out.size() + l.first_carry() == in.size();
  for (std::size_t k = 0; same && k < out.size(); ++k) {
    const Type& carry = in[l.first_carry() + k];
    same = carry.shape == out[k].shape && carry.dtype == out[k].dtype;
  }
  if (!same) fail<TypeError>("while: the carry must keep its types, got ", join(out, ", "), " out");
  const Shape& front = pred[0].shape;  // of a mapped loop: each element has a condition
  for (const Type& t : out) {
    if (t.ndim() >= pred[0].ndim() && std::equal(front.begin(), front.end(), t.shape.begin()))
      continue;
    fail<TypeError>("while: a carry must have the dimensions of the condition in front, got ", t,
                    " for ", pred[0]);
  }
  return out;
}

Arrays while_eval(const Arrays& x, const Params& params, const Types&) {
  const WhileLoop l = loop_of(params);
  const Arrays cond_consts = slice_of(x, 0, l.cond_consts);
  const Arrays body_consts = slice_of(x, l.cond_consts, l.first_carry());
  Arrays carry = slice_of(x, l.first_carry(), x.size());
  for (;;) {
    const Array more = eval(*l.cond, concat(cond_consts, carry))[0];
    if (!*elements<bool>(l.is_mapped() ? any_more(more) : more)) return carry;
    Arrays next = eval(*l.body, concat(body_consts, carry));
    carry = l.is_mapped() ? where_more(more, next, carry) : std::move(next);
  }
}

}  // namespace

LoopJvp jvp_while(const Arrays& x, const Tangents& dx, const Params& params) {
  const WhileLoop l = loop_of(params);
  std::vector<bool> active = nonzero_mask(dx);
  const auto body_mask = [&] {
    return std::vector<bool>(active.begin() + static_cast<std::ptrdiff_t>(l.cond_consts),
                             active.end());
  };
  std::shared_ptr<const JvpProgram> j;
  for (bool stable = false; !stable;) {
    stable = true;
    const std::vector<bool> carry(active.begin() + static_cast<std::ptrdiff_t>(l.first_carry()),
                                  active.end());
    j = jvp_program(*l.body, body_mask(), carry);
    for (std::size_t k = 0; k < carry.size(); ++k) {
      if (!j->nonzero_out[k] || carry[k]) continue;
      active[l.first_carry() + k] = true;
      stable = false;
    }
  }
  LoopJvp result;
  result.nonzero = j->nonzero_out;
  // Binders [consts, carry | dconsts, dcarry] become [consts, dconsts, carry, dcarry].
  auto body = std::make_shared<Program>(*j->program);
  auto cond = std::make_shared<Program>(*l.cond);
  const std::size_t extra = j->consts.size(), inputs = l.body->in.size();
  std::vector<Var> in(body->in.begin(), body->in.begin() + static_cast<std::ptrdiff_t>(extra));
  result.args = concat(slice_of(x, 0, l.cond_consts), j->consts);
  result.is_tangent.assign(extra, false);
  result.extra_consts = extra;
  std::size_t dot = extra + inputs;
  const std::size_t bounds[3] = {0, l.body_consts, inputs};
  WhileLoop looped{nullptr,       nullptr,           l.cond_consts, extra + l.body_consts,
                   l.checkpoints, l.disk_checkpoints};
  for (std::size_t g = 0; g < 2; ++g) {
    for (std::size_t i = bounds[g]; i < bounds[g + 1]; ++i) {
      in.push_back(j->program->in[extra + i]);
      result.is_tangent.push_back(false);
      result.args.push_back(x[l.cond_consts + i]);
    }
    for (std::size_t i = bounds[g]; i < bounds[g + 1]; ++i) {
      if (!active[l.cond_consts + i]) continue;
      const Array& primal = x[l.cond_consts + i];
      const Tangent& t = dx[l.cond_consts + i];
      in.push_back(j->program->in[dot++]);
      result.is_tangent.push_back(true);
      result.args.push_back(t ? *t : instantiate_zeros(primal.type()));
      if (g == 0) ++looped.body_consts;
      if (g == 1) cond->in.push_back(cond->fresh(tangent_type(primal.type())));
    }
  }
  body->in = std::move(in);
  looped.body = std::move(body);
  looped.cond = std::move(cond);
  result.loop = std::move(looped);
  return result;
}

namespace {

Duals while_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const LoopJvp j = jvp_while(x, dx, params);
  const Arrays out = bind_while(j.loop, j.args);
  const std::size_t carry = j.nonzero.size();
  return {slice_of(out, 0, carry), spread(j.nonzero, out, carry)};
}

// The part of a differentiated body that needs no tangents, with what only the tangents would read
// (JAX runs it too); null if a call computes a primal and a tangent at once.
ProgramPtr primal_part(const Program& body, const std::vector<bool>& is_tangent,
                       std::size_t carries) {
  auto primal = std::make_shared<Program>(body);
  std::vector<bool> unknown(body.types.size());
  auto is_unknown = [&](const Atom& a) {
    return a.is_var() && unknown[static_cast<std::size_t>(a.var)];
  };
  primal->in.clear();
  for (std::size_t i = 0; i < body.in.size(); ++i) {
    if (!is_tangent[i]) primal->in.push_back(body.in[i]);
    unknown[static_cast<std::size_t>(body.in[i])] = is_tangent[i];
  }
  primal->eqns.clear();
  for (const Equation& e : body.eqns) {
    const bool skip = std::any_of(e.in.begin(), e.in.end(), is_unknown);
    if (!skip) primal->eqns.push_back(e);
    for (Var v : e.out) unknown[static_cast<std::size_t>(v)] = skip;
  }
  primal->out.resize(carries);
  if (std::any_of(primal->out.begin(), primal->out.end(), is_unknown)) return nullptr;
  return primal;
}

// The primal loop runs now; the whole differentiated loop is recorded for later.
Duals while_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  if (params.find("checkpoints") != nullptr) {
    Duals d = linearize_checkpointed(checkpointed_while_p, x, dx, params);
    d.out.resize(d.tangents.size());
    return d;
  }
  const LoopJvp j = jvp_while(x, dx, params);
  WhileLoop primal = loop_of(params);
  Arrays args = x;
  if (ProgramPtr body = primal_part(*j.loop.body, j.is_tangent, j.nonzero.size())) {
    args = slice_of(x, 0, primal.cond_consts);
    for (std::size_t i = 0; i < j.is_tangent.size(); ++i) {
      if (!j.is_tangent[i]) args.push_back(j.args[primal.cond_consts + i]);
    }
    primal.body_consts += j.extra_consts;
    primal.body = std::move(body);
  }
  Arrays out = bind_while(primal, args);
  const Arrays both = bind_while(j.loop, j.args);
  return {std::move(out), spread(j.nonzero, both, j.nonzero.size())};
}

Tangents while_transpose(const Tangents&, const Primals&, const Types&, const Params&) {
  fail_with_hint<RuleError>(
      "give .checkpoints, or use scan, or fori_loop with C++ integers as bounds",
      "while_loop: reverse-mode differentiation needs a known number of steps, got a while_loop or "
      "a "
      "fori_loop with traced bounds");
}

// The condition of a loop with checkpoints is asked once for all elements: its reversal has one
// length.
Batched while_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                    const Params& params) {
  const BatchedWhile b = batched_while(loop_of(params), x, axes, n);
  if (b.loop.checkpoints > 0 && b.loop.is_mapped())
    return {bind_with_one_predicate(b.loop, b.args), b.axes};
  return {bind_while(b.loop, b.args), b.axes};
}

}  // namespace

BatchedWhile batched_while(const WhileLoop& l, const Arrays& x, const Axes& axes, std::int64_t n) {
  const std::size_t first = l.first_carry(), carries = x.size() - first;
  Axes cond_axes(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(l.cond_consts));
  const Axes body_const_axes(axes.begin() + static_cast<std::ptrdiff_t>(l.cond_consts),
                             axes.begin() + static_cast<std::ptrdiff_t>(first));
  std::vector<bool> mapped =
      mapped_mask(Axes(axes.begin() + static_cast<std::ptrdiff_t>(first), axes.end()));
  const auto carry_axes = [&] {
    Axes a;
    for (bool m : mapped) a.push_back(m ? Axis(0) : std::nullopt);
    return a;
  };
  for (bool stable = false; !stable;) {
    stable = true;
    const auto b = batched_program(*l.body, concat_masks(body_const_axes, carry_axes()), n,
                                   OutAxes::front, mapped);
    for (std::size_t k = 0; k < carries; ++k) {
      if (!b->out_axes[k] || mapped[k]) continue;
      mapped[k] = true;
      stable = false;
    }
  }
  auto cond = batched_program(*l.cond, concat_masks(cond_axes, carry_axes()), n, OutAxes::front);
  if (cond->out_axes[0] || l.is_mapped()) {  // one predicate per element: every carry is mapped
    mapped.assign(carries, true);
    cond =
        batched_program(*l.cond, concat_masks(cond_axes, carry_axes()), n, OutAxes::front, {true});
  }
  const auto body = batched_program(*l.body, concat_masks(body_const_axes, carry_axes()), n,
                                    OutAxes::front, mapped);
  Arrays args = concat(cond->consts, slice_of(x, 0, l.cond_consts));
  args = concat(concat(args, body->consts), slice_of(x, l.cond_consts, first));
  for (std::size_t k = 0; k < carries; ++k) {
    args.push_back(mapped[k] ? axis_at(x[first + k], axes[first + k], 0, n) : x[first + k]);
  }
  WhileLoop loop{cond->program,
                 body->program,
                 l.cond_consts + cond->consts.size(),
                 l.body_consts + body->consts.size(),
                 l.checkpoints,
                 l.disk_checkpoints};
  return {std::move(loop), std::move(args), carry_axes()};
}

namespace {

constexpr ParamRule while_rules[] = {
    {"body_jaxpr", form::program},          {"body_nconsts", form::integer, "0"},
    {"checkpoints", form::integer, absent}, {"cond_jaxpr", form::program},
    {"cond_nconsts", form::integer, "0"},   {"disk_checkpoints", form::integer, absent}};

}  // namespace

constinit const Primitive while_p{.name = "while",
                                  .kind = Kind::call,
                                  .type = while_type,
                                  .eval = while_eval,
                                  .jvp = while_jvp,
                                  .linearize = while_linearize,
                                  .transpose = while_transpose,
                                  .batch = while_batch,
                                  .partial_eval = while_partial_eval,
                                  .param_rules = while_rules};

}  // namespace reprise
