#include "codegen/kernel_parts.h"

#include "base/dtype.h"
#include "base/work.h"
#include "codegen/code_blocks.h"
#include "plan/memory.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <unordered_map>

namespace reprise::codegen {

using llvm::Value;
using plan::Node;

namespace {

constexpr auto none = static_cast<std::size_t>(-1);

llvm::Type* memory_type(OpEmitter& op, Dtype d, unsigned lanes) {
  return llvm::FixedVectorType::get(op.element_type(d), lanes);
}
Value* load_slot(llvm::IRBuilderBase& b, OpEmitter& op, Value* place, Dtype d, unsigned lanes) {
  return op.from_memory(
      b.CreateAlignedLoad(memory_type(op, d, lanes), place, llvm::Align(itemsize(d))), d);
}
void store_slot(llvm::IRBuilderBase& b, OpEmitter& op, Value* place, Dtype d, Value* value) {
  b.CreateAlignedStore(op.to_memory(value, d), place, llvm::Align(itemsize(d)));
}

}  // namespace

KernelParts::KernelParts(const plan::Kernel& k, std::vector<std::size_t> nodes,
                         const std::vector<bool>& wanted, unsigned lanes,
                         std::size_t& scratch_bytes)
    : k_(k), nodes_(std::move(nodes)), slot_at_(k.nodes.size(), none), lanes_(lanes) {
  for (std::size_t begin = 0; begin < nodes_.size(); begin += part_size) {
    Part part;
    part.begin = begin;
    part.end = std::min(begin + part_size, nodes_.size());
    parts_.push_back(std::move(part));
  }
  find_slots(wanted, scratch_bytes);
}

void KernelParts::find_slots(const std::vector<bool>& wanted, std::size_t& scratch_bytes) {
  scratch_bytes = plan::aligned(scratch_bytes);
  std::vector<std::size_t> part_of(k_.nodes.size(), none), read_by(k_.nodes.size(), none);
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (std::size_t i = parts_[p].begin; i < parts_[p].end; ++i) part_of[nodes_[i]] = p;
  }
  const auto give_slot = [&](std::size_t n) {
    if (slot_at_[n] != none) return false;
    slot_at_[n] = scratch_bytes;
    scratch_bytes += plan::aligned(lanes_ * itemsize(k_.nodes[n].type.dtype));
    return true;
  };
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (std::size_t i = parts_[p].begin; i < parts_[p].end; ++i) {
      for (std::size_t from : k_.nodes[nodes_[i]].in) {
        if (part_of[from] == p || read_by[from] == p) continue;
        read_by[from] = p;
        parts_[p].reads.push_back(from);
        const bool is_new = give_slot(from);
        if (is_new && part_of[from] == none) inputs_.push_back(from);
      }
    }
  }
  for (std::size_t n : nodes_) {
    if (wanted[n]) give_slot(n);
    if (slot_at_[n] != none) parts_[part_of[n]].writes.push_back(n);
  }
}

// Equal keys: the same code, given the table of slots.
std::string KernelParts::key_of(const Part& part) const {
  std::string key;
  std::unordered_map<std::size_t, std::size_t> local;
  for (std::size_t n : part.reads) {
    key += str(short_name(k_.nodes[n].type.dtype), ",");
    local.emplace(n, local.size());
  }
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const Node& node = k_.nodes[nodes_[i]];
    key += plan::operation_key(node);
    for (std::size_t from : node.in) key += str(local.at(from), ",");
    local.emplace(nodes_[i], local.size());
  }
  for (std::size_t n : part.writes) key += str(";", local.at(n));
  return key;
}

