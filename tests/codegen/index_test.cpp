// Code of gathers and scatters for another machine; tests/runtime/index_test.cpp runs it on this one.
#include <doctest/doctest.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/equation_code.h"
#include "program/trace.h"
#include "runtime/index_cases.h"

namespace reprise {
namespace {

// Adds the code of every equation that has its own; their number.
std::size_t emit_equations(llvm::Module& module, const Program& program, const codegen::VectorTarget& target) {
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
      return lax::scatter_add(x, i, y + u, {n.offset_dims, n.collapsed_slice_dims, n.start_index_map, n.operand_batching_dims,
                                            n.start_indices_batching_dims});
    };
    for (Dtype d : {int8, bfloat16, float32, float64}) {
      const auto traced = make_jaxpr(both)(random_elements(random, c.operand, d), random_indices(random, c, int32),
                                           random_elements(random, windows_of(c), d));
      count += emit_equations(module, *traced.program(), target);
    }
  }
  return count;
}

TEST_CASE("code of gathers and scatters is well formed for every width of vectors, and compiles for aarch64") {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  for (unsigned bytes : {16u, 32u, 64u}) {
    llvm::LLVMContext context;
    llvm::Module module("index", context);
    CHECK(emit_cases(module, {bytes, false, true}) > 100);
    CHECK_FALSE(llvm::verifyModule(module, &llvm::errs()));
    if (bytes != 16) continue;
    const std::string triple = "aarch64-unknown-linux-gnu";
    std::string error;
    const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
    if (target == nullptr) continue;  // an LLVM for this machine only
    const std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(triple, "generic", "", {}, llvm::Reloc::PIC_));
    module.setTargetTriple(triple);
    module.setDataLayout(machine->createDataLayout());
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream out(object);
    llvm::legacy::PassManager passes;
    REQUIRE_FALSE(machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile));
    passes.run(module);
    CHECK(object.size() > 10'000);
  }
}

}  // namespace
}  // namespace reprise
