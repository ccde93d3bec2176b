#include "plan/min_cut.h"

#include <algorithm>
#include <deque>

namespace reprise::plan {

MinCut::MinCut(std::size_t nodes)
    : source_(2 * nodes), sink_(2 * nodes + 1), leaving_(2 * nodes + 2) {}

void MinCut::add(std::size_t from, std::size_t to, std::int64_t capacity) {
  leaving_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  leaving_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}
void MinCut::set_capacity(std::size_t node, std::int64_t capacity) {
  add(in(node), out(node), capacity);
}
void MinCut::connect(std::size_t from, std::size_t to) { add(out(from), in(to), unlimited); }
void MinCut::from_source(std::size_t node) { add(source_, in(node), unlimited); }
void MinCut::to_sink(std::size_t node) { add(out(node), sink_, unlimited); }

bool MinCut::find_levels() {
  level_.assign(leaving_.size(), -1);
  level_[source_] = 0;
  std::deque<std::size_t> queue{source_};
  while (!queue.empty()) {
    const std::size_t now = queue.front();
    queue.pop_front();
    for (std::size_t e : leaving_[now]) {
      if (edges_[e].left <= 0 || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[now] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[sink_] >= 0;
}

// One path along rising levels, without recursion: programs are deep.
std::int64_t MinCut::push() {
  std::vector<std::size_t> path;  // edges
  std::size_t now = source_;
  while (now != sink_) {
    bool advanced = false;
    for (; next_[now] < leaving_[now].size(); ++next_[now]) {
      const std::size_t e = leaving_[now][next_[now]];
      if (edges_[e].left <= 0 || level_[edges_[e].to] != level_[now] + 1) continue;
      path.push_back(e);
      now = edges_[e].to;
      advanced = true;
      break;
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    level_[now] = -1;  // a dead end
    now = edges_[path.back() ^ 1].to;
    path.pop_back();
  }
  std::int64_t amount = unlimited;
  for (std::size_t e : path) amount = std::min(amount, edges_[e].left);
  for (std::size_t e : path) {
    edges_[e].left -= amount;
    edges_[e ^ 1].left += amount;
  }
  return amount;
}

std::vector<std::size_t> MinCut::solve() {
  while (find_levels()) {
    next_.assign(leaving_.size(), 0);
    while (const std::int64_t amount = push()) {
      if (amount >= unlimited / 2) return {};
    }
  }
  // What can still reach the sink, walking edges backwards.
  std::vector<bool> reaches(leaving_.size(), false);
  reaches[sink_] = true;
  std::deque<std::size_t> queue{sink_};
  while (!queue.empty()) {
    const std::size_t now = queue.front();
    queue.pop_front();
    for (std::size_t e : leaving_[now]) {
      const std::size_t from = edges_[e].to;
      if (edges_[e ^ 1].left <= 0 || reaches[from]) continue;
      reaches[from] = true;
      queue.push_back(from);
    }
  }
  std::vector<std::size_t> cut;
  for (std::size_t node = 0; 2 * node < source_; ++node) {
    if (!reaches[in(node)] && reaches[out(node)]) cut.push_back(node);
  }
  return cut;
}

}  // namespace reprise::plan
