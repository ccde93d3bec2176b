#include "runtime/threads.h"

#include "codegen/openmp.h"
#include "codegen/pool.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

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
  return std::min(codegen::default_threads(), most_threads);
}

std::atomic<int>& wanted() {
  static std::atomic<int> threads = threads_at_start();
  return threads;
}

}  // namespace

void Team::gather(int threads, void* context, void (*work)(void* context, Team&)) noexcept {
  const int size = threads <= 1 ? 1 : codegen::team_size(threads);
  struct Gathering {
    Team team;
    void* context;
    void (*work)(void*, Team&);
  } gathering{Team(size), context, work};
  codegen::run_together(size, &gathering, [](void* data, std::int64_t thread) {
    auto& g = *static_cast<Gathering*>(data);
    if (thread != 0) return g.team.serve(thread);
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
    seat.has_offer =
        seat.begin < seat.end && seat.state.load(std::memory_order_acquire) == State::ready;
    if (seat.has_offer) seat.state.store(State::offered, std::memory_order_release);
  }
  for (std::int64_t i = 0; i < n / size_; ++i) body(context, i, 0);
  for (std::int64_t t = 1; t < size_; ++t) settle(seats_[static_cast<std::size_t>(t - 1)]);
}

// Waits for what was taken; does what was not. Who did not come in time has to announce himself
// again.
void Team::settle(Seat& seat) noexcept {
  constexpr int turns_of_grace = 64;
  State state = seat.state.load(std::memory_order_acquire);
  if (seat.has_offer) {
    for (int turn = 0; state == State::offered && turn < turns_of_grace; ++turn) {
      codegen::pause();
      state = seat.state.load(std::memory_order_acquire);
    }
    const bool was_taken =
        state != State::offered || !seat.state.compare_exchange_strong(state, State::away);
    if (was_taken) {
      for (codegen::Patience patience; seat.state.load(std::memory_order_acquire) != State::ready;)
        patience.wait();
      return;
    }
  }
  for (std::int64_t i = seat.begin; i < seat.end; ++i) seat.body(seat.context, i, 0);
}

void Team::serve(std::int64_t thread) noexcept {
  Seat& seat = seats_[static_cast<std::size_t>(thread - 1)];
  codegen::Patience patience;
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
  wanted().store(std::clamp(n, 1, most_threads), std::memory_order_relaxed);
}

}  // namespace reprise
