// How many threads compute, and teams of them for loops; the threads themselves: codegen/pool.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace reprise {

// Threads that a run may use: REPRISE_NUM_THREADS, else OMP_NUM_THREADS, else the number of cores.
// A value that is not a whole number from 1 to 1024 is ignored.
int num_threads();
// For later runs of this process; values are brought into [1, 1024].
void set_num_threads(int n);

// Threads that stay awake between many small pieces of work, such as the steps of a loop.
//
// Every thread has its own share of the items, always the same one, so that arrays cut alike stay
// in the cache of the thread that works on them. A thread that the system holds up loses its share
// to the one who offers.
class Team {
 public:
  // Calls work(context, team) on this thread, with up to `threads` - 1 others at hand meanwhile.
  static void gather(int threads, void* context, void (*work)(void* context, Team&)) noexcept;

  // Calls body(context, i, thread) for i in [0, n); thread < the number gathered, 0 for the one who
  // shares.
  using Body = void (*)(void* context, std::int64_t i, std::int64_t thread);
  void share(std::int64_t n, void* context, Body body) noexcept;
  template <class F>
  void share(std::int64_t n, F& body) noexcept {
    share(n, &body,
          [](void* f, std::int64_t i, std::int64_t thread) { (*static_cast<F*>(f))(i, thread); });
  }
  // Sends the others away; from now on the one who shares does everything.
  void dismiss() noexcept;

 private:
  // The seats of the others: one line of memory for the offer and what became of it.
  enum class State : std::uint32_t { away, ready, offered, taken };
  struct alignas(64) Seat {
    std::atomic<State> state{State::away};
    std::int64_t begin = 0, end = 0;
    void* context = nullptr;
    Body body = nullptr;
    bool has_offer = false;  // for the one who offers
  };

  explicit Team(std::int64_t size) noexcept
      : seats_(size > 1 ? new Seat[static_cast<std::size_t>(size - 1)] : nullptr), size_(size) {}
  void serve(std::int64_t thread) noexcept;
  static void settle(Seat&) noexcept;

  const std::unique_ptr<Seat[]> seats_;
  const std::int64_t size_;
  std::atomic<bool> over_{false};
};

}  // namespace reprise
