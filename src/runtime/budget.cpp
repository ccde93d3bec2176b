#include "runtime/budget.h"

#include "control/records.h"
#include "plan/cost.h"
#include "plan/seconds.h"
#include "program/primitive.h"
#include "program/print.h"
#include "runtime/timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reprise {
namespace {

// What a schedule evaluates more than once, the dearest first.
std::vector<Repetition> repetitions_of(const plan::BudgetProgram& from,
                                       const budget::Schedule& schedule) {
  std::vector<int> times(static_cast<std::size_t>(from.graph().size()), -1);
  for (int n : schedule) ++budget::at(times, n);
  std::vector<Repetition> out;
  const Program& p = from.program();
  for (int n = 0; n < from.graph().size(); ++n) {
    const auto& value = from.value(n);
    if (budget::at(times, n) < 1 || value.var < 0) continue;
    const Equation& maker = p.eqns[value.eqns.back()];
    Repetition r{str(maker.prim->name, " ", to_string(p.type(value.var))),
                 maker.at,
                 p.type(value.var).nbytes(),
                 0,
                 0,
                 budget::at(times, n)};
    r.seconds = from.seconds(n) * static_cast<double>(r.times);
    for (std::size_t e : value.eqns)
      r.flops += plan::cost_of(p, p.eqns[e]).flops * static_cast<double>(r.times);
    out.push_back(std::move(r));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Repetition& a, const Repetition& b) { return a.seconds > b.seconds; });
  return out;
}

// The lower, the closer: there most is to be gained.
std::int64_t rung_bytes(std::int64_t least, std::int64_t most, int rung) {
  const double share = static_cast<double>(rung) / BudgetLadder::top;
  return least +
         static_cast<std::int64_t>(static_cast<double>(most - least) * share * std::sqrt(share));
}

}  // namespace

// ------------------------------------------------------------------------------------- one program
BudgetLadder::BudgetLadder(PlannedProgram plain, const BudgetTools& tools,
                           std::optional<double> proven)
    : tools_(tools), plain_{std::move(plain), 0, {}}, source_(plain_.planned), proven_(proven) {
  plain_.lower_seconds = proven_.value_or(plain_.planned.seconds);
}
BudgetLadder::BudgetLadder(PlannedProgram plain, PlannedProgram source, const BudgetTools& tools)
    : tools_(tools), plain_{std::move(plain), 0, {}}, source_(std::move(source)) {
  plain_.lower_seconds = plain_.planned.seconds;
}

const BudgetPoint* BudgetLadder::at(int rung) {
  if (rung >= top) return &plain_;
  auto known = made_.find(rung);
  if (known == made_.end()) known = made_.emplace(rung, make(rung)).first;
  return known->second ? &*known->second : nullptr;
}

// Of small graphs all plans are looked at, so that a larger budget never costs more; of large ones
// those on the way to the largest that fits.
const BudgetPoint* BudgetLadder::cheapest(std::size_t budget) {
  constexpr int small = 200;
  if (plain_.planned.peak() <= budget) return &plain_;
  make_graph();
  const BudgetPoint* best = nullptr;
  const auto fits = [&](int rung) {
    const BudgetPoint* point = at(rung);
    if (point == nullptr) return true;  // too few bytes even for the graph: higher up
    if (point->planned.peak() > budget) return false;
    if (best == nullptr || point->planned.seconds < best->planned.seconds) best = point;
    return true;
  };
  if (program_->graph().size() <= small) {
    for (int rung = 0; rung < top; rung += 2) fits(rung);
    return best;
  }
  constexpr int large = 1500;  // nodes: planning takes seconds, fewer sizes must do
  const int apart = program_->graph().size() > large ? 4 : 1;
  int low = -1, high = top / apart;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle * apart) ? low : high) = middle;
  }
  return best;
}

const BudgetPoint* BudgetLadder::lowest() {
  const BudgetPoint* best = nullptr;
  for (int rung = 0, found = 0; rung < top / 2 && found < 2; rung += 4) {
    const BudgetPoint* point = at(rung);
    if (point == nullptr) continue;
    ++found;
    if (best == nullptr || point->planned.peak() < best->planned.peak()) best = point;
  }
  return best;
}

void BudgetLadder::make_graph() {
  if (program_) return;
  const auto code = tools_.plan_steps(source_.program, false);
  program_.emplace(code->schedule, code->memory.scratch_bytes, tools_.policies_are_free);
  const budget::Graph& graph = program_->graph();
  least_ = budget::peak_bound(graph);
  most_ = std::max(least_, std::min(budget::evaluate(graph, graph.plain()).peak,
                                    static_cast<std::int64_t>(plain_.planned.peak())));
}

