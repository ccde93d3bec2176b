// Where the threads of the pool run while other programs want the cores too.
//
// The system wakes a thread where its caller runs if every core is busy, and leaves one that had to
// make room for another program waiting even when its caller's core has become idle. Both double
// the time of a step.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace reprise::codegen {

int current_core() noexcept;  // negative: the system does not say

// One thread of the pool and the cores it may use.
class Placement {
 public:
  // By the thread itself. Without it the rest does nothing.
  void begin() noexcept;
  void leave(int core) noexcept;  // goes elsewhere if it runs there and may
  void go_home() noexcept;        // after fetch(): may use all its cores again

  // By the one who waits for it: whether the thread had hardly any core since this was last asked.
  bool was_held_up() noexcept;
  void fetch(int core) noexcept;  // moves it there if it may run there

 private:
  bool use(const cpu_set_t& cores) const noexcept;

  std::atomic<pid_t> thread_{0};
  cpu_set_t allowed_{};
  std::atomic<bool> is_fetched_{false};
  std::int64_t asked_at_ = 0, used_ = 0;  // nanoseconds: of the clock, of this thread
};

}  // namespace reprise::codegen
