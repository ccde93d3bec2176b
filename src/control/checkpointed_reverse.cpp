// The reversal of a checkpointed loop: steps from the last to the first, each from its own carry,
// which is kept or played again from one that is.
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/loop_schedule.h"
#include "control/records.h"
#include "ops/lax.h"
#include "transform/dce.h"

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

using Mask = std::vector<bool>;

// The operands by what they are.
struct Operands {
  std::size_t lengths, kept, last, consts, carry, xs, back, cts, end;  // kept: all sections
  explicit Operands(const ReverseLoop& l)
      : lengths(l.length.operands()),
        kept(lengths),
        last(l.length.kept(l.carry) - l.carry),
        consts(last + l.carry),
        carry(consts + l.consts),
        xs(carry + l.carry),
        back(xs + l.xs()),
        cts(back + l.back),
        end(cts + l.cts()) {}
};

void check_counts(const Types& in, const ReverseLoop& l) {
  const bool fits = l.consts + l.carry <= l.advance->in.size() &&
                    l.advance->in.size() + l.back <= l.step->in.size() &&
                    l.back <= l.step->out.size() && l.carry == l.advance->out.size() &&
                    l.length.checkpoints >= 1 && l.length.disk >= 0 && in.size() == Operands(l).end;
  if (!fits)
    fail<TypeError>("checkpointed_reverse: the counts do not fit, got ", in.size(), " operands");
  if (!l.length.steps && l.xs() + l.cts() + (l.step->out.size() - l.back) > 0) {
    fail<TypeError>(
        "checkpointed_reverse: a loop of unknown length scans nothing, got scanned operands or "
        "results");
  }
}

void check_same(const Type& got, const Type& wanted) {
  if (got.dtype == wanted.dtype && got.shape == wanted.shape) return;
  fail<TypeError>("checkpointed_reverse: a carry must keep its type, got ", got, " for ", wanted);
}

Types reverse_type(const Types& in, const Params& params) {
  const ReverseLoop l = reverse_loop(params);
  check_counts(in, l);
  const Operands at(l);
  Types steps(in.begin() + static_cast<std::ptrdiff_t>(at.consts), in.end());
  for (std::size_t i = at.xs; i < at.end; ++i) {
    if (i >= at.back && i < at.cts) continue;
    if (in[i].shape.empty() || in[i].shape[0] != *l.length.steps) {
      fail<TypeError>(
          "checkpointed_reverse: scanned arrays must have the length as leading size, got ", in[i]);
    }
    steps[i - at.consts] = sliced(in[i]);
  }
  check_operands("checkpointed_reverse", *l.step, steps);
  check_operands(
      "checkpointed_reverse", *l.advance,
      {steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(l.advance->in.size())});
  const auto carry = in.begin() + static_cast<std::ptrdiff_t>(at.carry);
  const Types kept = kept_types({carry, carry + static_cast<std::ptrdiff_t>(l.carry)}, l.length);
  for (std::size_t i = 0; i < kept.size(); ++i) check_same(in[i], kept[i]);
  const Types advanced = l.advance->out_types();
  for (std::size_t k = 0; k < l.carry; ++k) check_same(advanced[k], in[at.carry + k]);
  Types out = l.step->out_types();
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (k < l.back)
      check_same(out[k], in[at.back + k]);
    else
      out[k] = stacked(out[k], *l.length.steps);
  }
  out.insert(out.end(), kept.begin() + static_cast<std::ptrdiff_t>(at.lengths), kept.end());
  return out;
}

// ---------------------------------------------------------------------------------- evaluation
class Reversal {
 public:
  Reversal(const Arrays& x, const ReverseLoop& l, const Types& out) : x_(x), l_(l), at_(l) {
    std::vector<std::int64_t> kept;
    if (l.length.steps) {
      steps_ = *l.length.steps;
      kept = kept_states(steps_, l.length.slots());
    } else {
      steps_ = *elements<std::int32_t>(x[0]);
      const std::int32_t* states = elements<std::int32_t>(x[1]);
      kept.assign(states, states + l.length.slots() - 1);
    }
    slots_.resize(static_cast<std::size_t>(l.length.slots()));
    slots_[0] = slice_of(x, at_.carry, at_.xs);
    for (std::size_t slot = 1; slot < slots_.size(); ++slot) {
      const auto number = static_cast<std::int64_t>(slot) - 1;
      const bool on_disk = number < l.length.disk;
      const std::size_t section = at_.kept + (on_disk ? l.carry : 0);
      for (std::size_t k = 0; k < l.carry && kept[slot - 1] >= 0; ++k) {
        Array state = row(x[section + k], on_disk ? number : number - l.length.disk);
        slots_[slot].push_back(with_type(state, x[at_.carry + k].type()));
      }
    }
    working_ = slice_of(x, at_.last, at_.consts);
    back_ = slice_of(x, at_.back, at_.cts);
    for (std::size_t k = l.back; k < l.step->out.size(); ++k) stacked_.emplace_back(out[k]);
    kept_ = std::move(kept);
  }

