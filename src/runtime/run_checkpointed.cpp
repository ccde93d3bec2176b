#include "control/checkpointed.h"
#include "control/loop_schedule.h"
#include "runtime/disk_slots.h"
#include "runtime/team_trial.h"

#include <algorithm>
#include <utility>

namespace reprise {
namespace {

// Arguments of a body: what all steps share, and slices of what is scanned.
void point_at(const std::vector<RunScan::Input>& values, std::size_t first, std::size_t index,
              Slots outer, std::vector<std::byte*>& inner) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    inner[first + k] = address(outer, values[k].from) + index * values[k].step_bytes;
  }
}

// Steps run from a place to the other in turns, so that the state before each step is still there
// after it. Where the length is known, a state that is kept in memory is written to its slot at
// once.
class Forward {
 public:
  Forward(const RunForward& r, Slots slots, const Context& context, bool is_new_team)
      : r_(r),
        slots_(slots),
        step_(r.body->slots, nullptr),
        host_(*r.body, context.host, r.host),
        schedule_(r.checkpoints + r.disk, r.length),
        disk_(r.on_disk, r.disk, slots, context.host),
        trial_(context.team, is_new_team) {
    step_[arena_slot] = address(slots, r.arena);
    point_at(r.consts, first_argument_slot, 0, slots, step_);
    first_carry_ = first_argument_slot + r.consts.size();
    first_x_ = first_carry_ + r.carries.size();
    first_out_ = first_x_ + r.xs.size();
    is_odd_ = r.length && *r.length % 2 != 0;
    if (!r.condition) return;
    test_.resize(r.condition->slots, nullptr);
    test_[arena_slot] = address(slots, r.arena);
    point_at(r.condition_consts, first_argument_slot, 0, slots, test_);
    test_host_.emplace(*r.condition, context.host, r.host);
  }

  void run() {
    std::int64_t step = 0;
    for (; goes_on(step); ++step) {
      if (!r_.length && step > 1) keep(schedule_.slot_of(step - 1), step - 1);
      const std::int64_t slot = r_.length ? schedule_.slot_of(step + 1) : no_slot;
      run_step(step, slot > r_.disk ? slot : no_slot);
      if (slot <= r_.disk) keep(slot, step + 1);
    }
    disk_.wait();
    finish(step);
  }

 private:
  // Of a known length the last state is the result; of an unknown one they may have to be exchanged
  // in the end.
  std::byte* state(const RunForward::Carry& c, std::int64_t k, std::int64_t slot = no_slot) const {
    if (k == 0) return address(slots_, c.initial);
    if (slot != no_slot && c.is_kept) return row(c, slot);
    return address(slots_, (k % 2 != 0) == is_odd_ ? c.result : c.last);
  }
  std::byte* row(const RunForward::Carry& c, std::int64_t slot) const {
    return address(slots_, c.checkpoints) + static_cast<std::size_t>(slot - 1 - r_.disk) * c.bytes;
  }
  bool goes_on(std::int64_t step) {
    team_ = trial_.next();
    if (r_.length) return step < *r_.length;
    const std::size_t carry = first_argument_slot + r_.condition_consts.size();
    for (std::size_t k = 0; k < r_.carries.size(); ++k)
      test_[carry + k] = state(r_.carries[k], step);
    std::byte* const predicate = test_[carry + r_.carries.size()] = address(slots_, r_.predicate);
    reprise::run(*r_.condition, test_.data(), {team_, test_host_->get()});
    if (*predicate == std::byte{0}) return false;
    check_step_count(step);
    return true;
  }
  void keep(std::int64_t slot, std::int64_t k) {
    if (slot == no_slot) return;
    if (slot <= r_.disk)
      return disk_.put(slot, [&](std::size_t n) { return state(r_.carries[n], k); });
    for (const RunForward::Carry& c : r_.carries) {
      if (c.bytes > 0 && c.is_kept) std::memcpy(row(c, slot), state(c, k), c.bytes);
    }
  }
  // The state before it is in slot_, the one behind it goes to `to`; no_slot: to the places in
  // turn.
  void run_step(std::int64_t step, std::int64_t to) {
    const auto index = static_cast<std::size_t>(r_.reverse ? *r_.length - 1 - step : step);
    point_at(r_.xs, first_x_, index, slots_, step_);
    for (std::size_t k = 0; k < r_.carries.size(); ++k) {
      step_[first_carry_ + k] = state(r_.carries[k], step, slot_);
      step_[first_out_ + k] = state(r_.carries[k], step + 1, to);
    }
    slot_ = to;
    point_at(r_.ys, first_out_ + r_.carries.size(), index, slots_, step_);
    reprise::run(*r_.body, step_.data(), {team_, host_.get()});
  }
  void finish(std::int64_t steps) const {
    for (const RunForward::Carry& c : r_.carries) {
      std::byte *const result = address(slots_, c.result), *const last = address(slots_, c.last);
      if (steps == 0)
        copy(slots_, c.initial, c.result, c.bytes);
      else if (state(c, steps) != result)
        std::swap_ranges(result, result + c.bytes, last);
      if (steps <= 1) copy(slots_, c.initial, c.last, c.bytes);
    }
    if (r_.length) return;
    const std::vector<std::int64_t> kept = schedule_.kept();
    *reinterpret_cast<std::int32_t*>(address(slots_, r_.steps)) = static_cast<std::int32_t>(steps);
    auto* const states = reinterpret_cast<std::int32_t*>(address(slots_, r_.states));
    for (std::size_t k = 0; k < kept.size(); ++k) states[k] = static_cast<std::int32_t>(kept[k]);
  }

