// The forward pass of scan and while with checkpoints: their results, and what their reversal
// starts from.
#include "control/body.h"
#include "control/checkpointed.h"
#include "control/loop_schedule.h"
#include "control/records.h"
#include "ops/lax.h"

#include <cstring>
#include <limits>

namespace reprise {
namespace {

LoopLength scan_length(const Params& p) {
  const ScanShape s = scan_shape(p);
  return {s.length, s.reverse, s.checkpoints, s.disk_checkpoints};
}
LoopLength while_length(const Params& p) {
  const WhileLoop l = loop_of(p);
  return {std::nullopt, false, l.checkpoints, l.disk_checkpoints};
}

void need_checkpoints(const char* op, const Params& p) {
  if (p.find("checkpoints") == nullptr)
    fail<TypeError>(op, ": at least one checkpoint is needed, got none");
}

Types with_kept(Types out, std::size_t carry, const LoopLength& l) {
  const Types kept = kept_types({out.begin(), out.begin() + static_cast<std::ptrdiff_t>(carry)}, l);
  out.insert(out.end(), kept.begin(), kept.end());
  return out;
}

Types forward_scan_type(const Types& in, const Params& params) {
  need_checkpoints("checkpointed_scan", params);
  return with_kept(scan_p.type(in, params), scan_shape(params).carry, scan_length(params));
}
Types forward_while_type(const Types& in, const Params& params) {
  need_checkpoints("checkpointed_while", params);
  Types out = while_p.type(in, params);
  if (loop_of(params).is_mapped())
    fail<TypeError>("checkpointed_while: one condition is needed, got one for each element");
  const std::size_t carry = out.size();
  return with_kept(std::move(out), carry, while_length(params));
}

// ---------------------------------------------------------------------------------- evaluation
// Puts states to the slots of new arrays while a loop runs.
class Keeper {
 public:
  Keeper(const LoopLength& l, const Arrays& init)
      : schedule_(l.slots(), l.steps), length_(l), last_(init) {
    Types carry;
    for (const Array& a : init) carry.push_back(a.type());
    const Types kept = kept_types(carry, l);
    for (std::size_t i = l.operands(); i + init.size() < kept.size(); ++i) {
      slots_.emplace_back(kept[i]);
      if (kept[i].nbytes() > 0) std::memset(slots_.back().bytes(), 0, kept[i].nbytes());
    }
  }
  // Before each step, with the state that it starts from.
  void before_step(std::int64_t step, const Arrays& state) {
    if (step > 1) keep(schedule_.slot_of(step - 1));
    last_ = state;
  }
  Arrays finish(std::int64_t steps) && {
    Arrays kept;
    if (!length_.steps) {
      kept.push_back(numbers({}, {steps}));
      kept.push_back(numbers({length_.slots() - 1}, schedule_.kept()));
    }
    for (NewArray& a : slots_) kept.push_back(std::move(a).finish());
    return concat(kept, last_);
  }

