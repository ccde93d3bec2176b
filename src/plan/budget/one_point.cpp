#include "plan/budget/one_point.h"

#include "plan/min_cut.h"

#include <algorithm>
#include <cmath>

namespace reprise::budget {
namespace {

// The values that matter at a stage, and the cuts among them.
class Exchange {
 public:
  Exchange(const Graph& graph, int stage, const Word* missing)
      : graph_(graph), index_(size(graph), absent) {
    if (missing != nullptr) each(missing, words_for(stage), [&](int v) { at(index_, v) = free; });
    for (int u : graph[stage].operands) at(index_, u) = free;
    for (int v = 0; v < stage; ++v) {
      if (graph[v].output) at(index_, v) = free;
    }
    for (int v = 0; v < stage; ++v) {
      if (graph.last_reader(v) > stage && at(index_, v) == absent) read_.push_back(v);
    }
    for (int v : read_) add(v);
    for (std::size_t k = 0; k < values_.size(); ++k) {
      for (int u : graph[values_[k]].operands) add(u);
    }
  }

  struct Choice {
    double cost = 0;         // of what is computed again
    std::int64_t bytes = 0;  // of what is kept
    std::vector<int> kept;
  };
  Choice all_kept() const {
    Choice choice;
    choice.kept = read_;
    for (int v : read_) choice.bytes += graph_[v].bytes;
    return choice;
  }
  Choice none_kept() const {
    Choice choice;
    for (int v : values_) choice.cost += graph_[v].cost;
    return choice;
  }

  // The best choice if a kept byte costs `price`, and the value of the relaxation, never too high.
  Choice choose(double price, double& value) const {
    const std::size_t count = values_.size();
    plan::MinCut cut(2 * count);
    const double scale = std::ldexp(1.0, 40) / std::max(none_kept().cost, 1e-300);
    std::vector<std::int64_t> capacity(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const Node& node = graph_[values_[i]];
      const double keep = price * static_cast<double>(node.bytes);
      const double most = std::ldexp(1.0, 50);  // beyond all costs together
      capacity[i] = static_cast<std::int64_t>(std::min(most, keep * scale));
      capacity[count + i] = static_cast<std::int64_t>(node.cost * scale);
      cut.set_capacity(i, capacity[i]);
      cut.set_capacity(count + i, capacity[count + i]);
      cut.connect(i, count + i);
      cut.to_sink(count + i);
      for (int u : node.operands) {
        if (at(index_, u) >= 0) cut.connect(i, static_cast<std::size_t>(at(index_, u)));
      }
    }
    for (int v : read_) cut.from_source(static_cast<std::size_t>(at(index_, v)));
    Choice choice;
    std::int64_t sum = 0;
    for (std::size_t i : cut.solve()) {
      sum += capacity[i];
      const Node& node = graph_[values_[i % count]];
      if (i >= count) {
        choice.cost += node.cost;
      } else {
        choice.bytes += node.bytes;
        choice.kept.push_back(values_[i]);
      }
    }
    value = static_cast<double>(sum) / scale;
    return choice;
  }

 private:
  static constexpr int absent = -1, free = -2;
  static std::size_t size(const Graph& graph) { return static_cast<std::size_t>(graph.size()); }
  void add(int v) {
    if (at(index_, v) != absent) return;
    at(index_, v) = static_cast<int>(values_.size());
    values_.push_back(v);
  }

  const Graph& graph_;
  std::vector<int> index_;
  std::vector<int> read_, values_;  // read after the stage; those and all they are made of
};

}  // namespace

Moment one_point(const Graph& graph, int stage, std::int64_t budget) {
  constexpr int most_prices = 16;
  const Exchange exchange(graph, stage, nullptr);
  const std::int64_t room = budget - at(forced_bytes(graph), stage);
  Moment moment{stage, room, 0, 0, std::vector<char>(static_cast<std::size_t>(graph.size()), 0)};
  Exchange::Choice more = exchange.all_kept(), less = exchange.none_kept();
  if (more.bytes > room) {
    for (int k = 0; k < most_prices; ++k) {
      // Where the two choices cost the same, a third may be cheaper.
      const double price = (less.cost - more.cost) / static_cast<double>(more.bytes - less.bytes);
      double value = 0;
      Exchange::Choice choice = exchange.choose(price, value);
      const double extra = value - price * static_cast<double>(room);
      if (extra > moment.extra) {
        moment.extra = extra;
        moment.price = price;
      }
      const std::int64_t bytes = choice.bytes;
      if (bytes == more.bytes || bytes == less.bytes) break;
      (bytes > room ? more : less) = std::move(choice);
    }
    moment.extra *= 1 - 1e-12;
  } else {
    less = more;
  }
  for (int v : more.kept) ++at(moment.kept, v);
  for (int v : less.kept) ++at(moment.kept, v);
  return moment;
}

double extra_beyond(const Graph& graph, const Moment& moment, const Word* missing) {
  const Exchange exchange(graph, moment.stage, missing);
  if (exchange.all_kept().bytes <= moment.room) return 0;
  double value = 0;
  exchange.choose(moment.price, value);
  return value - moment.price * static_cast<double>(moment.room);
}

Moments::Moments(const Graph& graph, std::int64_t budget, std::size_t count) {
  const std::size_t stages = static_cast<std::size_t>(graph.size()) + 1;
  for (int s : Stages(graph, budget).demanding(count)) {
    moments_.push_back(one_point(graph, s, budget));
  }
  std::sort(moments_.begin(), moments_.end(),
            [](const Moment& a, const Moment& b) { return a.stage < b.stage; });
  best_.assign(stages, nullptr);
  nearest_.assign(stages, nullptr);
  std::size_t k = moments_.size();
  for (int s = graph.size() - 1; s >= 0; --s) {
    at(best_, s) = at(best_, s + 1);
    at(nearest_, s) = at(nearest_, s + 1);
    if (k == 0 || moments_[k - 1].stage != s) continue;
    --k;
    at(nearest_, s) = &moments_[k];
    if (at(best_, s) == nullptr || at(best_, s)->extra < moments_[k].extra) {
      at(best_, s) = &moments_[k];
    }
  }
}

}  // namespace reprise::budget