  Arrays run() {
    BackwardSchedule schedule(steps_, kept_, l_.length.disk);
    for (LoopMove m = schedule.next(); m.what != LoopMove::What::end; m = schedule.next()) {
      if (m.what == LoopMove::What::reverse)
        reverse(m);
      else
        advance(m);
    }
    Arrays out = std::move(back_);
    for (NewArray& a : stacked_) out.push_back(std::move(a).finish());
    return concat(out, slice_of(x_, at_.kept, at_.consts));
  }

 private:
  Arrays& state(std::int64_t slot) {
    return slot == no_slot ? working_ : slots_[static_cast<std::size_t>(slot)];
  }
  std::int64_t index(std::int64_t step) const {
    return l_.length.reverse ? steps_ - 1 - step : step;
  }
  Arrays arguments(const Arrays& carry, std::int64_t step) const {
    Arrays args = concat(slice_of(x_, at_.consts, at_.carry), carry);
    for (std::size_t i = at_.xs; i < at_.back; ++i) args.push_back(row(x_[i], index(step)));
    return args;
  }
  void advance(const LoopMove& m) {
    Arrays carry = state(m.source);
    for (std::int64_t step = m.from; step < m.to; ++step)
      carry = eval(*l_.advance, arguments(carry, step));
    state(m.destination) = std::move(carry);
  }
  void reverse(const LoopMove& m) {
    Arrays args = concat(arguments(state(m.source), m.from), back_);
    for (std::size_t i = at_.cts; i < at_.end; ++i) args.push_back(row(x_[i], index(m.from)));
    const Arrays out = eval(*l_.step, std::move(args));
    back_ = slice_of(out, 0, l_.back);
    for (std::size_t k = 0; k < stacked_.size(); ++k) {
      const Array& value = out[l_.back + k];
      const std::size_t bytes = value.nbytes();
      if (bytes == 0) continue;
      std::memcpy(stacked_[k].bytes() + static_cast<std::size_t>(index(m.from)) * bytes,
                  content(value).elements, bytes);
    }
  }

  const Arrays& x_;
  const ReverseLoop& l_;
  Operands at_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> kept_;
  std::vector<Arrays> slots_;
  Arrays working_, back_;
  std::vector<NewArray> stacked_;
};

Arrays reverse_eval(const Arrays& x, const Params& params, const Types& out) {
  const ReverseLoop l = reverse_loop(params);
  return Reversal(x, l, out).run();
}

// ------------------------------------------------------------------------------- both programs
// A program whose inputs are some of those with the given types; it ignores the others.
ProgramPtr with_inputs(const Program& p, const Types& types,
                       const std::vector<std::size_t>& which) {
  auto q = std::make_shared<Program>(p);
  q->in.assign(types.size(), -1);
  q->arg_names.clear();
  for (std::size_t i = 0; i < which.size(); ++i) q->in[which[i]] = p.in[i];
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (q->in[i] < 0) q->in[i] = q->fresh(types[i]);
  }
  return q;
}

// Per input of the step; whatever is said about a kept carry holds for its carry.
Mask per_input(const Mask& operands, const ReverseLoop& l) {
  const Operands at(l);
  Mask mask = part_of(operands, at.consts, at.end);
  for (std::size_t i = at.kept; i < at.consts; ++i) {
    if (operands[i]) mask[l.consts + (i - at.kept) % l.carry] = true;
  }
  return mask;
}

// The tangents of inputs stand behind the inputs of their group: consts, carry, xs, back, cts.
class ReverseJvp {
 public:
  ReverseJvp(const Arrays& x, const Tangents& dx, const ReverseLoop& l)
      : x_(x), dx_(dx), l_(l), at_(l), active_(per_input(nonzero_mask(dx), l)) {
    settle();
    r_ = l;
    bounds_ = {0,
               l.consts,
               l.consts + l.carry,
               l.advance->in.size(),
               l.advance->in.size() + l.back,
               l.step->in.size()};
  }

