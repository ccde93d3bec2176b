// cond: one of several programs, chosen by an index.
//
//   cond[branches=(f0, f1)]: (i, a) -> b
//   linearize:  cond: (i, a) -> (b, res)   and   cond: (i, res, ȧ) -> ḃ     with one residual list
//               for all branches: the k-th residual of a type shares a slot, others hold empty2
#include "control/cond.h"

#include "control/body.h"
#include "control/records.h"
#include "ops/lax.h"
#include "program/varying.h"
#include "transform/dce.h"
#include "transform/jvp.h"
#include "transform/transpose.h"
#include "transform/vmap.h"

#include <algorithm>
#include <unordered_map>

namespace reprise {

Slots merge_residuals(const std::vector<Types>& branches) {
  Slots slots;
  std::unordered_map<std::string, std::vector<std::size_t>> slots_of;  // by type: in order
  for (const Types& residuals : branches) {
    std::vector<std::size_t> mine;
    std::unordered_map<std::string, std::size_t> taken;  // by type: how many
    for (const Type& t : residuals) {
      const std::string type = str(t, t.weak_type, static_cast<int>(t.memory_space));
      std::vector<std::size_t>& same = slots_of[type];
      const std::size_t next = taken[type]++;
      if (next == same.size()) {
        same.push_back(slots.types.size());
        slots.types.push_back(t);
      }
      mine.push_back(same[next]);
    }
    slots.of_branch.push_back(std::move(mine));
  }
  return slots;
}

// The branch returning all slots: its own residuals, empty2 for the others.
ProgramPtr with_all_residuals(const Program& known, std::size_t outputs, const Types& slots,
                              const std::vector<std::size_t>& mine) {
  auto body = [&](const Arrays& args) {
    const Arrays all = eval(known, args);
    Arrays out = slice_of(all, 0, outputs);
    for (const Type& t : slots)
      out.push_back(with_varying(lax::empty2(t.dtype, t.shape), t.varying));
    for (std::size_t r = 0; r < mine.size(); ++r) out[outputs + mine[r]] = all[outputs + r];
    return out;
  };
  return trace(body, known.in_types(), {.transform = "linearize", .name = known.name, .body = true})
      .program;
}
ProgramPtr taking_all_residuals(const Program& linear, const Types& slots,
                                const std::vector<std::size_t>& mine) {
  auto p = std::make_shared<Program>(linear);
  std::vector<Var> in;
  for (const Type& t : slots) in.push_back(p->fresh(t));
  for (std::size_t r = 0; r < mine.size(); ++r) in[mine[r]] = linear.in[r];
  in.insert(in.end(), linear.in.begin() + static_cast<std::ptrdiff_t>(mine.size()),
            linear.in.end());
  p->in = std::move(in);
  return p;
}

namespace {

const Programs& branches_of(const Params& params) { return params.get<Programs>("branches"); }
Arrays bind_cond(const Params& params, Programs branches, const Arrays& args) {
  return cond_p.bind(args, params.with("branches", std::move(branches)));
}
template <class T>
std::vector<T> rest(const std::vector<T>& v) {
  return {v.begin() + 1, v.end()};
}
void merge(std::vector<bool>& into, const std::vector<bool>& from) {
  into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = into[i] || from[i];
}

Types cond_type(const Types& in, const Params& params) {
  const Programs& branches = branches_of(params);
  if (in.empty() || !in[0].shape.empty() || in[0].dtype != Dtype::i32) {
    fail<TypeError>("cond: the index must be a scalar i32, got ", join(in, ", "));
  }
  const Types out = branches[0]->out_types();
  for (const ProgramPtr& b : branches) {
    check_operands("cond", *b, in, 1);
    check_decision("cond", in[0], *b);
    const Types other = b->out_types();
    bool same = other.size() == out.size();
    for (std::size_t k = 0; same && k < out.size(); ++k) {
      same = out[k].dtype == other[k].dtype && out[k].shape == other[k].shape;
    }
    if (!same) {
      fail<TypeError>("cond: all branches must return the same types, got ", join(out, ", "),
                      " and ", join(other, ", "));
    }
  }
  return out;
}

Arrays cond_eval(const Arrays& x, const Params& params, const Types&) {
  const Programs& branches = branches_of(params);
  const auto last = static_cast<std::int32_t>(branches.size()) - 1;
  const std::int32_t i = std::clamp(*elements<std::int32_t>(x[0]), 0, last);
  return eval(*branches[static_cast<std::size_t>(i)], rest(x));
}

Duals cond_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const std::vector<bool> active = rest(nonzero_mask(dx));
  std::vector<bool> nonzero;
  for (const ProgramPtr& b : branches_of(params))
    merge(nonzero, jvp_program(*b, active)->nonzero_out);
  Programs branches;
  for (const ProgramPtr& b : branches_of(params)) {
    const auto j = jvp_program(*b, active, nonzero);
    if (!j->consts.empty()) {
      fail_with_hint<RuleError>(
          "pass the array as an argument",
          "cond: a custom rule inside a branch must not close over arrays, got ",
          j->consts[0].type());
    }
    branches.push_back(j->program);
  }
  const Arrays out = bind_cond(params, std::move(branches), concat(x, nonzero_only(dx)));
  return {slice_of(out, 0, nonzero.size()), spread(nonzero, out, nonzero.size())};
}

struct LinearizedBranches {
  Programs known, linear;
  std::vector<bool> nonzero;
};

LinearizedBranches linearize_branches(const Programs& branches, const std::vector<bool>& active) {
  const std::vector<bool> no_forward(active.size());
  LinearizedBranches result;
  for (const ProgramPtr& b : branches) {
    merge(result.nonzero, linearize_program(*b, active, {}, no_forward)->nonzero);
  }
  std::vector<Types> residuals;
  std::vector<std::shared_ptr<const LinearizedProgram>> lins;
  for (const ProgramPtr& b : branches) {
    lins.push_back(linearize_program(*b, active, result.nonzero, no_forward));
    if (!lins.back()->consts.empty()) {
      fail_with_hint<RuleError>(
          "pass the array as an argument",
          "cond: a custom rule inside a branch must not close over arrays, got ",
          lins.back()->consts[0].type());
    }
    const Types out = lins.back()->known->out_types();
    residuals.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(b->out.size()), out.end());
  }
  const Slots slots = merge_residuals(residuals);
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const auto& mine = slots.of_branch[i];
    result.known.push_back(
        with_all_residuals(*lins[i]->known, branches[i]->out.size(), slots.types, mine));
    result.linear.push_back(taking_all_residuals(*lins[i]->linear, slots.types, mine));
  }
  return result;
}

