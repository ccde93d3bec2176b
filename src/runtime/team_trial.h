// Whether a loop's steps are shared among threads that stay awake.
#pragma once

#include "runtime/threads.h"

#include <algorithm>
#include <chrono>

namespace reprise {

// Whether a team pays for small steps depends on how fast the caches of two cores reach each other,
// which no machine tells: some steps are timed without it and some with it.
class TeamTrial {
 public:
  TeamTrial(Team* team, bool is_new) : team_(team), is_open_(team != nullptr && is_new) {}

  // The team for the next step, or null.
  Team* next() {
    if (!is_open_) return team_;
    const Clock::time_point now = Clock::now();
    const int phase = step_ / steps, within = step_ % steps;
    if (within > cold_steps) best_[phase] = std::min(best_[phase], now - begin_);
    begin_ = now;
    if (++step_ < 2 * steps) return step_ < steps ? nullptr : team_;
    is_open_ = false;
    if (best_[1] < best_[0]) return team_;
    team_->dismiss();
    return team_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int steps = 16, cold_steps = 4;
  Team* team_;
  bool is_open_;
  int step_ = 0;
  Clock::time_point begin_;
  Clock::duration best_[2] = {Clock::duration::max(), Clock::duration::max()};
};

}  // namespace reprise