  const RunForward& r_;
  Slots slots_;
  std::vector<std::byte*> step_, test_;
  InnerHost host_;
  std::optional<InnerHost> test_host_;
  ForwardSchedule schedule_;
  DiskSlots disk_;
  TeamTrial trial_;
  Team* team_ = nullptr;
  std::size_t first_carry_ = 0, first_x_ = 0, first_out_ = 0;
  std::int64_t slot_ = no_slot;
  bool is_odd_ = false;
};

class Reverse {
 public:
  Reverse(const RunReverse& r, Slots slots, const Context& context, bool is_new_team)
      : r_(r),
        slots_(slots),
        advance_(r.advance->slots, nullptr),
        step_(r.step->slots, nullptr),
        advance_host_(*r.advance, context.host, r.host),
        step_host_(*r.step, context.host, r.host),
        disk_(r.on_disk, r.disk, slots, context.host),
        trial_(context.team, is_new_team),
        team_(is_new_team ? nullptr : context.team) {
    advance_[arena_slot] = step_[arena_slot] = address(slots, r.arena);
    point_at(r.consts, first_argument_slot, 0, slots, advance_);
    point_at(r.consts, first_argument_slot, 0, slots, step_);
    first_carry_ = first_argument_slot + r.consts.size();
    first_x_ = first_carry_ + r.carries.size();
    first_back_ = first_x_ + r.xs.size();
    first_ct_ = first_back_ + r.back.size();
    first_out_ = first_ct_ + r.cts.size();
  }

  void run() {
    for (const RunReverse::Carry& c : r_.carries) {
      copy(slots_, c.kept_checkpoints, c.checkpoints,
           c.bytes * static_cast<std::size_t>(r_.checkpoints - 1));
      copy(slots_, c.kept_last, c.last, c.bytes);
    }
    for (std::size_t k = 0; k < r_.back.size(); ++k)
      step_[first_back_ + k] = start(r_.back[k], slots_);
    steps_ =
        r_.length ? *r_.length : *reinterpret_cast<const std::int32_t*>(address(slots_, r_.steps));
    BackwardSchedule schedule(steps_, kept(), r_.disk);
    for (LoopMove m = schedule.next(); m.what != LoopMove::What::end; m = schedule.next()) {
      if (m.what == LoopMove::What::reverse)
        reverse(m);
      else
        advance(m);
    }
    disk_.wait();
    if (steps_ > 0) return;
    for (const RunScan::Carry& c : r_.back) copy(slots_, c.initial, c.result, c.bytes);
  }

