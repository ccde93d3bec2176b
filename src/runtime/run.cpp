#include "array/place.h"
#include "base/error.h"
#include "codegen/pool.h"
#include "ops/collective_data.h"
#include "program/primitive.h"
#include "runtime/frames.h"
#include "runtime/team_trial.h"
#include "runtime/threads.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>

namespace reprise {
namespace {

// item(i, thread) for i in [0, n): by the team that is awake, by up to `threads` that are woken, or
// alone.
template <class Item>
void divide(std::int64_t n, std::int64_t threads, Team* team, Item& item) {
  if (team != nullptr && n > 1) return team->share(n, item);
  if (threads <= 1) {
    for (std::int64_t i = 0; i < n; ++i) item(i, 0);
    return;
  }
  codegen::share_items(static_cast<int>(threads), n,
                       [&](std::int64_t thread, std::int64_t i) { item(i, thread); });
}

struct KernelRun {
  const codegen::CompiledKernel& kernel;
  const plan::Loops& l;
  std::byte* const* pointers;
  std::byte *scratch, *sums;
  std::size_t scratch_stride;
  std::int64_t block;

  void item(std::int64_t i, std::int64_t thread) const {
    std::int64_t row_begin = 0, row_end = l.rows, column_begin = 0, column_end = l.columns;
    if (l.by_columns) {
      column_begin = i * block;
      column_end = std::min(l.columns, column_begin + block);
    } else if (kernel.finish != nullptr) {  // an item is a chunk of a segment
      const std::int64_t per_segment = l.rows / l.segments, segment = i / l.chunks,
                         chunk = i % l.chunks;
      row_begin = segment * per_segment + chunk * l.chunk_rows;
      row_end = segment * per_segment + std::min(per_segment, (chunk + 1) * l.chunk_rows);
    } else {
      row_begin = i * block;
      row_end = std::min(l.rows, row_begin + block);
    }
    walk(row_begin, row_end, column_begin, column_end,
         scratch + static_cast<std::size_t>(thread) * scratch_stride);
  }
  // One of equal slices of the rows, or of the columns if there is but one row.
  void slice(std::int64_t i, std::int64_t slices) const {
    const auto part = [&](std::int64_t n) {
      return std::pair(i * (n / slices), (i + 1) * (n / slices));
    };
    const auto [row_begin, row_end] =
        l.rows == 1 ? std::pair<std::int64_t, std::int64_t>(0, 1) : part(l.rows);
    const auto [column_begin, column_end] =
        l.rows == 1 ? part(l.columns) : std::pair<std::int64_t, std::int64_t>(0, l.columns);
    walk(row_begin, row_end, column_begin, column_end, scratch);
  }
  void walk(std::int64_t row_begin, std::int64_t row_end, std::int64_t column_begin,
            std::int64_t column_end, std::byte* own) const {
    if (l.tile_rows == 0)
      return kernel.run(pointers, row_begin, row_end, column_begin, column_end, own, sums);
    for (std::int64_t r = row_begin, next = 0; r < row_end; r = next) {
      const std::int64_t left = l.outer.back() - r % l.outer.back();
      next = std::min(row_end, r + std::min(l.tile_rows, left));
      for (std::int64_t c = column_begin; c < column_end; c += l.tile_columns) {
        kernel.run(pointers, r, next, c, std::min(column_end, c + l.tile_columns), own, sums);
      }
    }
  }
};

// The addresses that a kernel works on.
class Pointers {
 public:
  Pointers(const RunKernel& r, Slots slots)
      : many_(r.pointers.size() > few_pointers ? r.pointers.size() : 0) {
    if (!many_.empty()) all_ = many_.data();
    for (std::size_t i = 0; i < r.pointers.size(); ++i) all_[i] = address(slots, r.pointers[i]);
  }
  Pointers(const Pointers&) = delete;
  Pointers& operator=(const Pointers&) = delete;
  std::byte* const* get() const { return all_; }

