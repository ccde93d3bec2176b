#include "plan/loop_drawing.h"

#include "control/loop_schedule.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr std::int64_t columns = 400;           // what is shorter than one of them is not drawn
constexpr std::int64_t most_moves = 2'000'000;  // a longer schedule would be played for too long

std::size_t number(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

LoopDrawing loop_drawing(std::int64_t steps, std::int64_t checkpoints,
                         std::int64_t disk_checkpoints) {
  LoopDrawing out;
  if (steps == 0 || steps > most_moves) return out;
  const std::int64_t shortest = std::max<std::int64_t>(steps / columns, 1);
  const std::vector<std::int64_t> kept = kept_states(steps, checkpoints + disk_checkpoints);
  out.kept = {0, 0};
  for (std::size_t slot = 1; slot <= kept.size(); ++slot) {
    if (kept[slot - 1] >= 0) out.kept.insert(out.kept.end(), {number(kept[slot - 1]), slot});
  }
  out.steps = number(steps);
  out.disk = number(disk_checkpoints);
  out.advances = {0, number(steps - 1), 0};
  std::int64_t done = steps - 1;
  BackwardSchedule schedule(steps, kept, disk_checkpoints);
  for (LoopMove m = schedule.next(); m.what != LoopMove::What::end; m = schedule.next()) {
    const bool is_reverse = m.what == LoopMove::What::reverse;
    if (is_reverse && (m.from % shortest == 0 || m.from == steps - 1))
      out.reversals.insert(out.reversals.end(), {number(m.from), number(done)});
    if (!is_reverse && m.to - m.from >= shortest)
      out.advances.insert(out.advances.end(), {number(m.from), number(m.to), number(done)});
    done += is_reverse ? 1 : m.to - m.from;
  }
  out.evaluations = number(done);
  return out;
}

}  // namespace reprise
