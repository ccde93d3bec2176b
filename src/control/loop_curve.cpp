#include "control/loop_curve.h"

#include "control/body.h"
#include "control/checkpointed.h"
#include "control/loop_schedule.h"
#include "control/records.h"
#include "program/effects.h"
#include "transform/dce.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr std::size_t most_points = 64;
constexpr auto nowhere = static_cast<std::size_t>(-1);

// Equations that read a variable, and whether the program returns it.
struct Readers {
  std::vector<std::vector<std::size_t>> of;
  std::vector<bool> is_output;
  explicit Readers(const Program& p) : of(p.types.size()), is_output(p.types.size(), false) {
    for (std::size_t i = 0; i < p.eqns.size(); ++i) {
      for (const Atom& a : p.eqns[i].in) {
        if (a.is_var()) of[static_cast<std::size_t>(a.var)].push_back(i);
      }
    }
    for (const Atom& a : p.out) {
      if (a.is_var()) is_output[static_cast<std::size_t>(a.var)] = true;
    }
  }
  // The one equation that reads it, once; nowhere: there is none, or more.
  std::size_t only(Var v) const {
    const auto& all = of[static_cast<std::size_t>(v)];
    return all.size() == 1 && !is_output[static_cast<std::size_t>(v)] ? all[0] : nowhere;
  }
};

const Program& body_of(const Equation& e) { return *e.params.get<ProgramPtr>("jaxpr"); }

// Which scanned operand of a scan a variable is.
std::size_t scanned_operand(const Equation& scan, Var v) {
  const ScanShape s = scan_shape(scan.params);
  for (std::size_t i = s.consts + s.carry; i < scan.in.size(); ++i) {
    if (scan.in[i].is_var() && scan.in[i].var == v) return i - s.consts - s.carry;
  }
  return nowhere;
}

bool can_be_played_again(const Equation& e) {
  return e.prim == &scan_p && !effects_of(body_of(e)).is_any() && scan_shape(e.params).length > 1 &&
         scan_shape(e.params).length <= most_steps;
}

LoopPair pair_of(const Program& p, const Readers& readers, std::size_t i) {
  LoopPair pair{i, nowhere, {}, 0, 0, 0};
  const Equation& e = p.eqns[i];
  const ScanShape s = scan_shape(e.params);
  for (std::size_t k = s.carry; k < e.out.size(); ++k) {
    const std::size_t reader = readers.only(e.out[k]);
    if (reader == nowhere || (pair.backward != nowhere && reader != pair.backward)) continue;
    const Equation& other = p.eqns[reader];
    if (other.prim != &scan_p || scanned_operand(other, e.out[k]) == nowhere) continue;
    const ScanShape t = scan_shape(other.params);
    if (t.length != s.length || t.reverse == s.reverse || effects_of(body_of(other)).is_any())
      continue;
    pair.backward = reader;
    pair.residuals.push_back(k);
    pair.residual_bytes += p.type(e.out[k]).nbytes();
  }
  pair.steps = s.length;
  for (std::size_t k = 0; k < s.carry; ++k) pair.carry_bytes += p.type(e.out[k]).nbytes();
  return pair;
}

// ------------------------------------------------------------------------------------ rewriting
class BudgetedPair {
 public:
  BudgetedPair(const Program& p, const LoopPair& pair, std::int64_t checkpoints)
      : p_(p),
        out_(p),
        pair_(pair),
        f_(p.eqns[pair.forward]),
        g_(p.eqns[pair.backward]),
        s_(scan_shape(f_.params)),
        t_(scan_shape(g_.params)) {
    s_.checkpoints = checkpoints;
    length_ = {s_.length, s_.reverse, checkpoints, 0};
    for (std::size_t i = 0; i < g_.in.size() - t_.consts - t_.carry; ++i) {
      const Atom& x = g_.in[t_.consts + t_.carry + i];
      const auto is_it = [&](std::size_t k) { return x.is_var() && f_.out[k] == x.var; };
      const auto found = std::find_if(pair.residuals.begin(), pair.residuals.end(), is_it);
      residual_of_.push_back(found == pair.residuals.end() ? nowhere : *found);
    }
  }

  Program run() {
    out_.derived = {};
    rewrite_forward();
    rewrite_backward();
    return std::move(out_);
  }

 private:
  bool is_residual(std::size_t result) const {
    return std::find(pair_.residuals.begin(), pair_.residuals.end(), result) !=
           pair_.residuals.end();
  }

  // The results that stay, then what the reversal starts from.
  void rewrite_forward() {
    Equation& e = out_.eqns[pair_.forward];
    e.prim = &checkpointed_scan_p;
    std::vector<bool> stays;
    e.out.clear();
    for (std::size_t k = 0; k < f_.out.size(); ++k) {
      stays.push_back(!is_residual(k));
      if (stays.back()) e.out.push_back(f_.out[k]);
    }
    e.params = scan_params(s_, with_outputs(body_of(f_), stays));
    Types carry;
    for (std::size_t k = 0; k < s_.carry; ++k) carry.push_back(p_.type(f_.out[k]));
    kept_types_ = kept_types(carry, length_);
    for (const Type& t : kept_types_) {
      kept_.push_back(out_.fresh(t));
      e.out.push_back(kept_.back());
    }
  }
  static ProgramPtr with_outputs(const Program& p, const std::vector<bool>& stays) {
    return std::make_shared<const Program>(dce(p, stays).program);
  }

