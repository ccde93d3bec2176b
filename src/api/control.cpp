// scan, cond, switch_, while_loop, custom rules: trace the functions, bind one equation.
#include "reprise/control.h"

#include "api/flat.h"
#include "api/primitives.h"
#include "control/body.h"
#include "control/custom_rules.h"
#include "control/loop_schedule.h"
#include "control/records.h"
#include "control/scan.h"
#include "control/while.h"
#include "ops/collective.h"
#include "ops/lax.h"
#include "ops/records.h"
#include "program/varying.h"
#include "program/walk.h"
#include "remat/checkpoint.h"
#include "transform/dce.h"

#include <algorithm>
#include <unordered_map>

namespace reprise {

std::span<const Primitive* const> all_primitives() {
  static const auto& all = *[] {
    auto& list = *new std::vector<const Primitive*>;
    for (const Primitive* p : basic_primitives()) list.push_back(p);
    for (const Primitive* p : control_primitives()) list.push_back(p);
    list.push_back(&remat_p);
    return &list;
  }();
  return all;
}

namespace detail {
namespace {

Traced trace_body(const Callee& f, const char* transform, const Types& in) {
  Traced t = trace(
      f.run, in, {.transform = transform, .name = f.name, .arg_names = f.arg_names, .body = true});
  if (!f.identity.empty())
    t.program = intern(str(transform, ":", f.identity), std::move(t.program));
  return t;
}

std::int64_t scan_length(const Arrays& xs, std::optional<std::int64_t> given) {
  std::optional<std::int64_t> length = given;
  for (const Array& x : xs) {
    if (x.ndim() == 0) fail<TypeError>("scan: scanned arrays need a leading axis, got ", x.type());
    if (length && *length != x.shape()[0]) {
      fail<TypeError>("scan: scanned arrays must have one leading size, got ", x.type(),
                      " for length ", *length);
    }
    length = x.shape()[0];
  }
  if (!length) {
    fail_with_hint<TypeError>("give .length",
                              "scan: the number of steps is unknown, got no scanned array");
  }
  if (*length < 0) fail<TypeError>("scan: the length must not be negative, got ", *length);
  return *length;
}

std::int64_t checkpoints_for_bytes(const char* op, std::int64_t bytes, const Arrays& carry) {
  std::size_t one = 0;
  for (const Array& a : carry) one += a.nbytes();
  if (bytes < 1 || static_cast<std::size_t>(bytes) < one) {
    fail<TypeError>(op, ": .checkpoint_bytes must hold one carry, got ", bytes, " for a carry of ",
                    one, " bytes");
  }
  return one == 0 ? 1 : bytes / static_cast<std::int64_t>(one);
}

// How many carries the options let reverse mode keep; none: they do not say.
struct KeptCarries {
  std::int64_t in_memory = 0, on_disk = 0;
};
KeptCarries checkpoints_of(const char* op, const LoopOptions& options,
                           std::optional<std::int64_t> length, const Arrays& carry) {
  if (options.disk_checkpoints < 0) {
    fail<TypeError>(op, ": .disk_checkpoints must not be negative, got ", options.disk_checkpoints);
  }
  if (!options.checkpoints && !options.checkpoint_bytes) {
    if (options.disk_checkpoints == 0) return {};
    fail_with_hint<TypeError>(
        "give .checkpoints = 1 to have the initial carry alone in memory", op,
        ": .disk_checkpoints come on top of .checkpoints or .checkpoint_bytes, got neither");
  }
  if (options.checkpoints && options.checkpoint_bytes) {
    fail<TypeError>(op, ": .checkpoints and .checkpoint_bytes exclude each other, got both");
  }
  if (length && *length > most_steps) {
    fail<TypeError>(op, ": a loop with .checkpoints has at most 2^32 steps, got ", *length);
  }
  std::int64_t checkpoints = 0;
  if (options.checkpoint_bytes) {
    checkpoints = checkpoints_for_bytes(op, *options.checkpoint_bytes, carry);
  } else if (!options.checkpoints->count()) {
    if (!length) {
      fail_with_hint<TypeError>(
          "give a number, or use scan, or fori_loop with C++ integers as bounds", op,
          ": .checkpoints = automatic needs a known number of steps, got a loop without");
    }
    checkpoints =
        std::max<std::int64_t>(reprise::checkpoints_for(*length, 2) - options.disk_checkpoints, 1);
  } else {
    checkpoints = *options.checkpoints->count();
  }
  if (checkpoints < 1) {
    fail_with_hint<TypeError>("the initial carry is one of them", op,
                              ": .checkpoints must be at least 1, got ", checkpoints);
  }
  if (!length) return {checkpoints, options.disk_checkpoints};
  const std::int64_t most = std::max<std::int64_t>(*length, 1);
  if (checkpoints > most && !options.checkpoint_bytes) {
    fail_with_hint<TypeError>(
        "a carry for every step is the most there is to keep; .checkpoint_bytes and .checkpoints = "
        "automatic go by the length",
        op, ": .checkpoints must not be more than the steps, got ", checkpoints, " for ", *length);
  }
  checkpoints = std::min(checkpoints, most);
  return {checkpoints,
          std::min(options.disk_checkpoints, std::max<std::int64_t>(*length - checkpoints, 0))};
}

// A carry must keep its shape and dtype; its weakness may change. A weakly typed start of another
// dtype takes the one common to it and the body's result; returns whether something changed.
bool settle_carry(const char* op, Arrays& init, const Types& out) {
  bool changed = false;
  if (out.size() < init.size()) {
    fail<TypeError>(op, ": the carry must keep its structure, got ", init.size(), " arrays in and ",
                    out.size(), " out");
  }
  for (std::size_t k = 0; k < init.size(); ++k) {
    const Type &in = init[k].type(), &now = out[k];
    if (in.dtype == now.dtype && in.shape == now.shape) {
      if ((bits_of(now.varying) & ~bits_of(in.varying)) == 0) continue;
      init[k] = with_varying(init[k], now.varying);
      changed = true;
      continue;
    }
    if (in.weak_type && in.shape == now.shape) {
      const Dtype common = promote_types(in.dtype, in.weak_type, now.dtype, now.weak_type).dtype;
      init[k] = lax::convert(init[k], common, /*weak_type=*/false);
      changed = true;
      continue;
    }
    fail_with_hint<TypeError>(
        "make the initial carry and the body's result agree in shape and dtype", op,
        ": the carry must keep its type, got ", in, " in and ", now, " out (carry leaf ", k, ")");
  }
  return changed;
}

bool is_input(const Program& p, std::size_t output, std::size_t input) {
  return p.out[output].is_var() && p.out[output].var == p.in[input];
}

// A copy of a loop body without the carries that it hands on unchanged: those become constants, in
// front of the others.
struct FixedCarries {
  std::shared_ptr<Program> body;
  Arrays consts, init;
};
FixedCarries fix_carries(const Traced& t, const Arrays& init, const std::vector<bool>& fixed) {
  FixedCarries result{std::make_shared<Program>(*t.program), {}, {}};
  Program& body = *result.body;
  const std::size_t consts = t.consts.size();
  std::vector<Var> front, carries;
  body.out.clear();
  for (std::size_t k = 0; k < init.size(); ++k) {
    (fixed[k] ? front : carries).push_back(t.program->in[consts + k]);
    (fixed[k] ? result.consts : result.init).push_back(init[k]);
    if (!fixed[k]) body.out.push_back(t.program->out[k]);
  }
  body.out.insert(body.out.end(), t.program->out.begin() + static_cast<std::ptrdiff_t>(init.size()),
                  t.program->out.end());
  const auto args = t.program->in.begin() + static_cast<std::ptrdiff_t>(consts);
  front.insert(front.end(), t.program->in.begin(), args);
  front.insert(front.end(), carries.begin(), carries.end());
  front.insert(front.end(), args + static_cast<std::ptrdiff_t>(init.size()), t.program->in.end());
  body.in = std::move(front);
  result.consts = concat(result.consts, t.consts);
  return result;
}

// Binds the loop without carries and stacked outputs that are inputs unchanged.
Arrays bind_forwarded_scan(ScanShape shape, const Traced& t, const Arrays& init, const Arrays& xs) {
  const Program& p = *t.program;
  std::vector<bool> fixed;
  for (std::size_t k = 0; k < init.size(); ++k)
    fixed.push_back(is_input(p, k, t.consts.size() + k));
  std::vector<std::optional<std::size_t>> forwarded;  // per stacked output: the scanned input
  for (std::size_t k = init.size(); k < p.out.size(); ++k) {
    forwarded.emplace_back();
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (is_input(p, k, t.consts.size() + init.size() + i)) forwarded.back() = i;
    }
  }
  const bool any =
      std::find(fixed.begin(), fixed.end(), true) != fixed.end() ||
      std::any_of(forwarded.begin(), forwarded.end(), [](const auto& f) { return f.has_value(); });
  ProgramPtr body = t.program;  // the traced object itself, so that equal loops are shared
  Arrays consts = t.consts, moving = init;
  if (any) {
    FixedCarries f = fix_carries(t, init, fixed);
    const std::vector<Atom> out = std::move(f.body->out);
    f.body->out.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(f.init.size()));
    for (std::size_t k = 0; k < forwarded.size(); ++k) {
      if (!forwarded[k]) f.body->out.push_back(out[f.init.size() + k]);
    }
    body = std::move(f.body);
    consts = std::move(f.consts);
    moving = std::move(f.init);
  }
  shape.consts = consts.size();
  shape.carry = moving.size();
  const Arrays out = bind_scan(shape, body, concat(concat(consts, moving), xs));
  Arrays all;
  std::size_t next = 0;
  for (std::size_t k = 0; k < init.size(); ++k) all.push_back(fixed[k] ? init[k] : out[next++]);
  for (const auto& f : forwarded) all.push_back(f ? xs[*f] : out[next++]);
  return all;
}

// A loop body whose carries vary at the end as they do at the beginning.
Traced with_carries(Traced t, const Arrays& init) {
  const Types out = t.program->out_types();
  bool differs = false;
  for (std::size_t k = 0; k < init.size(); ++k)
    differs = differs || out[k].varying != init[k].type().varying;
  if (!differs) return t;
  const Program& p = *t.program;
  auto body = [&](const Arrays& args) {
    Arrays y = eval(p, args);
    for (std::size_t k = 0; k < init.size(); ++k) y[k] = with_varying(y[k], init[k].type().varying);
    return y;
  };
  t.program = trace(body, p.in_types(),
                    {.transform = "scan", .name = p.name, .arg_names = p.arg_names, .body = true})
                  .program;
  return t;
}

// Branches on a mesh: what the index or some branch makes different between ranks is so in all.
bool varies(const Array& index, const Programs& branches) {
  bool any = index.type().varying != nullptr;
  for (const ProgramPtr& b : branches) {
    for (const Type& t : b->out_types()) any = any || t.varying != nullptr;
  }
  return any;
}
Programs with_common_results(const Programs& branches, const Types& in, const MeshAxes* index) {
  std::vector<const MeshAxes*> common(branches[0]->out.size(), index);
  // an operand that varies now may have been made so in the branch
  const auto bind_again = [](const Equation& e, const Arrays& x) {
    if (e.prim == &pvary_p && x[0].type().varying != nullptr)
      return with_varying(x, axes_of(axes_of(e.params).mesh, axes_of(e.params).bits()));
    return e.prim->bind(x, e.params);
  };
  const auto results = [&](const Program& p, const Arrays& args) {
    Arrays y = walk(p, args, bind_again);
    for (std::size_t k = 0; k < y.size() && k < common.size(); ++k)
      y[k] = with_varying(y[k], common[k]);
    return y;
  };
  const auto traced = [&](const Program& p) {
    return trace([&](const Arrays& args) { return results(p, args); }, in,
                 {.transform = "cond", .name = p.name, .body = true})
        .program;
  };
  for (const ProgramPtr& b : branches) {
    const Types out = traced(*b)->out_types();
    for (std::size_t k = 0; k < out.size() && k < common.size(); ++k)
      common[k] = united(common[k], out[k].varying);
  }
  Programs all;
  for (const ProgramPtr& b : branches) all.push_back(traced(*b));
  return all;
}

}  // namespace

