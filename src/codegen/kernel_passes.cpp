#include "codegen/kernel_passes.h"

#include <algorithm>
#include <functional>

namespace reprise::codegen {

using plan::Node;
using plan::NodeKind;

namespace {

bool reduces(const Node& node) {
  return node.kind == NodeKind::row_reduce || node.kind == NodeKind::column_reduce;
}

}  // namespace

KernelPasses::KernelPasses(const plan::Kernel& kernel)
    : k(kernel),
      stage(plan::stages_of(kernel)),
      first(kernel.nodes.size(), none),
      spill(kernel.nodes.size(), none) {
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    if (k.nodes[n].kind == NodeKind::column_reduce) column_nodes.push_back(n);
    count = std::max(count, stage[n] + 1);
  }
  for (std::size_t pass = 0; pass < count; ++pass) {
    std::vector<bool> seen(k.nodes.size(), false);
    std::function<void(std::size_t)> need = [&](std::size_t n) {
      if (!is_full(n) || seen[n]) return;
      seen[n] = true;
      const Node& node = k.nodes[n];
      if (is_read(node)) return;
      if (first[n] != none) {
        if (spill[n] == none) spill[n] = spills++;
        return;
      }
      first[n] = pass;
      for (std::size_t i : node.in) need(i);
    };
    for (std::size_t n : sinks(pass)) need(n);
  }
}

std::vector<std::size_t> KernelPasses::sinks(std::size_t pass) const {
  std::vector<std::size_t> out;
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    if (reduces(k.nodes[n]) && stage[n] == pass) out.push_back(k.nodes[n].in[0]);
  }
  for (std::size_t s : stores(pass)) out.push_back(k.stores[s].node);
  return out;
}
std::vector<std::size_t> KernelPasses::spilled(std::size_t pass) const {
  std::vector<std::size_t> out;
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    if (spill[n] != none && first[n] == pass) out.push_back(n);
  }
  return out;
}
std::vector<std::size_t> KernelPasses::stores(std::size_t pass) const {
  std::vector<std::size_t> out;
  for (std::size_t s = 0; s < k.stores.size(); ++s) {
    const std::size_t n = k.stores[s].node;
    if (k.nodes[n].kind != NodeKind::column_reduce && is_full(n) && stage[n] == pass)
      out.push_back(s);
  }
  return out;
}

std::vector<std::size_t> KernelPasses::operations(std::size_t pass) const {
  std::vector<std::size_t> out;
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    if (k.nodes[n].kind == NodeKind::op && is_full(n) && first[n] == pass) out.push_back(n);
  }
  return out;
}
std::vector<std::size_t> KernelPasses::row_operations(std::size_t pass) const {
  std::vector<std::size_t> out;
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    if (k.nodes[n].kind == NodeKind::op && !is_full(n) && stage[n] == pass) out.push_back(n);
  }
  return out;
}

std::vector<bool> KernelPasses::read_elsewhere() const {
  std::vector<bool> read(k.nodes.size(), false);
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    if (spill[n] != none) read[n] = true;
    for (std::size_t i : k.nodes[n].in) {
      const bool leaves_row = !is_full(i) && (is_full(n) || stage[n] != stage[i]);
      if (reduces(k.nodes[n]) || leaves_row) read[i] = true;
    }
  }
  for (const plan::Store& s : k.stores) read[s.node] = true;
  return read;
}

}  // namespace reprise::codegen
