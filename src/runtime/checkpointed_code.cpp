#include "runtime/checkpointed_code.h"

#include "control/body.h"
#include "control/checkpointed.h"
#include "control/loop_schedule.h"
#include "control/records.h"

#include <algorithm>

namespace reprise {
namespace {

using plan::aligned;

std::size_t bytes_of(const plan::Schedule& s, Var v) { return s.program->type(v).nbytes(); }

// Operands whose memory results take over, if nothing else reads it.
void add_carried(std::vector<plan::CarriedRoots>& carried, const plan::Schedule& s,
                 const plan::Step& step, Var result, std::size_t operand) {
  const Var root = step.operands[operand].root;
  const auto reads = std::count_if(step.operands.begin(), step.operands.end(),
                                   [&](const plan::View& v) { return v.root == root; });
  if (reads != 1 || root < 0) return;
  if (s.types[static_cast<std::size_t>(root)].nbytes() == bytes_of(s, result))
    carried.push_back({result, root});
}

std::vector<RunScan::Input> whole(std::size_t first, std::size_t n,
                                  const std::function<Ref(std::size_t)>& place) {
  std::vector<RunScan::Input> out;
  for (std::size_t k = 0; k < n; ++k) out.push_back({place(first + k), 0, false});
  return out;
}
// Values with a slice for each step; `body`: of those slices.
template <class TypeOf>
std::vector<RunScan::Input> slices(std::size_t first, std::size_t n,
                                   const std::function<Ref(std::size_t)>& place,
                                   const TypeOf& body) {
  std::vector<RunScan::Input> out;
  for (std::size_t k = 0; k < n; ++k) out.push_back({place(first + k), body(k).nbytes(), false});
  return out;
}

bool is_read(const plan::Schedule& s, Var v) {
  const auto reads = [&](const plan::Step& step) {
    return std::binary_search(step.reads.begin(), step.reads.end(), v);
  };
  return std::any_of(s.steps.begin(), s.steps.end(), reads) ||
         std::any_of(s.outputs.begin(), s.outputs.end(),
                     [&](const plan::View& o) { return o.root == v; });
}
bool on_host(const plan::Schedule& s, const Atom& a) {
  return a.is_var() && s.on_host[static_cast<std::size_t>(a.var)];
}

// Gives out scratch memory behind the bodies' arena.
class Spare {
 public:
  Spare(const LoopPlaces& at, std::size_t first) : at_(at), next_(first) {}
  Ref operator()(std::size_t bytes) {
    const Ref place = at_.scratch(next_);
    next_ += aligned(bytes);
    return place;
  }

