#include "plan/budget/chain.h"

#include <algorithm>
#include <limits>

namespace reprise::budget {
namespace {

// A chain taken apart: the path is 0..length-1, all other nodes are its way back.
struct Chain {
  int length = 0;
  // For each value of the path: the nodes that read it and those after them; what the way back
  // holds before they run, at most while the value is still needed, and at most afterwards.
  std::vector<std::vector<int>> steps;
  std::vector<std::int64_t> before, during, after;
  bool uniform = false;
};

int path_length(const Graph& graph) {
  int length = 0;
  while (length < graph.size() && !graph[length].output &&
         graph[length].operands == (length == 0 ? std::vector<int>{} : std::vector{length - 1})) {
    ++length;
  }
  return std::max(0, length - 1);  // the last one of them turns round
}

// The value of the path that the node reads; `current` if it reads none, -1 if more than one.
int path_operand(const Node& node, int length, int current) {
  const std::vector<int>& all = node.operands;
  if (all.empty() || all.front() >= length) return current;
  return all.size() > 1 && all[1] < length ? -1 : all.front();
}

bool is_uniform(const Graph& graph, const Chain& chain) {
  for (int k = 1; k < chain.length; ++k) {
    if (graph[k].bytes != graph[0].bytes || graph[k].cost != graph[0].cost ||
        graph[k].scratch != graph[0].scratch) {
      return false;
    }
  }
  for (int k = 1; k + 1 < chain.length; ++k) {
    if (at(chain.before, k) != at(chain.before, 0) || at(chain.during, k) != at(chain.during, 0) ||
        at(chain.after, k) != at(chain.after, 0)) {
      return false;
    }
  }
  return true;
}

std::optional<Chain> take_apart(const Graph& graph) {
  Chain chain;
  chain.length = path_length(graph);
  if (chain.length < 2) return std::nullopt;
  const auto length = static_cast<std::size_t>(chain.length);
  chain.steps.resize(length);
  chain.before.assign(length, 0);
  chain.during.assign(length, 0);
  chain.after.assign(length, 0);
  int current = chain.length - 1;
  std::int64_t held = 0;  // by the way back
  for (int i = chain.length; i < graph.size(); ++i) {
    const int k = path_operand(graph[i], chain.length, current);
    if (k < 0 || k > current) return std::nullopt;
    for (; current > k; --current) at(chain.before, current - 1) = held;
    at(chain.steps, k).push_back(i);
    held += graph[i].bytes;
    const bool read_later = !graph[k].output && graph.last_reader(k) >= i;
    std::int64_t& most = at(read_later ? chain.during : chain.after, k);
    most = std::max(most, held + graph[i].scratch);
    const std::vector<int>& operands = graph[i].operands;
    for (int u : operands) {
      if (u >= chain.length && !graph[u].output && graph.last_reader(u) == i)
        held -= graph[u].bytes;
    }
    if (!graph[i].output && graph.last_reader(i) < 0) held -= graph[i].bytes;
  }
  for (; current > 0; --current) at(chain.before, current - 1) = held;
  chain.after[0] = chain.length > 2 ? chain.after[1] : 0;  // the end: no choice is left there
  chain.uniform = is_uniform(graph, chain);
  return chain;
}

class ChainProgramme {
 public:
  ChainProgramme(const Graph& graph, const Chain& chain, std::int64_t budget)
      : graph_(graph), chain_(chain), budget_(budget) {
    const auto count = static_cast<std::size_t>(chain.length) + 1;
    points_.resize(chain.uniform ? 2 * count : count * count);
    for (int span = 1; span <= chain.length; ++span) {
      for (int i = -1; i + span < chain.length; ++i) {
        std::vector<Point>& points = at(points_, index(i, i + span));
        if (points.empty()) points = reverse(i, i + span);
      }
    }
  }

