// Which carries a loop keeps and in which order its steps are reversed, as automata of O(c) state.
//
//   forward:   states 0, 1, 2, ..  =>  the slot of each that is kept
//   backward:  n, kept states      =>  advance | reverse, until no step is left
//
// A loop of known length keeps what the binomial schedule wants: of m steps behind a checkpoint
// with s slots, its own among them, the next checkpoint stands where both parts need the fewest
// advances. A loop of unknown length keeps every state while there are slots, then gives up states
// that lie before one of a higher level: up to C(c + 2, 2) steps that costs no more advances, and
// beyond no step is advanced more often than if the length had been known. The state before the
// last step, from which the reversal starts, is at hand and needs no slot.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace reprise {

// Counts of advances, n (n - 1) / 2 at most, then fit into 64 bits.
inline constexpr std::int64_t most_steps = std::int64_t{1} << 32;

// C(s + t, t): the longest loop that s checkpoints reverse with no step advanced more than t times.
std::int64_t reversible_steps(std::int64_t checkpoints, std::int64_t repetitions);
std::int64_t repetitions_of(std::int64_t steps, std::int64_t checkpoints);
std::int64_t least_advances(std::int64_t steps, std::int64_t checkpoints);
// The fewest checkpoints with which no step is advanced more than t times.
std::int64_t checkpoints_for(std::int64_t steps, std::int64_t repetitions);
// How far behind a checkpoint the next one stands; steps - 1: nowhere, the reversal begins there.
std::int64_t next_checkpoint(std::int64_t steps, std::int64_t slots);

inline constexpr std::int64_t no_slot = -1;

class ForwardSchedule {
 public:
  // Slots 1 to checkpoints - 1 are given out; slot 0 is the initial state's.
  explicit ForwardSchedule(std::int64_t checkpoints, std::optional<std::int64_t> steps = {});

  // Of state 1, 2, .. in order, once the loop is known to run beyond the state behind it: its slot,
  // or no_slot.
  std::int64_t slot_of(std::int64_t state);
  // The state in each slot from 1 on; -1: none.
  std::vector<std::int64_t> kept() const;

 private:
  struct Kept {
    std::int64_t state, level, slot;
  };
  std::int64_t slot_of_known(std::int64_t state);
  std::int64_t slot_of_unknown(std::int64_t state);
  std::int64_t keep(std::int64_t state, std::int64_t slot);
  void plan_next();

  std::int64_t slots_;
  std::optional<std::int64_t> steps_;
  std::vector<Kept> kept_;
  std::int64_t next_ = 0;                        // known length: the next state to keep
  std::int64_t level_ = 0;                       // of the state that comes next
  std::size_t spare_begin_ = 0, spare_end_ = 0;  // of kept_: states that may be given up
};

// What a loop of known length has kept in the end.
std::vector<std::int64_t> kept_states(std::int64_t steps, std::int64_t checkpoints);

struct LoopMove {
  enum class What : std::uint8_t { advance, reverse, end };
  What what = What::end;
  std::int64_t from = 0, to = 0;       // reverse: step `from`
  std::int64_t source = no_slot;       // where state `from` is; no_slot: the working state
  std::int64_t destination = no_slot;  // of an advance: where state `to` goes
};

class BackwardSchedule {
 public:
  // `kept` as by ForwardSchedule; the working state is the one before the last step. Slots 1 to
  // `disk` are slow: only what those in memory cannot hold goes there, the longest-lived states.
  BackwardSchedule(std::int64_t steps, const std::vector<std::int64_t>& kept,
                   std::int64_t disk = 0);
  LoopMove next();

 private:
  struct Kept {
    std::int64_t state, slot;
  };
  LoopMove reverse();
  LoopMove advance();
  std::vector<std::int64_t>& free_slots(std::int64_t slot);
  std::int64_t take_slot(std::int64_t steps);

  std::int64_t left_;       // steps that are not reversed yet
  std::vector<Kept> kept_;  // by state; the initial one is never given up
  std::vector<std::int64_t> free_, free_on_disk_;
  std::int64_t disk_;
  std::int64_t at_, source_ = no_slot;  // the state to go on from
};

}  // namespace reprise