 private:
  const LoopPlaces& at_;
  std::size_t next_;
};

RunForward forward_code(const plan::Schedule& s, const Equation& e, const Bodies& bodies,
                        std::size_t arena, const LoopPlaces& at) {
  RunForward r;
  r.body = bodies.back();
  r.arena = at.scratch(0);
  r.host = at.host;
  const Program& body = *r.body->schedule->program;
  std::size_t first_const = 0, consts = 0, carry = 0;
  Spare spare(at, arena);
  if (e.prim == &checkpointed_scan_p) {
    const ScanShape shape = scan_shape(e.params);
    r.length = shape.length;
    r.reverse = shape.reverse;
    r.checkpoints = shape.checkpoints;
    r.disk = shape.disk_checkpoints;
    consts = shape.consts;
    carry = shape.carry;
  } else {
    const WhileLoop l = loop_of(e.params);
    r.condition = bodies.front();
    r.condition_consts = whole(0, l.cond_consts, at.operand);
    r.predicate = spare(plan::memory_alignment);
    r.checkpoints = l.checkpoints;
    r.disk = l.disk_checkpoints;
    first_const = l.cond_consts;
    consts = l.body_consts;
    carry = body.out.size();
  }
  const std::size_t first_carry = first_const + consts, first_x = first_carry + carry;
  r.consts = whole(first_const, consts, at.operand);
  r.xs = slices(first_x, body.in.size() - consts - carry, at.operand,
                [&](std::size_t k) { return body.type(body.in[consts + carry + k]); });
  r.ys = slices(carry, body.out.size() - carry, at.result,
                [&](std::size_t k) { return body.type(body.out[carry + k]); });
  std::size_t kept = body.out.size();
  if (!r.length) {
    r.steps = at.result(kept++);
    r.states = at.result(kept++);
  }
  const std::size_t last = e.out.size() - carry;
  for (std::size_t k = 0; k < carry; ++k) {
    const std::size_t bytes = body.type(body.out[k]).nbytes();
    r.carries.push_back({at.operand(first_carry + k), at.result(k), at.result(last + k),
                         at.result(kept + k), bytes, r.disk > 0 || is_read(s, e.out[kept + k])});
    if (r.disk == 0) continue;
    const std::size_t disk = kept + carry + k;
    const RunDisk::Rows rows{at.result(disk), on_host(s, Atom::of(e.out[disk]))};
    r.on_disk.push_back({rows, rows, spare(bytes), bytes});
  }
  r.gathers = gathers(*r.body) && r.on_disk.empty() &&
              r.length.value_or(steps_worth_gathering) >= steps_worth_gathering;
  return r;
}

RunReverse reverse_code(const plan::Schedule& s, const Equation& e, const Bodies& bodies,
                        std::size_t arena, const std::vector<bool>& in_place,
                        const LoopPlaces& at) {
  const ReverseLoop l = reverse_loop(e.params);
  const Program& step = *bodies[1]->schedule->program;
  const std::size_t lengths = l.length.operands(), carry = l.first_const() + l.consts,
                    outs = step.out.size();
  RunReverse r;
  r.advance = bodies[0];
  r.step = bodies[1];
  r.length = l.length.steps;
  r.reverse = l.length.reverse;
  r.checkpoints = l.length.checkpoints;
  r.disk = l.length.disk;
  r.arena = at.scratch(0);
  r.host = at.host;
  if (r.length)
    r.kept = kept_states(*r.length, l.length.slots());
  else
    r.steps = at.operand(0), r.states = at.operand(1);
  r.consts = whole(l.first_const(), l.consts, at.operand);
  const auto input = [&](std::size_t k) { return step.type(step.in[k]); };
  r.xs = slices(carry + l.carry, l.xs(), at.operand,
                [&](std::size_t k) { return input(l.consts + l.carry + k); });
  r.cts = slices(l.first_back() + l.back, l.cts(), at.operand,
                 [&](std::size_t k) { return input(l.advance->in.size() + l.back + k); });
  r.outputs = slices(l.back, outs - l.back, at.result,
                     [&](std::size_t k) { return step.type(step.out[l.back + k]); });
  Spare spare(at, arena);
  const std::size_t last = l.first_const() - l.carry, last_result = e.out.size() - l.carry;
  for (std::size_t k = 0; k < l.carry; ++k) {
    const std::size_t bytes = bytes_of(s, e.out[last_result + k]);
    r.carries.push_back({at.operand(carry + k), at.operand(lengths + k), at.result(outs + k),
                         at.operand(last + k), at.result(last_result + k), spare(bytes), bytes});
    if (r.disk == 0) continue;
    const std::size_t operand = lengths + l.carry + k, result = outs + l.carry + k;
    const RunDisk::Rows kept{at.operand(operand), on_host(s, e.in[operand])};
    const RunDisk::Rows own{at.result(result), on_host(s, Atom::of(e.out[result]))};
    r.on_disk.push_back({kept, own, spare(bytes), bytes});
  }
  for (std::size_t k = 0; k < l.back; ++k) {
    const std::size_t bytes = bytes_of(s, e.out[k]);
    r.back.push_back({at.operand(l.first_back() + k), at.result(k),
                      in_place[k] ? at.result(k) : spare(bytes), bytes});
  }
  r.gathers = gathers(*r.step) && gathers(*r.advance) && r.on_disk.empty() &&
              r.length.value_or(steps_worth_gathering) >= steps_worth_gathering;
  return r;
}

std::size_t forward_carries(const Equation& e) {
  return e.prim == &checkpointed_scan_p ? scan_shape(e.params).carry
                                        : loop_of(e.params).body->out.size();
}

}  // namespace

bool has_checkpoints_on_host(const plan::Schedule& s, const Equation& e) {
  const auto result_on_host = [&](Var v) { return s.on_host[static_cast<std::size_t>(v)]; };
  return std::any_of(e.out.begin(), e.out.end(), result_on_host) ||
         std::any_of(e.in.begin(), e.in.end(), [&](const Atom& a) { return on_host(s, a); });
}

CheckpointedMemory checkpointed_memory(const plan::Schedule& s, const plan::Step& step,
                                       const Equation& e, const Bodies& bodies, std::size_t arena,
                                       bool in_place) {
  CheckpointedMemory m;
  m.scratch_bytes = arena;
  if (e.prim == &checkpointed_while_p)
    m.scratch_bytes += plan::memory_alignment;  // the condition's result
  if (e.prim != &checkpointed_reverse_p) {
    const std::size_t carry = forward_carries(e);
    for (std::size_t k = 0; k < carry && count_or_none(e.params, "disk_checkpoints") > 0; ++k)
      m.scratch_bytes += aligned(bytes_of(s, e.out[k]));
    return m;
  }
  const ReverseLoop l = reverse_loop(e.params);
  const std::size_t outs = l.step->out.size(), lengths = l.length.operands();
  m.in_place.assign(l.back, false);
  if (in_place)
    m.in_place = plan::updated_in_place(*bodies[1]->schedule, l.advance->in.size(), l.back);
  for (std::size_t k = 0; k < l.carry; ++k) {
    const std::size_t bytes = aligned(bytes_of(s, e.out[e.out.size() - l.carry + k]));
    m.scratch_bytes += l.length.disk > 0 ? 2 * bytes : bytes;
    for (std::size_t section = 0; section < l.length.sections(); ++section) {
      const std::size_t n = section * l.carry + k;
      add_carried(m.carried, s, step, e.out[outs + n], lengths + n);
    }
  }
  for (std::size_t k = 0; k < l.back; ++k) {
    if (m.in_place[k])
      add_carried(m.carried, s, step, e.out[k], l.first_back() + k);
    else
      m.scratch_bytes += aligned(bytes_of(s, e.out[k]));
  }
  return m;
}

Instruction checkpointed_code(const plan::Schedule& s, const Equation& e, const Bodies& bodies,
                              std::size_t arena, const std::vector<bool>& in_place,
                              const LoopPlaces& at) {
  if (e.prim == &checkpointed_reverse_p) return reverse_code(s, e, bodies, arena, in_place, at);
  return forward_code(s, e, bodies, arena, at);
}

}  // namespace reprise
