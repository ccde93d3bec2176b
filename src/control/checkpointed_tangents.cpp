// The tangents of a checkpointed loop: computed by a plain loop, transposed to the loop's reversal.
//
//   transpose:  body: (consts, carry, x) -> (carry, y), linear in some    =>
//     advance: the part of the body that makes the kept carries
//     step:    the body's known part, then its linear part transposed; cotangents of constants are
//     summed over the steps
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "ops/lax.h"
#include "transform/dce.h"
#include "transform/partial_eval.h"
#include "transform/transpose.h"

#include <algorithm>

namespace reprise {
namespace {

void check_kept(const char* op, const Types& in, const Types& carry, const LoopLength& l) {
  const Types kept = kept_types(carry, l);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (in[i].dtype == kept[i].dtype && in[i].shape == kept[i].shape) continue;
    fail<TypeError>(op, ": operand ", i, " must be what the loop kept, got ", in[i], " for ",
                    kept[i]);
  }
}

Types tangents_type(const Types& in, const Params& params) {
  const TangentLoop l = tangent_loop(params);
  const std::size_t first = l.length.kept(l.kept);
  if (l.kept > l.carry || l.carry > l.body->out.size() || in.size() != first + l.body->in.size() ||
      l.consts + l.carry > l.body->in.size() || l.length.checkpoints < 1 || l.length.disk < 0) {
    fail<TypeError>("checkpointed_tangents: the counts do not fit, got ", in.size(), " operands");
  }
  if (!l.length.steps && (l.consts + l.carry < l.body->in.size() || l.carry < l.body->out.size())) {
    fail<TypeError>(
        "checkpointed_tangents: a loop of unknown length scans nothing, got scanned operands or "
        "results");
  }
  Types loop(in.begin() + static_cast<std::ptrdiff_t>(first), in.end());
  for (std::size_t i = l.consts + l.carry; i < loop.size(); ++i) {
    if (loop[i].shape.empty() || loop[i].shape[0] != *l.length.steps) {
      fail<TypeError>(
          "checkpointed_tangents: scanned arrays must have the length as leading size, got ",
          loop[i]);
    }
    loop[i] = sliced(loop[i]);
  }
  check_operands("checkpointed_tangents", *l.body, loop);
  const auto carry = loop.begin() + static_cast<std::ptrdiff_t>(l.consts);
  check_kept("checkpointed_tangents", in, {carry, carry + static_cast<std::ptrdiff_t>(l.kept)},
             l.length);
  const Types all = l.body->out_types();
  Types out;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (k < l.carry && (all[k].dtype != carry[static_cast<std::ptrdiff_t>(k)].dtype ||
                        all[k].shape != carry[static_cast<std::ptrdiff_t>(k)].shape)) {
      fail<TypeError>("checkpointed_tangents: the carry must keep its type, got ", all[k], " out");
    }
    if (k >= l.kept) out.push_back(k < l.carry ? all[k] : stacked(all[k], *l.length.steps));
  }
  return out;
}

Arrays tangents_eval(const Arrays& x, const Params& params, const Types&) {
  const PlainLoop plain = plain_loop(tangent_loop(params), x);
  const Arrays out = plain.prim->bind(plain.args, plain.params);
  return slice_of(out, plain.skipped, out.size());
}

// Derivatives are those of the plain loop.
Duals differentiate(const Arrays& x, const Tangents& dx, const Params& params,
                    Duals (*Primitive::*rule)(const Arrays&, const Tangents&, const Params&)) {
  const TangentLoop l = tangent_loop(params);
  const PlainLoop plain = plain_loop(l, x);
  const std::size_t first = l.length.kept(l.kept), added = l.length.steps ? 0 : 2;
  Tangents tangents(added > 0 ? 1 : 0);
  for (std::size_t i = 0; i < l.body->in.size(); ++i) {
    if (added > 0 && i == l.consts) tangents.emplace_back();  // of the count
    tangents.push_back(dx[first + i]);
  }
  Duals d = (plain.prim->*rule)(plain.args, tangents, plain.params);
  d.out.erase(d.out.begin(), d.out.begin() + static_cast<std::ptrdiff_t>(plain.skipped));
  d.tangents.erase(d.tangents.begin(),
                   d.tangents.begin() + static_cast<std::ptrdiff_t>(plain.skipped));
  return d;
}
Duals tangents_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  return differentiate(x, dx, params, &Primitive::jvp);
}
Duals tangents_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  return differentiate(x, dx, params, &Primitive::linearize);
}

