// Compiling and running as on a machine with another number of cores.
#pragma once

#include "runtime/threads.h"

class WithThreads {
 public:
  explicit WithThreads(int n) { reprise::set_num_threads(n); }
  ~WithThreads() { reprise::set_num_threads(before_); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  int before_ = reprise::num_threads();
};