 private:
  std::vector<std::int64_t> kept() const {
    if (r_.length) return r_.kept;
    const auto* const states = reinterpret_cast<const std::int32_t*>(address(slots_, r_.states));
    return {states, states + r_.checkpoints + r_.disk - 1};
  }
  // Where carry k of the state in a slot is; one on disk has been fetched.
  std::byte* state(std::size_t k, std::int64_t slot) const {
    const RunReverse::Carry& c = r_.carries[k];
    if (slot == no_slot) return address(slots_, in_last_ ? c.last : c.spare);
    if (slot == 0) return address(slots_, c.initial);
    if (slot <= r_.disk) return disk_.state(k);
    return address(slots_, c.checkpoints) + static_cast<std::size_t>(slot - 1 - r_.disk) * c.bytes;
  }
  bool is_on_disk(std::int64_t slot) const { return slot > 0 && slot <= r_.disk; }
  std::size_t index(std::int64_t step) const {
    return static_cast<std::size_t>(r_.reverse ? steps_ - 1 - step : step);
  }
  void advance(const LoopMove& m) {
    std::int64_t source = m.source;
    if (is_on_disk(source)) disk_.fetch(source);
    const bool to_disk = is_on_disk(m.destination);
    for (std::int64_t step = m.from; step < m.to; ++step) {
      point_at(r_.xs, first_x_, index(step), slots_, advance_);
      const std::int64_t to = step + 1 == m.to && !to_disk ? m.destination : no_slot;
      for (std::size_t k = 0; k < r_.carries.size(); ++k)
        advance_[first_carry_ + k] = state(k, source);
      if (to == no_slot) in_last_ = !in_last_;
      for (std::size_t k = 0; k < r_.carries.size(); ++k) advance_[first_back_ + k] = state(k, to);
      reprise::run(*r_.advance, advance_.data(), {team_, advance_host_.get()});
      source = to;
    }
    if (to_disk) disk_.put(m.destination, [&](std::size_t k) { return state(k, no_slot); });
  }
  void reverse(const LoopMove& m) {
    const std::size_t i = index(m.from);
    team_ = trial_.next();
    if (is_on_disk(m.source)) disk_.fetch(m.source);
    for (std::size_t k = 0; k < r_.carries.size(); ++k)
      step_[first_carry_ + k] = state(k, m.source);
    point_at(r_.xs, first_x_, i, slots_, step_);
    point_at(r_.cts, first_ct_, i, slots_, step_);
    point_at(r_.outputs, first_out_ + r_.back.size(), i, slots_, step_);
    const bool to_result = m.from % 2 == 0;  // the last one reversed is step 0
    for (std::size_t k = 0; k < r_.back.size(); ++k) {
      step_[first_out_ + k] = address(slots_, to_result ? r_.back[k].result : r_.back[k].spare);
    }
    reprise::run(*r_.step, step_.data(), {team_, step_host_.get()});
    for (std::size_t k = 0; k < r_.back.size(); ++k) step_[first_back_ + k] = step_[first_out_ + k];
  }

  const RunReverse& r_;
  Slots slots_;
  std::vector<std::byte*> advance_, step_;
  InnerHost advance_host_, step_host_;
  DiskSlots disk_;
  TeamTrial trial_;
  Team* team_;
  std::size_t first_carry_ = 0, first_x_ = 0, first_back_ = 0, first_ct_ = 0, first_out_ = 0;
  std::int64_t steps_ = 0;
  bool in_last_ = true;  // the working state; else in the spare place
};

}  // namespace

void run_steps(const RunForward& r, Slots slots, const Context& context, bool is_new_team) {
  Forward(r, slots, context, is_new_team).run();
}
void run_steps(const RunReverse& r, Slots slots, const Context& context, bool is_new_team) {
  Reverse(r, slots, context, is_new_team).run();
}

}  // namespace reprise