// Where elements have lengths of their own, as the plain loop does it.
Batched plain_batch(const TangentLoop& l, const Arrays& x, const Axes& axes, std::int64_t n) {
  Types types;
  for (std::size_t i = 0; i < x.size(); ++i) {
    types.push_back(x[i].type());
    if (axes[i]) types.back().shape.erase(types.back().shape.begin() + *axes[i]);
  }
  const auto formula = [&](const Arrays& a) {
    const PlainLoop plain = plain_loop(l, a);
    const Arrays out = plain.prim->bind(plain.args, plain.params);
    return slice_of(out, plain.skipped, out.size());
  };
  const Traced traced = trace(formula, types, {.transform = "linearize", .body = true});
  const auto b = batched_program(*traced.program, axes, n, OutAxes::front);
  return {eval(*b->program, concat(b->consts, x)), b->out_axes};
}

Batched tangents_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                       const Params& params) {
  TangentLoop l = tangent_loop(params);
  if (!l.length.steps && axes[0]) return plain_batch(l, x, axes, n);
  const std::size_t lengths = l.length.operands(), first = l.length.kept(l.kept);
  std::vector<bool> mapped =
      mapped_mask({axes.begin() + static_cast<std::ptrdiff_t>(first), axes.end()});
  for (std::size_t i = lengths; i < first; ++i) {
    if (axes[i]) mapped[l.consts + (i - lengths) % l.kept] = true;
  }
  const BatchedLoop b = batched_loop(*l.body, l.consts, l.carry, std::move(mapped), n);
  Arrays args = slice_of(x, 0, lengths);
  for (std::size_t i = lengths; i < first; ++i) {
    const std::size_t k = (i - lengths) % l.kept;
    const std::int64_t at = i + l.kept < first ? 1 : 0;
    args.push_back(b.mapped[l.consts + k] ? axis_at(x[i], axes[i], at, n) : x[i]);
  }
  args = concat(args, b.body->consts);
  for (std::size_t i = 0; i < b.mapped.size(); ++i) {
    const std::int64_t at = i < l.consts + l.carry ? 0 : 1;
    args.push_back(b.mapped[i] ? axis_at(x[first + i], axes[first + i], at, n) : x[first + i]);
  }
  Batched result;
  for (std::size_t k = l.kept; k < l.body->out.size(); ++k) {
    result.axes.push_back(b.body->out_axes[k] ? Axis(k < l.carry ? 0 : 1) : std::nullopt);
  }
  l.body = b.body->program;
  l.consts += b.body->consts.size();
  result.out = checkpointed_tangents_p.bind(args, params_of(l));
  return result;
}

// ----------------------------------------------------------------------------------- transpose
struct ReversedBody {
  ProgramPtr advance;
  Traced step;
};

// linear: per input of the body. given: per output of the body, whether a cotangent comes for it.
ReversedBody reverse_body(const TangentLoop& l, const std::vector<bool>& linear,
                          const std::vector<bool>& given) {
  ReversedBody result;
  std::vector<bool> others(l.body->out.size(), true);
  std::fill_n(others.begin(), l.kept, false);
  result.advance = known_part(*unzip(*l.body, linear)->known, l.kept);
  const ProgramPtr body = dce_body(l.body, others, std::vector<bool>(linear.size(), true));
  const auto parts = unzip(*body, linear);
  Types types;
  std::vector<Type> linear_types;
  const Types in = body->in_types(), out = body->out_types();
  for (std::size_t i = 0; i < in.size(); ++i) (linear[i] ? linear_types : types).push_back(in[i]);
  const std::size_t inputs = types.size();
  const auto sums = static_cast<std::size_t>(
      std::count(linear.begin(), linear.begin() + static_cast<std::ptrdiff_t>(l.consts), true));
  types.insert(types.end(), linear_types.begin(),
               linear_types.begin() + static_cast<std::ptrdiff_t>(sums));
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (given[l.kept + k]) types.push_back(out[k]);
  }
  const auto step = [&](const Arrays& a) {
    Arrays computed;
    {
      const InPhase scope(Phase::recompute);
      computed = eval(*parts->known, slice_of(a, 0, inputs));
    }
    std::size_t first_residual = 0, next = inputs + sums;
    Tangents cts;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Tangent ct = given[l.kept + k] ? Tangent(a[next++]) : std::nullopt;
      if (parts->unknown_out[k])
        cts.push_back(ct);
      else
        ++first_residual;
    }
    Primals primals(computed.begin() + static_cast<std::ptrdiff_t>(first_residual), computed.end());
    primals.resize(parts->linear->in.size());
    const Tangents back = backward(*parts->linear, std::move(primals), std::move(cts));
    Arrays results;
    for (std::size_t k = 0; k < back.size(); ++k) {
      if (k < sums)
        results.push_back(back[k] ? lax::add_any(a[inputs + k], *back[k]) : a[inputs + k]);
      else
        results.push_back(back[k] ? *back[k] : lax::zeros(linear_types[k]));
    }
    return results;
  };
  result.step = trace(step, types, {.transform = "transpose", .name = body->name, .body = true});
  return result;
}