  Duals run() {
    r_.consts = advance_->consts.size() + step_->consts.size() + l_.consts + count(0);
    r_.carry = l_.carry + count(1);
    r_.back = l_.back + count(3);
    const Arrays args = arguments();
    r_.advance = arranged_advance();
    r_.step = arranged_step();
    const Arrays out = checkpointed_reverse_p.bind(args, params_of(r_));
    Duals d;
    d.out = slice_of(out, 0, l_.back);
    Arrays dots = slice_of(out, l_.back, r_.back);
    const std::size_t ys = l_.step->out.size() - l_.back, end = r_.step->out.size();
    d.out = concat(d.out, slice_of(out, r_.back, r_.back + ys));
    d.tangents = spread(step_->nonzero_out, concat(dots, slice_of(out, r_.back + ys, end)));
    for (std::size_t n = 0; n < l_.length.sections(); ++n)
      d.out = concat(d.out, slice_of(out, end + n * r_.carry, end + n * r_.carry + l_.carry));
    d.tangents.resize(d.out.size());
    return d;
  }

 private:
  void settle() {
    const std::size_t inputs = l_.advance->in.size();
    for (bool stable = false; !stable;) {
      stable = true;
      const auto grow = [&](const Mask& nonzero, std::size_t first, std::size_t n) {
        for (std::size_t k = 0; k < n; ++k) {
          if (!nonzero[k] || active_[first + k]) continue;
          active_[first + k] = true;
          stable = false;
        }
      };
      advance_ = jvp_program(*l_.advance, part_of(active_, 0, inputs),
                             part_of(active_, l_.consts, l_.consts + l_.carry));
      Mask instantiate = part_of(active_, inputs, inputs + l_.back);
      instantiate.resize(l_.step->out.size());
      step_ = jvp_program(*l_.step, active_, instantiate);
      grow(advance_->nonzero_out, l_.consts, l_.carry);
      grow(step_->nonzero_out, inputs, l_.back);
    }
  }
  std::size_t count(std::size_t group) const {
    return static_cast<std::size_t>(
        std::count(active_.begin() + static_cast<std::ptrdiff_t>(bounds_[group]),
                   active_.begin() + static_cast<std::ptrdiff_t>(bounds_[group + 1]), true));
  }
  Array tangent(std::size_t operand) const {
    return dx_[operand] ? *dx_[operand] : instantiate_zeros(x_[operand].type());
  }
  // Also notes the types of the new step's inputs, and where old inputs and their tangents are
  // among them.
  Arrays arguments() {
    Arrays args = slice_of(x_, 0, at_.lengths);
    for (std::size_t first = at_.kept; first < at_.consts; first += l_.carry) {
      args = concat(args, slice_of(x_, first, first + l_.carry));
      for (std::size_t k = 0; k < l_.carry; ++k) {
        if (active_[l_.consts + k]) args.push_back(tangent(first + k));
      }
    }
    const std::size_t begin = args.size();
    args = concat(concat(args, advance_->consts), step_->consts);
    place_.resize(active_.size());
    tangent_place_.resize(active_.size());
    for (std::size_t g = 0; g + 1 < bounds_.size(); ++g) {
      for (std::size_t i = bounds_[g]; i < bounds_[g + 1]; ++i) {
        place_[i] = args.size() - begin;
        args.push_back(x_[at_.consts + i]);
      }
      for (std::size_t i = bounds_[g]; i < bounds_[g + 1]; ++i) {
        if (!active_[i]) continue;
        tangent_place_[i] = args.size() - begin;
        args.push_back(tangent(at_.consts + i));
      }
      if (g == 2) advance_inputs_ = args.size() - begin;
    }
    const std::size_t scanned[2][2] = {{1, 2}, {3, 4}};
    for (std::size_t i = begin; i < args.size(); ++i) types_.push_back(args[i].type());
    for (const auto& groups : scanned) {
      for (std::size_t i = bounds_[groups[0] + 1]; i < bounds_[groups[1] + 1]; ++i) {
        types_[place_[i]] = sliced(types_[place_[i]]);
        if (active_[i]) types_[tangent_place_[i]] = sliced(types_[tangent_place_[i]]);
      }
    }
    return args;
  }
  ProgramPtr arranged(const JvpProgram& j, std::size_t first_const, std::size_t inputs,
                      const Types& types) const {
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < j.consts.size(); ++i) which.push_back(first_const + i);
    for (std::size_t i = 0; i < inputs; ++i) which.push_back(place_[i]);
    for (std::size_t i = 0; i < inputs; ++i) {
      if (active_[i]) which.push_back(tangent_place_[i]);
    }
    return with_inputs(*j.program, types, which);
  }
  ProgramPtr arranged_advance() const {
    const Types types(types_.begin(),
                      types_.begin() + static_cast<std::ptrdiff_t>(advance_inputs_));
    return arranged(*advance_, 0, l_.advance->in.size(), types);
  }
  ProgramPtr arranged_step() const {
    const ProgramPtr p = arranged(*step_, advance_->consts.size(), l_.step->in.size(), types_);
    std::vector<std::size_t> order;  // back, dback, cts of xs, their tangents
    const std::size_t outs = l_.step->out.size();
    for (std::size_t k = 0; k < l_.back; ++k) order.push_back(k);
    for (std::size_t k = 0; k < count(3); ++k) order.push_back(outs + k);
    for (std::size_t k = l_.back; k < outs; ++k) order.push_back(k);
    for (std::size_t k = outs + count(3); k < p->out.size(); ++k) order.push_back(k);
    return permute_outputs(*p, order);
  }

  const Arrays& x_;
  const Tangents& dx_;
  const ReverseLoop& l_;
  Operands at_;
  Mask active_;  // per input of the step
  std::shared_ptr<const JvpProgram> advance_, step_;
  ReverseLoop r_;
  std::vector<std::size_t> bounds_, place_, tangent_place_;
  std::size_t advance_inputs_ = 0;
  Types types_;
};

