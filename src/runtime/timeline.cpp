#include "runtime/timeline.h"

#include "control/records.h"
#include "control/scan.h"
#include "ops/records.h"
#include "plan/repeat.h"
#include "plan/stages.h"
#include "program/primitive.h"
#include "runtime/text.h"
#include "runtime/timeline_bodies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace reprise {
namespace {

using plan::Region;

constexpr std::size_t none = static_cast<std::size_t>(-1);
std::size_t at(Var v) { return static_cast<std::size_t>(v); }

// One program or body of a loop, with its place in the timeline.
struct Level {
  const Code& code;
  Stage call = Stage::forward;
  std::size_t body = 0;
  std::unordered_map<Var, std::size_t> given = {};  // roots that are values of the caller
};

struct Life {
  std::size_t first = none, last = 0;  // steps of a schedule
};

std::vector<Life> lives_of(const plan::Schedule& s) {
  std::vector<Life> lives(s.types.size());
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    for (const std::vector<Var>* list : {&s.steps[i].writes, &s.steps[i].reads}) {
      for (Var v : *list) {
        lives[at(v)].first = std::min(lives[at(v)].first, i);
        lives[at(v)].last = i;
      }
    }
  }
  for (const plan::View& v : s.outputs) {
    if (v.root >= 0 && !s.steps.empty()) lives[at(v.root)].last = s.steps.size() - 1;
  }
  return lives;
}

// A value that takes the place of an operand in the step that makes it: the bytes are its own from
// then on.
void end_at_heirs(const Code& code, std::vector<Life>& lives) {
  std::map<std::pair<Region, std::size_t>, std::vector<std::size_t>> by_place;
  for (std::size_t v = 0; v < lives.size(); ++v) {
    const plan::Place& p = code.memory.places[v];
    if (lives[v].first == none || (p.region != Region::arena && p.region != Region::results))
      continue;
    if (code.schedule->types[v].nbytes() > 0) by_place[{p.region, p.offset}].push_back(v);
  }
  for (auto& [place, roots] : by_place) {
    std::sort(roots.begin(), roots.end(),
              [&](std::size_t a, std::size_t b) { return lives[a].first < lives[b].first; });
    for (std::size_t i = 0; i + 1 < roots.size(); ++i) {
      if (lives[roots[i]].last == lives[roots[i + 1]].first) --lives[roots[i]].last;
    }
  }
}

// Equations of a schedule's program, by what they make and where they belong.
class Origins {
 public:
  Origins(const Program& p, Stage call) : stages_(stages_of(p, call)) {
    for (std::size_t i = 0; i < p.eqns.size(); ++i) {
      number_[&p.eqns[i]] = i;
      for (Var v : p.eqns[i].out) made_by_[v] = &p.eqns[i];
    }
  }
  const Equation* maker(Var v) const {
    const auto it = made_by_.find(v);
    return it == made_by_.end() ? nullptr : it->second;
  }
  TimelineOperation operation(const Equation& e) const {
    return {e.prim->name, e.at, stages_[number_.at(&e)]};
  }

 private:
  std::vector<Stage> stages_;
  std::unordered_map<const Equation*, std::size_t> number_;
  std::unordered_map<Var, const Equation*> made_by_;
};

// Where a value is really made: inside of the scans that stack or carry it.
struct Source {
  const Program* program;
  const Equation* equation;
};
const Equation* find_maker(const Program& p, const Atom& a) {
  const auto makes = [&](const Equation& e) {
    return std::find(e.out.begin(), e.out.end(), a.var) != e.out.end();
  };
  const auto it = std::find_if(p.eqns.begin(), p.eqns.end(), makes);
  return a.is_var() && it != p.eqns.end() ? &*it : nullptr;
}
Source source_of(const Program& p, const Equation& e, Var v) {
  if (e.prim != &scan_p) return {&p, &e};
  const auto k = std::find(e.out.begin(), e.out.end(), v) - e.out.begin();
  const Program& body = *e.params.get<ProgramPtr>("jaxpr");
  Atom inner = body.out[static_cast<std::size_t>(k)];
  // What a step stacks as it got it, the step before has made.
  const ScanShape shape = scan_shape(e.params);
  for (std::size_t c = 0; c < shape.carry; ++c) {
    if (inner.var == body.in[shape.consts + c]) {
      inner = body.out[c];
      break;
    }
  }
  const Equation* made = find_maker(body, inner);
  return made == nullptr ? Source{&p, &e} : source_of(body, *made, inner.var);
}
// Where a policy saves a value, its rounding stands behind the equation that the user wrote.
const Equation& written(const Source& s) {
  const Equation& e = *s.equation;
  if (e.prim != &reduce_precision_p) return e;
  const Equation* rounded = find_maker(*s.program, e.in[0]);
  return rounded != nullptr && to_string(rounded->at) == to_string(e.at) ? *rounded : e;
}

