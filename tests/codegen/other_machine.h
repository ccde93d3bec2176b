// Generated code compiled for a machine that is not this one.
#pragma once

#include <doctest/doctest.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <optional>
#include <string>

// The size of the module as an object file for aarch64; nullopt: this LLVM knows its own machine
// only.
inline std::optional<std::size_t> aarch64_object_size(llvm::Module& module) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  const std::string triple = "aarch64-unknown-linux-gnu";
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return std::nullopt;
  const std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, "generic", "", {}, llvm::Reloc::PIC_));
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  REQUIRE_FALSE(
      machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(module);
  return object.size();
}
