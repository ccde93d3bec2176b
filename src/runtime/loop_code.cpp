#include "runtime/loop_code.h"

#include "control/records.h"
#include "control/scan.h"
#include "plan/memory.h"
#include "program/primitive.h"

namespace reprise {

CarryShape carry_shape(const Equation& e) {
  if (e.prim == &while_p) {
    const auto test = static_cast<std::size_t>(e.params.get<std::int64_t>("cond_nconsts"));
    const auto body = static_cast<std::size_t>(e.params.get<std::int64_t>("body_nconsts"));
    return {test + body, body, body + e.out.size()};
  }
  const auto consts = static_cast<std::size_t>(scan_shape(e.params).consts);
  return {consts, consts, e.in.size()};
}

std::vector<Var> carried_by(const Equation& e) {
  if (e.prim == &while_p) return e.out;
  const auto n = static_cast<std::ptrdiff_t>(scan_shape(e.params).carry);
  return {e.out.begin(), e.out.begin() + n};
}

namespace {

std::uint32_t body_slot(std::size_t k) {
  return static_cast<std::uint32_t>(first_argument_slot + k);
}

// One loop's instruction.
class LoopCode {
 public:
  LoopCode(const plan::Schedule& s, const plan::Step& step, const Equation& e,
           const LoopParts& parts, const LoopPlaces& places)
      : s_(s), step_(step), e_(e), parts_(parts), places_(places) {}

  Instruction scan() const {
    const ScanShape shape = scan_shape(e_.params);
    const auto consts = static_cast<std::size_t>(shape.consts),
               carry = static_cast<std::size_t>(shape.carry);
    RunScan r;
    r.body = parts_.bodies[0];
    r.length = shape.length;
    r.reverse = e_.params.get<bool>("reverse");
    r.arena = places_.scratch(0);
    r.host = places_.host;
    r.gathers = gathers(*r.body) && r.length >= steps_worth_gathering;
    const Program& body = *r.body->schedule->program;
    for (std::size_t k = 0; k < step_.operands.size(); ++k) {
      if (k >= consts && k < consts + carry) continue;
      r.inputs.push_back({places_.operand(k), k < consts ? 0 : body.type(body.in[k]).nbytes(),
                          on_host(step_.operands[k].root)});
      r.input_slots.push_back(body_slot(k));
    }
    r.carries = carries();
    for (std::size_t k = carry; k < e_.out.size(); ++k) {
      r.outputs.push_back({places_.result(k), body.type(body.out[k]).nbytes(), on_host(e_.out[k])});
      r.output_slots.push_back(body_slot(step_.operands.size() + k));
    }
    return r;
  }
  Instruction cond() const {
    RunCond r;
    r.index = places_.operand(0);
    r.index_dtype = s_.program->type(e_.in[0]).dtype;
    r.branches = parts_.bodies;
    for (std::size_t k = 1; k < step_.operands.size(); ++k)
      r.operands.push_back(places_.operand(k));
    for (std::size_t k = 0; k < e_.out.size(); ++k) r.results.push_back(places_.result(k));
    r.arena = places_.scratch(0);
    r.host = places_.host;
    return r;
  }
  Instruction while_loop() const {
    RunWhile r;
    const auto test_consts = static_cast<std::size_t>(e_.params.get<std::int64_t>("cond_nconsts"));
    const auto body_consts = static_cast<std::size_t>(e_.params.get<std::int64_t>("body_nconsts"));
    r.condition = parts_.bodies[0];
    r.body = parts_.bodies[1];
    for (std::size_t k = 0; k < test_consts; ++k) r.condition_consts.push_back(places_.operand(k));
    for (std::size_t k = 0; k < body_consts; ++k)
      r.body_consts.push_back(places_.operand(test_consts + k));
    r.carries = carries();
    r.arena = places_.scratch(0);
    r.host = places_.host;
    r.gathers = gathers(*r.body);
    r.predicate = places_.scratch(parts_.arena);
    return r;
  }

 private:
  bool on_host(Var root) const { return root >= 0 && s_.on_host[static_cast<std::size_t>(root)]; }
  std::vector<RunScan::Carry> carries() const {
    const CarryShape shape = carry_shape(e_);
    std::size_t spare = parts_.arena;
    if (e_.prim == &while_p) spare += plan::memory_alignment;
    std::vector<RunScan::Carry> out;
    const std::vector<Var> results = carried_by(e_);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t bytes = s_.types[static_cast<std::size_t>(results[k])].nbytes();
      const bool in_place = parts_.in_place[k] || parts_.stacks[k];
      out.push_back({places_.operand(shape.first_operand + k), places_.result(k),
                     in_place ? places_.result(k) : places_.scratch(spare), bytes,
                     body_slot(shape.first_in + k), body_slot(shape.inputs + k), parts_.stacks[k]});
      if (!in_place) spare += plan::aligned(bytes);
    }
    return out;
  }

  const plan::Schedule& s_;
  const plan::Step& step_;
  const Equation& e_;
  const LoopParts& parts_;
  const LoopPlaces& places_;
};

}  // namespace

Instruction loop_code(const plan::Schedule& s, const plan::Step& step, const Equation& e,
                      const LoopParts& parts, const LoopPlaces& places) {
  const LoopCode code(s, step, e, parts, places);
  if (e.prim == &scan_p) return code.scan();
  return e.prim == &cond_p ? code.cond() : code.while_loop();
}

}  // namespace reprise
