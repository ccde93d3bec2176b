#include "codegen/machine_code.h"

#include "base/at_exit.h"
#include "base/error.h"
#include "codegen/kernel.h"
#include "codegen/llvm_errors.h"
#include "codegen/runtime_symbols.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

namespace reprise::codegen {
namespace {

template <class T>
T expect(llvm::Expected<T> result) {
  if (!result)
    fail<RuntimeError>("jit: the code generator failed, got ", llvm::toString(result.takeError()));
  return std::move(*result);
}
void expect(llvm::Error e) {
  if (e) fail<RuntimeError>("jit: the code generator failed, got ", llvm::toString(std::move(e)));
}
[[noreturn]] void no_memory() {
  fail_with_hint<RuntimeError>(
      "free arrays, or divide the program into several jit functions",
      "jit: memory ended while compiling, got a request that the system refused");
}

std::atomic<std::size_t> loaded_modules{0}, loaded_bytes{0};
std::atomic<bool> is_gone{false};  // the process ends, and with it what LLVM needs
std::mutex compiling, unloading;   // held by who does so, and when that becomes impossible

void end_compiling() {
  const std::scoped_lock lock(compiling, unloading);
  is_gone = true;
}
// Whoever compiles while the process begins to end is waited for, the next one kept from it.
[[maybe_unused]] const int ends_before_llvm = at_exit(end_compiling);

unsigned widest_vectors() {
  const auto features = llvm::sys::getHostCPUFeatures();
  auto has = [&](const char* name) { return features.lookup(name); };
  if (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) return 64;
  return has("avx2") && has("fma") ? 32 : 16;
}

VectorTarget target_of_machine() {
  VectorTarget target;
  target.vector_bytes = widest_vectors();
  if (const char* wanted = std::getenv("REPRISE_VECTOR_BYTES")) {
    const unsigned long bytes = std::strtoul(wanted, nullptr, 10);
    const bool is_less = (bytes == 16 || bytes == 32) && bytes < target.vector_bytes;
    if (is_less) target.vector_bytes = static_cast<unsigned>(bytes);
  }
  target.libmvec = has_libmvec();
  target.fma =
      target.vector_bytes >= 32 || !llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86();
  return target;
}

llvm::orc::JITTargetMachineBuilder machine_builder() {
  auto machine = expect(llvm::orc::JITTargetMachineBuilder::detectHost());
  // elsewhere LLVM would say on every use that it knows no such feature
  if (machine.getTargetTriple().isX86()) {
    if (this_machine().vector_bytes < 64) machine.addFeatures({"-avx512f"});
    if (this_machine().vector_bytes < 32) machine.addFeatures({"-avx"});
  }
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  // As the loader takes it: without these a compiler for code in memory uses addresses of 64 bits
  // everywhere.
  machine.setRelocationModel(llvm::Reloc::PIC_);
  machine.setCodeModel(llvm::CodeModel::Small);
  return machine;
}

// What loads objects. Once memory has ended inside, it may hold its own locks forever.
struct Loader {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::string reported;  // why loading failed, which a lookup does not tell
  std::atomic<bool> is_broken{false};
};

class Loaded final : public MachineCode {
 public:
  Loaded(std::shared_ptr<Loader> loader, llvm::orc::ResourceTrackerSP tracker, std::size_t bytes)
      : loader_(std::move(loader)), tracker_(std::move(tracker)), bytes_(bytes) {
    ++loaded_modules;
    loaded_bytes += bytes_;
  }
  ~Loaded() override {
    --loaded_modules;
    loaded_bytes -= bytes_;
    const std::lock_guard lock(unloading);
    if (loader_->is_broken || is_gone)
      tracker_.resetWithoutRelease();
    else
      llvm::consumeError(tracker_->remove());
  }
  void load(std::unique_ptr<llvm::MemoryBuffer> object, const std::vector<std::string>& names) {
    expect(loader_->jit->addObjectFile(tracker_, std::move(object)));
    for (const std::string& name : names) {
      auto found = loader_->jit->lookup(name);
      if (!found) fail_to_load(llvm::toString(found.takeError()));
      functions_.push_back(found->toPtr<void*>());
    }
  }
  void* function(std::size_t index) const override { return functions_[index]; }
  std::size_t bytes() const override { return bytes_; }

 private:
  [[noreturn]] void fail_to_load(const std::string& error) const {
    const std::string& cause = loader_->reported.empty() ? error : loader_->reported;
    fail<RuntimeError>("jit: the code generator failed, got ", cause);
  }

  std::shared_ptr<Loader> loader_;
  llvm::orc::ResourceTrackerSP tracker_;
  std::size_t bytes_;
  std::vector<void*> functions_;
};

// The process's one compiler and loader.
class Machine {
 public:
  static Machine& get() {
    static Machine& machine = *new Machine;  // never destroyed: code may run until the very end
    return machine;
  }
  using Emit = std::function<std::vector<std::string>(llvm::Module&)>;
  std::shared_ptr<const MachineCode> make(const Emit& emit) {
    const std::lock_guard lock(compiling);
    if (is_gone) {
      fail_with_hint<RuntimeError>("compile before main returns",
                                   "jit: nothing is compiled any more while the process ends");
    }
    const CloseAtExit close;
    std::vector<std::string> names;
    auto object = object_of(emit, names, true);
    return load(std::move(object), names);
  }
  void sketch(const std::function<void(llvm::Module&)>& emit) {
    const std::lock_guard lock(compiling);
    if (is_gone) {
      fail_with_hint<RuntimeError>("plan before main returns",
                                   "jit: nothing is planned any more while the process ends");
    }
    const CloseAtExit close;
    std::vector<std::string> names;
    object_of([&](llvm::Module& module) { return emit(module), std::vector<std::string>{}; }, names,
              false);
  }

