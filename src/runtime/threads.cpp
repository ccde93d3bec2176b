#include "runtime/threads.h"

#include "codegen/openmp.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sched.h>

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

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waiting for a moment, then in turns with whoever else wants the core.
class Patience {
 public:
  void wait() noexcept {
    if (++turns_ < turns_alone) pause();
    else sched_yield();
  }

 private:
  static constexpr int turns_alone = 4000;
  int turns_ = 0;
};

}  // namespace

void Team::gather(int threads, void* context, void (*work)(void* context, Team&)) noexcept {
  const int size = threads <= 1 ? 1 : codegen::team_size(threads);
  struct Gathering {
    Team team;
    void* context;
    void (*work)(void*, Team&);
    std::thread::id leader;
  } gathering{Team(size), context, work, std::this_thread::get_id()};
  codegen::run_team(size, &gathering, [](void* data) {
    auto& g = *static_cast<Gathering*>(data);
    if (std::this_thread::get_id() != g.leader) return g.team.serve(1 + g.team.arrived_++);
    g.work(g.context, g.team);
    g.team.dismiss();
  });
}

void Team::dismiss() noexcept { over_.store(true, std::memory_order_release); }

void Team::share(std::int64_t n, void* context, Body body) noexcept {
  for (std::int64_t t = 1; t < size_; ++t) {
    Seat& seat = seats_[static_cast<std::size_t>(t - 1)];
    seat.begin = t * n / size_;  // nobody else reads a seat without an offer
    seat.end = (t + 1) * n / size_;
    seat.context = context;
    seat.body = body;
    seat.has_offer = seat.begin < seat.end && seat.state.load(std::memory_order_acquire) == State::ready;
    if (seat.has_offer) seat.state.store(State::offered, std::memory_order_release);
  }
  for (std::int64_t i = 0; i < n / size_; ++i) body(context, i, 0);
  for (std::int64_t t = 1; t < size_; ++t) settle(seats_[static_cast<std::size_t>(t - 1)]);
}

// Waits for what was taken; does what was not. Who did not come in time has to announce himself again.
void Team::settle(Seat& seat) noexcept {
  constexpr int turns_of_grace = 64;
  State state = seat.state.load(std::memory_order_acquire);
  if (seat.has_offer) {
    for (int turn = 0; state == State::offered && turn < turns_of_grace; ++turn) {
      pause();
      state = seat.state.load(std::memory_order_acquire);
    }
    const bool was_taken = state != State::offered || !seat.state.compare_exchange_strong(state, State::away);
    if (was_taken) {
      for (Patience patience; seat.state.load(std::memory_order_acquire) != State::ready;) patience.wait();
      return;
    }
  }
  for (std::int64_t i = seat.begin; i < seat.end; ++i) seat.body(seat.context, i, 0);
}

void Team::serve(std::int64_t thread) noexcept {
  Seat& seat = seats_[static_cast<std::size_t>(thread - 1)];
  Patience patience;
  while (!over_.load(std::memory_order_acquire)) {
    State state = seat.state.load(std::memory_order_acquire);
    if (state == State::away) seat.state.store(State::ready, std::memory_order_release);
    if (state != State::offered || !seat.state.compare_exchange_strong(state, State::taken)) {
      patience.wait();
      continue;
    }
    for (std::int64_t i = seat.begin; i < seat.end; ++i) seat.body(seat.context, i, thread);
    seat.state.store(State::ready, std::memory_order_release);
    patience = {};
  }
}

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
