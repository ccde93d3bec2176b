// The operations of a large kernel as functions of a bounded size: what a code generator needs for
// one function grows faster than the function.
//
//   nodes, in order   =>   part(slots, where)*,   one after the other for each vector of columns
//
// Values that one part leaves for another, or for the kernel, lie in slots: one vector each, in
// scratch memory. A part finds its slots through a table, so that equal parts, as long chains have
// them, are one function.
#pragma once

#include "codegen/emit_ops.h"
#include "codegen/kernel_passes.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class Function;
class GlobalVariable;
class Module;
}  // namespace llvm

namespace reprise::codegen {

inline constexpr std::size_t large_pass = 200;  // operations: more are cut into parts
inline constexpr std::size_t part_size = 64;

class KernelParts {
 public:
  // `nodes`: operations, each after those it reads. `wanted`: of all nodes, those that the kernel
  // reads from here. Slots lie behind the scratch memory that there is already.
  KernelParts(const plan::Kernel& k, std::vector<std::size_t> nodes,
              const std::vector<bool>& wanted, unsigned lanes, std::size_t& scratch_bytes);

  void emit(llvm::Module& m, const std::string& name, const VectorTarget& target);
  // Puts the inputs and runs all parts; `always` holds.
  using Input = std::function<llvm::Value*(std::size_t node)>;
  void run(llvm::IRBuilderBase& b, OpEmitter& op, llvm::Value* scratch, llvm::Value* always,
           const Input& input) const;
  llvm::Value* get(llvm::IRBuilderBase& b, OpEmitter& op, llvm::Value* scratch,
                   std::size_t node) const;

 private:
  struct Part {
    std::size_t begin = 0, end = 0;          // of nodes_
    std::vector<std::size_t> reads, writes;  // nodes: slots of its table, in this order
    llvm::Function* code = nullptr;
    llvm::GlobalVariable* where = nullptr;
  };

  void find_slots(const std::vector<bool>& wanted, std::size_t& scratch_bytes);
  std::string key_of(const Part&) const;
  void emit_part(llvm::Module& m, const std::string& name, Part& part,
                 const VectorTarget& target) const;

  const plan::Kernel& k_;
  std::vector<std::size_t> nodes_, inputs_;
  std::vector<Part> parts_;
  std::vector<std::size_t> slot_at_;  // of every node: bytes of scratch memory, or none
  unsigned lanes_;
};

// Of every pass: its operations, and those of values per row before it. None where they are few
// enough for one function.
struct PassParts {
  std::vector<std::optional<KernelParts>> of_pass, of_row;
};
PassParts emit_parts(llvm::Module& m, const std::string& name, const KernelPasses& passes,
                     unsigned lanes, const VectorTarget& target, std::size_t& scratch_bytes);

}  // namespace reprise::codegen
