// A planned program as a list of instructions that run on memory slots.
//
// A slot is a base address that a run knows: the arena, the result block, every argument, every
// output with a buffer of its own. Instructions refer to memory as (slot, offset). For values on
// the host the slots are positions in the run's spill: the code's own region in the first, those of
// a body's inputs and outputs in theirs.
#pragma once

#include "codegen/kernel.h"
#include "plan/memory.h"
#include "products/conv.h"
#include "products/matmul.h"
#include "runtime/spill.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <variant>

namespace reprise {

class Team;

struct Ref {
  std::uint32_t slot = 0;
  std::size_t offset = 0;  // bytes
  bool operator==(const Ref&) const = default;
};
inline constexpr std::uint32_t arena_slot = 0, result_slot = 1, first_argument_slot = 2;

Ref ref_of(const plan::Schedule&, const plan::Place&, std::size_t more = 0);

using plan::few_pointers;
struct RunKernel {
  std::shared_ptr<const codegen::CompiledKernel> kernel;
  bool is_copy = false;  // element for element: nothing to do where both lie in the same place
  std::vector<Ref> pointers;
  Ref scratch, sums;
  bool in_place = false;  // the first result lies in the place of the first operand
};
// A product as one call that shares its parts among threads, or in parts of one thread each.
struct RunMatmul {
  struct Part {
    std::shared_ptr<const codegen::Matmul> matmul;
    Ref a, b, bias, c;  // bias: of products that have one
  };
  std::vector<Part> parts;
  Ref scratch;
  std::size_t scratch_stride = 0;  // per thread
  bool wakes_threads = false;      // so much work that threads are woken for the parts
};
// Steps that pass slices on: all of them for one slice, then for the next; threads take slices.
// Behind the code's own slots each thread has one for its memory and one for each value that is
// passed on: where that value would begin if its slice stood in its place.
struct RunRelay {
  struct Product {
    RunMatmul::Part operands;
    struct Start {
      std::size_t a, b, c;  // bytes
    };
    std::vector<Start> starts;  // of every slice
    Ref scratch;
  };
  std::vector<std::variant<RunKernel, Product>> parts;
  struct Passed {
    std::size_t offset, slice_bytes;  // in the thread's memory
  };
  std::vector<Passed> passed;
  std::int64_t slices = 1;
  Ref memory;
  std::size_t memory_stride = 0;  // per thread
};
struct RunConv {
  std::shared_ptr<const codegen::Convolution> convolution;
  Ref lhs, rhs, out, scratch;
};
// The plain evaluator on values that lie dense in memory.
struct RunEval {
  const Equation* eqn;
  std::vector<std::pair<Type, Ref>> operands;  // literals: the equation has them
  std::vector<std::pair<Type, Ref>> results;
  Ref scratch = {};  // of a collective
};

struct Code;
struct RunScan {
  std::shared_ptr<const Code> body;
  std::int64_t length = 0;
  bool reverse = false;
  struct Input {
    Ref from;
    std::size_t step_bytes = 0;  // of a scanned operand
    bool on_host = false;
  };
  // constants and scanned operands: of body inputs that are not carried
  std::vector<Input> inputs;
  std::vector<std::uint32_t> input_slots;
  struct Carry {
    Ref initial, result;
    // steps write to result and spare in turns, the last to result; the same place where they
    // update it
    Ref spare;
    std::size_t bytes = 0;
    std::uint32_t in_slot = 0, out_slot = 0;
    // A stacked output that is the value before each step: a step reads it there and writes the
    // next one behind it.
    std::optional<std::size_t> stack = {};
  };
  std::vector<Carry> carries;
  std::vector<Input> outputs;  // stacked
  std::vector<std::uint32_t> output_slots;
  Ref arena, host;
  bool gathers = false;  // a team stays awake through the loop: its steps are small
};
struct RunCond {
  Ref index;
  Dtype index_dtype = Dtype::i32;
  std::vector<std::shared_ptr<const Code>> branches;
  std::vector<Ref> operands, results;
  Ref arena, host;
};
struct RunWhile {
  std::shared_ptr<const Code> condition, body;
  std::vector<Ref> condition_consts, body_consts;
  std::vector<RunScan::Carry> carries;
  Ref predicate, arena, host;
  bool gathers = false;
};
// Checkpoints of a carry on disk: rows of a value on the host, or in memory where the plan has it.
// They come and go by way of a place in memory that holds one of them.
struct RunDisk {
  struct Rows {
    Ref at;
    bool on_host = false;
  };
  Rows kept, own;  // as the loop found them, and where it puts others: the same place or not
  Ref staging;
  std::size_t bytes = 0;
};
// The forward pass of a loop with checkpoints; a body's inputs are (consts, carry, xs), its outputs
// (carry, ys).
struct RunForward {
  std::shared_ptr<const Code> condition, body;  // condition: of a loop of unknown length
  std::optional<std::int64_t> length;
  bool reverse = false;
  std::int64_t checkpoints = 1, disk = 0;
  std::vector<RunScan::Input> condition_consts, consts, xs, ys;
  struct Carry {
    Ref initial, result, last, checkpoints;  // steps write to result and last in turns
    std::size_t bytes = 0;
    bool is_kept = true;  // else nobody reads its checkpoints
  };
  std::vector<Carry> carries;
  std::vector<RunDisk> on_disk;  // of each carry, where some are
  Ref steps, states, predicate, arena, host;
  bool gathers = false;
};
// Its reversal; inputs of `step` are (consts, carry, xs, back, cts), of which `advance` has the
// first three.
struct RunReverse {
  std::shared_ptr<const Code> advance, step;
  std::optional<std::int64_t> length;
  bool reverse = false;
  std::int64_t checkpoints = 1, disk = 0;
  std::vector<std::int64_t> kept;  // of a known length: the states in the slots
  std::vector<RunScan::Input> consts, xs, cts, outputs;
  struct Carry {
    Ref initial, kept_checkpoints, checkpoints, kept_last, last, spare;
    std::size_t bytes = 0;
  };
  std::vector<Carry> carries;
  std::vector<RunDisk> on_disk;
  std::vector<RunScan::Carry> back;
  Ref steps, states, arena, host;
  bool gathers = false;
};
struct RunTransfer {
  plan::Transfer what = plan::Transfer::begin_write;
  Ref device, host;
  std::size_t bytes = 0;
  std::size_t number = 0;  // of the pair that begins and ends it
};

using Instruction = std::variant<RunKernel, RunMatmul, RunRelay, RunConv, RunEval, RunScan, RunCond,
                                 RunWhile, RunForward, RunReverse, RunTransfer>;

struct Code {
  std::shared_ptr<const plan::Schedule> schedule;
  plan::MemoryPlan memory;
  std::vector<Instruction> instructions;  // one per step
  std::uint32_t slots = 0;
  int threads = 1;  // that scratch memory is planned for
  // All instructions are so small that they run on one thread, and some are worth a team that
  // shares them.
  bool is_fine = true, is_shareable = false;
  std::size_t transfers = 0;  // pairs of instructions
  bool uses_host = false;     // bodies of loops included
};

// Whether threads stay awake through a loop: its steps are small, and many enough.
inline constexpr std::int64_t steps_worth_gathering = 128;
inline bool gathers(const Code& body) {
  return body.is_fine && body.is_shareable && body.threads > 1;
}

// Called after every instruction of the outermost program.
using Observer = std::function<void(std::size_t instruction, std::byte* const* slots)>;

// What a run of code with transfers needs besides memory.
struct HostFrame {
  HostFrame(const Code& code, Spill& s)
      : spill(&s), slots(code.slots, 0), tickets(code.transfers, 0) {}
  Spill* spill;
  std::vector<std::size_t> slots;
  std::vector<Spill::Ticket> tickets;
};
struct Context {
  Team* team = nullptr;       // threads that are awake for small instructions
  HostFrame* host = nullptr;  // of code with transfers
};

// Runs on the given slots; errors of the evaluator, of libraries and of transfers are thrown.
void run(const Code&, std::byte* const* slots, const Context& context,
         const Observer* observer = nullptr);
// null: it has no memory of its own
std::byte* address_of(const Code&, Var root, std::byte* const* slots);

}  // namespace reprise
