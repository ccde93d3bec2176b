// Loops with a checkpoint budget: at most c carries are kept for the reversal of n steps, and what
// lies between them is played again, as seldom as any schedule can.
//
//   rp::LoopSchedule s = rp::loop_schedule(10000, 32);
//   s.advances;      // 32860: steps evaluated besides each reversed step's own evaluation
//   s.repetitions;   // 4: no step is advanced more often
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// So many checkpoints that no step is evaluated more than twice before its reversal: about sqrt(2
// n).
struct Automatic {};
inline constexpr Automatic automatic{};

// How many carries a loop keeps for its reversal, the initial one among them: a number, or
// rp::automatic.
class Checkpoints {
 public:
  constexpr Checkpoints(std::integral auto count)
      : count_(static_cast<std::int64_t>(count)) {}                       // NOLINT: a number
  constexpr Checkpoints(Automatic) {}                                     // NOLINT: by name
  constexpr std::optional<std::int64_t> count() const { return count_; }  // nullopt: automatic

 private:
  std::optional<std::int64_t> count_;
};

// What reverse mode keeps of a loop: at most so many carries, or as many as fit into so many bytes.
// Neither: what scan needs for every step; a while_loop then has no reverse mode.
struct LoopOptions {
  std::optional<Checkpoints> checkpoints = std::nullopt;
  std::optional<std::int64_t> checkpoint_bytes = std::nullopt;
  // So many more carries that compiled code keeps in a file of jit's .spill_directory, as it does
  // offloaded values; they need .checkpoints or .checkpoint_bytes.
  std::int64_t disk_checkpoints = 0;
};

// One action of a loop and its reversal. State i is the carry before step i; slot 0 holds the
// initial one, slots 1 to disk_checkpoints are on disk.
struct LoopAction {
  enum class What : std::uint8_t {
    keep,     // state `from` goes to `slot`
    advance,  // steps from, from + 1, .., to - 1 are evaluated
    restore,  // state `from` is read from `slot`
    reverse   // step `from` is reversed: evaluated once more for its derivative
  };
  What what = What::advance;
  std::int64_t from = 0, to = 0;
  std::int64_t slot = -1;
  bool operator==(const LoopAction&) const = default;
};

// The optimal (binomial) schedule of a loop of known length.
struct LoopSchedule {
  std::int64_t steps = 0, checkpoints = 1, disk_checkpoints = 0;
  std::int64_t advances = 0;  // t n - C(c + t, t - 1) for the t below: the least possible
  std::int64_t repetitions =
      0;  // the least t with n <= C(c + t, t): no step is advanced more often
  // The whole sequence; counts and slots are known without it.
  std::vector<LoopAction> actions() const;
};

// For n >= 0 steps and c >= 1 checkpoints, the initial carry among them, and some more on disk;
// more than n in all are never used.
LoopSchedule loop_schedule(std::int64_t steps, std::int64_t checkpoints,
                           std::int64_t disk_checkpoints = 0);

}  // namespace reprise
#pragma GCC visibility pop
