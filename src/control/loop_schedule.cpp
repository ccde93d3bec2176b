#include "control/loop_schedule.h"

#include "base/error.h"
#include "reprise/loops.h"

#include <algorithm>
#include <limits>

namespace reprise {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// C(s + t, t) from C(s + t - 1, t - 1).
std::int64_t with_one_more(std::int64_t before, std::int64_t s, std::int64_t t) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(before, s + t, &product)) return most;
  return product / t;
}

// The least t with steps <= C(s + t, t), and the numbers next to it.
struct Repetitions {
  std::int64_t t = 0;
  std::int64_t reach = 1, before = 0, before_that = 0;  // C(s + t, t) for t, t - 1, t - 2
};
Repetitions repetitions(std::int64_t steps, std::int64_t s) {
  Repetitions r;
  while (r.reach < steps) {
    r.before_that = r.before;
    r.before = r.reach;
    ++r.t;
    r.reach = with_one_more(r.reach, s, r.t);
  }
  return r;
}

}  // namespace

std::int64_t reversible_steps(std::int64_t checkpoints, std::int64_t repetitions) {
  std::int64_t reach = 1;
  for (std::int64_t t = 1; t <= repetitions && reach < most; ++t)
    reach = with_one_more(reach, checkpoints, t);
  return reach;
}

std::int64_t repetitions_of(std::int64_t steps, std::int64_t checkpoints) {
  if (checkpoints == 1) return std::max<std::int64_t>(steps - 1, 0);
  return repetitions(steps, checkpoints).t;
}

std::int64_t least_advances(std::int64_t steps, std::int64_t checkpoints) {
  if (steps <= 1) return 0;
  if (checkpoints == 1) return steps % 2 == 0 ? steps / 2 * (steps - 1) : (steps - 1) / 2 * steps;
  const std::int64_t t = repetitions(steps, checkpoints).t;
  return t * steps - reversible_steps(checkpoints + 1, t - 1);
}

