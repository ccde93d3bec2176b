#include "plan/budget/search.h"

#include <algorithm>

namespace reprise::budget {
namespace {

constexpr double rounding = 1e-9;
constexpr int longest_dive = 8;  // times the patience

// The generator of Steele, Lea and Flood: equal on every machine.
Word mixed(Word& seed) {
  Word z = (seed += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

void Search::Pool::clear() {
  states.clear();
  words.clear();
  by_hash.clear();
}

Search::Search(const Graph& graph, const Moments& moments, std::int64_t budget,
               const Effort& effort)
    : graph_(graph),
      budget_(budget),
      effort_(effort),
      words_(words_for(graph.size())),
      stages_(graph, budget),
      moments_(moments),
      victims_(graph, moments, effort.variety),
      tail_(static_cast<std::size_t>(graph.size()) + 1, 0),
      end_(static_cast<std::size_t>(graph.size()) + 1),
      most_(std::max<std::int64_t>(400'000'000 / (graph.size() + 1), 8 * graph.size())),
      memory_(words_),
      missing_(words_),
      closure_(words_) {
  Word seed = 0;
  for (int v = 0; v < graph.size(); ++v) {
    keys_.push_back(mixed(seed));
    if (!graph[v].output) at(end_, std::max(v, graph.useful_until(v))).push_back(v);
  }
  for (int v = graph.size() - 1; v >= 0; --v) at(tail_, v) = at(tail_, v + 1) + graph[v].cost;
}

std::optional<Schedule> Search::run(double limit) {
  if (stages_.impossible() >= 0) return std::nullopt;
  limit_ = limit;
  now_.clear();
  now_.words.assign(2 * words_, 0);
  now_.states.push_back({});
  for (int s = 0; s < graph_.size(); ++s) {
    stages_.advance(s + 1);
    expand_stage(s);
    if (next_.states.empty()) return std::nullopt;
    keep_best(s + 1);
  }
  const auto best =
      std::min_element(now_.states.begin(), now_.states.end(),
                       [](const State& a, const State& b) { return a.cost < b.cost; });
  return trail_of(best->trail);
}

// Best first; among equals the one that has evaluated most. Where that reaches no end, those first
// that lack least.
void Search::expand_stage(int s) {
  next_.clear();
  now_.by_hash.clear();
  queue_.clear();
  diving_ = false;
  for (int i = 0; i < static_cast<int>(now_.states.size()); ++i) {
    now_.by_hash[at(now_.states, i).hash] = i;
    push(i);
  }
  const int enough = 4 * effort_.width, patience = effort_.patience * effort_.width;
  for (int looked = 0; !queue_.empty() && static_cast<int>(next_.states.size()) < enough;) {
    const int state = pop();
    if (now_.by_hash.at(at(now_.states, state).hash) != state) continue;  // found cheaper since
    if (++looked > patience * (next_.states.empty() ? longest_dive : 1) || made_ > most_) break;
    if (looked > patience && !diving_) dive(s);
    const int before = static_cast<int>(now_.states.size());
    expand(state, s);
    for (int i = before; i < static_cast<int>(now_.states.size()); ++i) {
      if (diving_) at(now_.states, i).left = left_for(s, at(now_.states, i));
      push(i);
    }
  }
}

void Search::push(int state) {
  queue_.push_back({at(now_.states, state).rank, state});
  std::push_heap(queue_.begin(), queue_.end(), [&](const auto& a, const auto& b) {
    return comes_later(at(now_.states, a.second), at(now_.states, b.second));
  });
}

int Search::pop() {
  std::pop_heap(queue_.begin(), queue_.end(), [&](const auto& a, const auto& b) {
    return comes_later(at(now_.states, a.second), at(now_.states, b.second));
  });
  const int state = queue_.back().second;
  queue_.pop_back();
  return state;
}

bool Search::comes_later(const State& a, const State& b) {
  if (a.left != b.left) return a.left > b.left;
  if (a.rank != b.rank) return a.rank > b.rank;
  return a.depth < b.depth;
}

void Search::dive(int s) {
  diving_ = strained_ = true;
  std::vector<int> states;
  for (const auto& entry : queue_) states.push_back(entry.second);
  queue_.clear();
  for (int state : states) {
    at(now_.states, state).left = left_for(s, at(now_.states, state));
    push(state);
  }
}

// How many values must be computed before s.
int Search::left_for(int s, const State& state) {
  find_closure(s, state);
  int count = 0;
  each(closure_.data(), words_, [&](int) { ++count; });
  return count;
}

void Search::expand(int state, int s) {
  const State from = at(now_.states, state);
  weighed_ = false;
  choose_evaluations(from, s);
  const std::vector<int> evaluations = evaluations_;
  for (int v : evaluations) evaluate_node(from, v, s);
}

// The next node if its operands are there, some of those it needs otherwise, and a few that are
// needed later: their operands may be about to go.
void Search::choose_evaluations(const State& from, int s) {
  constexpr int most_needed = 4, most_early = 3;
  const Word* memory = this->memory(now_, from);
  const auto ready = [&](int v) {
    const std::vector<int>& operands = graph_[v].operands;
    return std::all_of(operands.begin(), operands.end(), [&](int u) { return has(memory, u); });
  };
  evaluations_.clear();
  if (ready(s)) evaluations_.push_back(s);
  find_closure(s, from);
  const auto add_ready = [&](const Word* set, int most) {
    each_until(set, words_, [&](int v) {
      if (!ready(v)) return true;
      evaluations_.push_back(v);
      return --most > 0;
    });
  };
  add_ready(closure_.data(), most_needed);
  if (effort_.width == 1) return;
  const Word* missing = this->missing(now_, from);
  for (std::size_t w = 0; w < words_; ++w) closure_[w] = missing[w] & ~closure_[w];
  add_ready(closure_.data(), most_early);
}

// The values that are missing for s, directly or for others of them.
void Search::find_closure(int s, const State& state) {
  const Word* memory = this->memory(now_, state);
  std::fill(closure_.begin(), closure_.end(), 0);
  todo_.assign(1, s);
  while (!todo_.empty()) {
    const int v = todo_.back();
    todo_.pop_back();
    for (int u : graph_[v].operands) {
      if (has(memory, u) || has(closure_.data(), u)) continue;
      insert(closure_.data(), u);
      todo_.push_back(u);
    }
  }
}

void Search::evaluate_node(const State& from, int v, int s) {
  const std::int64_t over = from.used + graph_[v].bytes + graph_[v].scratch - budget_;
  if (over <= 0) return make_child(from, v, s, {});
  if (!weighed_) victims_.weigh(memory(now_, from), missing(now_, from), s);
  weighed_ = true;
  for (const std::vector<int>& dropped : victims_.sets(v, over)) make_child(from, v, s, dropped);
}

void Search::make_child(const State& from, int v, int s, const std::vector<int>& dropped) {
  const int next = v == s ? s + 1 : s;
  const Word* memory = this->memory(now_, from);
  State child = from;
  child.cost += graph_[v].cost;
  ++child.depth;
  child.hash ^= at(keys_, v);
  for (int u : dropped) child.hash ^= at(keys_, u);
  if (v == s) {
    child.depth = child.left = 0;
    for (int u : at(end_, s)) {
      const bool gone = std::binary_search(dropped.begin(), dropped.end(), u);
      if (u == s || (has(memory, u) && !gone)) child.hash ^= at(keys_, u);
    }
  }
  Pool& pool = v == s ? next_ : now_;
  const auto same = pool.by_hash.find(child.hash);
  if (same != pool.by_hash.end() && at(pool.states, same->second).cost <= child.cost + rounding) {
    return;
  }
  fill_child(from, child, v, s, dropped);
  const double known = child.cost + at(tail_, next) + child.again;
  const double extra = stages_.extra(missing_.data());
  if (known + extra >= limit_ - rounding) return;
  child.rank = known + effort_.weight * extra;
  ++made_;
  child.trail = static_cast<int>(trail_.size());
  trail_.push_back({from.trail, v});
  child.sets = pool.words.size();
  pool.words.insert(pool.words.end(), memory_.begin(), memory_.end());
  pool.words.insert(pool.words.end(), missing_.begin(), missing_.end());
  pool.by_hash[child.hash] = static_cast<int>(pool.states.size());
  pool.states.push_back(child);
}

void Search::fill_child(const State& from, State& child, int v, int s,
                        const std::vector<int>& dropped) {
  const Word* memory = this->memory(now_, from);
  const Word* missing = this->missing(now_, from);
  std::copy(memory, memory + words_, memory_.begin());
  std::copy(missing, missing + words_, missing_.begin());
  insert(memory_.data(), v);
  child.used += graph_[v].bytes;
  for (int u : dropped) {
    erase(memory_.data(), u);
    child.used -= graph_[u].bytes;
  }
  const int next = v == s ? s + 1 : s;
  if (v == s) {
    for (int u : at(end_, s)) {
      if (!has(memory_.data(), u)) continue;
      erase(memory_.data(), u);
      child.used -= graph_[u].bytes;
    }
  } else {
    erase(missing_.data(), v);
    child.again -= graph_[v].cost;
  }
  for (int u : dropped) {
    if (is_needed(u, next)) add_missing(u, child);
  }
}

bool Search::is_needed(int v, int next) const {
  if (graph_.last_reader(v) >= next) return true;
  const std::vector<int>& readers = graph_.readers(v);
  return std::any_of(readers.begin(), readers.end(),
                     [&](int r) { return has(missing_.data(), r); });
}

void Search::add_missing(int v, State& child) {
  if (has(missing_.data(), v)) return;
  insert(missing_.data(), v);
  todo_.assign(1, v);
  while (!todo_.empty()) {
    const int w = todo_.back();
    todo_.pop_back();
    child.again += graph_[w].cost;
    for (int u : graph_[w].operands) {
      if (has(memory_.data(), u) || has(missing_.data(), u)) continue;
      insert(missing_.data(), u);
      todo_.push_back(u);
    }
  }
}

void Search::refine(State& state, int s) {
  const double known = state.cost + at(tail_, s) + state.again;
  for (const Moment* moment : {moments_.worst(s), moments_.nearest(s)}) {
    if (moment == nullptr || effort_.weight * moment->extra <= state.rank - known) continue;
    const double extra = extra_beyond(graph_, *moment, missing(next_, state));
    state.rank = std::max(state.rank, known + effort_.weight * extra);
  }
}

// Makes the best states of the next stage the present ones, few of those that miss the same values:
// they differ in what is of no use yet.
void Search::keep_best(int s) {
  std::vector<std::pair<double, int>> order;
  for (int i = 0; i < static_cast<int>(next_.states.size()); ++i) {
    const State& state = at(next_.states, i);
    if (next_.by_hash.at(state.hash) == i) order.push_back({state.rank, i});
  }
  std::sort(order.begin(), order.end());
  const auto refined =
      std::min(order.size(), static_cast<std::size_t>(effort_.refine * effort_.width));
  for (std::size_t k = 0; k < refined; ++k) {
    State& state = at(next_.states, order[k].second);
    refine(state, s);
    order[k].first = state.rank;
  }
  std::sort(order.begin(), order.end());
  now_.clear();
  std::unordered_map<Word, int> alike;
  for (auto& [rank, i] : order) {
    const State& state = at(next_.states, i);
    if (++alike[hash_of(missing(next_, state))] <= effort_.alike && is_new(state)) take(state);
    if (static_cast<int>(now_.states.size()) >= effort_.width) break;
  }
}

Word Search::hash_of(const Word* set) const {
  Word hash = 0;
  each(set, words_, [&](int v) { hash ^= at(keys_, v); });
  return hash;
}

// Whether no state that was taken holds as much and costs no more.
bool Search::is_new(const State& state) const {
  return std::none_of(now_.states.begin(), now_.states.end(), [&](const State& other) {
    return other.cost <= state.cost + rounding &&
           is_subset(memory(next_, state), memory(now_, other), words_);
  });
}

void Search::take(State state) {
  const Word* sets = memory(next_, state);
  state.sets = now_.words.size();
  now_.words.insert(now_.words.end(), sets, sets + 2 * words_);
  now_.states.push_back(state);
}

Schedule Search::trail_of(int last) const {
  Schedule schedule;
  for (int i = last; i >= 0; i = at(trail_, i).before) schedule.push_back(at(trail_, i).node);
  std::reverse(schedule.begin(), schedule.end());
  return schedule;
}

}  // namespace reprise::budget
