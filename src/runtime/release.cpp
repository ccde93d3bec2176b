// Memory that nobody uses, back to the system.
#include "base/memory.h"
#include "codegen/kernel.h"
#include "products/conv.h"
#include "products/matmul.h"
#include "reprise/array.h"
#include "runtime/eager.h"

#include <malloc.h>

namespace reprise {

void release_free_memory() {
  release_eager_code();
  codegen::release_unused_matmuls();
  codegen::release_unused_convolutions();
  codegen::release_unused_kernels();
  release_free_blocks();
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace reprise