 private:
  Machine() : builder_(machine_builder()) {}

  // LLVM makes static objects whenever something of it is first used, and they are destroyed before
  // all that is older. What is registered after each time that it was used runs before any of them
  // goes. It waits for who compiles.
  struct CloseAtExit {
    ~CloseAtExit() { std::atexit(end_compiling); }
  };

  // What LLVM was at work on when it failed is given up, not destroyed. Null unless it compiles.
  std::unique_ptr<llvm::MemoryBuffer> object_of(const Emit& emit, std::vector<std::string>& names,
                                                bool compiles) {
    const LlvmErrors errors;
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("kernels", *context);
    const auto give_up = [&] {
      static_cast<void>(module.release());
      static_cast<void>(context.release());
      static_cast<void>(compiler_.release());
    };
    try {
      if (compiler_ == nullptr) compiler_ = make_compiler();
      module->setDataLayout(compiler_->createDataLayout());
      module->setTargetTriple(compiler_->getTargetTriple().str());
      names = emit(*module);
      if (!compiles) return nullptr;
      return expect(llvm::orc::SimpleCompiler(*compiler_)(*module));
    } catch (const LlvmFailure& failure) {
      give_up();
      if (failure.out_of_memory) no_memory();
      fail<RuntimeError>("jit: the code generator failed, got ", failure.reason);
    } catch (const std::bad_alloc&) {
      give_up();
      no_memory();
    }
  }

  // Within the lock: LLVM makes a registry of its own for the targets.
  std::unique_ptr<llvm::TargetMachine> make_compiler() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return expect(builder_.createTargetMachine());
  }

  std::shared_ptr<const MachineCode> load(std::unique_ptr<llvm::MemoryBuffer> object,
                                          const std::vector<std::string>& names) {
    const LlvmErrors errors;
    std::shared_ptr<Loaded> code;  // outlives the handlers below, which may forbid it to unload
    try {
      expect_room();
      if (loader_ == nullptr) loader_ = make_loader();
      constexpr int often = 256;
      if (++loads_ % often == 0) names_of(*loader_).clearDeadEntries();
      constexpr std::size_t page = 4096;  // code and data have their own
      const std::size_t bytes = (object->getBufferSize() / page + 2) * page;
      code = std::make_shared<Loaded>(
          loader_, loader_->jit->getMainJITDylib().createResourceTracker(), bytes);
      loader_->reported.clear();
      code->load(std::move(object), names);
      return code;
    } catch (const LlvmFailure& failure) {
      abandon_loader();
      if (failure.out_of_memory) no_memory();
      fail<RuntimeError>("jit: the code generator failed, got ", failure.reason);
    } catch (const std::bad_alloc&) {
      abandon_loader();
      no_memory();
    }
  }
  // Asked beforehand: loading takes little, and failing inside costs the loader.
  static void expect_room() {
    constexpr std::size_t enough = 4 << 20;
    void* const room = std::malloc(enough);
    if (room == nullptr) no_memory();
    std::free(room);
  }
  void abandon_loader() {
    if (loader_ == nullptr) return;
    loader_->is_broken = true;
    static_cast<void>(loader_->jit.release());
    loader_.reset();
  }
  static llvm::orc::SymbolStringPool& names_of(Loader& loader) {
    return *loader.jit->getExecutionSession().getSymbolStringPool();
  }
  std::shared_ptr<Loader> make_loader() {
    auto loader = std::make_shared<Loader>();
    loader->jit = expect(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder_).create());
    loader->jit->getExecutionSession().setErrorReporter(
        [to = loader.get()](llvm::Error e) { to->reported = llvm::toString(std::move(e)); });
    llvm::orc::SymbolMap symbols;
    for (const auto& [name, address] : runtime_symbols()) {
      symbols[loader->jit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                                     llvm::JITSymbolFlags::Exported};
    }
    expect(loader->jit->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))));
    return loader;
  }

  llvm::orc::JITTargetMachineBuilder builder_;
  std::unique_ptr<llvm::TargetMachine> compiler_;
  std::shared_ptr<Loader> loader_;
  int loads_ = 0;
};

}  // namespace

bool compiler_is_gone() { return is_gone; }

const VectorTarget& this_machine() {
  static const VectorTarget target = target_of_machine();
  return target;
}

std::shared_ptr<const MachineCode> make_machine_code(
    const std::function<std::vector<std::string>(llvm::Module&)>& emit) {
  this_machine();
  return Machine::get().make(emit);
}

void sketch_machine_code(const std::function<void(llvm::Module&)>& emit) {
  this_machine();
  Machine::get().sketch(emit);
}

LoadedCode loaded_code() { return {loaded_modules, loaded_bytes}; }

}  // namespace reprise::codegen