 private:
  std::byte* few_[few_pointers];
  std::vector<std::byte*> many_;
  std::byte** all_ = few_;
};

void run_one(const Code& code, const RunKernel& r, Slots slots, const Context& context) {
  const Pointers all(r, slots);
  std::byte* const* pointers = all.get();
  if (r.is_copy && pointers[0] == pointers[1]) return;
  const codegen::CompiledKernel& k = *r.kernel;
  const plan::Loops& l = r.in_place ? k.loops_in_place : k.loops;
  const bool fine = context.team != nullptr;
  const std::int64_t items = fine ? l.fine_items : l.items;
  const KernelRun run{k,
                      l,
                      pointers,
                      address(slots, r.scratch),
                      address(slots, r.sums),
                      k.scratch_bytes,
                      fine ? l.fine_block : l.block};
  auto item = [&](std::int64_t i, std::int64_t thread) { run.item(i, thread); };
  divide(items, std::min<std::int64_t>({code.threads, num_threads(), items}), context.team, item);
  if (k.finish != nullptr) k.finish(pointers, run.sums);
}

void run_one(const Code& code, const RunMatmul& r, Slots slots, const Context& context) {
  std::atomic<bool> ok = true;
  std::byte* const scratch = address(slots, r.scratch);
  auto part = [&](std::int64_t i, std::int64_t thread) {
    const RunMatmul::Part& p = r.parts[static_cast<std::size_t>(i)];
    std::byte* const own = scratch + static_cast<std::size_t>(thread) * r.scratch_stride;
    if (!p.matmul->run(address(slots, p.a), address(slots, p.b), address(slots, p.bias),
                       address(slots, p.c), own))
      ok = false;
  };
  const auto n = static_cast<std::int64_t>(r.parts.size());
  const std::int64_t threads =
      r.wakes_threads ? std::min<std::int64_t>({code.threads, num_threads(), n}) : 1;
  divide(n, threads, context.team, part);
  if (!ok) fail<RuntimeError>("dot_general: the library failed");
}

void run_slice(const RunKernel& r, std::int64_t slice, std::int64_t slices, Slots slots) {
  const Pointers all(r, slots);
  const codegen::CompiledKernel& k = *r.kernel;
  KernelRun{k, k.loops, all.get(), address(slots, r.scratch), nullptr, 0, 0}.slice(slice, slices);
}
void run_slice(const RunRelay::Product& p, std::int64_t slice, std::int64_t, Slots slots) {
  const RunRelay::Product::Start& start = p.starts[static_cast<std::size_t>(slice)];
  p.operands.matmul->run(address(slots, p.operands.a) + start.a,
                         address(slots, p.operands.b) + start.b, nullptr,
                         address(slots, p.operands.c) + start.c, address(slots, p.scratch));
}

void run_one(const Code& code, const RunRelay& r, Slots slots, const Context& context) {
  const std::int64_t threads = std::min<std::int64_t>({code.threads, num_threads(), r.slices});
  const std::size_t own_slots = code.slots + 1 + r.passed.size();
  std::vector<std::byte*> all(own_slots * static_cast<std::size_t>(threads));
  for (auto own = all.begin(); own != all.end(); own += static_cast<std::ptrdiff_t>(own_slots))
    std::copy(slots, slots + code.slots, own);
  auto item = [&](std::int64_t slice, std::int64_t thread) {
    std::byte** const own = all.data() + static_cast<std::size_t>(thread) * own_slots;
    std::byte** const values = own + code.slots + 1;
    std::byte* const memory = own[code.slots] =
        address(slots, r.memory) + static_cast<std::size_t>(thread) * r.memory_stride;
    for (std::size_t k = 0; k < r.passed.size(); ++k) {
      const std::size_t before = static_cast<std::size_t>(slice) * r.passed[k].slice_bytes;
      values[k] = reinterpret_cast<std::byte*>(
          reinterpret_cast<std::uintptr_t>(memory + r.passed[k].offset) - before);
    }
    for (const auto& part : r.parts)
      std::visit([&](const auto& p) { run_slice(p, slice, r.slices, own); }, part);
  };
  divide(r.slices, threads, context.team, item);
}

void run_one(const Code&, const RunConv& r, Slots slots, const Context&) {
  const bool ok = r.convolution->run(address(slots, r.lhs), address(slots, r.rhs),
                                     address(slots, r.out), address(slots, r.scratch));
  if (!ok) fail<RuntimeError>("conv_general_dilated: the library failed");
}

Array copied(const Array& a) {
  NewArray copy(a.type());
  std::memcpy(copy.bytes(), content(a).elements, a.nbytes());
  return std::move(copy).finish();
}

// Copies what an evaluator made to where the plan wants it. A result may lie in the place of
// another: calls make arrays of a result's type on their way, in any order. Such a one is copied
// away before its place is written.
void move_to_places(Arrays& y, const RunEval& r, Slots slots) {
  for (std::size_t k = 0; k < y.size(); ++k) {
    const std::size_t bytes = r.results[k].first.nbytes();
    std::byte* const to = address(slots, r.results[k].second);
    if (bytes == 0 || content(y[k]).elements == to) continue;
    for (std::size_t later = k + 1; later < y.size(); ++later) {
      if (content(y[later]).elements == to) y[later] = copied(y[later]);
    }
    std::memcpy(to, content(y[k]).elements, bytes);
  }
}

// In the memory of the plan, what rearranging takes included.
void run_shared(const RunEval& r, Slots slots) {
  const auto& [in, from] = r.operands[0];
  const auto& [out, to] = r.results[0];
  const AtEquation at(r.eqn->at);
  run_collective(*r.eqn->prim, r.eqn->params, in, out,
                 {address(slots, from), address(slots, to), address(slots, r.scratch)});
}

void run_one(const Code&, const RunEval& r, Slots slots, const Context&) {
  if (r.eqn->prim->effect.is_shared && r.eqn->in[0].is_var()) return run_shared(r, slots);
  Arrays x;
  for (std::size_t i = 0; i < r.eqn->in.size(); ++i) {
    const Atom& a = r.eqn->in[i];
    x.push_back(a.is_var() ? array_at(address(slots, r.operands[i].second), r.operands[i].first)
                           : make_number(a.literal));
  }
  std::vector<Type> types;
  std::vector<PlaceResults::Target> targets;
  for (const auto& [type, ref] : r.results) {
    types.push_back(type);
    targets.push_back({&type, address(slots, ref)});
  }
  const AtEquation at(r.eqn->at);
  Arrays y;
  {
    const PlaceResults place(std::move(targets));
    y = r.eqn->prim->eval(x, r.eqn->params, types);
  }
  move_to_places(y, r, slots);
}

// What the next step of a scan reads back comes from the disk while this one computes.
void expect_slices(const RunScan& r, const HostFrame& host, std::size_t next) {
  for (const RunScan::Input& x : r.inputs) {
    if (x.on_host && x.step_bytes > 0)
      host.spill->expect_read(position(host, x.from) + next * x.step_bytes, x.step_bytes);
  }
}

void run_steps(const RunScan& r, Slots slots, const Context& context, bool is_new_team) {
  std::vector<std::byte*> inner(r.body->slots, nullptr);
  InnerHost inner_host(*r.body, context.host, r.host);
  const auto point = [&](const RunScan::Input& x, std::uint32_t slot, std::size_t i) {
    if (!x.on_host)
      inner[slot] = address(slots, x.from) + i * x.step_bytes;
    else if (inner_host.get() != nullptr)
      inner_host.get()->slots[slot] = position(*context.host, x.from) + i * x.step_bytes;
  };
  inner[arena_slot] = address(slots, r.arena);
  const auto index = [&](std::int64_t k) {
    return static_cast<std::size_t>(r.reverse ? r.length - 1 - k : k);
  };
  const auto row = [&](std::size_t stack, std::int64_t k) {
    return address(slots, r.outputs[stack].from) + index(k) * r.outputs[stack].step_bytes;
  };
  for (const RunScan::Carry& c : r.carries) {
    const bool stacked = c.stack && r.length > 0;
    inner[c.in_slot] = stacked ? row(*c.stack, 0) : start(c, slots);
    if (stacked) std::memcpy(inner[c.in_slot], address(slots, c.initial), c.bytes);
  }
  TeamTrial trial(context.team, is_new_team);
  for (std::int64_t k = 0; k < r.length; ++k) {
    const std::size_t i = index(k);
    for (std::size_t n = 0; n < r.inputs.size(); ++n) point(r.inputs[n], r.input_slots[n], i);
    for (std::size_t n = 0; n < r.outputs.size(); ++n) point(r.outputs[n], r.output_slots[n], i);
    if (inner_host.get() != nullptr && k + 1 < r.length)
      expect_slices(r, *context.host, r.reverse ? i - 1 : i + 1);
    const bool to_result = (r.length - 1 - k) % 2 == 0;
    for (const RunScan::Carry& c : r.carries) {
      inner[c.out_slot] = c.stack && k + 1 < r.length
                              ? row(*c.stack, k + 1)
                              : address(slots, to_result ? c.result : c.spare);
    }
    run(*r.body, inner.data(), {trial.next(), inner_host.get()});
    for (const RunScan::Carry& c : r.carries) inner[c.in_slot] = inner[c.out_slot];
  }
  if (r.length > 0) return;
  for (const RunScan::Carry& c : r.carries) copy(slots, c.initial, c.result, c.bytes);
}

std::int64_t read_index(const std::byte* from, Dtype d) {
  if (d == Dtype::bool_) return *from != std::byte{0} ? 1 : 0;
  return *reinterpret_cast<const std::int32_t*>(from);
}

void run_one(const Code&, const RunCond& r, Slots slots, const Context& context) {
  const auto last = static_cast<std::int64_t>(r.branches.size()) - 1;
  const std::int64_t chosen =
      std::clamp<std::int64_t>(read_index(address(slots, r.index), r.index_dtype), 0, last);
  const Code& branch = *r.branches[static_cast<std::size_t>(chosen)];
  std::vector<std::byte*> inner(branch.slots, nullptr);
  InnerHost inner_host(branch, context.host, r.host);
  inner[arena_slot] = address(slots, r.arena);
  for (std::size_t i = 0; i < r.operands.size(); ++i)
    inner[first_argument_slot + i] = address(slots, r.operands[i]);
  for (std::size_t i = 0; i < r.results.size(); ++i)
    inner[first_argument_slot + r.operands.size() + i] = address(slots, r.results[i]);
  run(branch, inner.data(), {context.team, inner_host.get()});
}

void run_steps(const RunWhile& r, Slots slots, const Context& context, bool is_new_team) {
  std::vector<std::byte*> test(r.condition->slots, nullptr), step(r.body->slots, nullptr);
  InnerHost test_host(*r.condition, context.host, r.host), step_host(*r.body, context.host, r.host);
  test[arena_slot] = step[arena_slot] = address(slots, r.arena);
  for (std::size_t i = 0; i < r.condition_consts.size(); ++i)
    test[first_argument_slot + i] = address(slots, r.condition_consts[i]);
  for (std::size_t i = 0; i < r.body_consts.size(); ++i)
    step[first_argument_slot + i] = address(slots, r.body_consts[i]);
  const std::size_t test_carry = first_argument_slot + r.condition_consts.size();
  std::byte* const predicate = test[test_carry + r.carries.size()] = address(slots, r.predicate);
  for (const RunScan::Carry& c : r.carries) copy(slots, c.initial, c.result, c.bytes);
  TeamTrial trial(context.team, is_new_team);
  for (bool in_result = true;; in_result = !in_result) {
    Team* const team = trial.next();
    for (std::size_t i = 0; i < r.carries.size(); ++i) {
      const RunScan::Carry& c = r.carries[i];
      test[test_carry + i] = step[c.in_slot] = address(slots, in_result ? c.result : c.spare);
      step[c.out_slot] = address(slots, in_result ? c.spare : c.result);
    }
    run(*r.condition, test.data(), {team, test_host.get()});
    if (*predicate == std::byte{0}) {
      for (const RunScan::Carry& c : r.carries) {
        if (!in_result) copy(slots, c.spare, c.result, c.bytes);
      }
      return;
    }
    run(*r.body, step.data(), {team, step_host.get()});
  }
}

// A loop, with threads that stay awake between its steps where those are small.
template <class Loop>
requires requires(const Loop& loop) { loop.gathers; }
void run_one(const Code& code, const Loop& r, Slots slots, const Context& context) {
  if (context.team != nullptr || !r.gathers) return run_steps(r, slots, context, false);
  struct Gathered {
    const Loop& loop;
    Slots slots;
    HostFrame* host;
    std::exception_ptr error;
  } gathered{r, slots, context.host, nullptr};
  Team::gather(std::min(code.threads, num_threads()), &gathered, [](void* data, Team& t) {
    auto& g = *static_cast<Gathered*>(data);
    try {
      run_steps(g.loop, g.slots, {&t, g.host}, true);
    } catch (...) {
      g.error = std::current_exception();
    }
  });
  if (gathered.error) std::rethrow_exception(gathered.error);
}

void run_one(const Code&, const RunTransfer& r, Slots slots, const Context& context) {
  HostFrame& host = *context.host;
  Spill::Ticket& ticket = host.tickets[r.number];
  switch (r.what) {
    case plan::Transfer::begin_write:
      ticket = host.spill->begin_write(address(slots, r.device), position(host, r.host), r.bytes);
      return;
    case plan::Transfer::begin_read:
      ticket = host.spill->begin_read(position(host, r.host), address(slots, r.device), r.bytes);
      return;
    case plan::Transfer::end_write:
    case plan::Transfer::end_read: host.spill->wait(ticket);
  }
}

}  // namespace

void run(const Code& code, std::byte* const* slots, const Context& context,
         const Observer* observer) {
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    std::visit([&](const auto& r) { run_one(code, r, slots, context); }, code.instructions[i]);
    if (observer != nullptr) (*observer)(i, slots);
  }
}

std::byte* address_of(const Code& code, Var root, std::byte* const* slots) {
  const plan::Place& p = code.memory.places[static_cast<std::size_t>(root)];
  return p.region == plan::Region::none || code.schedule->on_host[static_cast<std::size_t>(root)]
             ? nullptr
             : address(slots, ref_of(*code.schedule, p));
}

Ref ref_of(const plan::Schedule& s, const plan::Place& p, std::size_t more) {
  switch (p.region) {
    case plan::Region::none: return {arena_slot, 0};
    case plan::Region::arena:
    case plan::Region::host: return {arena_slot, p.offset + more};
    case plan::Region::results: return {result_slot, p.offset + more};
    case plan::Region::argument:
      return {static_cast<std::uint32_t>(first_argument_slot + p.offset), more};
    case plan::Region::own: break;
  }
  return {static_cast<std::uint32_t>(first_argument_slot + s.program->in.size() + p.offset), more};
}

}  // namespace reprise
