#include "codegen/openmp.h"

#include <algorithm>

extern "C" {
int omp_get_max_threads();
int omp_get_thread_limit();
void omp_set_num_threads(int);
}

namespace reprise::codegen {

OneLibraryThread::OneLibraryThread() noexcept : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneLibraryThread::~OneLibraryThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

int default_threads() noexcept {
  return std::max(1, std::min(omp_get_max_threads(), omp_get_thread_limit()));
}

}  // namespace reprise::codegen
