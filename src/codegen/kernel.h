// Machine code of fused kernels, and of equations that have code of their own.
#pragma once

#include "plan/loops.h"

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace reprise::codegen {

// One equation on values that lie dense in memory. Types of operands and results, in its order.
struct EquationKernel {
  const Equation* eqn = nullptr;
  std::vector<Type> in, out;
};
using KernelSource = std::variant<const plan::Kernel*, EquationKernel>;

// Runs rows [row_begin, row_end) x columns [column_begin, column_end). `pointers`: one per load
// from memory, then one per store; of an equation one per operand (of a literal it points nowhere),
// then one per result. `scratch`: of this thread; `sums`: partial results of column reductions.
using KernelCode = void (*)(std::byte* const* pointers, std::int64_t row_begin,
                            std::int64_t row_end, std::int64_t column_begin,
                            std::int64_t column_end, std::byte* scratch, std::byte* sums);
// Adds up the partial results and stores them.
using FinishCode = void (*)(std::byte* const* pointers, std::byte* sums);

struct CompiledKernel {
  plan::Loops loops;
  plan::Loops loops_in_place;  // where the first result lies in the place of the first operand
  KernelCode run = nullptr;
  FinishCode finish = nullptr;    // null: no column reductions
  std::size_t scratch_bytes = 0;  // per thread
  std::size_t sums_bytes = 0;
};

// From the end of the process on nothing is compiled: whoever fails to must evaluate.
bool compiler_is_gone();

// What the machine offers; REPRISE_VECTOR_BYTES (16, 32, 64) asks for less.
unsigned machine_vector_bytes();

// Compiles those that nobody holds and that were not used lately, together; the result has one
// entry per source. Equations: those for which has_code (codegen/equation_code.h) holds.
std::vector<std::shared_ptr<const CompiledKernel>> compile_kernels(
    const std::vector<KernelSource>&);
// The same kernels without code to run: their loops and their memory.
std::vector<std::shared_ptr<const CompiledKernel>> plan_kernels(const std::vector<KernelSource>&);
// Unloads kernels that nobody holds.
void release_unused_kernels();

}  // namespace reprise::codegen
