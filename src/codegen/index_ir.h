// Machine code of the primitives that read and write windows of arrays.
#pragma once

#include "codegen/equation_code.h"

namespace reprise::codegen {

// gather, dynamic_slice (index_gather.cpp)
EmittedKernel emit_gather(llvm::Module&, const std::string& name, const EquationKernel&,
                          const VectorTarget&);

// scatter, scatter_add, scatter_mul, scatter_min, scatter_max, dynamic_update_slice
// (index_scatter.cpp)
EmittedKernel emit_scatter(llvm::Module&, const std::string& name, const EquationKernel&,
                           const VectorTarget&);

}  // namespace reprise::codegen
