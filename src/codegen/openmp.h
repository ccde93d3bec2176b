// The one pool of threads: libgomp's, which oneDNN uses too. Called by hand, without -fopenmp:
// clang++ would bring a second pool.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace reprise::codegen {

// The threads of a parallel region that this thread could start now: `wanted`, but 1 inside another
// region and in the child of a fork, where the threads of the pool no longer exist.
int team_size(int wanted) noexcept;
// What libgomp would start for this thread if nobody asked for a number.
int default_team_size() noexcept;

// Calls body(context) on `threads` threads at once and waits for all.
void run_team(int threads, void* context, void (*body)(void* context)) noexcept;

// While it lives, parallel regions of this thread have `threads` threads, never fewer: oneDNN
// computes a part of the result only when it gets fewer than a primitive was made for.
class TeamScope {
 public:
  explicit TeamScope(int threads) noexcept;
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  int threads_, dynamic_;
};

// body(worker, part) for every part, which up to `threads` workers take as they come; false if one
// of them was.
template <class Body>
bool share_parts(int threads, std::int64_t parts, const Body& body) noexcept {
  struct Run {
    const Body& body;
    std::int64_t parts;
    std::atomic<std::int64_t> workers{0}, next{0};
    std::atomic<bool> ok{true};
  } run{body, parts};
  const auto wanted = static_cast<int>(std::min<std::int64_t>(threads, parts));
  run_team(team_size(wanted), &run, [](void* context) {
    Run& r = *static_cast<Run*>(context);
    const std::int64_t worker = r.workers++;
    for (std::int64_t i = r.next++; i < r.parts; i = r.next++) {
      if (!r.body(worker, i)) r.ok = false;
    }
  });
  return run.ok;
}

}  // namespace reprise::codegen
