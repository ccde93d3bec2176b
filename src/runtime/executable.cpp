#include "runtime/executable.h"

#include <chrono>
#include <cstdio>
#include <optional>

#include "array/place.h"
#include "base/memory.h"
#include "runtime/passes.h"
#include "runtime/text.h"

namespace reprise {

Executable::Executable(std::shared_ptr<const Code> code, std::string spill_directory)
    : code_(std::move(code)), spill_directory_(std::move(spill_directory)), timed_(pass_is_timed("run")) {}

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
    std::fprintf(stderr, "reprise: run %9.3f ms %s\n", milliseconds[i], step_text(*code_, i).c_str());
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
  for (std::size_t i = 0; i < args.size(); ++i) slots[first_argument_slot + i] = const_cast<std::byte*>(content(args[i]).elements);
  claim_donated(args, slots);
  std::vector<NewArray> own;
  own.reserve(memory.own.size());
  for (Var v : memory.own) {
    own.emplace_back(s.types[static_cast<std::size_t>(v)]);
    slots[first_argument_slot + args.size() + own.size() - 1] = own.back().bytes();
  }
  // Transfers under way end before the memory that they use is freed.
  std::optional<Spill> spill;
  std::optional<HostFrame> host;
  if (code_->uses_host) {
    spill.emplace(spill_directory_, memory.host_bytes);
    host.emplace(*code_, *spill);
  }
  reprise::run(*code_, slots, {nullptr, host ? &*host : nullptr}, observer);
  Arrays finished;
  finished.reserve(own.size());
  for (NewArray& a : own) finished.push_back(std::move(a).finish());
  Arrays out;
  out.reserve(s.outputs.size());
  for (std::size_t k = 0; k < s.outputs.size(); ++k) {
    const plan::View& v = s.outputs[k];
    const Type type = s.program->type(s.program->out[k]);
    if (v.root < 0) {
      out.push_back(make_number(s.program->out[k].literal));
      continue;
    }
    const plan::Place& place = memory.places[static_cast<std::size_t>(v.root)];
    if (place.region == plan::Region::argument) out.push_back(with_type(args[place.offset], type));
    else if (place.region == plan::Region::own) out.push_back(finished[place.offset].type() == type ? finished[place.offset] : with_type(finished[place.offset], type));
    else out.push_back(array_at(results.get() + place.offset, type, std::make_shared<std::shared_ptr<std::byte>>(results)));
  }
  return out;
}

}  // namespace reprise
