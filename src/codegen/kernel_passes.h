// In which pass over a row's columns each node of a kernel is computed, and what later passes need
// of it.
#pragma once

#include "plan/kernel.h"

#include <vector>

namespace reprise::codegen {

// Read from memory by every pass that wants it.
inline bool is_read(const plan::Node& node) {
  return node.kind == plan::NodeKind::load || node.kind == plan::NodeKind::choice;
}

struct KernelPasses {
  explicit KernelPasses(const plan::Kernel&);

  static constexpr auto none = static_cast<std::size_t>(-1);
  bool is_full(std::size_t n) const { return !k.nodes[n].per_row; }
  // What a pass must produce: inputs of reductions, and stored elements.
  std::vector<std::size_t> sinks(std::size_t pass) const;
  // What a pass leaves for later ones, and what it stores (numbers of stores).
  std::vector<std::size_t> spilled(std::size_t pass) const;
  std::vector<std::size_t> stores(std::size_t pass) const;
  // Operations of a pass, and those of values per row before it, each after what it reads.
  std::vector<std::size_t> operations(std::size_t pass) const;
  std::vector<std::size_t> row_operations(std::size_t pass) const;
  // Of every node: others than these operations read it.
  std::vector<bool> read_elsewhere() const;

  const plan::Kernel& k;
  std::size_t count = 1;
  std::vector<std::size_t> stage;  // of every node: reductions along the row that come before it
  std::vector<std::size_t> first;  // of every node: the pass that computes it
  std::vector<std::size_t>
      spill;  // of every node: where it waits for a later pass, if one reads it
  std::size_t spills = 0;
  std::vector<std::size_t> column_nodes;  // reductions over the rows
};

}  // namespace reprise::codegen
