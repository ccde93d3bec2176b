#include "runtime/assemble.h"

#include "base/dtype.h"
#include "codegen/equation_code.h"
#include "control/checkpointed.h"
#include "control/records.h"
#include "control/scan.h"
#include "ops/collective_data.h"
#include "ops/records.h"
#include "plan/check_memory.h"
#include "plan/matmul_spec.h"
#include "plan/relay.h"
#include "plan/transfers.h"
#include "products/conv_spec.h"
#include "program/primitive.h"
#include "runtime/checkpointed_code.h"
#include "runtime/loop_code.h"
#include "runtime/products.h"
#include "runtime/threads.h"

#include <algorithm>
#include <map>

namespace reprise {
namespace {

using plan::aligned;
using plan::DotStep;
using plan::EvalStep;
using plan::Kernel;
using plan::LoopStep;
using plan::Place;
using plan::RelayStep;
using plan::Schedule;
using plan::Step;
using plan::View;

std::size_t at(Var v) { return static_cast<std::size_t>(v); }

class Assembler {
 public:
  Assembler(std::shared_ptr<const Schedule> s, const AssembleOptions& o) : s_(*s), options_(o) {
    code_.schedule = std::move(s);
    code_.threads = num_threads();
  }

  std::shared_ptr<const Code> run() {
    prepare();
    return plan::has_transfers(s_) ? with_transfers_spread().finish() : finish();
  }

 private:
  struct Prepared {
    std::shared_ptr<const codegen::CompiledKernel> kernel;
    Product product;
    std::shared_ptr<const codegen::Convolution> convolution;
    std::vector<std::shared_ptr<const Code>> bodies;
    std::vector<bool> in_place;  // carried values that steps update where they lie
    // of carried values: the stacked output that holds all of them
    std::vector<std::optional<std::size_t>> stacks;
    std::vector<plan::CarriedRoots> carried;
    std::size_t scratch_bytes = 0, host_bytes = 0;
    // Of a relay: its steps, each with scratch memory for one thread, and the memory of a thread.
    std::vector<Prepared> parts;
    plan::MemoryPlan slice;
    std::vector<Var> slice_roots;
    std::size_t slice_bytes() const { return aligned(slice.arena_bytes); }
  };

  Assembler(const Assembler& from, std::shared_ptr<const Schedule> s,
            std::vector<Prepared> prepared)
      : s_(*s), options_(from.options_), code_(from.code_), prepared_(std::move(prepared)) {
    code_.schedule = std::move(s);
    code_.uses_host = true;
    code_.is_fine = false;  // a team that waits for a transfer would keep the cores busy
  }

  plan::MemoryRequest memory_request() const {
    plan::MemoryRequest request;
    request.outputs_given = options_.outputs_given;
    request.in_place = options_.in_place;
    request.host_on_disk = options_.host_on_disk;
    request.donated = options_.donated;
    for (const Prepared& p : prepared_) {
      request.scratch_bytes.push_back(p.scratch_bytes);
      request.host_scratch_bytes.push_back(p.host_bytes);
      request.carried.push_back(p.carried);
    }
    return request;
  }
  // The same steps with transfers drawn out as far as it costs no memory: what counts is what
  // packing makes of it, so several bounds are tried, and none at all in the end.
  Assembler with_transfers_spread() const {
    const plan::MemoryRequest request = memory_request();
    const Assembler tight = in_order(plan::transfer_order(s_, request, 0));
    const std::size_t least = tight.block_bytes();
    for (const double allowed : {1.0, 0.94, 0.88, 0.75}) {
      Assembler spread = in_order(plan::transfer_order(s_, request, allowed));
      if (spread.block_bytes() <= least) return spread;
    }
    return tight;
  }
  Assembler in_order(const std::vector<std::size_t>& order) const {
    auto schedule = std::make_shared<Schedule>(s_);
    std::vector<Prepared> prepared;
    for (std::size_t k = 0; k < order.size(); ++k) {
      schedule->steps[k] = s_.steps[order[k]];
      prepared.push_back(prepared_[order[k]]);
    }
    return Assembler(*this, std::move(schedule), std::move(prepared));
  }
  std::size_t block_bytes() const {
    const plan::MemoryPlan plan = plan::plan_memory(s_, memory_request());
    return plan.arena_bytes + plan.result_bytes;
  }

