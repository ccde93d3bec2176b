#include "remat/within_budget.h"

#include "ops/records.h"
#include "plan/budget/one_point.h"
#include "plan/seconds.h"
#include "remat/checkpoint.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

namespace reprise {
namespace {

std::size_t number(Var v) { return static_cast<std::size_t>(v); }

// The known equations of a program as a graph, behind them a node that reads what the unknown ones
// read.
class KnownPart {
 public:
  KnownPart(const Program& p, const std::vector<bool>& unknown, const PolicyBudget& budget)
      : p_(p), bytes_(static_cast<std::int64_t>(budget.bytes)) {
    std::vector<bool> is_unknown(p.types.size(), false);
    for (std::size_t i = 0; i < p.in.size(); ++i) is_unknown[number(p.in[i])] = unknown[i];
    find_names();
    const SplitPolicy base = split_policy(budget.base);
    const auto may_save = [&](const Equation& e) {
      return !budget.base.defined() || e.out.empty() ||
             std::holds_alternative<Keep>(base.decide(p, e, names_of(e)));
    };
    for (const Equation& e : p.eqns) {
      const bool late = std::any_of(e.in.begin(), e.in.end(), [&](const Atom& a) {
        return a.is_var() && is_unknown[number(a.var)];
      });
      if (late)
        read(e, is_unknown);
      else
        add(e, may_save(e));
    }
    const std::size_t count = nodes_.size();
    nodes_.push_back({0, 0, {}, false});  // the turn
    nodes_.push_back({0, 0, {needed_.begin(), needed_.end()}, false});
    graph_ = std::make_unique<budget::Graph>(nodes_);
    reached_.resize(count);
  }

  // The variables to save.
  std::set<Var> choose();

 private:
  // As splits tell policies: the names of a value, and of those that are only names of it.
  void find_names() {
    for (std::size_t i = p_.eqns.size(); i-- > 0;) {
      const Equation& e = p_.eqns[i];
      if (e.prim == &name_p && e.in[0].is_var()) names_[e.in[0].var] = names_of(e);
    }
  }
  OutputNames names_of(const Equation& e) const {
    OutputNames all;
    if (e.prim == &name_p) all.push_back(e.params.get<std::string>("name"));
    for (Var v : e.out) {
      const auto known = names_.find(v);
      if (known != names_.end()) all.insert(all.end(), known->second.begin(), known->second.end());
    }
    return all;
  }
  void read(const Equation& e, std::vector<bool>& is_unknown) {
    for (const Atom& a : e.in) {
      if (a.is_var() && node_of_.contains(a.var)) needed_.insert(node_of_.at(a.var));
    }
    for (Var v : e.out) is_unknown[number(v)] = true;
  }
  void add(const Equation& e, bool may_save) {
    budget::Node node;
    double touched = 0;
    for (const Atom& a : e.in) {
      if (a.is_var() && node_of_.contains(a.var)) node.operands.push_back(node_of_.at(a.var));
      touched += static_cast<double>(p_.type(a).nbytes());
    }
    for (Var v : e.out) {
      node.bytes += static_cast<std::int64_t>(p_.type(v).nbytes());
      node_of_[v] = static_cast<int>(nodes_.size());
    }
    touched += static_cast<double>(node.bytes);
    node.cost = plan::work_seconds(p_, e) + plan::traffic_seconds(touched);
    if (!may_save) node.bytes = bytes_ + 1;  // never fits
    nodes_.push_back(std::move(node));
    equations_.push_back(&e);
  }

  using Kept = std::vector<char>;
  std::int64_t bytes_of(const Kept& kept) const;
  double cost_of(const Kept& kept);
  void drop_useless(Kept& kept);
  void fill(Kept& kept, bool by_bytes);
  void improve(Kept& kept);

