// The threads of the process: one pool for kernels, products and convolutions.
//
// Who waits spins for a moment and then sleeps, so that programs beside this one lose nothing.
// Nobody waits for a thread that has not come: on a busy machine the caller does all by itself, and
// waits only for those who have begun.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace reprise::codegen {

// 1 inside run_together, where everything stays on its thread; else `wanted`.
int team_size(int wanted) noexcept;

// Calls body(context, 0) on this thread and body(context, i), each i in [1, threads) at most once,
// on those of the pool that come before that returns; returns when all have.
void run_together(int threads, void* context,
                  void (*body)(void* context, std::int64_t thread)) noexcept;

// body(thread, item) for every item, which up to `threads` threads take as they come.
template <class Body>
void share_items(int threads, std::int64_t items, const Body& body) noexcept {
  struct Run {
    const Body& body;
    std::int64_t items;
    std::atomic<std::int64_t> next{0};
  } run{body, items};
  const int team = team_size(static_cast<int>(std::min<std::int64_t>(threads, items)));
  run_together(team, &run, [](void* context, std::int64_t thread) {
    Run& r = *static_cast<Run*>(context);
    for (;;) {
      const std::int64_t i = r.next.fetch_add(1, std::memory_order_relaxed);
      if (i >= r.items) return;
      r.body(thread, i);
    }
  });
}

// The same for bodies that say whether all went well; false if one of them was.
template <class Body>
bool share_parts(int threads, std::int64_t parts, const Body& body) noexcept {
  std::atomic<bool> ok{true};
  share_items(threads, parts, [&](std::int64_t thread, std::int64_t i) {
    if (!body(thread, i)) ok.store(false, std::memory_order_relaxed);
  });
  return ok;
}

// Waiting, in three stages: spinning; in turns with whoever wants the core; in naps, so that a core
// with nothing else to do takes over who waits elsewhere.
class Patience {
 public:
  void wait() noexcept;

 private:
  int turns_ = 0;
};

void pause() noexcept;  // of a spinning thread, for some dozens of cycles

}  // namespace reprise::codegen
