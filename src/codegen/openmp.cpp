#include "codegen/openmp.h"

#include <pthread.h>

#include <algorithm>

#if defined(__SANITIZE_THREAD__)
#define REPRISE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REPRISE_TSAN 1
#endif
#endif

extern "C" {
int omp_get_max_threads();
int omp_get_thread_limit();
int omp_in_parallel();
int omp_get_dynamic();
void omp_set_dynamic(int);
void omp_set_num_threads(int);
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
#ifdef REPRISE_TSAN
void __tsan_acquire(void* address);
void __tsan_release(void* address);
#endif
}

namespace reprise::codegen {
namespace {

// libgomp is not instrumented: the thread sanitizer must be told that a region starts after what
// was before it and ends before what comes after.
#ifdef REPRISE_TSAN
void happens_before(void* region) { __tsan_release(region); }
void happens_after(void* region) { __tsan_acquire(region); }
#else
void happens_before(void*) {}
void happens_after(void*) {}
#endif

// The pool belongs to the thread that first started a region. In the child of a fork that thread is
// alive and its pool is not: a region would wait for ever. Threads that the child creates start
// pools of their own.
thread_local bool pool_lost = false;

void watch_forks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { pool_lost = true; });
  static_cast<void>(watched);
}

struct Region {
  void* context;
  void (*body)(void*);
  char fork = 0, join = 0;  // their addresses name the two events
};

void run_region(void* data) {
  auto& region = *static_cast<Region*>(data);
  happens_after(&region.fork);
  region.body(region.context);
  happens_before(&region.join);
}

}  // namespace

int team_size(int wanted) noexcept {
  watch_forks();
  if (pool_lost || omp_in_parallel() != 0) return 1;
  return std::max(1, std::min(wanted, omp_get_thread_limit()));
}

int default_team_size() noexcept { return std::max(1, omp_get_max_threads()); }

void run_team(int threads, void* context, void (*body)(void*)) noexcept {
  if (threads <= 1) return body(context);
  Region region{context, body};
  happens_before(&region.fork);
  GOMP_parallel(run_region, &region, static_cast<unsigned>(threads), 0);
  happens_after(&region.join);
}

TeamScope::TeamScope(int threads) noexcept
    : threads_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
  if (threads_ != threads) omp_set_num_threads(threads);
  if (dynamic_ != 0) omp_set_dynamic(0);
}

TeamScope::~TeamScope() {
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  if (dynamic_ != 0) omp_set_dynamic(dynamic_);
}

}  // namespace reprise::codegen