std::string reason_to_keep(const Equation* maker) {
  if (maker == nullptr) return "a copy in the order that its readers need";
  if (maker->prim == &reduce_precision_p) return "a policy saved it: it is not computed again";
  if (maker->prim == &device_put_p) return "a policy moved it to the host";
  if (maker->prim->kind == Kind::dot || maker->prim->kind == Kind::conv)
    return "products are not computed again";
  if (maker->prim->kind == Kind::call) return "loops and branches are not run again";
  if (!plan::may_repeat(*maker)) return str(maker->prim->name, " is not computed again");
  return "keeping it takes no more bytes than what it is made from";
}

struct Describe {
  const Instruction& instruction;
  std::string operator()(const plan::Kernel&) const { return "kernel"; }
  std::string operator()(const plan::DotStep& d) const { return product_text(d); }
  std::string operator()(const plan::LoopStep& l) const { return l.eqn->prim->name; }
  std::string operator()(const plan::EvalStep& e) const {
    if (std::holds_alternative<RunConv>(instruction)) return "convolution";
    return std::holds_alternative<RunKernel>(instruction) ? "kernel"
                                                          : str("evaluate ", e.eqn->prim->name);
  }
  std::string operator()(const plan::TransferStep& t) const { return transfer_text(t.what); }
  std::string operator()(const plan::RelayStep& r) const {
    return str("relay of ", r.steps.size(), " steps");
  }
};

// The values and steps of one level, appended to the timeline.
class LevelWriter {
 public:
  LevelWriter(Timeline& out, const Level& level)
      : out_(out),
        level_(level),
        s_(*level.code.schedule),
        origins_(*s_.program, level.call),
        lives_(lives_of(s_)),
        value_of_(s_.types.size(), none),
        first_step_(out.steps.size()) {
    end_at_heirs(level.code, lives_);
    for (const auto& [root, value] : level.given) value_of_[at(root)] = value;
  }

