#include "runtime/threads.h"

#include "codegen/openmp.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

extern "C" void omp_set_num_threads(int);

namespace reprise {
namespace {

constexpr int most_threads = 1024;

int threads_at_start() {
  if (const char* text = std::getenv("REPRISE_NUM_THREADS")) {
    const char* end = text + std::strlen(text);
    int n = 0;
    const auto [rest, error] = std::from_chars(text, end, n);
    if (error == std::errc() && rest == end && n >= 1 && n <= most_threads) return n;
  }
  return std::min(codegen::default_team_size(), most_threads);
}

std::atomic<int>& wanted() {
  static std::atomic<int> threads = threads_at_start();
  return threads;
}

// Items go out in blocks from one counter: few enough for little traffic, small enough that a slow
// thread does not hold up the others.
struct Items {
  std::int64_t n, block;
  void* context;
  void (*body)(void*, std::int64_t);
  std::atomic<std::int64_t> next{0};

  void work() {
    for (;;) {
      const std::int64_t first = next.fetch_add(block, std::memory_order_relaxed);
      if (first >= n) return;
      const std::int64_t last = std::min(n, first + block);
      for (std::int64_t i = first; i < last; ++i) body(context, i);
    }
  }
};

}  // namespace

int num_threads() { return wanted().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  const int threads = std::clamp(n, 1, most_threads);
  wanted().store(threads, std::memory_order_relaxed);
  omp_set_num_threads(threads);
}

void parallel_for(std::int64_t n, void* context, void (*body)(void*, std::int64_t)) noexcept {
  const int wanted_here = static_cast<int>(std::min<std::int64_t>(n, num_threads()));
  const int threads = wanted_here <= 1 ? 1 : codegen::team_size(wanted_here);
  if (threads <= 1) {
    for (std::int64_t i = 0; i < n; ++i) body(context, i);
    return;
  }
  constexpr std::int64_t blocks_per_thread = 8;
  Items items{n, std::max<std::int64_t>(1, n / (threads * blocks_per_thread)), context, body};
  codegen::run_team(threads, &items, [](void* data) { static_cast<Items*>(data)->work(); });
}

}  // namespace reprise
