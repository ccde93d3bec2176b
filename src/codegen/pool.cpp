#include "codegen/pool.h"

#include "codegen/cores.h"
#include "codegen/openmp.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace reprise::codegen {
namespace {

using Clock = std::chrono::steady_clock;
using Word = std::atomic<std::uint32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free);  // the system sleeps on them

// Until it is woken, or for at most so long.
void sleep_while(Word& word, std::uint32_t value, const timespec* most = nullptr) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, most,
          nullptr, 0);
}
void wake(Word& word, int sleepers) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, sleepers, nullptr,
          nullptr, 0);
}

// Spins until the word is another one, for at most so long; false: it is still the same. Ends early
// when the thread finds that it was kept from running: somebody else needs the core.
bool spin_while(const Word& word, std::uint32_t value, std::chrono::microseconds most) noexcept {
  constexpr int turns_between_looks = 32;
  constexpr auto held_up = std::chrono::microseconds(100);
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point last = begin;;) {
    for (int turn = 0; turn < turns_between_looks; ++turn) {
      if (word.load(std::memory_order_acquire) != value) return true;
      pause();
    }
    const Clock::time_point now = Clock::now();
    if (now - begin > most || now - last > held_up) return false;
    last = now;
  }
}

// ---------------------------------------------------------------------------------------- offers
class Offer;

// One thread of the pool. Never freed, like offers.
struct Worker {
  Placement place;
  std::atomic<const Offer*> helps{nullptr};
};
constexpr std::size_t most_workers = 1024;
using Workers = std::array<Worker, most_workers>;

// A place for work that others may join. Places are never freed, so whoever comes late finds a
// closed one and not a dead one.
class alignas(64) Offer {
 public:
  // False: it is somebody else's.
  bool claim() noexcept {
    std::uint32_t expected = 0;
    return state_.load(std::memory_order_relaxed) == 0 &&
           state_.compare_exchange_strong(expected, claimed, std::memory_order_acquire);
  }
  void open(int threads, void* context, void (*body)(void*, std::int64_t)) noexcept {
    threads_ = threads;
    core_ = current_core();
    context_ = context;
    body_ = body;
    const auto seats = static_cast<std::uint32_t>(threads - 1);
    state_.store(claimed | is_open | seats * seat, std::memory_order_release);
  }
  // Joins if there is a seat left, and works.
  bool help(Worker& self) noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    do {
      if ((state & is_open) == 0 || seats_of(state) == 0) return false;
    } while (!state_.compare_exchange_weak(state, state - seat + 1, std::memory_order_acquire,
                                           std::memory_order_relaxed));
    self.helps.store(this, std::memory_order_release);
    self.place.leave(core_);
    body_(context_, threads_ - static_cast<std::int64_t>(seats_of(state)));
    self.helps.store(nullptr, std::memory_order_relaxed);
    const std::uint32_t left = state_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if ((left & is_awaited) != 0 && inside(left) == 0) wake(state_, 1);
    self.place.go_home();
    return true;
  }
  // Nobody joins from now on; waits for those who have.
  void close(Workers& workers, int hired) noexcept {
    constexpr auto patience = std::chrono::microseconds(20);
    constexpr timespec nap{0, 300'000};  // as long as a core may take to go to whoever needs it
    std::uint32_t state = state_.fetch_and(~is_open, std::memory_order_acquire) & ~is_open;
    for (bool is_first = true; inside(state) != 0;) {
      if (!spin_while(state_, state, patience)) {
        if ((state & is_awaited) != 0 ||
            state_.compare_exchange_strong(state, state | is_awaited, std::memory_order_acquire)) {
          look_after(workers, hired, std::exchange(is_first, false));
          sleep_while(state_, state | is_awaited, &nap);
        }
      }
      state = state_.load(std::memory_order_acquire);
    }
    state_.store(0, std::memory_order_release);
  }

 private:
  // The core of the one who waits is free: somebody who had none since the last look finishes on
  // it.
  void look_after(Workers& workers, int hired, bool is_first) noexcept {
    for (int i = 0; i < hired; ++i) {
      Worker& w = workers[static_cast<std::size_t>(i)];
      if (w.helps.load(std::memory_order_acquire) != this) continue;
      if (w.place.was_held_up() && !is_first) return w.place.fetch(current_core());
    }
  }

  // 10 bits count who is inside, 10 the seats that are left.
  static constexpr std::uint32_t seat = 1u << 10, count = seat - 1;
  static constexpr std::uint32_t is_awaited = 1u << 29, is_open = 1u << 30, claimed = 1u << 31;
  static std::uint32_t inside(std::uint32_t state) noexcept { return state & count; }
  static std::uint32_t seats_of(std::uint32_t state) noexcept { return state / seat & count; }

  Word state_{0};
  int threads_ = 0, core_ = -1;
  void* context_ = nullptr;
  void (*body_)(void*, std::int64_t) = nullptr;
};

