// From a kernel to LLVM's language.
#pragma once

#include "codegen/emit_ops.h"
#include "plan/loops.h"

#include <string>

namespace llvm {
class Module;
}

namespace reprise::codegen {

struct KernelMemory {
  std::size_t scratch_bytes = 0, sums_bytes = 0;
  bool has_finish = false;
};
// Adds functions `name` (KernelCode) and, with column reductions, `name`_finish (FinishCode).
KernelMemory emit_kernel(llvm::Module&, const std::string& name, const plan::Kernel&,
                         const plan::Loops&, unsigned lanes, const VectorTarget&);

}  // namespace reprise::codegen
