#include "plan/kernel.h"

#include "program/primitive.h"

#include <algorithm>

namespace reprise::plan {
namespace {

void append(std::string& key, std::int64_t n) {
  key += std::to_string(n);
  key += ',';
}
void append(std::string& key, const Ints& list) {
  for (std::int64_t n : list) append(key, n);
  key += ';';
}

void append(std::string& key, const Node& node, const Kernel& k) {
  key += node.per_row ? 'r' : 'e';
  append(key, static_cast<std::int64_t>(node.kind));
  if (node.kind == NodeKind::load) {
    const Load& l = k.loads[node.load];
    append(key, static_cast<std::int64_t>(l.source));
    append(key, static_cast<std::int64_t>(l.dtype));
    if (l.source == Source::index) append(key, l.offset);
    if (l.source == Source::number) append(key, l.number.integer);
    append(key, l.strides);
    for (const Bound& b : l.bounds) {
      append(key, static_cast<std::int64_t>(b.loop));
      append(key, {b.begin, b.end});
    }
    return;
  }
  key += operation_key(node);
  for (std::size_t i : node.in) append(key, static_cast<std::int64_t>(i));
}

}  // namespace

bool Kernel::has_bounds() const {
  return std::any_of(loads.begin(), loads.end(), [](const Load& l) { return !l.bounds.empty(); });
}

std::vector<std::size_t> stages_of(const Kernel& k) {
  std::vector<std::size_t> stage(k.nodes.size(), 0);
  for (std::size_t n = 0; n < k.nodes.size(); ++n) {
    for (std::size_t i : k.nodes[n].in) {
      const bool waits = k.nodes[i].kind == NodeKind::row_reduce;
      stage[n] = std::max(stage[n], stage[i] + (waits ? 1 : 0));
    }
  }
  return stage;
}

bool is_copy(const Kernel& k) {
  return k.loads.size() == 1 && k.stores.size() == 1 && k.loads[0].source == Source::memory &&
         k.loads[0].bounds.empty() && k.loads[0].strides == k.stores[0].strides &&
         std::all_of(k.nodes.begin(), k.nodes.end(),
                     [](const Node& n) { return n.kind == NodeKind::load || n.eqn == nullptr; });
}

std::string operation_key(const Node& node) {
  std::string key;
  if (node.eqn != nullptr) {
    key += node.eqn->prim->name;
    for (const Param& p : node.eqn->params.items()) {
      key += p.key;
      key += python_text(p.value);
    }
  }
  key += ';';
  key += short_name(node.type.dtype);
  key += ';';  // numbers of operands follow, which must not run on from a number before them
  return key;
}

std::string key_of(const Kernel& k) {
  std::string key;
  key.reserve(64 + 24 * k.nodes.size());
  append(key, k.domain);
  append(key, k.row);
  append(key, k.segments);
  for (const Node& node : k.nodes) append(key, node, k);
  for (const Store& s : k.stores) {
    append(key, static_cast<std::int64_t>(s.node));
    append(key, s.strides);
  }
  return key;
}

}  // namespace reprise::plan