std::int64_t checkpoints_for(std::int64_t steps, std::int64_t repetitions) {
  std::int64_t low = 1, high = std::max<std::int64_t>(steps, 1);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (reversible_steps(middle, repetitions) >= steps)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// With t repetitions for the whole, the part behind the new checkpoint may need t with a slot less,
// the part before it t - 1: any place at which neither could do with one fewer is optimal; this is
// the last of them.
std::int64_t next_checkpoint(std::int64_t steps, std::int64_t slots) {
  if (slots < 2 || steps < 2) return steps - 1;
  const Repetitions whole = repetitions(steps, slots);
  // C(s - 1 + t - 1, t - 1) = C(s + t - 1, t - 1) - C(s + t - 2, t - 2)
  return std::min(whole.before, steps - (whole.before - whole.before_that));
}

// ----------------------------------------------------------------------------------- forward
ForwardSchedule::ForwardSchedule(std::int64_t checkpoints, std::optional<std::int64_t> steps)
    : slots_(checkpoints - 1), steps_(steps) {
  plan_next();
}

void ForwardSchedule::plan_next() {
  if (!steps_) return;
  const std::int64_t last = kept_.empty() ? 0 : kept_.back().state;
  const std::int64_t slots = slots_ + 1 - static_cast<std::int64_t>(kept_.size());
  next_ = last + next_checkpoint(*steps_ - last, slots);
}

std::int64_t ForwardSchedule::keep(std::int64_t state, std::int64_t slot) {
  kept_.push_back({state, level_, slot});
  level_ = 0;
  return slot;
}

std::int64_t ForwardSchedule::slot_of(std::int64_t state) {
  return steps_ ? slot_of_known(state) : slot_of_unknown(state);
}

std::int64_t ForwardSchedule::slot_of_known(std::int64_t state) {
  if (state != next_ || state >= *steps_ - 1) return no_slot;
  keep(state, static_cast<std::int64_t>(kept_.size()) + 1);
  plan_next();
  return kept_.back().slot;
}

// The rule of Wang, Moin and Iaccarino. Where nothing can be given up, levels fall from state to
// state; so those that a higher level behind them makes dispensable stand next to each other.
std::int64_t ForwardSchedule::slot_of_unknown(std::int64_t state) {
  if (static_cast<std::int64_t>(kept_.size()) < slots_)
    return keep(state, static_cast<std::int64_t>(kept_.size()) + 1);
  if (spare_begin_ < spare_end_) {
    const auto spare = kept_.begin() + static_cast<std::ptrdiff_t>(spare_begin_);
    const std::int64_t slot = spare->slot;
    kept_.erase(spare);
    --spare_end_;
    return keep(state, slot);
  }
  ++level_;
  spare_begin_ = spare_end_ = kept_.size();
  while (spare_begin_ > 0 && kept_[spare_begin_ - 1].level < level_) --spare_begin_;
  return no_slot;
}

std::vector<std::int64_t> ForwardSchedule::kept() const {
  std::vector<std::int64_t> states(static_cast<std::size_t>(slots_), -1);
  for (const Kept& k : kept_) states[static_cast<std::size_t>(k.slot) - 1] = k.state;
  return states;
}

std::vector<std::int64_t> kept_states(std::int64_t steps, std::int64_t checkpoints) {
  ForwardSchedule forward(checkpoints, steps);
  std::int64_t at = 0;
  for (std::int64_t slot = 1; slot < checkpoints; ++slot) {
    at += next_checkpoint(steps - at, checkpoints + 1 - slot);
    if (at >= steps - 1) break;
    forward.slot_of(at);
  }
  return forward.kept();
}

// ---------------------------------------------------------------------------------- backward
BackwardSchedule::BackwardSchedule(std::int64_t steps, const std::vector<std::int64_t>& kept,
                                   std::int64_t disk)
    : left_(steps), kept_{{0, 0}}, disk_(disk), at_(steps - 1) {
  for (std::size_t k = kept.size(); k-- > 0;) {
    const auto slot = static_cast<std::int64_t>(k) + 1;
    if (kept[k] >= 0)
      kept_.push_back({kept[k], slot});
    else
      free_slots(slot).push_back(slot);
  }
  std::sort(kept_.begin() + 1, kept_.end(),
            [](const Kept& a, const Kept& b) { return a.state < b.state; });
}

LoopMove BackwardSchedule::next() {
  if (left_ == 0) return {};
  if (at_ >= left_) {
    at_ = kept_.back().state;
    source_ = kept_.back().slot;
  }
  return at_ == left_ - 1 ? reverse() : advance();
}

LoopMove BackwardSchedule::reverse() {
  const LoopMove move{LoopMove::What::reverse, at_, at_, source_, no_slot};
  --left_;
  while (kept_.size() > 1 && kept_.back().state >= left_) {
    free_slots(kept_.back().slot).push_back(kept_.back().slot);
    kept_.pop_back();
  }
  return move;
}

std::vector<std::int64_t>& BackwardSchedule::free_slots(std::int64_t slot) {
  return slot <= disk_ ? free_on_disk_ : free_;
}

// For the first of the checkpoints that are put into so many steps, at most one for each but the
// last two: it lives the longest.
std::int64_t BackwardSchedule::take_slot(std::int64_t steps) {
  const bool fits = steps - 2 <= static_cast<std::int64_t>(free_.size());
  std::vector<std::int64_t>& from = fits || free_on_disk_.empty() ? free_ : free_on_disk_;
  const std::int64_t slot = from.back();
  from.pop_back();
  return slot;
}

LoopMove BackwardSchedule::advance() {
  const std::int64_t steps = left_ - at_;
  const std::size_t free = free_.size() + free_on_disk_.size();
  const std::int64_t distance = next_checkpoint(steps, static_cast<std::int64_t>(free) + 1);
  LoopMove move{LoopMove::What::advance, at_, at_ + distance, source_, no_slot};
  if (distance < steps - 1) {
    move.destination = take_slot(steps);
    kept_.push_back({move.to, move.destination});
  }
  at_ = move.to;
  source_ = move.destination;
  return move;
}

// ------------------------------------------------------------------------- inspection
LoopSchedule loop_schedule(std::int64_t steps, std::int64_t checkpoints,
                           std::int64_t disk_checkpoints) {
  if (steps < 0 || steps > most_steps) {
    fail<TypeError>("loop_schedule: the number of steps must be from 0 to 2^32, got ", steps);
  }
  if (checkpoints < 1) {
    fail_with_hint<TypeError>("the initial carry is one of them",
                              "loop_schedule: at least one checkpoint is needed, got ",
                              checkpoints);
  }
  if (disk_checkpoints < 0 || disk_checkpoints > most_steps) {
    fail<TypeError>("loop_schedule: the number of checkpoints on disk must be from 0 to 2^32, got ",
                    disk_checkpoints);
  }
  const std::int64_t memory = std::min(checkpoints, std::max<std::int64_t>(steps, 1));
  const std::int64_t disk = std::min(disk_checkpoints, std::max<std::int64_t>(steps - memory, 0));
  return {steps, checkpoints, disk, least_advances(steps, memory + disk),
          repetitions_of(steps, memory + disk)};
}

std::vector<LoopAction> LoopSchedule::actions() const {
  using What = LoopAction::What;
  std::vector<LoopAction> all;
  if (steps == 0) return all;
  all.push_back({What::keep, 0, 0, 0});
  ForwardSchedule forward(std::min(checkpoints + disk_checkpoints, steps), steps);
  std::int64_t at = 0;
  for (std::int64_t state = 1; state < steps - 1; ++state) {
    const std::int64_t slot = forward.slot_of(state);
    if (slot == no_slot) continue;
    all.push_back({What::advance, at, state, no_slot});
    all.push_back({What::keep, state, state, slot});
    at = state;
  }
  if (at < steps - 1) all.push_back({What::advance, at, steps - 1, no_slot});
  BackwardSchedule backward(steps, forward.kept(), disk_checkpoints);
  std::int64_t in_hand = steps - 1;
  for (LoopMove m = backward.next(); m.what != LoopMove::What::end; m = backward.next()) {
    if (m.source != no_slot && in_hand != m.from)
      all.push_back({What::restore, m.from, m.from, m.source});
    if (m.what == LoopMove::What::reverse) {
      all.push_back({What::reverse, m.from, m.from, no_slot});
    } else {
      all.push_back({What::advance, m.from, m.to, no_slot});
      if (m.destination != no_slot) all.push_back({What::keep, m.to, m.to, m.destination});
    }
    in_hand = m.what == LoopMove::What::reverse ? -1 : m.to;
  }
  return all;
}

}  // namespace reprise
