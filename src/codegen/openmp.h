// The library's own threads, libgomp's: none. Products and convolutions run on one thread each, cut
// into parts that the threads of the pool take.
#pragma once

namespace reprise::codegen {

// While it lives, parallel regions of this thread have one thread.
class OneLibraryThread {
 public:
  OneLibraryThread() noexcept;
  ~OneLibraryThread();
  OneLibraryThread(const OneLibraryThread&) = delete;
  OneLibraryThread& operator=(const OneLibraryThread&) = delete;

 private:
  int before_;
};

// What libgomp would start for this thread if nobody asked for a number: OMP_NUM_THREADS, or the
// number of cores.
int default_threads() noexcept;

}  // namespace reprise::codegen