  void rewrite_backward() {
    Equation& e = out_.eqns[pair_.backward];
    e.prim = &checkpointed_reverse_p;
    ReverseLoop l;
    l.length = length_;
    l.consts = s_.consts + t_.consts;
    l.carry = s_.carry;
    l.back = t_.carry;
    l.advance = advance();
    l.step = step();
    e.params = params_of(l);
    e.in.clear();
    for (Var v : kept_) e.in.push_back(Atom::of(v));
    const auto add = [&](const Equation& from, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) e.in.push_back(from.in[i]);
    };
    add(f_, 0, s_.consts);
    add(g_, 0, t_.consts);
    add(f_, s_.consts, f_.in.size());
    add(g_, t_.consts, t_.consts + t_.carry);
    for (std::size_t i = 0; i < residual_of_.size(); ++i) {
      const std::size_t at = t_.consts + t_.carry + i;
      if (residual_of_[i] == nowhere) add(g_, at, at + 1);
    }
    // Checkpoints come back: the reversal works in their memory.
    for (const Type& t : kept_types_) e.out.push_back(out_.fresh(t));
  }
  Types shared_types() const {  // consts of both, carry, xs
    const Types f = body_of(f_).in_types(), g = body_of(g_).in_types();
    const auto at = [](const Types& t, std::size_t n) {
      return t.begin() + static_cast<std::ptrdiff_t>(n);
    };
    Types out(f.begin(), at(f, s_.consts));
    out.insert(out.end(), g.begin(), at(g, t_.consts));
    out.insert(out.end(), at(f, s_.consts), f.end());
    return out;
  }
  Arrays forward_args(const Arrays& x) const {
    return concat(slice_of(x, 0, s_.consts),
                  slice_of(x, s_.consts + t_.consts, t_.consts + f_.in.size()));
  }
  ProgramPtr advance() const {
    const auto run = [&](const Arrays& x) {
      return slice_of(eval(body_of(f_), forward_args(x)), 0, s_.carry);
    };
    return pruned(trace(run, shared_types(), {.body = true}));
  }
  ProgramPtr step() const {
    Types in = shared_types();
    const std::size_t first_back = in.size(), first_ct = first_back + t_.carry;
    const Types g = body_of(g_).in_types();
    in.insert(in.end(), g.begin() + static_cast<std::ptrdiff_t>(t_.consts),
              g.begin() + static_cast<std::ptrdiff_t>(t_.consts + t_.carry));
    for (std::size_t i = 0; i < residual_of_.size(); ++i) {
      if (residual_of_[i] == nowhere) in.push_back(g[t_.consts + t_.carry + i]);
    }
    const auto run = [&](const Arrays& x) {
      const Arrays y = eval(body_of(f_), forward_args(x));
      Arrays args =
          concat(slice_of(x, s_.consts, s_.consts + t_.consts), slice_of(x, first_back, first_ct));
      std::size_t ct = first_ct;
      for (std::size_t k : residual_of_) args.push_back(k == nowhere ? x[ct++] : y[k]);
      return eval(body_of(g_), std::move(args));
    };
    return pruned(trace(run, in, {.body = true}));
  }
  static ProgramPtr pruned(const Traced& t) {
    return std::make_shared<const Program>(drop_dead(*t.program));
  }

  const Program& p_;
  Program out_;
  const LoopPair& pair_;
  const Equation &f_, &g_;
  ScanShape s_, t_;
  LoopLength length_;
  std::vector<std::size_t> residual_of_;  // of what the second scans: the first one's result
  std::vector<Var> kept_;
  Types kept_types_;
};

}  // namespace

std::vector<LoopPair> loop_pairs(const Program& p) {
  const Readers readers(p);
  std::vector<LoopPair> out;
  for (std::size_t i = 0; i < p.eqns.size(); ++i) {
    if (!can_be_played_again(p.eqns[i])) continue;
    LoopPair pair = pair_of(p, readers, i);
    if (!pair.residuals.empty()) out.push_back(std::move(pair));
  }
  return out;
}

std::vector<LoopPoint> loop_curve(const LoopPair& pair) {
  std::vector<LoopPoint> out;
  for (std::int64_t t = 1; out.size() < most_points; ++t) {
    const std::int64_t c = std::min(checkpoints_for(pair.steps, t), pair.steps);
    // The state before the last step is kept besides.
    const std::size_t bytes = static_cast<std::size_t>(c + 1) * pair.carry_bytes;
    const bool is_less = out.empty() || bytes < out.back().bytes;
    if (bytes < pair.residual_bytes && is_less)
      out.push_back({c, bytes, least_advances(pair.steps, c) + 1});
    if (c == 1 || t >= pair.steps) break;
  }
  return out;
}

Program with_checkpoints(const Program& p, const LoopPair& pair, std::int64_t checkpoints) {
  return BudgetedPair(p, pair, checkpoints).run();
}

}  // namespace reprise
