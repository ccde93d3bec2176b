// The one pool of threads: libgomp's, which oneDNN uses too. Called by hand, without -fopenmp:
// clang++ would bring a second pool.
#pragma once

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

}  // namespace reprise::codegen
