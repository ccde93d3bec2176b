// Machine code from LLVM's language: it lies in memory for as long as someone holds it.
#pragma once

#include "codegen/emit_ops.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace reprise::codegen {

// The functions of one module. Its pages go back to the system with it.
class MachineCode {
 public:
  virtual ~MachineCode() = default;
  virtual void* function(std::size_t index) const = 0;  // in the order of their names
  virtual std::size_t bytes() const = 0;                // in memory, about
};

// The vectors of this machine; REPRISE_VECTOR_BYTES (16, 32, 64) asks for less.
const VectorTarget& this_machine();

// `emit` fills a module and names the functions that will be asked for. A RuntimeError when memory
// ends on the way.
std::shared_ptr<const MachineCode> make_machine_code(
    const std::function<std::vector<std::string>(llvm::Module&)>& emit);

// `emit` fills a module that is thrown away: what it says about its code is all that is wanted.
void sketch_machine_code(const std::function<void(llvm::Module&)>& emit);

// What is loaded now.
struct LoadedCode {
  std::size_t modules = 0, bytes = 0;
};
LoadedCode loaded_code();

}  // namespace reprise::codegen