Array next_index(const Array& i) { return lax::add(i, lax::const_like(i, 1)); }
Array less_index(const Array& i, const Array& upper) { return lax::lt(i, upper); }

Array scalar_row(const Array& stacked) {
  Type t = stacked.type();
  if (t.shape.empty()) fail<TypeError>("scan: scanned arrays need a leading axis, got ", t);
  t.shape.erase(t.shape.begin());
  return make_abstract(std::move(t));  // replaced before the body sees it
}

Arrays scan(const Callee& body, Arrays init, const Arrays& xs, const ScanOptions& options) {
  const AtUser at(body.at);
  ScanShape shape;
  shape.length = scan_length(xs, options.length);
  shape.carry = init.size();
  shape.reverse = options.reverse;
  shape.unroll = options.unroll;
  const KeptCarries kept = checkpoints_of(
      "scan", {options.checkpoints, options.checkpoint_bytes, options.disk_checkpoints},
      shape.length, init);
  shape.checkpoints = kept.in_memory;
  shape.disk_checkpoints = kept.on_disk;
  const auto trace_with = [&] {
    Types in = leaf_types(init);
    for (const Array& x : xs) {
      in.push_back(x.type());
      in.back().shape.erase(in.back().shape.begin());
      in.back().weak_type = false;
    }
    return trace_body(body, "scan", in);
  };
  Traced t = trace_with();
  if (settle_carry("scan", init, t.program->out_types())) {
    t = trace_with();
    while (settle_carry("scan", init, t.program->out_types())) t = trace_with();
  }
  t = with_carries(std::move(t), init);
  return finished(bind_forwarded_scan(shape, t, init, xs));
}