Duals cond_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  const Programs& branches = branches_of(params);
  const LinearizedBranches lin = linearize_branches(branches, rest(nonzero_mask(dx)));
  const std::size_t outputs = branches[0]->out.size();
  const Arrays out = bind_cond(params, lin.known, x);
  const Arrays args = concat(concat({x[0]}, slice_of(out, outputs, out.size())), nonzero_only(dx));
  const Arrays tangents = bind_cond(params, lin.linear, args);
  return {slice_of(out, 0, outputs), spread(lin.nonzero, tangents)};
}

Tangents cond_transpose(const Tangents& ct, const Primals& x, const Types& in,
                        const Params& params) {
  if (!x[0]) fail<RuleError>("cond: not linear in the index, got a linear index");
  std::vector<bool> is_linear;
  Arrays args{*x[0]};
  for (std::size_t i = 1; i < x.size(); ++i) {
    is_linear.push_back(!x[i]);
    if (x[i]) args.push_back(*x[i]);
  }
  args = concat(args, nonzero_only(ct));
  const std::vector<bool> given = nonzero_mask(ct);
  std::vector<bool> nonzero;
  for (const ProgramPtr& b : branches_of(params)) {
    merge(nonzero, transposed_program(*b, is_linear, given)->nonzero);
  }
  Programs branches;
  for (const ProgramPtr& b : branches_of(params)) {
    branches.push_back(transposed_program(*b, is_linear, given, nonzero)->program);
  }
  const Arrays back = bind_cond(params, std::move(branches), args);
  Tangents result(in.size());
  std::size_t k = 0, next = 0;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (!x[i] && nonzero[k++]) result[i] = back[next++];
  }
  return result;
}