 private:
  static Array numbers(const Shape& shape, const std::vector<std::int64_t>& values) {
    NewArray out(Type{Dtype::i32, shape});
    for (std::size_t i = 0; i < values.size(); ++i)
      out.data<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
    return std::move(out).finish();
  }
  void keep(std::int64_t slot) {
    if (slot == no_slot) return;
    const bool on_disk = slot <= length_.disk;
    const auto row = static_cast<std::size_t>(slot - 1 - (on_disk ? 0 : length_.disk));
    for (std::size_t k = 0; k < last_.size(); ++k) {
      const std::size_t bytes = last_[k].nbytes();
      if (bytes == 0) continue;
      NewArray& section = slots_[on_disk ? last_.size() + k : k];
      std::memcpy(section.bytes() + row * bytes, content(last_[k]).elements, bytes);
    }
  }
  ForwardSchedule schedule_;
  LoopLength length_;
  std::vector<NewArray> slots_;  // in memory of every carry, then on disk
  Arrays last_;
};

Arrays forward_scan_eval(const Arrays& x, const Params& params, const Types& out) {
  const ScanShape s = scan_shape(params);
  const Program& body = *params.get<ProgramPtr>("jaxpr");
  Arrays carry = slice_of(x, s.consts, s.consts + s.carry);
  Keeper keeper(scan_length(params), carry);
  std::vector<NewArray> ys;
  for (std::size_t k = s.carry; k < body.out.size(); ++k) ys.emplace_back(out[k]);
  for (std::int64_t step = 0; step < s.length; ++step) {
    const std::int64_t i = s.reverse ? s.length - 1 - step : step;
    keeper.before_step(step, carry);
    Arrays args = concat(slice_of(x, 0, s.consts), carry);
    for (std::size_t k = s.consts + s.carry; k < x.size(); ++k) args.push_back(row(x[k], i));
    const Arrays y = eval(body, std::move(args));
    for (std::size_t k = 0; k < ys.size(); ++k) {
      const Array& value = y[s.carry + k];
      const std::size_t bytes = value.nbytes();
      if (bytes == 0) continue;
      std::memcpy(ys[k].bytes() + static_cast<std::size_t>(i) * bytes, content(value).elements,
                  bytes);
    }
    carry = slice_of(y, 0, s.carry);
  }
  for (NewArray& y : ys) carry.push_back(std::move(y).finish());
  return concat(carry, std::move(keeper).finish(s.length));
}

Arrays forward_while_eval(const Arrays& x, const Params& params, const Types&) {
  const WhileLoop l = loop_of(params);
  const Arrays cond_consts = slice_of(x, 0, l.cond_consts);
  const Arrays body_consts = slice_of(x, l.cond_consts, l.first_carry());
  Arrays carry = slice_of(x, l.first_carry(), x.size());
  Keeper keeper(while_length(params), carry);
  for (std::int64_t step = 0;; ++step) {
    if (!*elements<bool>(eval(*l.cond, concat(cond_consts, carry))[0])) {
      return concat(carry, std::move(keeper).finish(step));
    }
    check_step_count(step);
    keeper.before_step(step, carry);
    carry = eval(*l.body, concat(body_consts, carry));
  }
}

// --------------------------------------------------------------------------------------- rules
// Of results (carry, dcarry, ys, dys | lengths | checkpoints and last of carry and dcarry):
// those of the loop itself and what is kept of it, and the tangents.
Duals without_tangents(const Arrays& out, std::size_t carry, std::size_t all_carries,
                       std::size_t ys, std::size_t results, const LoopLength& l,
                       const std::vector<bool>& nonzero) {
  Duals d;
  d.out = concat(slice_of(out, 0, carry), slice_of(out, all_carries, all_carries + ys));
  const Arrays dots =
      concat(slice_of(out, carry, all_carries), slice_of(out, all_carries + ys, results));
  d.tangents = spread(nonzero, dots);
  d.out = concat(d.out, slice_of(out, results, results + l.operands()));
  d.tangents.resize(d.out.size());
  const std::vector<bool> active(nonzero.begin(),
                                 nonzero.begin() + static_cast<std::ptrdiff_t>(carry));
  for (std::size_t n = 0; n < l.sections(); ++n) {
    const std::size_t first = results + l.operands() + n * all_carries;
    d.out = concat(d.out, slice_of(out, first, first + carry));
    for (const Tangent& t : spread(active, out, first + carry)) d.tangents.push_back(t);
  }
  return d;
}

Duals forward_scan_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const std::size_t carry = scan_shape(params).carry,
                    ys = params.get<ProgramPtr>("jaxpr")->out.size() - carry;
  const JvpScan j = jvp_scan(x, dx, params);
  const Arrays out = checkpointed_scan_p.bind(j.args, scan_params(j.shape, j.body));
  return without_tangents(out, carry, j.shape.carry, ys, j.body->out.size(), scan_length(params),
                          j.nonzero);
}
Duals forward_while_jvp(const Arrays& x, const Tangents& dx, const Params& params) {
  const LoopJvp j = jvp_while(x, dx, params);
  const Arrays out = checkpointed_while_p.bind(j.args, while_params(j.loop));
  const std::size_t all = j.loop.body->out.size();
  return without_tangents(out, j.nonzero.size(), all, 0, all, while_length(params), j.nonzero);
}

// What is kept has no tangents here: only a reversal reads it, and that has no reversal of its own.
Duals forward_scan_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  Duals d = linearize_checkpointed(checkpointed_scan_p, x, dx, params);
  d.tangents.resize(d.out.size());
  return d;
}
Duals forward_while_linearize(const Arrays& x, const Tangents& dx, const Params& params) {
  Duals d = linearize_checkpointed(checkpointed_while_p, x, dx, params);
  d.tangents.resize(d.out.size());
  return d;
}
Tangents no_transpose(const Tangents&, const Primals&, const Types&, const Params&) {
  no_second_reversal();
}

// Axes of what is kept of mapped carries.
void add_kept_axes(Axes& axes, const std::vector<bool>& mapped, const LoopLength& l) {
  axes.resize(axes.size() + l.operands());
  for (std::size_t n = 0; n < l.sections(); ++n) {
    const std::int64_t at = n + 1 < l.sections() ? 1 : 0;
    for (bool m : mapped) axes.push_back(m ? Axis(at) : std::nullopt);
  }
}