// Constants that custom rules close over come before the loop's own; the other program ignores
// them.
ProgramPtr with_leading_inputs(const Program& p, const Arrays& consts) {
  auto more = std::make_shared<Program>(p);
  std::vector<Var> in;
  for (const Array& c : consts) in.push_back(more->fresh(c.type()));
  more->in.insert(more->in.begin(), in.begin(), in.end());
  more->arg_names.clear();
  return more;
}

Tangents tangents_transpose(const Tangents& ct, const Primals& x, const Types& in,
                            const Params& params) {
  const TangentLoop l = tangent_loop(params);
  const std::size_t first = l.length.kept(l.kept), first_carry = first + l.consts;
  const std::size_t first_x = first_carry + l.carry;
  std::vector<bool> linear, given(l.kept, false);
  for (std::size_t i = first; i < x.size(); ++i) {
    linear.push_back(!x[i] || (i >= first_carry + l.kept && i < first_x));
  }
  const Types out = l.body->out_types();
  for (std::size_t k = l.kept; k < out.size(); ++k) given.push_back(k < l.carry || ct[k - l.kept]);
  const std::string key =
      mask_key(str("reverse", l.consts, ",", l.carry, ",", l.kept), linear) + mask_key("/", given);
  const auto body =
      derive<ReversedBody>(*l.body, key, [&] { return reverse_body(l, linear, given); });
  const Arrays& extra = body->step.consts;
  ReverseLoop r;
  r.advance = extra.empty() ? body->advance : with_leading_inputs(*body->advance, extra);
  r.step = body->step.program;
  r.length = l.length;
  r.carry = l.kept;
  Arrays args, known, back;
  for (std::size_t i = 0; i < first; ++i) args.push_back(*x[i]);
  args = concat(args, extra);
  r.consts = extra.size();
  for (std::size_t i = first; i < x.size(); ++i) {
    if (!linear[i - first]) {
      args.push_back(*x[i]);
      r.consts += i < first_carry ? 1 : 0;
    } else if (i < first_carry) {
      back.push_back(lax::zeros(in[i]));
    }
  }
  for (std::size_t k = l.kept; k < l.carry; ++k) {
    back.push_back(ct[k - l.kept] ? *ct[k - l.kept] : lax::zeros(out[k]));
  }
  r.back = back.size();
  args = concat(args, back);
  for (std::size_t k = l.carry; k < out.size(); ++k) {
    if (given[k]) args.push_back(*ct[k - l.kept]);
  }
  const Arrays reversed = checkpointed_reverse_p.bind(args, params_of(r));
  Tangents result(x.size());
  std::size_t next = 0;
  for (std::size_t i = first; i < x.size(); ++i) {
    if (!linear[i - first]) continue;
    if (!x[i]) result[i] = reversed[next];
    ++next;
  }
  return result;
}

constexpr ParamRule tangents_rules[] = {
    {"checkpoints", form::integer}, {"disk_checkpoints", form::integer, absent},
    {"jaxpr", form::program},       {"length", form::integer | form::none},
    {"num_carry", form::integer},   {"num_consts", form::integer},
    {"num_kept", form::integer},    {"reverse", form::flag, "False"}};

}  // namespace

constinit const Primitive checkpointed_tangents_p{.name = "checkpointed_tangents",
                                                  .kind = Kind::call,
                                                  .type = tangents_type,
                                                  .eval = tangents_eval,
                                                  .jvp = tangents_jvp,
                                                  .linearize = tangents_linearize,
                                                  .transpose = tangents_transpose,
                                                  .batch = tangents_batch,
                                                  .param_rules = tangents_rules};

}  // namespace reprise
