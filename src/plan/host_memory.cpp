#include "plan/host_memory.h"

#include <algorithm>

namespace reprise::plan {
namespace {

// Bytes on the host from the step that begins to write them to the last one that reads them.
struct HostBlock {
  std::size_t bytes = 0, first = 0, last = 0;
  Place* place = nullptr;
};

// Results that loops write where an operand lies that ends with the loop: they have its place.
using Heirs = std::vector<std::pair<Place*, const Place*>>;

std::vector<HostBlock> blocks_of(const Schedule& s, const MemoryRequest& r, MemoryPlan& plan,
                                 Heirs& heirs) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<HostBlock> values(s.types.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    const bool given = plan.places[v].region != Region::none;
    values[v] = {s.on_host[v] && !given ? aligned(s.types[v].nbytes()) : 0, none, 0,
                 &plan.places[v]};
  }
  std::vector<HostBlock> out;
  for (std::size_t i = 0; i < s.steps.size(); ++i) {
    for (const std::vector<Var>* list : {&s.steps[i].reads, &s.steps[i].writes}) {
      for (Var v : *list) {
        HostBlock& b = values[static_cast<std::size_t>(v)];
        b.first = std::min(b.first, i);
        b.last = std::max(b.last, i);
      }
    }
    if (r.host_scratch_bytes[i] > 0)
      out.push_back({aligned(r.host_scratch_bytes[i]), i, i, &plan.host_scratch[i]});
  }
  for (std::size_t i = 0; i < r.carried.size(); ++i) {
    for (const CarriedRoots& c : r.carried[i]) {
      HostBlock &from = values[static_cast<std::size_t>(c.initial)],
                &to = values[static_cast<std::size_t>(c.result)];
      if (from.bytes == 0 || from.bytes != to.bytes || from.last != i || to.first != i) continue;
      from.last = to.last;
      to.bytes = 0;
      heirs.emplace_back(to.place, from.place);
    }
  }
  for (const HostBlock& b : values) {
    if (b.bytes > 0 && b.first != none) out.push_back(b);
  }
  return out;
}

}  // namespace

void plan_host_memory(const Schedule& s, const MemoryRequest& r, MemoryPlan& plan) {
  plan.host_on_disk = r.host_on_disk;
  plan.host_scratch_bytes = r.host_scratch_bytes;
  plan.host_scratch.resize(s.steps.size());
  Heirs heirs;
  std::vector<HostBlock> blocks = blocks_of(s, r, plan, heirs);
  // The largest first, each at the lowest offset where nothing that lives at the same time lies.
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const HostBlock& a, const HostBlock& b) { return a.bytes > b.bytes; });
  std::vector<const HostBlock*> placed;  // by offset
  const auto by_offset = [](const HostBlock* a, const HostBlock* b) {
    return a->place->offset < b->place->offset;
  };
  for (HostBlock& now : blocks) {
    std::size_t offset = 0;
    for (const HostBlock* other : placed) {
      if (other->last < now.first || other->first > now.last ||
          other->place->offset + other->bytes <= offset)
        continue;
      if (other->place->offset >= offset + now.bytes) break;
      offset = other->place->offset + other->bytes;
    }
    *now.place = {Region::host, offset};
    plan.host_bytes = std::max(plan.host_bytes, offset + now.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &now, by_offset), &now);
  }
  for (const auto& [to, from] : heirs) *to = *from;
}

}  // namespace reprise::plan
