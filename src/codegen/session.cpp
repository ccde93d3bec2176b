#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "codegen/equation_code.h"
#include "codegen/kernel.h"
#include "codegen/kernel_ir.h"
#include "codegen/runtime_symbols.h"
#include "codegen/tile_ir.h"

namespace reprise::codegen {
namespace {

template <class T>
T expect(llvm::Expected<T> result) {
  if (!result) fail<RuntimeError>("jit: the code generator failed, got ", llvm::toString(result.takeError()));
  return std::move(*result);
}
void expect(llvm::Error e) {
  if (e) fail<RuntimeError>("jit: the code generator failed, got ", llvm::toString(std::move(e)));
}

unsigned widest_vectors() {
  const auto features = llvm::sys::getHostCPUFeatures();
  auto has = [&](const char* name) { return features.lookup(name); };
  if (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) return 64;
  return has("avx2") && has("fma") ? 32 : 16;
}

// The process's one code generator: kernels are kept for as long as it runs, by what they compute.
class Session {
 public:
  static Session& get() {
    static Session& session = *new Session;  // never destroyed: code may run until the very end
    return session;
  }

  std::vector<std::shared_ptr<const CompiledKernel>> compile(const std::vector<KernelSource>& sources) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> keys;
    std::vector<std::pair<std::string, const KernelSource*>> missing;
    for (const KernelSource& source : sources) {
      const auto* equation = std::get_if<EquationKernel>(&source);
      keys.push_back(equation != nullptr ? key_of(*equation) : plan::key_of(*std::get<const plan::Kernel*>(source)));
      if (done_.emplace(keys.back(), nullptr).second) missing.emplace_back(keys.back(), &source);
    }
    try {
      if (!missing.empty()) compile_missing(missing);
    } catch (...) {
      for (const auto& [key, source] : missing) done_.erase(key);
      throw;
    }
    std::vector<std::shared_ptr<const CompiledKernel>> out;
    for (const std::string& key : keys) out.push_back(done_.at(key));
    return out;
  }
  unsigned vector_bytes() const { return target_.vector_bytes; }

  Tiles compile_tiles(Dtype d) {
    const std::lock_guard lock(mutex_);
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = new_module(*context);
    const std::string prefix = "tile_" + std::string(short_name(d)) + "_";
    Tiles tiles;
    tiles.lanes = target_.vector_bytes / static_cast<unsigned>(itemsize(d));
    tiles.most_rows = tile_rows(target_.vector_bytes);
    for (unsigned r = 1; r <= tiles.most_rows; ++r) emit_tile(*module, prefix + std::to_string(r), d, r, target_);
    emit_transpose(*module, prefix + "transpose", d, target_);
    emit_search(*module, prefix + "search", d, target_);
    expect(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    for (unsigned r = 1; r <= tiles.most_rows; ++r) {
      tiles.rows[r] = expect(jit_->lookup(prefix + std::to_string(r))).toPtr<TileCode>();
    }
    tiles.transpose = expect(jit_->lookup(prefix + "transpose")).toPtr<TransposeCode>();
    tiles.search = expect(jit_->lookup(prefix + "search")).toPtr<SearchCode>();
    return tiles;
  }

 private:
  Session() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    target_.vector_bytes = widest_vectors();
    if (const char* wanted = std::getenv("REPRISE_VECTOR_BYTES")) {
      const unsigned long bytes = std::strtoul(wanted, nullptr, 10);
      if ((bytes == 16 || bytes == 32) && bytes < target_.vector_bytes) target_.vector_bytes = static_cast<unsigned>(bytes);
    }
    target_.libmvec = has_libmvec();
    target_.fma = target_.vector_bytes >= 32 || !llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86();
    auto machine = expect(llvm::orc::JITTargetMachineBuilder::detectHost());
    if (target_.vector_bytes < 64) machine.addFeatures({"-avx512f"});
    if (target_.vector_bytes < 32) machine.addFeatures({"-avx"});
    machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    jit_ = expect(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create());
    llvm::orc::SymbolMap symbols;
    for (const auto& [name, address] : runtime_symbols()) {
      symbols[jit_->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    }
    expect(jit_->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
  }

  std::unique_ptr<llvm::Module> new_module(llvm::LLVMContext& context) {
    auto module = std::make_unique<llvm::Module>("kernels", context);
    module->setDataLayout(jit_->getDataLayout());
    module->setTargetTriple(jit_->getTargetTriple().str());
    return module;
  }

  EmittedKernel emit(llvm::Module& module, const std::string& name, const KernelSource& source) const {
    if (const auto* equation = std::get_if<EquationKernel>(&source)) return emit_equation(module, name, *equation, target_);
    const plan::Kernel& kernel = *std::get<const plan::Kernel*>(source);
    const unsigned lanes = target_.vector_bytes / 4;
    EmittedKernel out{plan::loops_of(kernel, lanes), {}, {}};
    out.memory = emit_kernel(module, name, kernel, out.loops, lanes, target_);
    return out;
  }

  void compile_missing(const std::vector<std::pair<std::string, const KernelSource*>>& missing) {
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = new_module(*context);
    std::vector<std::pair<std::string, EmittedKernel>> made;
    for (const auto& [key, source] : missing) {
      const std::string name = "kernel" + std::to_string(serial_++);
      made.emplace_back(name, emit(*module, name, *source));
    }
    expect(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      auto& [name, emitted] = made[i];
      CompiledKernel c;
      c.loops_in_place = emitted.in_place.value_or(emitted.loops);
      c.loops = std::move(emitted.loops);
      c.scratch_bytes = emitted.memory.scratch_bytes;
      c.sums_bytes = emitted.memory.sums_bytes;
      c.run = expect(jit_->lookup(name)).toPtr<KernelCode>();
      if (emitted.memory.has_finish) c.finish = expect(jit_->lookup(name + "_finish")).toPtr<FinishCode>();
      done_[missing[i].first] = std::make_shared<const CompiledKernel>(std::move(c));
    }
  }

  std::mutex mutex_;
  VectorTarget target_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> done_;
  std::size_t serial_ = 0;
};

}  // namespace

unsigned machine_vector_bytes() { return Session::get().vector_bytes(); }

const Tiles& tiles_of(Dtype d) {
  if (d == Dtype::f64) {
    static const Tiles& tiles = *new Tiles(Session::get().compile_tiles(d));
    return tiles;
  }
  static const Tiles& tiles = *new Tiles(Session::get().compile_tiles(Dtype::f32));
  return tiles;
}

std::vector<std::shared_ptr<const CompiledKernel>> compile_kernels(const std::vector<KernelSource>& sources) {
  return Session::get().compile(sources);
}

}  // namespace reprise::codegen