  void run() {
    for (std::size_t i = 0; i < s_.steps.size(); ++i) stages_.push_back(stage_of(i));
    add_values();
    std::vector<std::size_t> begin, end;
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      begin.push_back(out_.steps.size());
      add_step(i);
      end.push_back(out_.steps.size() - 1);
    }
    for (const auto& [value, root] : own_) {
      out_.values[value].first = begin[lives_[root].first];
      out_.values[value].last = end[lives_[root].last];
    }
    explain_kept();
  }

 private:
  void add_values() {
    std::vector<bool> written(s_.types.size()), returned(s_.types.size());
    for (const plan::Step& step : s_.steps) {
      for (Var v : step.writes) written[at(v)] = true;
    }
    for (const plan::View& v : s_.outputs) {
      if (v.root >= 0) returned[at(v.root)] = true;
    }
    for (std::size_t v = 0; v < s_.types.size(); ++v) {
      const plan::Place& place = level_.code.memory.places[v];
      if (!written[v] || value_of_[v] != none || place.region == Region::none ||
          s_.types[v].nbytes() == 0)
        continue;
      TimelineValue value;
      value.name = str("v", v);
      value.type = to_string(s_.types[v]);
      value.bytes = s_.types[v].nbytes();
      // Of a body: the result of a condition, whose place is among what the loop itself holds.
      value.is_free =
          place.region == Region::argument || (level_.body != 0 && place.region == Region::own);
      value.holder = place.region == Region::host ? Holder::host
                     : returned[v]                ? Holder::output
                                                  : Holder::temporary;
      value.made_by = made_by(static_cast<Var>(v));
      value.place = place_text(place);
      value_of_[v] = out_.values.size();
      own_.emplace_back(out_.values.size(), v);
      out_.values.push_back(std::move(value));
    }
  }
  // A copy that the plan makes has no equation of its own: the place of what its kernel computes
  // last.
  TimelineOperation made_by(Var v) const {
    if (const Equation* e = origins_.maker(v)) {
      const Equation& user = written(source_of(*s_.program, *e, v));
      return {user.prim->name, user.at, origins_.operation(*e).stage};
    }
    const plan::Step& step = s_.steps[lives_[at(v)].first];
    std::vector<TimelineOperation> all = operations(step);
    const Location at_user = all.empty() ? Location{} : all.back().at;
    return {"copy", at_user, stages_[lives_[at(v)].first]};
  }

  std::vector<TimelineOperation> operations(const plan::Step& step) const {
    std::vector<TimelineOperation> out;
    if (const auto* k = std::get_if<plan::Kernel>(&step.what)) {
      for (const plan::Node& n : k->nodes) {
        if (n.eqn != nullptr && n.kind != plan::NodeKind::load)
          out.push_back(origins_.operation(*n.eqn));
      }
    }
    if (const auto* d = std::get_if<plan::DotStep>(&step.what))
      out.push_back(origins_.operation(*d->eqn));
    if (const auto* e = std::get_if<plan::EvalStep>(&step.what))
      out.push_back(origins_.operation(*e->eqn));
    if (const auto* l = std::get_if<plan::LoopStep>(&step.what))
      out.push_back(origins_.operation(*l->eqn));
    if (const auto* r = std::get_if<plan::RelayStep>(&step.what)) {
      for (const plan::Step& part : r->steps) {
        for (TimelineOperation& o : operations(part)) out.push_back(std::move(o));
      }
    }
    if (std::holds_alternative<plan::TransferStep>(step.what)) {
      if (const Equation* e = origins_.maker(step.results[0].root))
        out.push_back(origins_.operation(*e));
    }
    return out;
  }
  // What a step leaves behind decides, not what it computes on the way; a copy belongs to its first
  // reader.
  Stage stage_of(std::size_t i) const {
    std::optional<Stage> stage;
    const auto take = [&](Stage s) { stage = stage ? std::max(*stage, s) : s; };
    for (Var v : s_.steps[i].writes) {
      if (const Equation* e = origins_.maker(v)) take(origins_.operation(*e).stage);
    }
    if (!stage) {
      for (const TimelineOperation& o : operations(s_.steps[i])) take(o.stage);
    }
    for (std::size_t reader = i + 1; reader < s_.steps.size() && !stage; ++reader) {
      const std::vector<Var>& reads = s_.steps[reader].reads;
      const bool is_read = std::any_of(reads.begin(), reads.end(), [&](Var v) {
        return std::find(s_.steps[i].writes.begin(), s_.steps[i].writes.end(), v) !=
               s_.steps[i].writes.end();
      });
      if (is_read) stage = stage_of(reader);
    }
    return stage.value_or(level_.call);
  }

  void add_step(std::size_t i) {
    const plan::Step& step = s_.steps[i];
    TimelineStep row;
    row.what = std::visit(Describe{level_.code.instructions[i]}, step.what);
    row.operations = operations(step);
    row.stage = stages_[i];
    row.body = level_.body;
    row.reads = values_of(step.reads);
    row.writes = values_of(step.writes);
    const Stage stage = row.stage;
    const std::size_t number = out_.steps.size();
    out_.steps.push_back(std::move(row));
    const std::vector<InnerBody> bodies = bodies_of(step, level_.code.instructions[i]);
    std::size_t arena = 0;
    for (const InnerBody& b : bodies) {
      arena = std::max(arena, plan::aligned(b.code->memory.arena_bytes));
      add_body(b, stage);
    }
    if (const std::size_t scratch = plan::aligned(level_.code.memory.scratch_bytes[i]) - arena;
        scratch > 0) {
      TimelineValue value;
      value.name = bodies.empty() ? "scratch" : "second places of carried values";
      value.bytes = scratch;
      value.made_by.stage = stage;
      value.place = place_text(level_.code.memory.scratch[i]);
      value.first = number;
      value.last = out_.steps.size() - 1;
      out_.values.push_back(std::move(value));
    }
  }
  void add_body(const InnerBody& b, Stage stage) {
    Level inner{*b.code, stage, out_.bodies.size()};
    out_.bodies.push_back({b.label, level_.body, b.loop});
    const plan::Schedule& s = *b.code->schedule;
    const auto give = [&](Var inside, Var outside) {
      if (inside >= 0 && outside >= 0 && value_of_[at(outside)] != none)
        inner.given[inside] = value_of_[at(outside)];
    };
    for (std::size_t k = 0; k < b.inputs.size(); ++k) give(s.program->in[k], b.inputs[k]);
    for (std::size_t k = 0; k < b.outputs.size(); ++k) give(s.outputs[k].root, b.outputs[k]);
    LevelWriter(out_, inner).run();
  }

  std::vector<std::size_t> values_of(const std::vector<Var>& roots) const {
    std::vector<std::size_t> out;
    for (Var v : roots) {
      if (value_of_[at(v)] != none) out.push_back(value_of_[at(v)]);
    }
    return out;
  }
  // Values of the forward pass that recomputation or the backward pass reads.
  void explain_kept() {
    std::vector<bool> is_read(out_.values.size());
    for (std::size_t i = first_step_; i < out_.steps.size(); ++i) {
      const TimelineStep& step = out_.steps[i];
      if (step.stage != Stage::recompute && step.stage != Stage::backward) continue;
      for (std::size_t value : step.reads) is_read[value] = true;
    }
    for (const auto& [value, root] : own_) {
      TimelineValue& v = out_.values[value];
      if (v.made_by.stage != Stage::forward || !is_read[value]) continue;
      const Equation* e = origins_.maker(static_cast<Var>(root));
      if (e != nullptr) e = source_of(*s_.program, *e, static_cast<Var>(root)).equation;
      v.kept_because = reason_to_keep(e);
      if (v.holder == Holder::temporary) v.holder = Holder::residual;
    }
  }

  Timeline& out_;
  const Level& level_;
  const plan::Schedule& s_;
  Origins origins_;
  std::vector<Life> lives_;
  std::vector<std::size_t> value_of_;  // by root
  std::size_t first_step_;
  std::vector<Stage> stages_;                             // by step of the schedule
  std::vector<std::pair<std::size_t, std::size_t>> own_;  // values of this level and their roots
};