std::optional<BudgetPoint> BudgetLadder::make(int rung) {
  make_graph();
  const budget::Graph& graph = program_->graph();
  budget::Solution found = budget::solve_once(graph, rung_bytes(least_, most_, rung));
  if (!found.schedule || program_->breaks_policies(*found.schedule)) return std::nullopt;
  BudgetPoint point{
      tools_.plan(std::make_shared<const Program>(program_->emit(*found.schedule))), 0, {}};
  point.lower_seconds = proven_.value_or(source_.seconds + (found.lower - graph.cost()));
  point.repeated = repetitions_of(*program_, *found.schedule);
  return point;
}

// --------------------------------------------------------------------------------------------- all
BudgetSearch::BudgetSearch(BudgetTools tools) : tools_(std::move(tools)) {
  ladders_.emplace_back(tools_.plan(tools_.lower(1, true)), tools_);
}

std::vector<BudgetLadder*> BudgetSearch::climbed() {
  if (unkept_ == nullptr) {
    ladders_.emplace_back(plain().planned, tools_.plan(tools_.lower(1, false)), tools_);
    unkept_ = &ladders_.back();
  }
  std::vector<BudgetLadder*> all{&ladders_.front(), unkept_};
  if (&deepest() != all[0]) all.push_back(&deepest());
  return all;
}

void BudgetSearch::add_loops() {
  if (std::exchange(has_loops_, true)) return;
  const Program& p = *plain().planned.program;
  if (std::none_of(p.eqns.begin(), p.eqns.end(),
                   [](const Equation& e) { return e.prim == &scan_p; }))
    return;
  for (const double share : {1.0, 0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0}) {
    const ProgramPtr stacked = tools_.lower(share, true);
    for (const int rung : {BudgetLadder::top, BudgetLadder::top / 2, BudgetLadder::top / 8}) {
      const bool is_plain = share == 1 && rung == BudgetLadder::top;
      // Where much is stacked, what bodies work in hardly matters.
      if (is_plain || (rung < BudgetLadder::top && share > 0.2 && share < 1)) continue;
      if (const ProgramPtr program = squeezed(stacked, rung))
        ladders_.emplace_back(tools_.plan(program), tools_, plain().planned.seconds);
    }
  }
}

// With loops whose bodies work in less memory; null: none does.
ProgramPtr BudgetSearch::squeezed(const ProgramPtr& p, int rung) const {
  if (rung == BudgetLadder::top) return p;
  Program out = *p;
  bool changed = false;
  for (Equation& e : out.eqns) {
    if (e.prim != &scan_p) continue;
    const ProgramPtr body = e.params.get<ProgramPtr>("jaxpr");
    const auto code = tools_.plan_steps(body, true);
    const plan::BudgetProgram graph(code->schedule, code->memory.scratch_bytes,
                                    tools_.policies_are_free);
    const std::int64_t least = budget::peak_bound(graph.graph());
    const std::int64_t most = budget::evaluate(graph.graph(), graph.graph().plain()).peak;
    const budget::Solution found = budget::solve_once(graph.graph(), rung_bytes(least, most, rung));
    if (!found.schedule || graph.breaks_policies(*found.schedule)) continue;
    if (found.schedule->size() == static_cast<std::size_t>(graph.graph().size())) continue;
    e.params = e.params.with("jaxpr", std::make_shared<const Program>(graph.emit(*found.schedule)));
    changed = true;
  }
  return changed ? std::make_shared<const Program>(std::move(out)) : nullptr;
}

// Of the programs whose loops take less only the one with the lowest peak repeats equations around
// its loops too.
const BudgetPoint* BudgetSearch::cheapest(std::size_t budget) {
  if (plain().planned.peak() <= budget) return &plain();
  add_loops();
  const BudgetPoint* best = nullptr;
  const auto offer = [&](const BudgetPoint* point) {
    if (point == nullptr || point->planned.peak() > budget) return;
    if (best == nullptr || point->planned.seconds < best->planned.seconds) best = point;
  };
  for (const BudgetLadder& ladder : ladders_) offer(&ladder.plain());
  for (BudgetLadder* ladder : climbed()) offer(ladder->cheapest(budget));
  // peaks do not always rise with the size that a graph was solved for
  if (best == nullptr) offer(&lowest());
  return best;
}

bool BudgetSearch::fits(std::size_t budget) {
  if (plain().planned.peak() <= budget) return true;
  return lowest().planned.peak() <= budget || cheapest(budget) != nullptr;
}