Batched forward_scan_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                           const Params& params) {
  ScanShape s = scan_shape(params);
  const Program& body = *params.get<ProgramPtr>("jaxpr");
  const BatchedLoop b = batched_loop(body, s.consts, s.carry, mapped_mask(axes), n);
  Arrays args = b.body->consts;
  for (std::size_t i = 0; i < x.size(); ++i) {
    args.push_back(b.mapped[i] ? axis_at(x[i], axes[i], i >= s.consts + s.carry ? 1 : 0, n) : x[i]);
  }
  Batched result;
  std::vector<bool> mapped;
  for (std::size_t k = 0; k < body.out.size(); ++k) {
    result.axes.push_back(b.body->out_axes[k] ? Axis(k < s.carry ? 0 : 1) : std::nullopt);
    if (k < s.carry) mapped.push_back(b.body->out_axes[k].has_value());
  }
  add_kept_axes(result.axes, mapped, scan_length(params));
  s.consts += b.body->consts.size();
  result.out = checkpointed_scan_p.bind(args, scan_params(s, b.body->program));
  return result;
}

Batched forward_while_batch(const Primitive&, const Arrays& x, const Axes& axes, std::int64_t n,
                            const Params& params) {
  const BatchedWhile b = batched_while(loop_of(params), x, axes, n);
  const bool is_mapped = b.loop.is_mapped();
  Batched result{is_mapped ? bind_counting_while(b.loop, b.args)
                           : checkpointed_while_p.bind(b.args, while_params(b.loop)),
                 b.axes};
  add_kept_axes(result.axes, mapped_mask(b.axes), while_length(params));
  if (is_mapped) result.axes[b.axes.size()] = Axis(0);
  return result;
}

// Where nobody wants what is kept, the plain loop does.
std::optional<Equation> forward_dce(const Program& p, const Equation& e,
                                    const std::vector<bool>& used, const Primitive& plain,
                                    std::size_t results) {
  for (std::size_t k = results; k < used.size(); ++k) {
    if (used[k]) return e;
  }
  Equation loop = e;
  loop.prim = &plain;
  loop.out.resize(results);
  if (plain.dce == nullptr) return loop;
  return plain.dce(p, loop, {used.begin(), used.begin() + static_cast<std::ptrdiff_t>(results)});
}
std::optional<Equation> forward_scan_dce(const Program& p, const Equation& e,
                                         const std::vector<bool>& used) {
  return forward_dce(p, e, used, scan_p, e.params.get<ProgramPtr>("jaxpr")->out.size());
}
std::optional<Equation> forward_while_dce(const Program& p, const Equation& e,
                                          const std::vector<bool>& used) {
  return forward_dce(p, e, used, while_p, loop_of(e.params).body->out.size());
}

constexpr ParamRule forward_scan_rules[] = {
    {"checkpoints", form::integer},   {"disk_checkpoints", form::integer, absent},
    {"jaxpr", form::program},         {"length", form::integer},
    {"num_carry", form::integer},     {"num_consts", form::integer},
    {"reverse", form::flag, "False"}, {"unroll", form::integer, "1"}};
constexpr ParamRule forward_while_rules[] = {
    {"body_jaxpr", form::program},   {"body_nconsts", form::integer},
    {"checkpoints", form::integer},  {"cond_jaxpr", form::program},
    {"cond_nconsts", form::integer}, {"disk_checkpoints", form::integer, absent}};

}  // namespace

void check_step_count(std::int64_t step) {
  if (step < std::numeric_limits<std::int32_t>::max()) return;
  fail<RuntimeError>("while_loop: a loop with .checkpoints has fewer than 2^31 steps, got more");
}

constinit const Primitive checkpointed_scan_p{.name = "checkpointed_scan",
                                              .kind = Kind::call,
                                              .type = forward_scan_type,
                                              .eval = forward_scan_eval,
                                              .jvp = forward_scan_jvp,
                                              .linearize = forward_scan_linearize,
                                              .transpose = no_transpose,
                                              .batch = forward_scan_batch,
                                              .dce = forward_scan_dce,
                                              .param_rules = forward_scan_rules};
constinit const Primitive checkpointed_while_p{.name = "checkpointed_while",
                                               .kind = Kind::call,
                                               .type = forward_while_type,
                                               .eval = forward_while_eval,
                                               .jvp = forward_while_jvp,
                                               .linearize = forward_while_linearize,
                                               .transpose = no_transpose,
                                               .batch = forward_while_batch,
                                               .dce = forward_while_dce,
                                               .param_rules = forward_while_rules};

}  // namespace reprise