Arrays cond(const Array& chooser, const std::vector<Callee>& branches, const Arrays& given,
            bool is_switch) {
  const Arrays operands = with_varying(given, chooser.type().varying);
  if (branches.empty()) fail<TypeError>("switch_: at least one branch is needed, got none");
  const AtUser at(branches[0].at);
  if (is_switch && branches.size() == 1) return branches[0].run(operands);
  if (chooser.ndim() != 0)
    fail<TypeError>("cond: the predicate must be a scalar, got ", chooser.type());
  Array index = chooser;
  if (is_switch) {
    if (!is_integer(index.dtype()))
      fail<TypeError>("switch_: the index must be an integer, got ", index.type());
    index = lax::convert(index, Dtype::i32);
    index = lax::clamp(lax::const_like(index, 0), index,
                       lax::const_like(index, static_cast<double>(branches.size()) - 1));
  } else {
    if (index.dtype() != Dtype::bool_) index = lax::ne(index, lax::const_like(index, 0));
    index = lax::convert(index, Dtype::i32);
  }
  // All branches take the same constants: those of the first traced, then what others add. The
  // branch for true is traced first.
  const Types types = leaf_types(operands);
  std::vector<Traced> traced(branches.size());
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::size_t b = is_switch ? i : branches.size() - 1 - i;
    traced[b] = trace(branches[b].run, types,
                      {.transform = "cond",
                       .name = branches[b].name,
                       .arg_names = branches[b].arg_names,
                       .body = true});
  }
  Arrays consts;
  std::unordered_map<std::uint64_t, std::size_t> const_at;
  for (std::size_t i = 0; i < traced.size(); ++i) {
    for (const Array& c : traced[is_switch ? i : traced.size() - 1 - i].consts) {
      if (const_at.try_emplace(identity(c), consts.size()).second) consts.push_back(c);
    }
  }
  Programs programs;
  for (const Traced& t : traced) {
    auto p = std::make_shared<Program>(*t.program);
    std::vector<Var> in(consts.size(), -1);
    for (std::size_t i = 0; i < t.consts.size(); ++i)
      in[const_at[identity(t.consts[i])]] = p->in[i];
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i] < 0) in[i] = p->fresh(consts[i].type());
    }
    in.insert(in.end(), p->in.begin() + static_cast<std::ptrdiff_t>(t.consts.size()), p->in.end());
    p->in = std::move(in);
    programs.push_back(std::move(p));
  }
  Arrays args = concat(consts, operands);
  if (varies(index, programs)) {
    args = with_varying(args, index.type().varying);
    programs = with_common_results(programs, leaf_types(args), index.type().varying);
  }
  return finished(cond_p.bind(concat({index}, args), {{"branches", std::move(programs)}}));
}

