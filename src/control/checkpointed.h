// Loops whose reversal keeps at most c carries and plays again what lies between them, by
// control/loop_schedule.h.
//
//   checkpointed_scan, checkpointed_while: as scan and while, with more results: what the reversal
//   starts from
//     kept ::= [steps, states of the slots]   of a while: i32[], i32[c-1]
//              checkpoints                    per carry, [c-1, ..]; the initial carry is the c-th
//              on disk                        per carry, [d, ..], on the host; where d > 0
//              last                           per carry: that before the last step
//   checkpointed_tangents: (kept, consts, carry, xs) -> (linear carries, ys)
//     the first carries are those that were kept
//   checkpointed_reverse:  (kept, consts, init, xs, back, ct ys) -> (back, ct xs, checkpoints,
//                          on disk, last)
//     advance: (consts, carry, x) -> carry
//     step:    (consts, carry, x, back, ct y) -> (back, ct x)
//
// The tangents of a checkpointed loop are transposed to its reversal. The reversal returns
// checkpoints and last only to say that it works in their memory. Slot 0 is the initial carry,
// slots 1 to d are on disk, the others in memory.
#pragma once

#include "control/scan.h"
#include "control/while.h"
#include "program/primitive.h"

#include <optional>
#include <string>

namespace reprise {

class Split;

struct LoopLength {
  std::optional<std::int64_t> steps;  // nullopt: the first operands tell it
  bool reverse = false;
  std::int64_t checkpoints = 1, disk = 0;  // in memory, the initial carry among them; on disk
  std::int64_t slots() const { return checkpoints + disk; }
  std::size_t operands() const { return steps ? 0 : 2; }
  std::size_t sections() const {
    return disk > 0 ? 3 : 2;
  }  // of what is kept, each with all carries
  std::size_t kept(std::size_t carries) const { return operands() + sections() * carries; }
};
struct TangentLoop {
  ProgramPtr body;
  LoopLength length;
  std::size_t consts = 0, carry = 0, kept = 0;
};
struct ReverseLoop {
  ProgramPtr advance, step;
  LoopLength length;
  std::size_t consts = 0, carry = 0, back = 0;
  std::size_t xs() const { return advance->in.size() - consts - carry; }
  std::size_t cts() const { return step->in.size() - advance->in.size() - back; }
  std::size_t first_const() const { return length.kept(carry); }
  std::size_t first_back() const { return first_const() + advance->in.size(); }
};
TangentLoop tangent_loop(const Params&);
ReverseLoop reverse_loop(const Params&);
Params params_of(const TangentLoop&);
Params params_of(const ReverseLoop&);

// Types of what is kept of a loop with these carries.
Types kept_types(const Types& carry, const LoopLength&);
// The operands of tangents as those of the plain loop that computes them.
struct PlainLoop {
  const Primitive* prim;
  Params params;
  Arrays args;
  std::size_t skipped;  // leading results
};
PlainLoop plain_loop(const TangentLoop&, const Arrays& x);

// Which carries the steps of a reversal read, or need to make those: others need not be kept. At
// least one. `live`: of the inputs of its step, those that are read.
std::vector<bool> needed_carries(const ReverseLoop&, const std::vector<bool>& live);
// The result of a forward pass has a carry's checkpoints in memory; where nobody reads them, they
// are not kept.
bool has_checkpoints(const Equation& forward, std::size_t result);

// How often the bodies of a checkpointed loop run, for a length that is known; else once, for want
// of a count.
double times_run(const Equation&, const Program& body);
// How many leading results of any loop alternate between two places.
std::size_t alternating_results(const Equation&);
bool is_checkpointed(const Primitive*);
bool is_kept_on_disk(const Equation& reversal, std::size_t operand);

// What a result that the reversal starts from is, for reports; empty: another result.
std::string kept_text(const Equation&, std::size_t result, const Type&);

void check_step_count(std::int64_t step);  // of a while: 32 bits count them

// What linearization and splitting of scan and while do where they have checkpoints. Results and
// what is kept, and the tangents of the results.
Duals linearize_checkpointed(const Primitive& forward, const Arrays& x, const Tangents& dx,
                             const Params&);
void split_checkpointed_scan(const Equation&, Split&, const Program& known,
                             const std::vector<bool>& unknown_in,
                             const std::vector<bool>& unknown_out);
void stage_tangents(const Equation&, Split&, TangentLoop, const std::vector<Var>& kept,
                    const std::vector<bool>& unknown_out);

// Of the known side of a split, what makes its first outputs.
ProgramPtr known_part(const Program& known, std::size_t outputs);

// The program, and those inside its equations, with tangents computed by plain loops: what compiled
// code runs.
Program open_tangents(const Program&);

// Loops of unknown length that were mapped, with a condition for each element: the results of such
// a checkpointed_while, whose length is then a count for each element; and a reversal with one more
// constant, those counts, and one more `back` in front, the number of the last step. `inputs`: of
// the reversal's step.
Arrays bind_counting_while(const WhileLoop&, const Arrays& args);
ReverseLoop masked(const ReverseLoop&, const Types& inputs, const Type& counts);

[[noreturn]] void no_second_reversal();

}  // namespace reprise