void KernelParts::emit_part(llvm::Module& m, const std::string& name, Part& part,
                            const VectorTarget& target) const {
  llvm::IRBuilder<> b(m.getContext());
  CodeBlocks code{b};
  llvm::Function* f = new_function(m, b, name, {code.pointer_type(), code.pointer_type()});
  f->setLinkage(llvm::GlobalValue::InternalLinkage);
  OpEmitter op(b, lanes_, target);
  const auto place = [&](std::size_t number) {
    Value* offset =
        b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), f->getArg(1), number));
    return b.CreateGEP(b.getInt8Ty(), f->getArg(0), offset);
  };
  std::unordered_map<std::size_t, std::size_t> number_of;
  for (std::size_t n : part.reads) number_of.emplace(n, number_of.size());
  std::unordered_map<std::size_t, Value*> values;
  const auto value = [&](std::size_t n) {
    Value*& v = values[n];
    if (v == nullptr) v = load_slot(b, op, place(number_of.at(n)), k_.nodes[n].type.dtype, lanes_);
    return v;
  };
  std::size_t next_write = 0;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const Node& node = k_.nodes[nodes_[i]];
    count_work();
    std::vector<Value*> x;
    for (std::size_t from : node.in) x.push_back(value(from));
    Value* y = node.eqn == nullptr ? x[0] : op.emit(*node.eqn, x, node.in_types, node.type);
    values[nodes_[i]] = y;
    if (next_write == part.writes.size() || part.writes[next_write] != nodes_[i]) continue;
    store_slot(b, op, place(part.reads.size() + next_write), node.type.dtype, y);
    ++next_write;
  }
  b.CreateRetVoid();
  part.code = f;
}

void KernelParts::emit(llvm::Module& m, const std::string& name, const VectorTarget& target) {
  std::unordered_map<std::string, llvm::Function*> made;
  auto* number = llvm::Type::getInt64Ty(m.getContext());
  for (Part& part : parts_) {
    llvm::Function*& code = made[key_of(part)];
    if (code == nullptr) {
      emit_part(m, name + "_part" + std::to_string(made.size()), part, target);
      code = part.code;
    }
    part.code = code;
    std::vector<llvm::Constant*> offsets;
    for (const auto* list : {&part.reads, &part.writes}) {
      for (std::size_t n : *list) offsets.push_back(llvm::ConstantInt::get(number, slot_at_[n]));
    }
    auto* type = llvm::ArrayType::get(number, offsets.size());
    part.where =
        new llvm::GlobalVariable(m, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                 llvm::ConstantArray::get(type, offsets), name + "_slots");
  }
}

void KernelParts::run(llvm::IRBuilderBase& b, OpEmitter& op, Value* scratch, Value* always,
                      const Input& input) const {
  CodeBlocks(b).apart(inputs_, always, [&](std::size_t n) {
    Value* const place = b.CreateConstGEP1_64(b.getInt8Ty(), scratch, slot_at_[n]);
    store_slot(b, op, place, k_.nodes[n].type.dtype, input(n));
  });
  for (const Part& part : parts_) b.CreateCall(part.code, {scratch, part.where});
}
Value* KernelParts::get(llvm::IRBuilderBase& b, OpEmitter& op, Value* slots,
                        std::size_t node) const {
  return load_slot(b, op, b.CreateConstGEP1_64(b.getInt8Ty(), slots, slot_at_[node]),
                   k_.nodes[node].type.dtype, lanes_);
}

PassParts emit_parts(llvm::Module& m, const std::string& name, const KernelPasses& passes,
                     unsigned lanes, const VectorTarget& target, std::size_t& scratch_bytes) {
  const std::vector<bool> read = passes.read_elsewhere();
  const auto made = [&](std::vector<std::size_t> nodes, const std::string& part_of) {
    std::optional<KernelParts> parts;
    if (nodes.size() <= large_pass) return parts;
    parts.emplace(passes.k, std::move(nodes), read, lanes, scratch_bytes);
    parts->emit(m, part_of, target);
    return parts;
  };
  PassParts all;
  for (std::size_t pass = 0; pass < passes.count; ++pass) {
    all.of_pass.push_back(made(passes.operations(pass), str(name, "_pass", pass)));
    all.of_row.push_back(made(passes.row_operations(pass), str(name, "_row", pass)));
  }
  return all;
}

}  // namespace reprise::codegen
