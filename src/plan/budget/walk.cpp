#include "plan/budget/walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise::budget {
namespace {

constexpr std::size_t longest_way = 64;  // values looked at for the cost of one
constexpr int deepest_use = 64;  // missing values between a value and the stage that needs it

double power(double x, double exponent) {
  if (exponent == 1) return x;
  return exponent == 0 ? 1 : std::pow(x, exponent);
}

}  // namespace

Walk::Walk(const Graph& graph, std::int64_t budget)
    : graph_(graph), budget_(budget), end_(static_cast<std::size_t>(graph.size()) + 1) {
  for (int v = 0; v < graph.size(); ++v) {
    if (!graph[v].output) at(end_, std::max(v, graph.useful_until(v))).push_back(v);
  }
}

void Walk::start() {
  const auto size = static_cast<std::size_t>(graph_.size());
  in_memory_.assign(size, 0);
  place_.assign(size, -1);
  use_.assign(size, -1);
  in_closure_.assign(size, 0);
  stamp_.assign(size, 0);
  alive_.clear();
  schedule_.clear();
  stamps_ = closures_ = 0;
  used_ = 0;
  cost_ = 0;
}

std::optional<Schedule> Walk::run(const Worth& worth, double limit) {
  worth_ = &worth;
  limit_ = limit - graph_.cost();
  start();
  for (int s = 0; s < graph_.size(); ++s) {
    if (!make(s)) return std::nullopt;
    for (int u : at(end_, s)) {
      if (at(in_memory_, u)) drop(u);
    }
  }
  return schedule_;
}

bool Walk::is_ready(int v) const {
  const std::vector<int>& operands = graph_[v].operands;
  return std::all_of(operands.begin(), operands.end(), [&](int u) { return at(in_memory_, u); });
}

// Evaluates s, before it what it misses; again from the start where something was dropped on the
// way.
bool Walk::make(int s) {
  constexpr std::size_t most_starts = 64;
  for (std::size_t starts = 0; starts < most_starts; ++starts) {
    find_closure(s);
    bool whole = true;
    for (done_ = 0; done_ < closure_.size() && whole; ++done_) {
      const int v = closure_[done_];
      whole = is_ready(v);
      if (whole && !evaluate_node(v, s)) return false;
    }
    if (whole && is_ready(s)) return evaluate_node(s, s);
  }
  return false;
}

// The values that are missing for s, directly or for others of them, ascending.
void Walk::find_closure(int s) {
  closure_.clear();
  ++closures_;
  todo_.assign(1, s);
  while (!todo_.empty()) {
    const int v = todo_.back();
    todo_.pop_back();
    for (int u : graph_[v].operands) {
      if (at(in_memory_, u) || at(in_closure_, u) == closures_) continue;
      at(in_closure_, u) = closures_;
      closure_.push_back(u);
      todo_.push_back(u);
    }
  }
  std::sort(closure_.begin(), closure_.end());
}

bool Walk::evaluate_node(int v, int s) {
  const Node& node = graph_[v];
  const std::int64_t over = used_ + node.bytes + node.scratch - budget_;
  if (over > 0 && !make_room(over, v, s)) return false;
  if (v != s && (cost_ += node.cost) >= limit_) return false;
  used_ += node.bytes;
  at(in_memory_, v) = 1;
  if (!node.output) {
    at(place_, v) = static_cast<int>(alive_.size());
    alive_.push_back(v);
  }
  schedule_.push_back(v);
  return true;
}

void Walk::drop(int v) {
  at(in_memory_, v) = 0;
  used_ -= graph_[v].bytes;
  at(alive_, at(place_, v)) = alive_.back();
  at(place_, alive_.back()) = at(place_, v);
  alive_.pop_back();
}

// Drops the values of the least worth until the bytes suffice, but none that proves to be needless.
bool Walk::make_room(std::int64_t bytes, int v, int s) {
  const std::vector<int>& operands = graph_[v].operands;
  candidates_.clear();
  std::int64_t sum = 0;
  for (int u : alive_) {
    if (graph_[u].bytes == 0 || std::binary_search(operands.begin(), operands.end(), u)) continue;
    candidates_.push_back({worth_of(u, v, s), u});
    sum += graph_[u].bytes;
  }
  if (sum < bytes) return false;
  const auto less = [](const Candidate& a, const Candidate& b) {
    return a.worth != b.worth ? a.worth < b.worth : a.node < b.node;
  };
  std::int64_t taken = 0;
  std::size_t count = 0;
  for (std::size_t sorted = 0; taken < bytes; ++count) {
    if (count == sorted) {  // only the first few are needed in order
      sorted = std::min(candidates_.size(), sorted * 2 + 8);
      const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
      std::partial_sort(begin, candidates_.begin() + static_cast<std::ptrdiff_t>(sorted),
                        candidates_.end(), less);
    }
    taken += graph_[candidates_[count].node].bytes;
  }
  for (std::size_t k = count; k-- > 0;) {
    const int u = candidates_[k].node;
    if (taken - graph_[u].bytes >= bytes)
      taken -= graph_[u].bytes;
    else
      drop(u);
  }
  return true;
}

