// The schedules of loops with a checkpoint budget: counts against closed forms, and that each
// schedule can be played.
#include "control/loop_schedule.h"

#include "error_text.h"
#include "reprise/loops.h"
#include "test_data.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

namespace {

using namespace reprise;

struct Counts {
  std::int64_t advances = 0, most_of_a_step = 0, to_disk = 0;
};

// Plays a schedule as a loop would: every state that is read must be the one that was put there,
// steps are reversed from the last to the first. `each`: counts per step too, which takes memory.
class Player {
 public:
  Player(std::int64_t steps, std::int64_t checkpoints, bool each, std::int64_t disk = 0)
      : steps_(steps),
        disk_(disk),
        slots_(static_cast<std::size_t>(checkpoints), -1),
        per_step_(each ? static_cast<std::size_t>(steps) : 0) {
    slots_[0] = 0;
  }
  Counts play(ForwardSchedule& forward) {
    for (std::int64_t state = 1; state < steps_ - 1; ++state) {
      const std::int64_t slot = forward.slot_of(state);
      if (slot != no_slot) slots_.at(static_cast<std::size_t>(slot)) = state;
    }
    advance(0, steps_ - 1);
    const std::vector<std::int64_t> kept = forward.kept();
    bool right = std::equal(kept.begin(), kept.end(), slots_.begin() + 1, slots_.end());
    BackwardSchedule backward(steps_, kept, disk_);
    std::int64_t working = steps_ - 1, left = steps_;
    for (LoopMove m = backward.next(); m.what != LoopMove::What::end; m = backward.next()) {
      const std::int64_t state =
          m.source == no_slot ? working : slots_.at(static_cast<std::size_t>(m.source));
      right = right && state == m.from;
      if (m.what == LoopMove::What::reverse) {
        right = right && m.from == --left;
      } else {
        right = right && m.from < m.to && m.to < left;
        advance(m.from, m.to);
        counts_.to_disk += m.destination > 0 && m.destination <= disk_ ? 1 : 0;
        (m.destination == no_slot ? working : slots_.at(static_cast<std::size_t>(m.destination))) =
            m.to;
      }
    }
    REQUIRE((right && left == 0));
    if (!per_step_.empty())
      counts_.most_of_a_step = *std::max_element(per_step_.begin(), per_step_.end());
    return counts_;
  }

 private:
  void advance(std::int64_t from, std::int64_t to) {
    counts_.advances += std::max<std::int64_t>(to - from, 0);
    if (per_step_.empty()) return;
    for (std::int64_t k = from; k < to; ++k) ++per_step_[static_cast<std::size_t>(k)];
  }
  std::int64_t steps_, disk_;
  std::vector<std::int64_t> slots_;
  std::vector<std::int64_t> per_step_;
  Counts counts_;
};

Counts play_known(std::int64_t n, std::int64_t c, bool each = true) {
  ForwardSchedule forward(c, n);
  return Player(n, c, each).play(forward);
}
Counts play_unknown(std::int64_t n, std::int64_t c) {
  ForwardSchedule forward(c);
  return Player(n, c, true).play(forward);
}

nlohmann::json golden() {
  std::ifstream file(golden_path("loop_counts.json"));
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE(
    "counts of advances are the least possible for every length to 2000 and 1 to 20 checkpoints") {
  for (std::int64_t c = 1; c <= 20; ++c) {
    for (std::int64_t n = 1; n <= 2000; ++n) {
      // t n - C(c + t, t - 1), computed apart from the library.
      std::int64_t t = 0, reach = 1, advances = 0;
      std::int64_t sum = 0;  // C(c + t, t - 1) = the sum of C(c + k, k) for k < t
      while (reach < n) {
        sum += reach;
        ++t;
        reach = reach * (c + t) / t;
      }
      advances = t * n - sum;
      const Counts counts = play_known(n, c, n % 50 == 0);
      REQUIRE(counts.advances == advances);
      REQUIRE(counts.most_of_a_step <= t);
      const LoopSchedule schedule = loop_schedule(n, c);
      REQUIRE(schedule.advances == advances);
      REQUIRE(schedule.repetitions == t);
    }
  }
}

TEST_CASE("counts are those of the golden closed forms") {
  const nlohmann::json rows = golden();
  for (const auto& row : rows["known"]) {
    const std::int64_t n = row[0], c = row[1];
    const LoopSchedule schedule = loop_schedule(n, c);
    CHECK(schedule.repetitions == row[2].get<std::int64_t>());
    CHECK(schedule.advances == row[3].get<std::int64_t>());
    if (schedule.advances < 10'000'000) CHECK(play_known(n, c).advances == schedule.advances);
  }
  for (const auto& row : rows["unknown_optimal_up_to"]) {
    CHECK(reversible_steps(row[0], 2) == row[1].get<std::int64_t>());
  }
  CHECK(loop_schedule(10000, 32).advances == 32860);
}

TEST_CASE(
    "a loop of unknown length is optimal up to C(c + 2, 2) steps and keeps the repetition number "
    "beyond") {
  for (std::int64_t c = 1; c <= 20; ++c) {
    const std::int64_t optimal = reversible_steps(c, 2),
                       last = std::min<std::int64_t>(6 * optimal, 1500);
    for (std::int64_t n = 1; n <= last; n += c == 1 ? 11 : 1 + n / 200) {
      const Counts counts = play_unknown(n, c);
      if (n <= optimal) REQUIRE(counts.advances == least_advances(n, c));
      REQUIRE(counts.advances >= least_advances(n, c));
      REQUIRE(counts.most_of_a_step <= repetitions_of(n, c));
    }
  }
}

TEST_CASE("random lengths and budgets, known and unknown") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<std::int64_t>(random() % 30000 + 1);
    const auto c = static_cast<std::int64_t>(random() % 200 + 2);
    const Counts known = play_known(n, c), unknown = play_unknown(n, c);
    REQUIRE(known.advances == least_advances(n, c));
    REQUIRE(known.most_of_a_step == repetitions_of(n, c));
    REQUIRE(unknown.most_of_a_step <= repetitions_of(n, c));
    REQUIRE(unknown.advances >= known.advances);
  }
}