  std::optional<Schedule> schedule() const {
    Schedule schedule;
    struct Task {
      int i, j;
      std::int64_t room;
      bool step;  // the way back at j, nothing else
    };
    std::vector<Task> tasks{{-1, chain_.length - 1, budget_, false}};
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      if (task.step) {
        const std::vector<int>& step = at(chain_.steps, task.j);
        schedule.insert(schedule.end(), step.begin(), step.end());
      } else if (task.i < task.j) {
        const Point* point = best(task.i, task.j, task.room);
        if (point == nullptr) return std::nullopt;
        const int k = task.i + point->ahead;
        for (int v = task.i + 1; v <= k; ++v) schedule.push_back(v);
        tasks.push_back({task.i, k - 1, task.room, false});
        tasks.push_back({task.i, k, 0, true});
        tasks.push_back({k, task.j, task.room - graph_[k].bytes, false});
      }
    }
    return schedule;
  }

 private:
  // With so many bytes beyond the checkpoints that are there, it costs so much; the next checkpoint
  // is so far ahead.
  struct Point {
    std::int64_t bytes;
    double cost;
    int ahead;
  };

  // Parts of uniform chains are equal if they are equally long, apart from those at the turn.
  int index(int i, int j) const {
    const int count = chain_.length + 1;
    if (!chain_.uniform) return (i + 1) * count + j;
    return j - i - 1 + (j == chain_.length - 1 ? count : 0);
  }

  const Point* best(int i, int j, std::int64_t room) const {
    const Point* found = nullptr;
    for (const Point& point : at(points_, index(i, j))) {
      if (point.bytes <= room) found = &point;
    }
    return found;
  }

  // From checkpoint i: all ways to reverse i+1..j, the least bytes first.
  std::vector<Point> reverse(int i, int j) const {
    std::vector<Point> all;
    std::int64_t passing = 0;  // while the path is walked
    double cost = 0;
    for (int k = i + 1; k <= j; ++k) {
      const std::int64_t bytes = graph_[k].bytes;
      passing =
          std::max(passing, bytes + graph_[k].scratch + (k - 1 > i ? graph_[k - 1].bytes : 0));
      cost += graph_[k].cost;
      const std::int64_t least = std::max(
          {passing + at(chain_.before, j), bytes + at(chain_.during, k), at(chain_.after, k)});
      if (least <= budget_) join(i, j, k, least, cost, all);
    }
    std::sort(all.begin(), all.end(), [](const Point& a, const Point& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.cost < b.cost;
    });
    std::vector<Point> best;
    for (const Point& point : all) {
      if (best.empty() || point.cost < best.back().cost) best.push_back(point);
    }
    return best;
  }

  void join(int i, int j, int k, std::int64_t least, double cost, std::vector<Point>& all) const {
    static const std::vector<Point> nothing{{0, 0, 0}};
    const std::vector<Point>& right = k < j ? at(points_, index(k, j)) : nothing;
    const std::vector<Point>& left = i < k - 1 ? at(points_, index(i, k - 1)) : nothing;
    if (right.empty() || left.empty()) return;
    std::size_t r = 0, l = 0;
    const std::int64_t far = std::numeric_limits<std::int64_t>::max();
    while (true) {
      const std::int64_t bytes = std::max({least, right[r].bytes + graph_[k].bytes, left[l].bytes});
      if (bytes > budget_) return;
      // Both as cheap as these bytes allow.
      const auto next_right = [&] {
        return r + 1 < right.size() ? right[r + 1].bytes + graph_[k].bytes : far;
      };
      const auto next_left = [&] { return l + 1 < left.size() ? left[l + 1].bytes : far; };
      while (next_right() <= bytes) ++r;
      while (next_left() <= bytes) ++l;
      all.push_back({bytes, cost + right[r].cost + left[l].cost, k - i});
      const std::int64_t a = next_right(), b = next_left();
      if (a == far && b == far) return;
      ++(a <= b ? r : l);
    }
  }

  const Graph& graph_;
  const Chain& chain_;
  const std::int64_t budget_;
  std::vector<std::vector<Point>> points_;
};

}  // namespace

std::optional<Schedule> solve_chain(const Graph& graph, std::int64_t budget) {
  constexpr int longest = 160, longest_uniform = 1200;
  const std::optional<Chain> chain = take_apart(graph);
  if (!chain || chain->length > (chain->uniform ? longest_uniform : longest)) return std::nullopt;
  return ChainProgramme(graph, *chain, budget).schedule();
}

}  // namespace reprise::budget
