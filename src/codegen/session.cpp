// Kernels by what they compute: each is compiled once while somebody uses it, and the last ones are
// kept for who asks again.
#include "base/recent_cache.h"
#include "codegen/equation_code.h"
#include "codegen/kernel.h"
#include "codegen/kernel_ir.h"
#include "codegen/machine_code.h"

#include <llvm/IR/Module.h>

#include <mutex>
#include <unordered_map>

namespace reprise::codegen {
namespace {

using KernelPtr = std::shared_ptr<const CompiledKernel>;

// A kernel and the code that it lies in.
struct Held {
  CompiledKernel kernel;
  std::shared_ptr<const MachineCode> code;
};

std::string key_of(const KernelSource& source) {
  if (const auto* equation = std::get_if<EquationKernel>(&source)) return key_of(*equation);
  return plan::key_of(*std::get<const plan::Kernel*>(source));
}

EmittedKernel emit(llvm::Module& module, const std::string& name, const KernelSource& source) {
  const VectorTarget& target = this_machine();
  if (const auto* equation = std::get_if<EquationKernel>(&source))
    return emit_equation(module, name, *equation, target);
  const plan::Kernel& kernel = *std::get<const plan::Kernel*>(source);
  const unsigned lanes = target.vector_bytes / 4;
  EmittedKernel out{plan::loops_of(kernel, lanes), {}, {}};
  out.memory = emit_kernel(module, name, kernel, out.loops, lanes, target);
  return out;
}

class Kernels {
 public:
  static Kernels& get() {
    static Kernels& kernels = *new Kernels;  // never destroyed: code may run until the very end
    return kernels;
  }

  // With code to run, or without.
  std::vector<KernelPtr> make(const std::vector<KernelSource>& sources, bool with_code) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> keys;
    std::unordered_map<std::string, KernelPtr> found;
    std::vector<std::pair<std::string, const KernelSource*>> missing;
    for (const KernelSource& source : sources) {
      keys.push_back(key_of(source));
      const auto [it, is_new] = found.emplace(keys.back(), nullptr);
      if (!is_new) continue;
      auto known = made_.find(keys.back());
      if (!known && !with_code) known = planned_.find(keys.back());
      if (known)
        it->second = *known;
      else
        missing.emplace_back(keys.back(), &source);
    }
    if (!missing.empty() && with_code) compile_missing(missing, found);
    if (!missing.empty() && !with_code) plan_missing(missing, found);
    std::vector<KernelPtr> out;
    for (const std::string& key : keys) out.push_back(found.at(key));
    return out;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    made_.clear();
    planned_.clear();
  }

 private:
  using Missing = std::vector<std::pair<std::string, const KernelSource*>>;

  static CompiledKernel sized(const EmittedKernel& emitted) {
    CompiledKernel c;
    c.loops = emitted.loops;
    c.loops_in_place = emitted.in_place.value_or(emitted.loops);
    c.scratch_bytes = emitted.memory.scratch_bytes;
    c.sums_bytes = emitted.memory.sums_bytes;
    return c;
  }
  void plan_missing(const Missing& missing, std::unordered_map<std::string, KernelPtr>& found) {
    sketch_machine_code([&](llvm::Module& module) {
      for (const auto& [key, source] : missing) {
        const KernelPtr kernel = std::make_shared<const CompiledKernel>(
            sized(emit(module, "kernel" + std::to_string(serial_++), *source)));
        found[key] = kernel;
        planned_.add(key, kernel, key.size() + sizeof(CompiledKernel));
      }
    });
  }

  void compile_missing(const Missing& missing, std::unordered_map<std::string, KernelPtr>& found) {
    std::vector<EmittedKernel> emitted;
    const auto code = make_machine_code([&](llvm::Module& module) {
      std::vector<std::string> names;
      for (const auto& [key, source] : missing) {
        const std::string name = "kernel" + std::to_string(serial_++);
        emitted.push_back(emit(module, name, *source));
        names.push_back(name);
        if (emitted.back().memory.has_finish) names.push_back(name + "_finish");
      }
      return names;
    });
    std::size_t next = 0;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      auto held = std::make_shared<Held>();
      held->code = code;
      CompiledKernel& c = held->kernel;
      c = sized(emitted[i]);
      c.run = reinterpret_cast<KernelCode>(code->function(next++));
      if (emitted[i].memory.has_finish)
        c.finish = reinterpret_cast<FinishCode>(code->function(next++));
      const KernelPtr kernel(held, &c);
      found[missing[i].first] = kernel;
      made_.add(missing[i].first, kernel, code->bytes() / missing.size() + 1);
    }
  }

  static constexpr std::size_t most_kept_bytes = 16 << 20;
  std::mutex mutex_;
  RecentCache<std::string, CompiledKernel> made_{most_kept_bytes}, planned_{most_kept_bytes / 4};
  std::size_t serial_ = 0;
};

}  // namespace

unsigned machine_vector_bytes() { return this_machine().vector_bytes; }

std::vector<std::shared_ptr<const CompiledKernel>> compile_kernels(
    const std::vector<KernelSource>& sources) {
  return Kernels::get().make(sources, true);
}
std::vector<std::shared_ptr<const CompiledKernel>> plan_kernels(
    const std::vector<KernelSource>& sources) {
  return Kernels::get().make(sources, false);
}
void release_unused_kernels() { Kernels::get().release(); }

}  // namespace reprise::codegen