std::size_t most_bytes(const Timeline& t, bool host_counts) {
  std::vector<std::size_t> begins(t.steps.size()), ends(t.steps.size());
  for (const TimelineValue& v : t.values) {
    if (v.holder == Holder::host && !host_counts) continue;
    begins[v.first] += held_bytes(v);
    ends[v.last] += held_bytes(v);
  }
  std::size_t most = 0, now = 0;
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    now += begins[i];
    most = std::max(most, now);
    now -= ends[i];
  }
  return most;
}

}  // namespace

Timeline timeline_of(const Code& code, const std::vector<std::string>& argument_names) {
  Timeline out;
  out.bodies.push_back({"", 0});
  Level program{code};
  const plan::Schedule& s = *code.schedule;
  REPRISE_INVARIANT(argument_names.size() <= s.program->in.size());
  const std::size_t consts = s.program->in.size() - argument_names.size();
  for (std::size_t i = 0; i < s.program->in.size(); ++i) {
    TimelineValue v;
    v.name = i < consts ? "a constant" : "the argument " + argument_names[i - consts];
    v.type = to_string(s.types[at(s.program->in[i])]);
    v.bytes = s.types[at(s.program->in[i])].nbytes();
    v.holder = Holder::argument;
    v.place = place_text(code.memory.places[at(s.program->in[i])]);
    program.given[s.program->in[i]] = i;
    out.values.push_back(std::move(v));
  }
  LevelWriter(out, program).run();
  if (out.steps.empty()) {
    out.steps.emplace_back();
    out.steps.back().what = "nothing to compute";
  }
  for (std::size_t i = 0; i < s.program->in.size(); ++i) out.values[i].last = out.steps.size() - 1;
  const std::size_t most = most_bytes(out, !code.memory.host_on_disk);
  REPRISE_INVARIANT(most <= code.memory.peak());
  out.gap = code.memory.peak() - most;
  return out;
}

}  // namespace reprise
