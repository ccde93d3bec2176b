#include "codegen/cores.h"

#include <time.h>
#include <unistd.h>

namespace reprise::codegen {
namespace {

std::int64_t nanoseconds(clockid_t clock) noexcept {
  timespec t{};
  return clock_gettime(clock, &t) == 0 ? std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec : -1;
}

// Of the time that any thread of this process used, as the system numbers such clocks.
clockid_t clock_of(pid_t thread) noexcept {
  constexpr int of_one_thread = 4, used_time = 2;
  return static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3 | of_one_thread | used_time);
}

}  // namespace

int current_core() noexcept { return sched_getcpu(); }

void Placement::begin() noexcept {
  const bool is_known = sched_getaffinity(0, sizeof allowed_, &allowed_) == 0;
  if (is_known) thread_.store(gettid(), std::memory_order_release);
}

void Placement::leave(int core) noexcept {
  if (core < 0 || current_core() != core || thread_.load(std::memory_order_relaxed) == 0) return;
  cpu_set_t others = allowed_;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) > 0) use(others);
}

void Placement::go_home() noexcept {
  if (is_fetched_.load(std::memory_order_relaxed) && is_fetched_.exchange(false)) use(allowed_);
}

bool Placement::was_held_up() noexcept {
  const pid_t thread = thread_.load(std::memory_order_acquire);
  if (thread == 0) return false;
  const std::int64_t now = nanoseconds(CLOCK_MONOTONIC), used = nanoseconds(clock_of(thread));
  const bool had_none = used >= 0 && asked_at_ > 0 && 4 * (used - used_) < now - asked_at_;
  asked_at_ = now;
  used_ = used;
  return had_none;
}

void Placement::fetch(int core) noexcept {
  if (core < 0 || !CPU_ISSET(core, &allowed_)) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(core, &here);
  is_fetched_.store(true);
  use(here);
}

bool Placement::use(const cpu_set_t& cores) const noexcept {
  return sched_setaffinity(thread_.load(std::memory_order_relaxed), sizeof cores, &cores) == 0;
}

}  // namespace reprise::codegen