TEST_CASE("checkpoints on disk count like others, and only what memory cannot hold goes there") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<std::int64_t>(random() % 3000 + 1);
    const auto c = static_cast<std::int64_t>(random() % 20 + 1);
    const auto d = static_cast<std::int64_t>(random() % 20);
    ForwardSchedule known(c + d, n), unknown(c + d);
    const Counts counts = Player(n, c + d, true, d).play(known);
    REQUIRE(counts.advances == least_advances(n, c + d));
    REQUIRE(Player(n, c + d, true, d).play(unknown).most_of_a_step <= repetitions_of(n, c + d));
    if (n <= c) REQUIRE(counts.to_disk == 0);
    const LoopSchedule schedule = loop_schedule(n, c, d);
    REQUIRE(schedule.advances == least_advances(n, std::min(c + d, n)));
    REQUIRE(schedule.disk_checkpoints <= d);
  }
  std::int64_t writes = 0, all = 0;  // of 120 steps with 4 in memory and 10 on disk
  for (const LoopAction& a : loop_schedule(120, 4, 10).actions()) {
    if (a.what != LoopAction::What::keep) continue;
    ++all;
    writes += a.slot > 0 && a.slot <= 10 ? 1 : 0;
  }
  CHECK(writes >= 10);
  CHECK(writes < all - 3);  // memory holds the ends of all parts, not only those of the last
}

TEST_CASE("millions of steps need no list") {
  CHECK(play_known(3'000'000, 100, false).advances == least_advances(3'000'000, 100));
}

TEST_CASE("the fewest checkpoints for a number of repetitions") {
  for (std::int64_t n = 0; n < 3000; n += 7) {
    for (std::int64_t t = 1; t <= 4; ++t) {
      const std::int64_t c = checkpoints_for(n, t);
      CHECK(repetitions_of(n, c) <= t);
      if (c > 1) CHECK(repetitions_of(n, c - 1) > t);
    }
  }
  CHECK(checkpoints_for(10000, 2) == 140);
}

TEST_CASE("the sequence of a small loop") {
  using What = LoopAction::What;
  const std::vector<LoopAction> actions = loop_schedule(5, 2).actions();
  const std::vector<LoopAction> expected{
      {What::keep, 0, 0, 0},     {What::advance, 0, 3, -1}, {What::keep, 3, 3, 1},
      {What::advance, 3, 4, -1}, {What::reverse, 4, 4, -1}, {What::restore, 3, 3, 1},
      {What::reverse, 3, 3, -1}, {What::restore, 0, 0, 0},  {What::advance, 0, 1, -1},
      {What::keep, 1, 1, 1},     {What::advance, 1, 2, -1}, {What::reverse, 2, 2, -1},
      {What::restore, 1, 1, 1},  {What::reverse, 1, 1, -1}, {What::restore, 0, 0, 0},
      {What::reverse, 0, 0, -1}};
  CHECK(actions == expected);
  std::int64_t advances = 0;
  for (const LoopAction& a : actions) advances += a.what == What::advance ? a.to - a.from : 0;
  CHECK(advances == loop_schedule(5, 2).advances);
}

TEST_CASE("no step and one step") {
  CHECK(loop_schedule(0, 3).actions().empty());
  const LoopSchedule one = loop_schedule(1, 3);
  CHECK(one.advances == 0);
  CHECK(one.repetitions == 0);
  using What = LoopAction::What;
  CHECK(one.actions() == std::vector<LoopAction>{{What::keep, 0, 0, 0}, {What::reverse, 0, 0, -1}});
}

TEST_CASE("what is no schedule") {
  CHECK_MENTIONS(message<TypeError>([] { loop_schedule(-1, 3); }), "from 0 to 2^32, got -1");
  CHECK_MENTIONS(message<TypeError>([] { loop_schedule(5, 0); }),
                 "at least one checkpoint is needed, got 0");
  CHECK_MENTIONS(message<TypeError>([] { loop_schedule(5, 1, -2); }),
                 "the number of checkpoints on disk must be from 0 to 2^32, got -2");
}