  const Program& p_;
  const std::int64_t bytes_;
  std::vector<budget::Node> nodes_;
  std::vector<const Equation*> equations_;
  std::unordered_map<Var, int> node_of_;
  std::unordered_map<Var, OutputNames> names_;
  std::set<int> needed_;
  std::unique_ptr<budget::Graph> graph_;
  std::vector<char> reached_;
  std::vector<int> todo_;
};

std::int64_t KnownPart::bytes_of(const Kept& kept) const {
  std::int64_t sum = 0;
  for (std::size_t v = 0; v < kept.size(); ++v) sum += kept[v] ? nodes_[v].bytes : 0;
  return sum;
}

// Of what is computed again; marks it, and what is kept and read, in reached_.
double KnownPart::cost_of(const Kept& kept) {
  std::fill(reached_.begin(), reached_.end(), 0);
  todo_.assign(needed_.begin(), needed_.end());
  for (int v : todo_) budget::at(reached_, v) = 1;
  double cost = 0;
  while (!todo_.empty()) {
    const int v = todo_.back();
    todo_.pop_back();
    if (budget::at(kept, v)) continue;
    cost += budget::at(nodes_, v).cost;
    for (int u : budget::at(nodes_, v).operands) {
      if (std::exchange(budget::at(reached_, u), 1) == 0) todo_.push_back(u);
    }
  }
  return cost;
}

void KnownPart::drop_useless(Kept& kept) {
  cost_of(kept);
  for (std::size_t v = 0; v < kept.size(); ++v) kept[v] = kept[v] && reached_[v];
}

// Keeps one value after another, each time the one that spares most, by its bytes or at all.
void KnownPart::fill(Kept& kept, bool by_bytes) {
  while (true) {
    const double before = cost_of(kept);
    const std::vector<char> reached = reached_;
    const std::int64_t left = bytes_ - bytes_of(kept);
    double best = 0;
    int best_value = -1;
    for (int v = 0; v < static_cast<int>(kept.size()); ++v) {
      const std::int64_t bytes = budget::at(nodes_, v).bytes;
      if (budget::at(kept, v) || !budget::at(reached, v) || bytes > left) continue;
      budget::at(kept, v) = 1;
      const double spared = before - cost_of(kept);
      budget::at(kept, v) = 0;
      const double worth = by_bytes ? spared / static_cast<double>(bytes + 1) : spared;
      if (spared <= 0 || worth <= best) continue;
      best = worth;
      best_value = v;
    }
    if (best_value < 0) return drop_useless(kept);
    budget::at(kept, best_value) = 1;
  }
}

// Gives back one value at a time and fills again, while that gains.
void KnownPart::improve(Kept& kept) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t v = 0; v < kept.size(); ++v) {
      if (!kept[v]) continue;
      Kept other = kept;
      other[v] = 0;
      fill(other, false);
      if (cost_of(other) >= cost_of(kept) * (1 - 1e-12)) continue;
      kept = std::move(other);
      changed = true;
    }
  }
}

std::set<Var> KnownPart::choose() {
  constexpr std::size_t small = 96;
  const std::size_t count = reached_.size();
  const budget::Moment moment = budget::one_point(*graph_, static_cast<int>(count), bytes_);
  Kept best(count, 0);
  for (std::size_t v = 0; v < count; ++v)
    best[v] = moment.kept[v] == 2 && nodes_[v].bytes <= bytes_;
  if (bytes_of(best) > bytes_) best.assign(count, 0);
  drop_useless(best);
  fill(best, true);
  if (count <= small) {
    for (const bool by_bytes : {true, false}) {
      Kept other(count, 0);
      fill(other, by_bytes);
      if (cost_of(other) < cost_of(best)) best = std::move(other);
    }
    improve(best);
  }
  std::set<Var> saved;
  for (std::size_t v = 0; v < count; ++v) {
    if (!best[v]) continue;
    for (Var out : equations_[v]->out) saved.insert(out);
  }
  return saved;
}

}  // namespace

SplitPolicy saving_within(const Program& p, const std::vector<bool>& unknown,
                          const PolicyBudget& budget) {
  const std::set<Var> saved = KnownPart(p, unknown, budget).choose();
  // Bodies of loops and branches are computed again as a whole, or their results are saved.
  auto decide = [saved, top = &p](const Program& from, const Equation& e,
                                  const OutputNames&) -> SplitDecision {
    if (&from == top && !e.out.empty() && saved.contains(e.out[0])) return Keep{};
    return Repeat{};
  };
  return {decide, ""};  // never shared: it speaks of one program
}

}  // namespace reprise
