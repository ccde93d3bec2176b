#include "plan/open_groups.h"

#include "base/work.h"

namespace reprise::plan {

OpenGroups::Open OpenGroups::open(Group g) {
  const Open opened = all_.insert(all_.end(), OpenGroup(std::move(g), next_serial_++));
  has_grown(opened);
  return opened;
}

void OpenGroups::has_grown(Open g) {
  has_changed(g);
  const std::vector<Load>& loads = g->kernel().loads;
  for (; g->indexed < loads.size(); ++g->indexed) {
    const Load& l = loads[g->indexed];
    if (l.source != Source::memory) continue;
    readers_[l.root].emplace(g->serial, g);
    growing_[{l.root, g->kernel().size()}].emplace(g->serial, g);
  }
}

Group OpenGroups::take(Open g) {
  changed_.erase(g->serial);
  const auto remove = [&](auto& index, const auto& key) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(g->serial);
    if (found->second.empty()) index.erase(found);
  };
  for (const Load& l : g->kernel().loads) {
    if (l.source != Source::memory) continue;
    remove(readers_, l.root);
    remove(growing_, std::pair(l.root, g->kernel().size()));
  }
  Group taken = std::move(*g);
  all_.erase(g);
  return taken;
}

OpenGroups::Open OpenGroups::reader(const std::vector<Operand>& operands, std::int64_t size,
                                    std::size_t nodes) {
  Open first = all_.end();
  for (const Operand& x : operands) {
    if (x.source != Source::memory) continue;
    const auto found = growing_.find({x.view.root, size});
    if (found == growing_.end()) continue;
    Opens& groups = found->second;
    // Groups only grow: one that is full is not looked at again.
    while (!groups.empty() && groups.begin()->second->kernel().nodes.size() >= nodes) {
      count_work();
      groups.erase(groups.begin());
    }
    if (groups.empty()) continue;
    const auto [serial, g] = *groups.begin();
    if (first == all_.end() || serial < first->serial) first = g;
  }
  return first;
}

void OpenGroups::have_changed(Var root) {
  const auto found = readers_.find(root);
  if (found != readers_.end()) changed_.insert(found->second.begin(), found->second.end());
}

}  // namespace reprise::plan
