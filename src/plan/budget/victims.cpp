#include "plan/budget/victims.h"

#include <algorithm>
#include <tuple>

namespace reprise::budget {
namespace {

constexpr int longest_walk = 256;        // values looked at for the cost of one
constexpr double not_needed_now = 0.01;  // weight of the cost of what no known reader needs
constexpr std::size_t most_pairs = 64;   // values of which all pairs are tried

}  // namespace

Victims::Victims(const Graph& graph, const Moments& moments, int variety)
    : graph_(graph),
      moments_(moments),
      words_(words_for(graph.size())),
      variety_(variety),
      next_use_(static_cast<std::size_t>(graph.size())),
      stamp_(static_cast<std::size_t>(graph.size()), 0) {}

void Victims::weigh(const Word* memory, const Word* missing, int s) {
  const int none = graph_.size();
  const auto direct = [&](int v) { at(next_use_, v) = graph_.next_reader(v, s); };
  each(memory, words_, direct);
  each(missing, words_, direct);
  each_descending(missing, words_, [&](int v) {
    for (int u : graph_[v].operands)
      at(next_use_, u) = std::min(at(next_use_, u), at(next_use_, v));
  });
  weighed_ = s;
  all_.clear();
  each(memory, words_, [&](int v) {
    const Node& node = graph_[v];
    if (node.output || node.bytes == 0) return;
    const int use = at(next_use_, v);
    const double cost = cost_again(v, memory) * (use == none ? not_needed_now : 1);
    all_.push_back({v, node.bytes, cost, 1.0 + use - s, use});
  });
}

// Counts each missing value once, and only so many: far away the estimate is of no use.
double Victims::cost_again(int v, const Word* memory) {
  ++stamps_;
  at(stamp_, v) = stamps_;
  todo_.assign(1, v);
  double cost = 0;
  for (std::size_t k = 0; k < todo_.size() && k < longest_walk; ++k) {
    const Node& node = graph_[todo_[k]];
    cost += node.cost;
    for (int u : node.operands) {
      if (has(memory, u) || at(stamp_, u) == stamps_) continue;
      at(stamp_, u) = stamps_;
      todo_.push_back(u);
    }
  }
  return cost;
}

const std::vector<std::vector<int>>& Victims::sets(int v, std::int64_t bytes) {
  sets_.clear();
  values_.clear();
  std::int64_t sum = 0;
  const std::vector<int>& operands = graph_[v].operands;
  for (const Value& value : all_) {
    if (std::binary_search(operands.begin(), operands.end(), value.node)) continue;
    values_.push_back(value);
    sum += value.bytes;
  }
  if (sum < bytes) return sets_;
  const auto size = [](const Value& x) { return static_cast<double>(x.bytes); };
  add_in_order(bytes, [&](const Value& x) { return x.cost / (size(x) * x.distance); });
  const Moment* worst = moments_.worst(weighed_);
  const Moment* nearest = moments_.nearest(weighed_);
  if (worst != nullptr) add_for(*worst, bytes);
  if (nearest != worst) add_for(*nearest, bytes);
  if (variety_ > 1) add_in_order(bytes, [&](const Value& x) { return -x.distance; });
  if (variety_ > 2) add_in_order(bytes, [&](const Value& x) { return x.cost / size(x); });
  if (variety_ > 3) {
    add_in_order(bytes, [&](const Value& x) { return x.cost / x.distance; });
    add_in_order(bytes, [&](const Value& x) { return x.cost; });
    add_small_sets(bytes);
  }
  return sets_;
}

// Takes values in the order of their keys until the bytes suffice, then gives back what is not
// needed, the most precious first.
template <class Key>
void Victims::add_in_order(std::int64_t bytes, const Key& key) {
  std::vector<std::pair<double, int>>& order = order_;
  order.clear();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    order.push_back({key(values_[i]), static_cast<int>(i)});
  }
  std::int64_t taken = 0;
  std::size_t count = 0;
  // Only the first few are needed in order.
  for (std::size_t sorted = 0; taken < bytes; ++count) {
    if (count == sorted) {
      sorted = std::min(order.size(), sorted * 2 + 8);
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(count);
      std::partial_sort(begin, order.begin() + static_cast<std::ptrdiff_t>(sorted), order.end());
    }
    taken += at(values_, order[count].second).bytes;
  }
  std::vector<int> set;
  for (std::size_t k = count; k-- > 0;) {
    const Value& value = at(values_, order[k].second);
    if (taken - value.bytes >= bytes) {
      taken -= value.bytes;
    } else {
      set.push_back(value.node);
    }
  }
  add(std::move(set));
}

// First what that moment drops, last what it keeps.
void Victims::add_for(const Moment& moment, std::int64_t bytes) {
  double highest = 0;
  const auto price = [](const Value& x) { return x.cost / static_cast<double>(x.bytes); };
  for (const Value& x : values_) highest = std::max(highest, price(x));
  add_in_order(bytes, [&](const Value& x) {
    const int rank = x.use <= moment.stage ? 2 : at(moment.kept, x.node);
    return rank * 2 * highest + price(x);
  });
}

// The cheapest values that are large enough alone, and the cheapest pairs.
void Victims::add_small_sets(std::int64_t bytes) {
  singles_.clear();
  pairs_.clear();
  const std::size_t count = std::min(values_.size(), most_pairs);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& a = values_[i];
    if (a.bytes >= bytes) {
      singles_.push_back({a.cost, a.node, -1});
      continue;
    }
    for (std::size_t j = i + 1; i < count && j < count; ++j) {
      const Value& b = values_[j];
      if (b.bytes < bytes && a.bytes + b.bytes >= bytes) {
        pairs_.push_back({a.cost + b.cost, a.node, b.node});
      }
    }
  }
  const auto less = [](const SmallSet& x, const SmallSet& y) {
    return std::tie(x.cost, x.a, x.b) < std::tie(y.cost, y.a, y.b);
  };
  const auto add_best = [&](std::vector<SmallSet>& list, std::size_t most) {
    const std::size_t few = std::min(list.size(), most);
    std::partial_sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(few), list.end(),
                      less);
    for (std::size_t i = 0; i < few; ++i)
      add(list[i].b < 0 ? std::vector{list[i].a} : std::vector{list[i].a, list[i].b});
  };
  add_best(singles_, static_cast<std::size_t>(variety_) / 2);
  add_best(pairs_, static_cast<std::size_t>(variety_) / 2 - 1);
}

void Victims::add(std::vector<int> set) {
  std::sort(set.begin(), set.end());
  if (std::find(sets_.begin(), sets_.end(), set) == sets_.end()) sets_.push_back(std::move(set));
}

}  // namespace reprise::budget