Duals reverse_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const ReverseLoop l = reverse_loop(params);
  return ReverseJvp(x, dx, l).run();
}
Duals reverse_linearize(const Arrays&, const Tangents&, const Params&) { no_second_reversal(); }
Tangents reverse_transpose(const Tangents&, const Primals&, const Types&, const Params&) {
  no_second_reversal();
}

Batched reverse_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                      const Params& params) {
  const ReverseLoop l = reverse_loop(params);
  const Operands at(l);
  const std::size_t inputs = l.advance->in.size();
  Mask mapped = per_input(mapped_mask(axes), l);
  const bool has_lengths = !l.length.steps && axes[0];  // of elements
  if (has_lengths)
    std::fill(mapped.begin() + static_cast<std::ptrdiff_t>(inputs), mapped.end(), true);
  std::shared_ptr<const BatchedProgram> step;
  BatchedLoop advance;
  for (bool stable = false; !stable;) {
    advance = batched_loop(*l.advance, l.consts, l.carry, part_of(mapped, 0, inputs), n);
    std::copy(advance.mapped.begin(), advance.mapped.end(), mapped.begin());
    Axes in;
    for (bool m : mapped) in.push_back(m ? Axis(0) : std::nullopt);
    Mask force = part_of(mapped, inputs, inputs + l.back);
    force.resize(l.step->out.size());
    step = batched_program(*l.step, in, n, OutAxes::front, force);
    stable = true;
    for (std::size_t k = 0; k < l.back; ++k) {
      if (!step->out_axes[k] || mapped[inputs + k]) continue;
      mapped[inputs + k] = true;
      stable = false;
    }
  }
  const Arrays& more = advance.body->consts;
  const auto moved = [&](std::size_t operand, std::size_t input, std::int64_t to) {
    return mapped[input] ? axis_at(x[operand], axes[operand], to, n) : x[operand];
  };
  Arrays args = slice_of(x, 0, at.lengths);
  for (std::size_t i = at.kept; i < at.consts; ++i)
    args.push_back(moved(i, l.consts + (i - at.kept) % l.carry, i < at.last ? 1 : 0));
  args = concat(concat(args, more), step->consts);
  Types types;
  for (std::size_t i = args.size() - more.size() - step->consts.size(); i < args.size(); ++i)
    types.push_back(args[i].type());
  const std::size_t extra = types.size();
  std::vector<std::size_t> for_advance, for_step;
  for (std::size_t i = 0; i < extra; ++i) (i < more.size() ? for_advance : for_step).push_back(i);
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    const std::size_t operand = at.consts + i;
    const bool scanned = (operand >= at.xs && operand < at.back) || operand >= at.cts;
    args.push_back(moved(operand, i, scanned ? 1 : 0));
    types.push_back(scanned ? sliced(args.back().type()) : args.back().type());
    if (i < inputs) for_advance.push_back(extra + i);
    for_step.push_back(extra + i);
  }
  ReverseLoop r = l;
  r.consts += extra;
  r.step = with_inputs(*step->program, types, for_step);
  const Types all = types;
  types.resize(extra + inputs);
  r.advance = with_inputs(*advance.body->program, types, for_advance);
  if (has_lengths) {
    const Array counts = axis_at(x[0], axes[0], 0, n);
    args[0] = lax::reduce_max(counts, {0});
    args.insert(args.begin() + static_cast<std::ptrdiff_t>(r.first_back()),
                lax::sub(args[0], lax::const_like(args[0], 1)));
    args.insert(args.begin() + static_cast<std::ptrdiff_t>(r.first_const()), counts);
    r = masked(r, all, counts.type());
  }
  Batched result{checkpointed_reverse_p.bind(args, params_of(r)), {}};
  if (has_lengths) result.out.erase(result.out.begin());
  for (std::size_t k = 0; k < l.step->out.size(); ++k) {
    result.axes.push_back(step->out_axes[k] ? Axis(k < l.back ? 0 : 1) : std::nullopt);
  }
  for (std::size_t i = at.kept; i < at.consts; ++i) {
    const Axis axis(i < at.last ? 1 : 0);
    result.axes.push_back(mapped[l.consts + (i - at.kept) % l.carry] ? axis : std::nullopt);
  }
  return result;
}