BudgetLadder& BudgetSearch::deepest() {
  return *std::min_element(ladders_.begin(), ladders_.end(),
                           [](const BudgetLadder& a, const BudgetLadder& b) {
                             return a.plain().planned.peak() < b.plain().planned.peak();
                           });
}

const BudgetPoint& BudgetSearch::lowest() {
  add_loops();
  const BudgetPoint* best = &deepest().plain();
  for (BudgetLadder* ladder : climbed()) {
    const BudgetPoint* point = ladder->lowest();
    if (point != nullptr && point->planned.peak() < best->planned.peak()) best = point;
  }
  return *best;
}

std::vector<const BudgetPoint*> BudgetSearch::curve(int count) {
  const std::size_t least = lowest().planned.peak(), most = plain().planned.peak();
  std::vector<const BudgetPoint*> all;
  for (int k = 0; k < count; ++k) {
    const std::size_t budget = least + (most - least) /
                                           static_cast<std::size_t>(std::max(count - 1, 1)) *
                                           static_cast<std::size_t>(k);
    if (const BudgetPoint* point = cheapest(k + 1 == count ? most : budget)) all.push_back(point);
  }
  all.push_back(&lowest());
  std::stable_sort(all.begin(), all.end(), [](const BudgetPoint* a, const BudgetPoint* b) {
    return std::pair(a->planned.peak(), a->planned.seconds) <
           std::pair(b->planned.peak(), b->planned.seconds);
  });
  std::vector<const BudgetPoint*> better;
  for (const BudgetPoint* point : all) {
    if (better.empty() || point->planned.seconds < better.back()->planned.seconds)
      better.push_back(point);
  }
  return better;
}

// ----------------------------------------------------------------------------------------- failing
std::size_t proven_peak(const Code& code) {
  std::size_t bytes = 0;
  std::vector<bool> counted(code.schedule->types.size(), false);
  for (const plan::View& v : code.schedule->outputs) {
    if (v.root < 0 || counted[static_cast<std::size_t>(v.root)]) continue;
    const auto root = static_cast<std::size_t>(v.root);
    counted[root] = true;
    if (code.memory.places[root].region != plan::Region::argument)
      bytes += code.schedule->types[root].nbytes();
  }
  return bytes;
}

namespace {

std::string value_text(const TimelineValue& v) {
  const std::string where = to_string(v.made_by.at);
  const std::string what = v.type.empty() ? v.name : str(v.made_by.what, " ", v.type);
  return str("\n    ", held_bytes(v), " bytes: ", what, where.empty() ? "" : " at ", where);
}

std::string fullest_step(const Code& code) {
  const Timeline timeline = timeline_of(code, {});
  std::vector<std::size_t> held(timeline.steps.size(), 0);
  for (const TimelineValue& v : timeline.values) {
    for (std::size_t i = v.first; i <= v.last && i < held.size(); ++i) held[i] += held_bytes(v);
  }
  if (held.empty()) return "";
  const auto step =
      static_cast<std::size_t>(std::max_element(held.begin(), held.end()) - held.begin());
  std::vector<const TimelineValue*> alive;
  for (const TimelineValue& v : timeline.values) {
    if (v.first <= step && step <= v.last && held_bytes(v) > 0) alive.push_back(&v);
  }
  std::stable_sort(alive.begin(), alive.end(),
                   [](const auto* a, const auto* b) { return held_bytes(*a) > held_bytes(*b); });
  const TimelineStep& s = timeline.steps[step];
  const std::string where = s.operations.empty() ? "" : to_string(s.operations.back().at);
  const std::string what = s.operations.empty() ? s.what : s.operations.back().what;
  std::string text = str("\n  the fullest step: ", what, where.empty() ? "" : " at ", where,
                         ", where these are alive:");
  constexpr std::size_t most = 8;
  for (std::size_t i = 0; i < std::min(alive.size(), most); ++i) text += value_text(*alive[i]);
  if (alive.size() > most) text += str("\n    and ", alive.size() - most, " more");
  return text;
}

}  // namespace

void fail_over_budget(std::size_t budget, const BudgetPoint& lowest) {
  fail_with_hint<RuntimeError>("a smaller batch, or policies that save less, need less memory",
                               "jit: no plan was found within the memory budget, got ", budget,
                               " bytes; the least peak found is ", lowest.planned.peak(),
                               " bytes, and none can be below ", proven_peak(*lowest.planned.code),
                               " bytes", fullest_step(*lowest.planned.code));
}

}  // namespace reprise