  std::shared_ptr<const Code> finish() {
    code_.memory = plan::plan_memory(s_, memory_request());
    code_.slots = static_cast<std::uint32_t>(
        first_argument_slot + s_.program->in.size() +
        (options_.outputs_given ? s_.outputs.size() : code_.memory.own.size()));
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      std::visit([&](const auto& what) { code_.instructions.push_back(instruction(i, what)); },
                 s_.steps[i].what);
    }
    return std::make_shared<const Code>(std::move(code_));
  }

  // ------------------------------------------------------------------------------------- preparing
  void prepare() {
    prepared_.resize(s_.steps.size());
    std::vector<codegen::KernelSource> kernels;
    std::vector<Prepared*> owners;
    const auto compile = [&](codegen::KernelSource source, Prepared& owner) {
      kernels.push_back(std::move(source));
      owners.push_back(&owner);
    };
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      if (const auto* k = std::get_if<Kernel>(&s_.steps[i].what)) compile(k, prepared_[i]);
      if (const auto* r = std::get_if<RelayStep>(&s_.steps[i].what)) {
        prepared_[i].parts.resize(r->steps.size());
        for (std::size_t k = 0; k < r->steps.size(); ++k) {
          if (const auto* kernel = std::get_if<Kernel>(&r->steps[k].what))
            compile(kernel, prepared_[i].parts[k]);
        }
      }
      if (std::holds_alternative<DotStep>(s_.steps[i].what))
        prepare_product(prepared_[i], s_.steps[i]);
      if (const auto* e = std::get_if<EvalStep>(&s_.steps[i].what)) {
        codegen::EquationKernel own = equation_kernel(*e->eqn);
        if (codegen::has_code(own))
          compile(std::move(own), prepared_[i]);
        else if (e->eqn->prim->effect.is_shared)
          prepared_[i].scratch_bytes =
              scratch_bytes(*e->eqn->prim, e->eqn->params, s_.program->type(e->eqn->in[0]),
                            s_.types[at(e->eqn->out[0])]);
        else
          prepare_convolution(prepared_[i], *e);
      }
      if (const auto* l = std::get_if<LoopStep>(&s_.steps[i].what))
        prepare_loop(prepared_[i], s_.steps[i], *l);
    }
    const auto compiled =
        options_.only_memory ? codegen::plan_kernels(kernels) : codegen::compile_kernels(kernels);
    for (std::size_t k = 0; k < owners.size(); ++k) {
      Prepared& p = *owners[k];
      p.kernel = compiled[k];
      p.scratch_bytes = aligned(p.kernel->scratch_bytes * static_cast<std::size_t>(code_.threads)) +
                        p.kernel->sums_bytes;
      if (p.kernel->loops.items > 1) code_.is_fine = false;
      code_.is_shareable |= p.kernel->loops.is_worth_a_team;
    }
    for (std::size_t i = 0; i < s_.steps.size(); ++i) {
      if (const auto* r = std::get_if<RelayStep>(&s_.steps[i].what))
        prepare_relay(prepared_[i], *r);
    }
  }
  // Once its kernels are compiled.
  void prepare_relay(Prepared& p, const RelayStep& r) {
    plan::SliceSchedule slice = plan::slice_schedule(s_, r);
    plan::MemoryRequest request;
    request.outputs_given = true;
    request.in_place = options_.in_place;
    for (std::size_t k = 0; k < r.steps.size(); ++k) {
      Prepared& part = p.parts[k];
      if (part.kernel) {
        part.scratch_bytes = part.kernel->scratch_bytes;
      } else {
        const plan::MatmulSpec spec = plan::slice_of(plan::matmul_spec(s_, r.steps[k]), r.slices);
        part.product.parts.emplace_back(codegen::MatmulCall{spec}, by_own_code(spec));
        part.scratch_bytes = part.product.parts[0].second->scratch_bytes();
      }
      request.scratch_bytes.push_back(part.scratch_bytes);
      request.host_scratch_bytes.push_back(0);
    }
    p.slice = plan::plan_memory(slice.schedule, request);
    p.slice_roots = std::move(slice.roots);
    p.scratch_bytes =
        p.slice_bytes() * static_cast<std::size_t>(std::min<std::int64_t>(code_.threads, r.slices));
    code_.is_fine = false;
  }
  void prepare_product(Prepared& p, const Step& step) {
    p.product = make_product(plan::matmul_spec(s_, step), code_.threads);
    const bool one_call = p.product.parts.size() == 1;
    p.scratch_bytes =
        p.product.scratch_stride * static_cast<std::size_t>(one_call ? 1 : code_.threads);
    if (p.product.wakes_threads) code_.is_fine = false;
    code_.is_shareable |= !one_call;
  }
  codegen::EquationKernel equation_kernel(const Equation& e) const {
    codegen::EquationKernel k{&e, {}, {}};
    for (const Atom& a : e.in) k.in.push_back(s_.program->type(a));
    for (Var v : e.out) k.out.push_back(s_.program->type(v));
    return k;
  }
  // Convolutions that the library has fast code for; all else is evaluated.
  void prepare_convolution(Prepared& p, const EvalStep& e) {
    if (e.eqn->prim != &conv_general_dilated_p) return;
    const Program& program = *s_.program;
    const auto spec =
        codegen::library_spec(e.eqn->params, program.type(e.eqn->in[0]), program.type(e.eqn->in[1]),
                              program.type(e.eqn->out[0]));
    if (!spec) return;
    p.convolution = codegen::make_convolution(*spec, code_.threads);
    p.scratch_bytes = p.convolution->scratch_bytes();
    code_.is_fine = false;  // it shares itself among threads
  }
  void prepare_loop(Prepared& p, const Step& step, const LoopStep& l) {
    AssembleOptions inside = options_;
    inside.outputs_given = true;
    inside.donated.clear();
    for (const auto& body : l.bodies) {
      p.bodies.push_back(assemble(body, inside));
      p.host_bytes = std::max(p.host_bytes, p.bodies.back()->memory.host_bytes);
      code_.uses_host |= p.bodies.back()->uses_host;
      code_.is_fine &= p.bodies.back()->is_fine;
      code_.is_shareable |= p.bodies.back()->is_shareable;
    }
    if (is_checkpointed(l.eqn->prim)) {
      CheckpointedMemory m =
          checkpointed_memory(s_, step, *l.eqn, p.bodies, arena_of(p), options_.in_place);
      p.scratch_bytes = m.scratch_bytes;
      p.in_place = std::move(m.in_place);
      p.carried = std::move(m.carried);
      if (!has_checkpoints_on_host(s_, *l.eqn)) return;
      code_.uses_host = true;
      code_.is_fine = false;
      return;
    }
    p.scratch_bytes = arena_of(p);
    // the condition's result
    if (l.eqn->prim == &while_p) p.scratch_bytes += plan::memory_alignment;
    if (l.eqn->prim != &cond_p) prepare_carries(p, step, *l.eqn);
  }
  void prepare_carries(Prepared& p, const Step& step, const Equation& e) {
    const std::vector<Var> results = carried_by(e);
    const CarryShape shape = carry_shape(e);
    p.in_place.assign(results.size(), false);
    p.stacks.assign(results.size(), std::nullopt);
    if (options_.in_place) {
      const Schedule& body = *p.bodies.back()->schedule;
      p.in_place = plan::updated_in_place(body, shape.first_in, results.size());
      p.stacks = plan::stacked_inputs(body, shape.first_in, results.size());
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!p.in_place[k] && !p.stacks[k]) {
        p.scratch_bytes += aligned(s_.types[at(results[k])].nbytes());
        continue;
      }
      const Var initial = step.operands[shape.first_operand + k].root;
      const auto reads = std::count_if(step.operands.begin(), step.operands.end(),
                                       [&](const View& v) { return v.root == initial; });
      const bool is_whole =
          initial >= 0 && s_.types[at(initial)].nbytes() == s_.types[at(results[k])].nbytes();
      if (reads == 1 && is_whole) p.carried.push_back({results[k], initial});
    }
  }
  // The bodies of a loop run one after the other: the largest arena serves all.
  static std::size_t arena_of(const Prepared& p) {
    std::size_t bytes = 0;
    for (const auto& body : p.bodies) bytes = std::max(bytes, aligned(body->memory.arena_bytes));
    return bytes;
  }

  // ---------------------------------------------------------------------------------- instructions
  Ref ref(const Place& p, std::size_t more = 0) const { return ref_of(s_, p, more); }
  Ref ref(Var root, std::int64_t elements = 0) const {
    return ref(code_.memory.places[at(root)],
               static_cast<std::size_t>(elements) * itemsize(s_.types[at(root)].dtype));
  }
  Ref ref(const View& v) const { return v.root < 0 ? Ref{} : ref(v.root, v.offset); }
  Ref scratch(std::size_t step, std::size_t more = 0) const {
    return ref(code_.memory.scratch[step], more);
  }
  Ref host_scratch(std::size_t step) const { return ref(code_.memory.host_scratch[step]); }
  bool on_host(const View& v) const { return v.root >= 0 && s_.on_host[at(v.root)]; }

  RunKernel run_kernel(std::size_t i) const {
    RunKernel r{prepared_[i].kernel, false, {}, scratch(i), {}, false};
    r.sums = scratch(i, aligned(r.kernel->scratch_bytes * static_cast<std::size_t>(code_.threads)));
    return r;
  }
  Instruction instruction(std::size_t i, const Kernel& k) const {
    RunKernel r = run_kernel(i);
    r.is_copy = plan::is_copy(k);
    add_pointers(r, k, [&](Var root, std::int64_t elements) { return ref(root, elements); });
    return r;
  }
  Instruction instruction(std::size_t i, const DotStep&) const {
    const Step& step = s_.steps[i];
    const Product& p = prepared_[i].product;
    RunMatmul r{{}, scratch(i), p.scratch_stride, p.wakes_threads};
    const auto part = [&](const View& v, std::int64_t elements) {
      return v.root < 0 ? Ref{} : ref(v.root, v.offset + elements);
    };
    const Ref bias = step.operands.size() > 2 ? ref(step.operands[2]) : Ref{};
    for (const auto& [call, matmul] : p.parts) {
      r.parts.push_back({matmul, part(step.operands[0], call.a), part(step.operands[1], call.b),
                         bias, part(step.results[0], call.c)});
    }
    return r;
  }
  Instruction instruction(std::size_t i, const RelayStep& relay) const {
    const Prepared& p = prepared_[i];
    RunRelay r;
    r.slices = relay.slices;
    r.memory = scratch(i);
    r.memory_stride = p.slice_bytes();
    for (Var v : relay.passed) {
      const auto number =
          std::find(p.slice_roots.begin(), p.slice_roots.end(), v) - p.slice_roots.begin();
      r.passed.push_back({p.slice.places[static_cast<std::size_t>(number)].offset,
                          s_.types[at(v)].nbytes() / static_cast<std::size_t>(relay.slices)});
    }
    const auto value = [&](Var root, std::int64_t elements) {
      const auto passed = std::find(relay.passed.begin(), relay.passed.end(), root);
      if (passed == relay.passed.end()) return ref(root, elements);
      const auto slot = static_cast<std::uint32_t>(
          code_.slots + 1 + static_cast<std::uint32_t>(passed - relay.passed.begin()));
      return Ref{slot, static_cast<std::size_t>(elements) * itemsize(s_.types[at(root)].dtype)};
    };
    for (std::size_t k = 0; k < relay.steps.size(); ++k) {
      const Ref own_scratch{code_.slots, p.slice.scratch[k].offset};
      if (const auto* kernel = std::get_if<Kernel>(&relay.steps[k].what)) {
        RunKernel run{p.parts[k].kernel, false, {}, own_scratch, {}, false};
        add_pointers(run, *kernel, value);
        r.parts.emplace_back(std::move(run));
      } else {
        r.parts.emplace_back(
            sliced_product(relay.steps[k], p.parts[k].product, relay.slices, own_scratch, value));
      }
    }
    return r;
  }
  // `place` of a root and a number of elements: where they are.
  template <class F>
  static void add_pointers(RunKernel& run, const Kernel& k, const F& place) {
    for (const plan::Load& l : k.loads) {
      if (l.source == plan::Source::memory) run.pointers.push_back(place(l.root, l.offset));
    }
    for (const plan::Store& s : k.stores) run.pointers.push_back(place(s.root, s.offset));
  }
  template <class F>
  RunRelay::Product sliced_product(const Step& step, const Product& product, std::int64_t slices,
                                   const Ref& scratch, const F& place) const {
    const plan::MatmulSpec spec = plan::matmul_spec(s_, step);
    const auto bytes = [](std::int64_t elements, Dtype d) {
      return static_cast<std::size_t>(elements) * itemsize(d);
    };
    const View &a = step.operands[0], &b = step.operands[1], &c = step.results[0];
    RunRelay::Product r{{product.parts[0].second,
                         place(a.root, a.offset),
                         place(b.root, b.offset),
                         {},
                         place(c.root, c.offset)},
                        {},
                        scratch};
    for (const plan::SliceStart& s : plan::slice_starts(spec, slices)) {
      r.starts.push_back({bytes(s.a, spec.dtype), bytes(s.b, spec.dtype), bytes(s.c, spec.result)});
    }
    return r;
  }
  Instruction instruction(std::size_t i, const EvalStep& e) const {
    const Step& step = s_.steps[i];
    if (prepared_[i].kernel) {
      RunKernel r = run_kernel(i);
      for (const View& v : step.operands) r.pointers.push_back(ref(v));
      for (Var v : e.eqn->out) r.pointers.push_back(ref(v));
      r.in_place = !step.operands.empty() && r.pointers.front() == r.pointers[step.operands.size()];
      return r;
    }
    if (prepared_[i].convolution) {
      return RunConv{prepared_[i].convolution, ref(step.operands[0]), ref(step.operands[1]),
                     ref(step.results[0]), scratch(i)};
    }
    RunEval r{e.eqn, {}, {}, prepared_[i].scratch_bytes > 0 ? scratch(i) : Ref{}};
    for (std::size_t k = 0; k < e.eqn->in.size(); ++k) {
      const View& v = step.operands[k];
      r.operands.emplace_back(v.root < 0 ? Type{} : s_.program->type(e.eqn->in[k]), ref(v));
    }
    for (Var v : e.eqn->out) r.results.emplace_back(s_.types[at(v)], ref(v));
    return r;
  }
  // An end has the operand and the result of its begin.
  Instruction instruction(std::size_t i, const plan::TransferStep& t) {
    const View &from = s_.steps[i].operands[0], &to = s_.steps[i].results[0];
    const bool is_write = on_host(to);
    const auto [pair, is_new] = transfers_.try_emplace({from.root, to.root}, code_.transfers);
    if (is_new) ++code_.transfers;
    code_.uses_host = true;
    return RunTransfer{t.what, ref(is_write ? from : to), ref(is_write ? to : from),
                       s_.types[at(to.root)].nbytes(), pair->second};
  }
  Instruction instruction(std::size_t i, const LoopStep& l) const {
    const Prepared& p = prepared_[i];
    const LoopPlaces places{[&, i](std::size_t k) { return ref(s_.steps[i].operands[k]); },
                            [&, l](std::size_t k) { return ref(l.eqn->out[k]); },
                            [&, i](std::size_t more) { return scratch(i, more); }, host_scratch(i)};
    const LoopParts parts{p.bodies, arena_of(p), p.in_place, p.stacks};
    if (is_checkpointed(l.eqn->prim))
      return checkpointed_code(s_, *l.eqn, p.bodies, parts.arena, p.in_place, places);
    return loop_code(s_, s_.steps[i], *l.eqn, parts, places);
  }

  const Schedule& s_;
  AssembleOptions options_;
  Code code_;
  std::vector<Prepared> prepared_;
  std::map<std::pair<Var, Var>, std::size_t> transfers_;  // numbers of pairs, by operand and result
};

}  // namespace

std::shared_ptr<const Code> assemble(std::shared_ptr<const Schedule> s,
                                     const AssembleOptions& options) {
  auto code = Assembler(std::move(s), options).run();
  plan::check_after("assemble", *code->schedule, code->memory);
  return code;
}

}  // namespace reprise