// Sums and cotangents that nobody wants are not computed, nor carries that no step reads.
std::optional<Equation> reverse_dce(const Program&, const Equation& e,
                                    const std::vector<bool>& used) {
  ReverseLoop l = reverse_loop(e.params);
  const Operands at(l);
  const std::size_t inputs = l.advance->in.size(), outs = l.step->out.size();
  Mask wanted = part_of(used, 0, outs), live;
  for (bool stable = false; !stable;) {
    stable = true;
    live = live_inputs(l.step, wanted);
    for (std::size_t k = 0; k < l.back; ++k) {
      if (!live[inputs + k] || wanted[k]) continue;
      wanted[k] = true;
      stable = false;
    }
  }
  const Mask needed = needed_carries(l, live);
  std::fill_n(live.begin(), inputs, true);
  std::copy(needed.begin(), needed.end(), live.begin() + static_cast<std::ptrdiff_t>(l.consts));
  for (std::size_t k = 0; k < l.back; ++k) live[inputs + k] = wanted[k];
  Mask operands(at.lengths, true), results = wanted;
  for (std::size_t n = 0; n < l.length.sections(); ++n) {
    operands.insert(operands.end(), needed.begin(), needed.end());
    results.insert(results.end(), needed.begin(), needed.end());
  }
  operands.insert(operands.end(), live.begin(), live.end());
  l.step = dce_body(l.step, wanted, live);
  l.advance = dce_body(l.advance, needed, part_of(live, 0, inputs));
  l.back = static_cast<std::size_t>(
      std::count(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(l.back), true));
  l.carry = static_cast<std::size_t>(std::count(needed.begin(), needed.end(), true));
  Equation shrunk = with_only(e, operands, results);
  shrunk.params = params_of(l);
  return shrunk;
}

constexpr ParamRule reverse_rules[] = {{"advance_jaxpr", form::program},
                                       {"checkpoints", form::integer},
                                       {"disk_checkpoints", form::integer, absent},
                                       {"length", form::integer | form::none},
                                       {"num_back", form::integer},
                                       {"num_carry", form::integer},
                                       {"num_consts", form::integer},
                                       {"reverse", form::flag, "False"},
                                       {"step_jaxpr", form::program}};

}  // namespace

constinit const Primitive checkpointed_reverse_p{.name = "checkpointed_reverse",
                                                 .kind = Kind::call,
                                                 .type = reverse_type,
                                                 .eval = reverse_eval,
                                                 .jvp = reverse_jvp,
                                                 .linearize = reverse_linearize,
                                                 .transpose = reverse_transpose,
                                                 .batch = reverse_batch,
                                                 .dce = reverse_dce,
                                                 .param_rules = reverse_rules};

}  // namespace reprise
