// Code of gathers and scatters for another machine; tests/runtime/index_test.cpp runs it on this
// one.
#include "codegen/equation_code.h"
#include "codegen/other_machine.h"
#include "program/trace.h"
#include "runtime/index_cases.h"

#include <doctest/doctest.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

namespace reprise {
namespace {

// Adds the code of every equation that has its own; their number.
std::size_t emit_equations(llvm::Module& module, const Program& program,
                           const codegen::VectorTarget& target) {
  static std::size_t serial = 0;
  std::size_t count = 0;
  for (const Equation& e : program.eqns) {
    codegen::EquationKernel k{&e, {}, {}};
    for (const Atom& a : e.in) k.in.push_back(program.type(a));
    for (Var v : e.out) k.out.push_back(program.type(v));
    if (!codegen::has_code(k)) continue;
    codegen::emit_equation(module, "kernel" + std::to_string(serial++), k, target);
    ++count;
  }
  return count;
}

std::size_t emit_cases(llvm::Module& module, const codegen::VectorTarget& target) {
  std::size_t count = 0;
  std::mt19937 random(1);
  for (const IndexCase& c : index_cases()) {
    if (element_count(windows_of(c)) == 0) continue;
    const lax::GatherDimensionNumbers& n = c.numbers;
    const auto both = [&](Array x, Array i, Array u) {
      const Array y = lax::gather(x, i, n, c.sizes, {.mode = lax::GatherScatterMode::fill_or_drop});
      return lax::scatter_add(x, i, y + u,
                              {n.offset_dims, n.collapsed_slice_dims, n.start_index_map,
                               n.operand_batching_dims, n.start_indices_batching_dims});
    };
    for (Dtype d : {int8, bfloat16, float32, float64}) {
      const auto traced =
          make_jaxpr(both)(random_elements(random, c.operand, d), random_indices(random, c, int32),
                           random_elements(random, windows_of(c), d));
      count += emit_equations(module, *traced.program(), target);
    }
  }
  return count;
}

TEST_CASE(
    "code of gathers and scatters is well formed for every width of vectors, and compiles for "
    "aarch64") {
  for (unsigned bytes : {16u, 32u, 64u}) {
    llvm::LLVMContext context;
    llvm::Module module("index", context);
    CHECK(emit_cases(module, {bytes, false, true}) > 100);
    CHECK_FALSE(llvm::verifyModule(module, &llvm::errs()));
    if (bytes != 16) continue;
    const auto size = aarch64_object_size(module);
    if (size) CHECK(*size > 10'000);
  }
}

}  // namespace
}  // namespace reprise