double Walk::worth_of(int v, int now, int s) {
  const std::vector<int>& readers = graph_.readers(v);
  double distance = 0;
  // for the rest of the closure, or for s
  for (auto r = std::upper_bound(readers.begin(), readers.end(), now); r != readers.end(); ++r) {
    if (*r > s) break;
    if (*r == s || at(in_closure_, *r) == closures_) {
      distance = 1;
      break;
    }
  }
  if (distance == 0) {
    const int use = next_use(v, s + 1, 0);
    if (use >= graph_.size()) return 0;
    distance = 1.0 + use - s + static_cast<double>(closure_.size() - done_);
  }
  const double own = worth_->of_node.empty() ? 1 : at(worth_->of_node, v);
  return own * power(cost_again(v), worth_->cost) /
         (power(static_cast<double>(graph_[v].bytes), worth_->bytes) *
          power(distance, worth_->distance));
}

// Counts each missing value once, and only so many: far away the estimate is of no use.
double Walk::cost_again(int v) {
  ++stamps_;
  at(stamp_, v) = stamps_;
  todo_.assign(1, v);
  double cost = 0;
  for (std::size_t k = 0; k < todo_.size() && k < longest_way; ++k) {
    const Node& node = graph_[todo_[k]];
    cost += node.cost;
    for (int u : node.operands) {
      if (at(in_memory_, u) || at(stamp_, u) == stamps_) continue;
      at(stamp_, u) = stamps_;
      todo_.push_back(u);
    }
  }
  return cost;
}

// The first stage from s on that needs v, itself or to compute what is missing then; size() if none
// does.
int Walk::next_use(int v, int s, int depth) {
  int use = graph_.next_reader(v, s);
  for (int r : graph_.readers(v)) {
    if (r >= s || r >= use) break;
    if (at(in_memory_, r) || graph_[r].output || graph_.useful_until(r) < s) continue;
    if (at(use_, r) < s && depth < deepest_use) at(use_, r) = next_use(r, s, depth + 1);
    if (at(use_, r) >= s) use = std::min(use, at(use_, r));
  }
  return use;
}

namespace {

// The generator of Steele, Lea and Flood: equal on every machine.
class Random {
 public:
  std::uint64_t bits() {
    std::uint64_t z = (seed_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t seed_ = 20;
};

class Walks {
 public:
  Walks(const Graph& graph, std::int64_t budget, double limit)
      : graph_(graph), walk_(graph, budget), cost_(limit) {}

  // Whether it is better than those before.
  bool attempt(const Worth& worth) {
    auto found = walk_.run(worth, cost_);
    if (!found) return false;
    best_ = std::move(found);
    cost_ = evaluate(graph_, *best_).cost;
    worth_ = worth;
    return true;
  }
  void usual(const Moments& moments, int count) {
    constexpr double shapes[][3] = {{1, 1, 1},   {1, 1, 0},   {0, 0, 1},   {1, 0, 1},
                                    {0.5, 1, 1}, {1, 1, 0.5}, {1, 1, 2},   {1, 0.5, 1},
                                    {0.5, 0, 1}, {0, 1, 1},   {1, 0.5, 2}, {2, 1, 1}};
    for (const auto& [cost, bytes, distance] : shapes) {
      if (count-- == 0) return;
      attempt({cost, bytes, distance, {}});
      for (const double strength : {4.0, 30.0}) {
        const Moment* moment = moments.worst(0);
        if (moment == nullptr) continue;
        Worth led{cost, bytes, distance, {}};
        for (const char kept : moment->kept) led.of_node.push_back(std::pow(strength, kept - 1));
        attempt(led);
      }
    }
  }
  void change(int rounds) {
    Random random;
    Worth worth = worth_;
    if (worth.of_node.empty()) worth.of_node.assign(static_cast<std::size_t>(graph_.size()), 1);
    for (int k = 0; k < rounds; ++k) {
      Worth next = worth;
      const auto count = 1 + random.bits() % 3;
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto v = random.bits() % static_cast<std::uint64_t>(graph_.size());
        next.of_node[v] *= std::exp(4 * (random.unit() + random.unit() - 1));
      }
      if (attempt(next)) worth = std::move(next);
    }
  }
  const std::optional<Schedule>& best() const { return best_; }

 private:
  const Graph& graph_;
  Walk walk_;
  std::optional<Schedule> best_;
  double cost_;
  Worth worth_;
};

}  // namespace

std::optional<Schedule> walk_often(const Graph& graph, const Moments& moments, std::int64_t budget,
                                   const WalkEffort& effort, double limit) {
  if (graph.size() == 0) return std::nullopt;
  Walks walks(graph, budget, limit);
  walks.usual(moments, effort.shapes);
  walks.change(effort.rounds);
  return walks.best();
}

}  // namespace reprise::budget