// ------------------------------------------------------------------------------------------ pool
thread_local bool is_together = false;  // inside run_together

class Pool {
 public:
  // Never destroyed: threads may compute until the very end. The child of a fork, which has none of
  // the threads, gets another one.
  static Pool& of_process() noexcept {
    static const int watched =
        pthread_atfork(nullptr, nullptr, [] { current() = new Pool(current()); });
    static_cast<void>(watched);
    return *current();
  }

  void run(int threads, void* context, void (*body)(void*, std::int64_t)) noexcept {
    is_together = true;
    const auto offer =
        std::find_if(offers_.begin(), offers_.end(), [](Offer& o) { return o.claim(); });
    if (offer == offers_.end()) {  // so many callers need no help
      body(context, 0);
    } else {
      hire(threads - 1);
      offer->open(threads, context, body);
      call(threads - 1);
      body(context, 0);
      offer->close(workers_, hired_.load(std::memory_order_relaxed));
    }
    is_together = false;
  }

 private:
  explicit Pool(Pool* of_parent) : of_parent_(of_parent) {}
  static Pool*& current() noexcept {
    static Pool* pool = new Pool(nullptr);
    return pool;
  }

  // A sleeper counts before it looks at the news for the last time, and news come before sleepers
  // are counted: none is forgotten.
  void call(int helpers) noexcept {
    news_.fetch_add(1);
    const int awake = spinning_.load(std::memory_order_relaxed);
    if (helpers > awake && sleeping_.load() > 0) wake(news_, helpers - awake);
  }
  void hire(int workers) noexcept {
    if (hired_.load(std::memory_order_relaxed) >= workers) return;
    const std::lock_guard lock(hiring_);
    while (hired_.load(std::memory_order_relaxed) < workers) {
      const auto next = static_cast<std::size_t>(hired_.load(std::memory_order_relaxed));
      if (next == most_workers || !start(workers_[next])) return;  // no more: fewer will do
      hired_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // Signals are for the threads of the user.
  bool start(Worker& worker) noexcept {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = true;
    try {
      std::thread([this, &worker] { serve(worker); }).detach();
    } catch (const std::exception&) {
      ok = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return ok;
  }
  void serve(Worker& self) noexcept {
    const OneLibraryThread one;
    self.place.begin();
    is_together = true;
    for (;;) {
      const std::uint32_t seen = news_.load(std::memory_order_acquire);
      bool helped = false;
      for (Offer& o : offers_) helped = o.help(self) || helped;
      if (!helped) wait(seen);
    }
  }
  void wait(std::uint32_t seen) noexcept {
    constexpr auto patience = std::chrono::microseconds(100);
    spinning_.fetch_add(1, std::memory_order_relaxed);
    const bool has_news = spin_while(news_, seen, patience);
    spinning_.fetch_sub(1, std::memory_order_relaxed);
    if (has_news) return;
    sleeping_.fetch_add(1);
    sleep_while(news_, seen);
    sleeping_.fetch_sub(1, std::memory_order_relaxed);
  }

  alignas(64) Word news_{0};
  alignas(64) std::atomic<int> spinning_{0};
  std::atomic<int> sleeping_{0}, hired_{0};
  std::mutex hiring_;
  std::array<Offer, 16> offers_;
  Workers workers_;
  [[maybe_unused]] Pool* const of_parent_;  // for leak checkers
};

}  // namespace

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

void Patience::wait() noexcept {
  constexpr int turns_alone = 4000, turns_in_all = 6000;
  ++turns_;
  if (turns_ < turns_alone)
    pause();
  else if (turns_ < turns_in_all)
    sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

int team_size(int wanted) noexcept { return is_together ? 1 : std::max(1, wanted); }

void run_together(int threads, void* context, void (*body)(void*, std::int64_t)) noexcept {
  if (threads <= 1) return body(context, 0);
  Pool::of_process().run(threads, context, body);
}

}  // namespace reprise::codegen
