// All parallelism: one pool, libgomp's, shared with oneDNN.
#pragma once

#include <cstdint>

namespace reprise {

// Threads that a run may use: REPRISE_NUM_THREADS, else OMP_NUM_THREADS, else the number of cores.
// A value that is not a whole number from 1 to 1024 is ignored.
int num_threads();
// For later runs of this process, all libraries included; values are brought into [1, 1024].
void set_num_threads(int n);

// Calls body(context, i) for i in [0, n), items given out in blocks in an order that does not
// matter. Runs on the calling thread when n is 1, when only one thread is wanted, inside another
// parallel_for and in the child of a fork.
void parallel_for(std::int64_t n, void* context,
                  void (*body)(void* context, std::int64_t i)) noexcept;

template <class F>
void parallel_for(std::int64_t n, F& body) noexcept {
  parallel_for(n, &body, [](void* f, std::int64_t i) { (*static_cast<F*>(f))(i); });
}

}  // namespace reprise