// A select whose index has only the leading dimension of the cases.
Array select_rows(const Array& index, const Arrays& cases) {
  if (index.ndim() == cases[0].ndim()) return lax::select_n(index, cases);
  const Array spread_index =
      lax::broadcast_in_dim(index, cases[0].shape(), lax::iota_ints(index.ndim()));
  return lax::select_n(spread_index, cases);
}

// A mapped index: run every branch and choose per element.
Batched batch_by_select(const Programs& branches, const Arrays& x, const Axes& axes,
                        std::int64_t n) {
  Arrays front;
  for (std::size_t i = 0; i < x.size(); ++i) front.push_back(axis_at(x[i], axes[i], 0, n));
  const Axes all(x.size() - 1, Axis(0));
  const std::vector<bool> force(branches[0]->out.size(), true);
  std::vector<Arrays> outs;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    const Array chosen = lax::eq(front[0], lax::const_like(front[0], static_cast<double>(b)));
    Arrays ops;
    for (const Array& op : rest(front)) {  // no gradient flows into branches not taken
      const Array stopped = lax::stop_gradient(op);
      ops.push_back(select_rows(chosen, {stopped, op}));
    }
    const auto body = batched_program(*branches[b], all, n, OutAxes::front, force);
    outs.push_back(eval(*body->program, concat(body->consts, ops)));
  }
  Batched result;
  for (std::size_t k = 0; k < force.size(); ++k) {
    Arrays cases;
    for (const Arrays& out : outs) cases.push_back(out[k]);
    result.out.push_back(select_rows(front[0], cases));
    result.axes.emplace_back(0);
  }
  return result;
}

Batched cond_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                   const Params& params) {
  const Programs& branches = branches_of(params);
  if (axes[0]) return batch_by_select(branches, x, axes, n);
  Arrays args{x[0]};
  Axes front;
  for (std::size_t i = 1; i < x.size(); ++i) {
    args.push_back(axes[i] ? lax::moveaxis(x[i], *axes[i], 0) : x[i]);
    front.push_back(axes[i] ? Axis(0) : std::nullopt);
  }
  std::vector<bool> mapped;
  for (const ProgramPtr& b : branches) {
    merge(mapped, mapped_mask(batched_program(*b, front, n, OutAxes::front)->out_axes));
  }
  Programs batched;
  for (const ProgramPtr& b : branches) {
    batched.push_back(batched_program(*b, front, n, OutAxes::front, mapped)->program);
  }
  Batched result{bind_cond(params, std::move(batched), args), {}};
  for (bool m : mapped) result.axes.push_back(m ? Axis(0) : std::nullopt);
  return result;
}

std::optional<Equation> cond_dce(const Program&, const Equation& e, const std::vector<bool>& used) {
  std::vector<bool> needed;
  for (const ProgramPtr& b : branches_of(e.params)) merge(needed, live_inputs(b, used));
  Programs branches;
  for (const ProgramPtr& b : branches_of(e.params)) branches.push_back(dce_body(b, used, needed));
  Equation out = e;
  out.params = e.params.with("branches", std::move(branches));
  out.in = {e.in[0]};
  for (std::size_t i = 1; i < e.in.size(); ++i) {
    if (needed[i - 1]) out.in.push_back(e.in[i]);
  }
  out.out.clear();
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (used[k]) out.out.push_back(e.out[k]);
  }
  return out;
}

constexpr ParamRule cond_rules[] = {{"branches", form::programs},
                                    {"branches_platforms", form::text, absent}};

}  // namespace

constinit const Primitive cond_p{.name = "cond",
                                 .kind = Kind::call,
                                 .type = cond_type,
                                 .eval = cond_eval,
                                 .jvp = cond_jvp,
                                 .linearize = cond_linearize,
                                 .transpose = cond_transpose,
                                 .batch = cond_batch,
                                 .partial_eval = cond_partial_eval,
                                 .dce = cond_dce,
                                 .param_rules = cond_rules};

}  // namespace reprise
