#include "runtime/executable.h"

#include "array/place.h"
#include "base/memory.h"
#include "control/agree.h"
#include "program/effects.h"
#include "runtime/passes.h"
#include "runtime/text.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <unordered_map>

namespace reprise {

Executable::Executable(std::shared_ptr<const Code> code, std::string spill_directory,
                       std::shared_ptr<const BudgetOutcome> budget)
    : code_(std::move(code)),
      spill_directory_(std::move(spill_directory)),
      budget_(std::move(budget)),
      is_shared_(effects_of(*code_->schedule->program).is_shared),
      timed_(pass_is_timed("run")) {
  const Program& program = *code_->schedule->program;
  const plan::MemoryPlan& memory = code_->memory;
  std::vector<Type> types;
  types.reserve(program.out.size());
  std::unordered_map<Var, std::size_t> first_of;
  own_outputs_.resize(memory.own.size());
  for (std::size_t k = 0; k < program.out.size(); ++k) {
    types.push_back(program.type(program.out[k]));
    const Var root = code_->schedule->outputs[k].root;
    const auto [first, is_new] = first_of.emplace(root, k);
    first_outputs_.push_back(root < 0 ? k : first->second);
    if (root < 0 || !is_new) continue;
    const plan::Place& place = memory.places[static_cast<std::size_t>(root)];
    if (place.region == plan::Region::own) own_outputs_[place.offset] = k;
  }
  output_types_ = std::make_shared<const std::vector<Type>>(std::move(types));
}

Arrays Executable::run_timed(Arrays args) const {
  using Clock = std::chrono::steady_clock;
  std::vector<double> milliseconds(code_->instructions.size());
  Clock::time_point last = Clock::now();
  const Observer observer = [&](std::size_t i, std::byte* const*) {
    const Clock::time_point now = Clock::now();
    milliseconds[i] = std::chrono::duration<double, std::milli>(now - last).count();
    last = now;
  };
  Arrays out = run(std::move(args), &observer);
  for (std::size_t i = 0; i < milliseconds.size(); ++i) {
    std::fprintf(stderr, "reprise: run %9.3f ms %s\n", milliseconds[i],
                 step_text(*code_, i).c_str());
  }
  return out;
}

// Memory of arguments that outputs take over: no one else may see it change.
void Executable::claim_donated(Arrays& args, std::byte** slots) const {
  for (std::size_t i : code_->memory.reused) {
    if (is_last_handle(args[i])) continue;
    args[i] = from_bytes(content(args[i]).elements, args[i].type());
    slots[first_argument_slot + i] = const_cast<std::byte*>(content(args[i]).elements);
    copied_donations_.fetch_add(1, std::memory_order_relaxed);
  }
}

Arrays Executable::run(Arrays args, const Observer* observer) const {
  if (timed_ && observer == nullptr) return run_timed(std::move(args));
  const plan::Schedule& s = *code_->schedule;
  if (is_shared_) agree_about(*s.program);
  const plan::MemoryPlan& memory = code_->memory;
  constexpr std::size_t few = 64;
  std::byte* on_stack[few];
  std::vector<std::byte*> many(code_->slots > few ? code_->slots : 0);
  std::byte** slots = code_->slots > few ? many.data() : on_stack;
  std::shared_ptr<std::byte> arena, results;
  if (memory.arena_bytes > 0) arena = allocate_buffer(memory.arena_bytes);
  if (memory.result_bytes > 0) results = allocate_buffer(memory.result_bytes);
  slots[arena_slot] = arena.get();
  slots[result_slot] = results.get();
  // Arguments are only read, but for those that are donated.
  for (std::size_t i = 0; i < args.size(); ++i)
    slots[first_argument_slot + i] = const_cast<std::byte*>(content(args[i]).elements);
  claim_donated(args, slots);
  Arrays out(s.outputs.size());
  for (std::size_t i = 0; i < own_outputs_.size(); ++i) {
    const std::size_t k = own_outputs_[i];
    NewArray own(std::shared_ptr<const Type>(output_types_, &(*output_types_)[k]));
    slots[first_argument_slot + args.size() + i] = own.bytes();
    out[k] = std::move(own).finish();
  }
  // Transfers under way end before the memory that they use is freed.
  std::optional<Spill> spill;
  std::optional<HostFrame> host;
  if (code_->uses_host) {
    spill.emplace(spill_directory_, memory.host_bytes);
    host.emplace(*code_, *spill);
  }
  reprise::run(*code_, slots, {nullptr, host ? &*host : nullptr}, observer);
  add_others(out, args, results);
  return out;
}

void Executable::add_others(Arrays& out, const Arrays& args,
                            const std::shared_ptr<std::byte>& results) const {
  const plan::Schedule& s = *code_->schedule;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (out[k].defined()) continue;
    const Type& type = (*output_types_)[k];
    if (const std::size_t first = first_outputs_[k]; first != k) {
      out[k] = out[first].type() == type ? out[first] : with_type(out[first], type);
      continue;
    }
    const Var root = s.outputs[k].root;
    if (root < 0) {
      out[k] = make_number(s.program->out[k].literal);
      continue;
    }
    const plan::Place& place = code_->memory.places[static_cast<std::size_t>(root)];
    if (place.region == plan::Region::argument)
      out[k] = with_type(args[place.offset], type);
    else
      out[k] = array_at(results.get() + place.offset, type, results);
  }
}

}  // namespace reprise