Arrays while_loop(const Callee& cond, const Callee& body, Arrays init, const LoopOptions& options) {
  const AtUser at(body.at);
  const KeptCarries budget = checkpoints_of("while_loop", options, std::nullopt, init);
  Traced step = trace_body(body, "while_loop", leaf_types(init));
  if (settle_carry("while_loop", init, step.program->out_types())) {
    step = trace_body(body, "while_loop", leaf_types(init));
    while (settle_carry("while_loop", init, step.program->out_types()))
      step = trace_body(body, "while_loop", leaf_types(init));
  }
  step = with_carries(std::move(step), init);
  const Traced test = trace_body(cond, "while_loop", leaf_types(init));
  const Types pred = test.program->out_types();
  if (pred.size() != 1 || pred[0].dtype != Dtype::bool_ || !pred[0].shape.empty()) {
    fail<TypeError>("while_loop: the condition must return a scalar bool, got ", join(pred, ", "));
  }
  // Ranks that go on for different times have different carries.
  for (const Array& c : init) {
    if ((bits_of(pred[0].varying) & ~bits_of(c.type().varying)) != 0)
      return while_loop(cond, body, with_varying(init, pred[0].varying), options);
  }
  // A carry that the body hands on and the condition does not read is a constant of the body.
  const std::vector<bool> read = dce(*test.program, {true}).used_inputs;
  std::vector<bool> fixed;
  auto kept = std::make_shared<Program>(*test.program);
  kept->in.resize(test.consts.size());
  for (std::size_t k = 0; k < init.size(); ++k) {
    const std::size_t at_test = test.consts.size() + k;
    fixed.push_back(is_input(*step.program, k, step.consts.size() + k) && !read[at_test]);
    if (!fixed[k]) kept->in.push_back(test.program->in[at_test]);
  }
  const bool any = std::find(fixed.begin(), fixed.end(), true) != fixed.end();
  FixedCarries f{nullptr, step.consts, init};
  if (any) f = fix_carries(step, init, fixed);
  const Arrays args = concat(concat(test.consts, f.consts), f.init);
  const Arrays out =
      bind_while({any ? ProgramPtr(kept) : test.program, any ? ProgramPtr(f.body) : step.program,
                  test.consts.size(), f.consts.size(), budget.in_memory, budget.on_disk},
                 args);
  Arrays all;
  std::size_t next = 0;
  for (std::size_t k = 0; k < init.size(); ++k) all.push_back(fixed[k] ? init[k] : out[next++]);
  return finished(std::move(all));
}

Arrays custom_jvp(const Callee& f, const CustomJvpOptions& names, FlatRule rule,
                  const Arrays& args) {
  const AtUser at(f.at);
  return custom_jvp_call(names.name, f.run,
                         std::make_shared<const JvpRule>(names.jvp, std::move(rule)), args);
}

Arrays custom_vjp(const Callee& f, const CustomVjpOptions& names, FlatFwd fwd, FlatBwd bwd,
                  const Arrays& args) {
  const AtUser at(f.at);
  return custom_vjp_call(names.name, f.run,
                         std::make_shared<const FwdRule>(names.fwd, std::move(fwd)),
                         std::make_shared<const BwdRule>(names.bwd, std::move(bwd)), args);
}

}  // namespace detail
}  // namespace reprise
