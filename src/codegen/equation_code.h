// Equations with code of their own: one row per primitive, in the table of its family.
//
//   equation, types   =>   a function (KernelCode) and how its work is divided
#pragma once

#include "codegen/emit_ops.h"
#include "codegen/kernel.h"
#include "codegen/kernel_ir.h"

#include <optional>
#include <span>

namespace reprise::codegen {

struct EmittedKernel {
  plan::Loops loops;  // rows, columns and items; the strides are the emitter's own business
  KernelMemory memory;
  // where the first result lies in the place of the first operand, if that is less work
  std::optional<plan::Loops> in_place;
};

struct EquationRow {
  const Primitive* prim;
  bool (*can_emit)(const EquationKernel&);
  // Adds the function `name`, and `name`_finish (FinishCode) if the memory says so.
  EmittedKernel (*emit)(llvm::Module&, const std::string& name, const EquationKernel&,
                        const VectorTarget&);
};

std::span<const EquationRow> index_rows();       // index_ir.cpp
std::span<const EquationRow> cumulative_rows();  // cumulative_ir.cpp
std::span<const EquationRow> sort_rows();        // sort_ir.cpp

// Rows that are made as a whole, each with so many operations.
plan::Loops unit_loops(std::int64_t units, std::int64_t operations);

// False: no code for this equation or these types, the caller evaluates.
bool has_code(const EquationKernel&);
// Needs has_code.
EmittedKernel emit_equation(llvm::Module&, const std::string& name, const EquationKernel&,
                            const VectorTarget&);
// Equal keys: the same code.
std::string key_of(const EquationKernel&);

}  // namespace reprise::codegen
