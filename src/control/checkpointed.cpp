#include "control/checkpointed.h"

#include "control/body.h"
#include "control/loop_schedule.h"
#include "control/records.h"
#include "ops/lax.h"
#include "transform/dce.h"
#include "transform/partial_eval.h"
#include "transform/rewrite.h"

#include <algorithm>

namespace reprise {
namespace {

// Numbers that a program read from text may have wrong.
std::int64_t checked_count(std::int64_t n) {
  if (n < 0 || n > most_steps)
    fail<TypeError>("checkpointed loop: a count must be from 0 to 2^32, got ", n);
  return n;
}

LoopLength length_of(const Params& p) {
  const auto* steps = std::get_if<std::int64_t>(p.find("length"));
  if (steps != nullptr) checked_count(*steps);
  return {steps == nullptr ? std::nullopt : std::optional(*steps), p.get<bool>("reverse"),
          p.get<std::int64_t>("checkpoints"), count_or_none(p, "disk_checkpoints")};
}
Attr length_attr(const LoopLength& l) { return l.steps ? Attr(*l.steps) : Attr(None{}); }
std::size_t count_of(const Params& p, const char* key) {
  return static_cast<std::size_t>(checked_count(p.get<std::int64_t>(key)));
}
std::int64_t as_int(std::size_t n) { return static_cast<std::int64_t>(n); }

// A while that counts: (steps, consts, i, carry) -> (i, carry).
PlainLoop counted_while(const TangentLoop& l, const Arrays& x) {
  const Array steps = x[0];
  const std::size_t first = l.length.kept(l.kept);
  const Array start = lax::zeros(steps.type());
  const Arrays args = concat(concat({steps}, slice_of(x, first, first + l.consts)),
                             concat({start}, slice_of(x, first + l.consts, x.size())));
  Types test_types{steps.type()}, body_types;
  for (std::size_t i = 1; i < args.size(); ++i) {
    body_types.push_back(args[i].type());
    if (i > l.consts) test_types.push_back(args[i].type());
  }
  const auto test = [](const Arrays& a) { return Arrays{lax::lt(a[1], a[0])}; };
  const auto body = [&](const Arrays& a) {
    const Array next = lax::add(a[l.consts], lax::const_like(a[l.consts], 1));
    const Arrays inner = concat(slice_of(a, 0, l.consts), slice_of(a, l.consts + 1, a.size()));
    return concat({next}, eval(*l.body, inner));
  };
  const TraceInfo info{.transform = "while_loop", .name = l.body->name, .body = true};
  const WhileLoop loop{trace(test, test_types, info).program,
                       trace(body, body_types, info).program,
                       1,
                       l.consts,
                       l.length.checkpoints,
                       l.length.disk};
  return {&while_p, while_params(loop), args, 1 + l.kept};
}

}  // namespace

TangentLoop tangent_loop(const Params& p) {
  return {p.get<ProgramPtr>("jaxpr"), length_of(p), count_of(p, "num_consts"),
          count_of(p, "num_carry"), count_of(p, "num_kept")};
}
ReverseLoop reverse_loop(const Params& p) {
  return {
      p.get<ProgramPtr>("advance_jaxpr"), p.get<ProgramPtr>("step_jaxpr"), length_of(p),
      count_of(p, "num_consts"),          count_of(p, "num_carry"),        count_of(p, "num_back")};
}
Params params_of(const TangentLoop& l) {
  const Params params{{"jaxpr", l.body},
                      {"length", length_attr(l.length)},
                      {"num_carry", as_int(l.carry)},
                      {"num_consts", as_int(l.consts)},
                      {"num_kept", as_int(l.kept)},
                      {"reverse", l.length.reverse}};
  return with_budget(params, l.length.checkpoints, l.length.disk);
}
Params params_of(const ReverseLoop& l) {
  const Params params{{"advance_jaxpr", l.advance},
                      {"length", length_attr(l.length)},
                      {"num_back", as_int(l.back)},
                      {"num_carry", as_int(l.carry)},
                      {"num_consts", as_int(l.consts)},
                      {"reverse", l.length.reverse},
                      {"step_jaxpr", l.step}};
  return with_budget(params, l.length.checkpoints, l.length.disk);
}

Types kept_types(const Types& carry, const LoopLength& l) {
  Types kept;
  if (!l.steps) kept = {{Dtype::i32, {}}, {Dtype::i32, {l.slots() - 1}}};
  for (const Type& t : carry) kept.push_back(stacked(t, l.checkpoints - 1));
  for (std::size_t k = 0; k < carry.size() && l.disk > 0; ++k) {
    kept.push_back(stacked(carry[k], l.disk));
    kept.back().memory_space = MemorySpace::host;
  }
  kept.insert(kept.end(), carry.begin(), carry.end());
  return kept;
}

PlainLoop plain_loop(const TangentLoop& l, const Arrays& x) {
  if (!l.length.steps) return counted_while(l, x);
  ScanShape shape;
  shape.consts = l.consts;
  shape.carry = l.carry;
  shape.length = *l.length.steps;
  shape.reverse = l.length.reverse;
  shape.checkpoints = l.length.checkpoints;
  shape.disk_checkpoints = l.length.disk;
  return {&scan_p, scan_params(shape, l.body), slice_of(x, l.length.kept(l.kept), x.size()),
          l.kept};
}

bool is_checkpointed(const Primitive* p) {
  return p == &checkpointed_scan_p || p == &checkpointed_while_p || p == &checkpointed_reverse_p;
}

bool is_kept_on_disk(const Equation& reversal, std::size_t operand) {
  const ReverseLoop l = reverse_loop(reversal.params);
  const std::size_t first = l.length.operands() + l.carry;
  return l.length.disk > 0 && operand >= first && operand < first + l.carry;
}

double times_run(const Equation& e, const Program& body) {
  if (e.prim == &checkpointed_scan_p) return static_cast<double>(scan_shape(e.params).length);
  if (e.prim != &checkpointed_reverse_p) return 1;
  const ReverseLoop l = reverse_loop(e.params);
  if (!l.length.steps) return 1;
  const std::int64_t n = *l.length.steps;
  if (&body != l.advance.get()) return static_cast<double>(n);
  return static_cast<double>(least_advances(n, l.length.slots()) -
                             std::max<std::int64_t>(n - 1, 0));
}

std::size_t alternating_results(const Equation& e) {
  if (e.prim == &scan_p) return scan_shape(e.params).carry;
  if (e.prim == &checkpointed_reverse_p) return reverse_loop(e.params).back;
  return e.prim == &while_p ? e.out.size() : 0;
}

std::string kept_text(const Equation& e, std::size_t result, const Type& type) {
  const bool is_scan = e.prim == &checkpointed_scan_p;
  if (!is_scan && e.prim != &checkpointed_while_p) return "";
  const std::size_t results =
      (is_scan ? e.params.get<ProgramPtr>("jaxpr") : loop_of(e.params).body)->out.size();
  const std::size_t carry = is_scan ? scan_shape(e.params).carry : results;
  if (result < results) return "";
  const std::int64_t c = e.params.get<std::int64_t>("checkpoints");
  const std::int64_t d = count_or_none(e.params, "disk_checkpoints");
  const std::string loop = is_scan ? str("a loop of ", scan_shape(e.params).length, " steps")
                                   : "a loop of unknown length";
  if (result >= e.out.size() - carry) return "the carry before the last step of " + loop;
  const std::size_t sections = d > 0 ? 3 : 2;
  if (result < e.out.size() - sections * carry) return "where the checkpoints are in " + loop;
  if (d > 0 && result >= e.out.size() - 2 * carry)
    return str(d, d == 1 ? " checkpoint on disk of " : " checkpoints on disk of ", sliced(type),
               " in ", loop);
  const std::string all =
      str(c, c == 1 ? " checkpoint of " : " checkpoints of ", sliced(type), " in ", loop);
  if (!is_scan) return all;
  const std::int64_t t =
      std::max<std::int64_t>(repetitions_of(scan_shape(e.params).length, c + d) - 1, 0);
  return str(all, ", at most ", t, t == 1 ? " recomputation" : " recomputations", " of a step");
}

void no_second_reversal() {
  fail_with_hint<RuleError>(
      "differentiate forward over reverse (jvp or jacfwd of grad), or leave out .checkpoints",
      "checkpointed loop: the reversal of a loop with .checkpoints cannot be reversed once more "
      "within its budget");
}

// ----------------------------------------------------------------------------------- splitting
namespace {

// Outputs of a jvp loop's body that the tangents need: the primal carries, their tangents, tangents
// of ys.
ProgramPtr tangents_only(const ProgramPtr& body, std::size_t carries, std::size_t ys) {
  std::vector<bool> wanted(body->out.size(), true);
  std::fill_n(wanted.begin() + static_cast<std::ptrdiff_t>(carries), ys, false);
  return dce_body(body, wanted, std::vector<bool>(body->in.size(), true));
}

Duals with_tangents(const Arrays& out, std::size_t results, const TangentLoop& l,
                    const Arrays& args, const std::vector<bool>& nonzero) {
  const Arrays kept = slice_of(out, results, out.size());
  const Arrays tangents = checkpointed_tangents_p.bind(concat(kept, args), params_of(l));
  return {out, spread(nonzero, tangents)};
}

Duals linearize_scan(const Arrays& x, const Tangents& dx, const Params& params) {
  const ScanShape s = scan_shape(params);
  const std::size_t results = params.get<ProgramPtr>("jaxpr")->out.size();
  const Arrays out = checkpointed_scan_p.bind(x, params);
  const JvpScan j = jvp_scan(x, dx, params);
  const ProgramPtr body = tangents_only(j.body, j.shape.carry, results - s.carry);
  const TangentLoop l{body,
                      {s.length, s.reverse, s.checkpoints, s.disk_checkpoints},
                      j.shape.consts,
                      j.shape.carry,
                      s.carry};
  return with_tangents(out, results, l, j.args, j.nonzero);
}

Duals linearize_while(const Arrays& x, const Tangents& dx, const Params& params) {
  const LoopJvp j = jvp_while(x, dx, params);
  const std::size_t carry = j.nonzero.size();
  const Arrays out = checkpointed_while_p.bind(x, params);
  const TangentLoop l{j.loop.body,
                      {std::nullopt, false, j.loop.checkpoints, j.loop.disk_checkpoints},
                      j.loop.body_consts,
                      j.loop.body->in.size() - j.loop.body_consts,
                      carry};
  return with_tangents(out, carry, l, slice_of(j.args, j.loop.cond_consts, j.args.size()),
                       j.nonzero);
}

}  // namespace

Duals linearize_checkpointed(const Primitive& forward, const Arrays& x, const Tangents& dx,
                             const Params& params) {
  return &forward == &checkpointed_scan_p ? linearize_scan(x, dx, params)
                                          : linearize_while(x, dx, params);
}

// The loop `e` has operands (consts, carry, xs) of `l`; its unknown results are staged. Kept
// carries come first.
void stage_tangents(const Equation& e, Split& s, TangentLoop l, const std::vector<Var>& kept,
                    const std::vector<bool>& unknown_out) {
  Equation staged{&checkpointed_tangents_p, {}, {}, {}, e.at, e.phase};
  for (Var v : kept) staged.in.push_back(Atom::of(v));
  std::vector<std::size_t> in_order, out_order;
  std::vector<bool> wanted(l.body->out.size());
  for (std::size_t i = 0; i < l.consts; ++i) in_order.push_back(i);
  for (const bool unknown : {false, true}) {
    for (std::size_t k = 0; k < l.carry; ++k) {
      if (unknown_out[k] != unknown) continue;
      in_order.push_back(l.consts + k);
      out_order.push_back(k);
    }
    if (!unknown) l.kept = out_order.size();
  }
  for (std::size_t i = l.consts + l.carry; i < l.body->in.size(); ++i) in_order.push_back(i);
  for (std::size_t k = l.carry; k < l.body->out.size(); ++k) {
    if (unknown_out[k]) out_order.push_back(k);
  }
  auto body = std::make_shared<Program>(*permute_inputs(*l.body, in_order));
  body->out.clear();
  for (std::size_t k : out_order) body->out.push_back(l.body->out[k]);
  l.body = std::make_shared<const Program>(drop_dead(*body));
  for (std::size_t i : in_order) staged.in.push_back(e.in[e.in.size() - in_order.size() + i]);
  for (std::size_t n = l.kept; n < out_order.size(); ++n) staged.out.push_back(e.out[out_order[n]]);
  staged.params = params_of(l);
  for (std::size_t k = 0; k < e.out.size(); ++k) s.set(e.out[k], unknown_out[k], unknown_out[k]);
  s.add_staged(std::move(staged));
}

std::vector<bool> needed_carries(const ReverseLoop& l, const std::vector<bool>& live) {
  const auto carry = live.begin() + static_cast<std::ptrdiff_t>(l.consts);
  std::vector<bool> needed(carry, carry + static_cast<std::ptrdiff_t>(l.carry));
  for (bool stable = false; !stable;) {
    stable = true;
    const std::vector<bool> read = live_inputs(l.advance, needed);
    for (std::size_t k = 0; k < l.carry; ++k) {
      if (!read[l.consts + k] || needed[k]) continue;
      needed[k] = true;
      stable = false;
    }
  }
  const bool any = std::find(needed.begin(), needed.end(), true) != needed.end();
  if (!any && l.carry > 0) needed[0] = true;
  return needed;
}

bool has_checkpoints(const Equation& forward, std::size_t result) {
  if (forward.prim == &checkpointed_scan_p) {
    const ScanShape s = scan_shape(forward.params);
    const std::size_t first = forward.params.get<ProgramPtr>("jaxpr")->out.size();
    return s.disk_checkpoints == 0 && result >= first && result < first + s.carry;
  }
  if (forward.prim != &checkpointed_while_p) return false;
  const WhileLoop l = loop_of(forward.params);
  const std::size_t carry = l.body->out.size(), first = carry + 2;
  return l.disk_checkpoints == 0 && result >= first && result < first + carry;
}

ProgramPtr known_part(const Program& known, std::size_t outputs) {
  std::vector<bool> wanted(known.out.size());
  std::fill_n(wanted.begin(), outputs, true);
  return std::make_shared<const Program>(dce(known, wanted).program);
}

void split_checkpointed_scan(const Equation& e, Split& s, const Program& known_body,
                             const std::vector<bool>& unknown_in,
                             const std::vector<bool>& unknown_out) {
  const ScanShape shape = scan_shape(e.params);
  const ProgramPtr& body = e.params.get<ProgramPtr>("jaxpr");
  std::vector<bool> known_in = unknown_in, known_out = unknown_out;
  known_in.flip();
  known_out.flip();
  Equation forward{&checkpointed_scan_p, {}, {}, {}, e.at, e.phase};
  ScanShape known = shape;
  known.consts = known.carry = 0;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (!known_in[i]) continue;
    forward.in.push_back(e.in[i]);
    known.consts += i < shape.consts ? 1 : 0;
    known.carry += i >= shape.consts && i < shape.consts + shape.carry ? 1 : 0;
  }
  const auto known_outputs =
      static_cast<std::size_t>(std::count(known_out.begin(), known_out.end(), true));
  forward.params = scan_params(known, known_part(known_body, known_outputs));
  Types carry;
  for (std::size_t k = 0; k < e.out.size(); ++k) {
    if (!known_out[k]) continue;
    forward.out.push_back(e.out[k]);
    if (k < shape.carry) carry.push_back(s.type(e.out[k]));
  }
  const LoopLength length{shape.length, shape.reverse, shape.checkpoints, shape.disk_checkpoints};
  std::vector<Var> kept;
  for (const Type& t : kept_types(carry, length)) kept.push_back(s.fresh(t));
  forward.out.insert(forward.out.end(), kept.begin(), kept.end());
  if (!forward.out.empty()) s.add_known(std::move(forward));
  stage_tangents(e, s, {body, length, shape.consts, shape.carry, 0}, kept, unknown_out);
}

Program open_tangents(const Program& p) {
  Rewriter rewrite(p);
  for (const Equation& e : p.eqns) {
    Equation now = e;
    now.in = rewrite.read_all(e.in);
    now.params = map_programs(e.params, "open_tangents", open_tangents);
    if (e.prim != &checkpointed_tangents_p) {
      rewrite.append(std::move(now));
      continue;
    }
    Types in;
    for (const Atom& a : e.in) in.push_back(p.type(a));
    const AtEquation at(e.at);
    const TangentLoop loop = tangent_loop(now.params);
    const auto formula = [&](const Arrays& x) {
      const PlainLoop plain = plain_loop(loop, x);
      const Arrays out = plain.prim->bind(plain.args, plain.params);
      return slice_of(out, plain.skipped, out.size());
    };
    const Traced traced = trace(formula, in, {.transform = "linearize", .body = true});
    const std::vector<Atom> out = rewrite.splice(*traced.program, now.in, e.phase);
    for (std::size_t k = 0; k < out.size(); ++k) rewrite.replace(e.out[k], out[k]);
  }
  return rewrite.finish();
}

}  // namespace reprise
