#include "plan/budget/solve.h"

#include "plan/budget/chain.h"
#include "plan/budget/needless.h"
#include "plan/budget/one_point.h"
#include "plan/budget/search.h"
#include "plan/budget/stages.h"
#include "plan/budget/walk.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace reprise::budget {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// The searches, one after another: each need only be better than those before. The larger the
// graph, the narrower.
std::vector<Effort> efforts(int size) {
  if (size <= 64) return {{.width = 50}, {.width = 50, .refine = 4}};
  if (size <= 160) return {{.width = 50}};
  if (size <= 640) return {{.width = 12, .variety = 6}};
  if (size <= 4000) return {{.width = 2, .variety = 3}};
  return {{.width = 1, .variety = 2}};
}

// Where those find a schedule only with effort: few small graphs, near the least peak.
std::vector<Effort> wider_efforts(int size) {
  if (size <= 64) return {{.width = 300}};
  return {};
}

// Where those find nothing.
std::vector<Effort> last_efforts(int size) {
  if (size <= 64) return {{.width = 2000}};
  if (size <= 160) return {{.width = 400}};
  if (size <= 640) return {{.width = 60}};
  if (size <= 4000) return {{.width = 8, .variety = 8}};
  return {{.width = 3, .variety = 3}};
}

std::size_t moments_for(int size, bool quick) {
  if (quick && size > 64) return size <= 640 ? 2 : 1;
  return size <= 160 ? 16 : size <= 4000 ? 4 : 1;
}

class Attempt {
 public:
  Attempt(const Graph& graph, std::int64_t budget, std::size_t moments)
      : graph_(graph), budget_(budget), moments_(graph, budget, moments) {}

  double lower() const { return graph_.cost() + moments_.extra(); }
  const std::optional<Schedule>& best() const { return best_; }

  void offer(const Schedule& schedule) {
    const Outcome outcome = evaluate(graph_, schedule);
    if (outcome.peak > budget_ || outcome.cost >= cost_) return;
    best_ = schedule;
    cost_ = outcome.cost;
  }
  void walk(const WalkEffort& effort) {
    if (cost_ <= lower() * (1 + 1e-12)) return;
    const auto found = walk_often(graph_, moments_, budget_, effort, cost_);
    if (found) offer(without_needless(graph_, *found, budget_));
  }
  // Whether the last search went through with ease.
  bool easy() const { return easy_; }
  void search(const std::vector<Effort>& efforts) {
    for (const Effort& effort : efforts) {
      if (cost_ <= lower() * (1 + 1e-12)) return;
      Search search(graph_, moments_, budget_, effort);
      const auto found = search.run(cost_);
      if (found) offer(without_needless(graph_, *found, budget_));
      easy_ = !search.strained();
    }
  }

 private:
  const Graph& graph_;
  const std::int64_t budget_;
  const Moments moments_;
  std::optional<Schedule> best_;
  double cost_ = no_limit;
  bool easy_ = false;
};

// The schedules found so far, best first for each peak.
class Known {
 public:
  explicit Known(const Graph& graph) : graph_(graph) { add(graph.plain()); }
  void add(const Schedule& schedule) { all_.push_back({evaluate(graph_, schedule), schedule}); }
  void offer_to(Attempt& attempt) const {
    for (const auto& [outcome, schedule] : all_) attempt.offer(schedule);
  }
  Outcome lowest() const {
    return std::min_element(
               all_.begin(), all_.end(),
               [](const auto& a, const auto& b) { return a.first.peak < b.first.peak; })
        ->first;
  }

 private:
  const Graph& graph_;
  std::vector<std::pair<Outcome, Schedule>> all_;
};

// Walks with changed weights gain little in large graphs, and take longer there.
WalkEffort walks_for(int size, bool quick) {
  if (quick) return {size <= 640 ? 5 : size <= 4000 ? 2 : 1, size <= 160 ? 20 : 0};
  return {size <= 4000 ? 12 : 2, size <= 160 ? 300 : size <= 640 ? 20 : 0};
}

// Walks alone, or with searches behind them.
enum class Care { quick, usual, thorough };

Solution attempt_at(const Graph& graph, std::int64_t budget, Known& known, Care care) {
  Solution solution{budget, {}, {}, graph.cost()};
  if (Stages(graph, budget).impossible() >= 0) return solution;
  const int size = graph.size();
  Attempt attempt(graph, budget, moments_for(size, care == Care::quick));
  solution.lower = attempt.lower();
  known.offer_to(attempt);
  if (const auto chain = solve_chain(graph, budget)) attempt.offer(*chain);
  attempt.walk(walks_for(size, care == Care::quick));
  if (care != Care::quick && (size <= 160 || !attempt.best())) attempt.search(efforts(size));
  if (care == Care::thorough && !attempt.easy()) attempt.search(wider_efforts(size));
  if (care == Care::thorough && !attempt.best()) attempt.search(last_efforts(size));
  if (!attempt.best()) return solution;
  solution.schedule = attempt.best();
  solution.outcome = evaluate(graph, *solution.schedule);
  solution.lower = std::min(solution.lower, solution.outcome.cost);
  known.add(*solution.schedule);
  return solution;
}

// A budget was too small: finds how low one can go.
void seek_least_peak(const Graph& graph, std::int64_t too_small, Known& known) {
  const int most_tries = graph.size() <= 640 ? 8 : 4;
  std::int64_t low = std::max(too_small, peak_bound(graph) - 1);
  for (int tries = 0; tries < most_tries && low + 1 < known.lowest().peak; ++tries) {
    const std::int64_t middle = low + (known.lowest().peak - low) / 2;
    if (!attempt_at(graph, middle, known, Care::usual).schedule) low = middle;
  }
}

}  // namespace

std::int64_t peak_bound(const Graph& graph) {
  const std::vector<std::int64_t> forced = forced_bytes(graph);
  return forced.empty() ? 0 : *std::max_element(forced.begin(), forced.end());
}

Solution solve_once(const Graph& graph, std::int64_t budget) {
  Known known(graph);
  return attempt_at(graph, budget, known, Care::quick);
}

std::vector<Solution> solve(const Graph& graph, const std::vector<std::int64_t>& budgets) {
  std::vector<std::size_t> order(budgets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return budgets[a] < budgets[b]; });
  Known known(graph);
  std::vector<Solution> solutions(budgets.size());
  std::int64_t too_small = -1;
  for (std::size_t k : order) {
    solutions[k] = attempt_at(graph, budgets[k], known, Care::thorough);
    if (!solutions[k].schedule) too_small = std::max(too_small, budgets[k]);
  }
  if (too_small >= 0) seek_least_peak(graph, too_small, known);
  for (Solution& solution : solutions) {
    if (!solution.schedule) solution.outcome = known.lowest();
  }
  return solutions;
}

}  // namespace reprise::budget
