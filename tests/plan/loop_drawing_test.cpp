// The drawing of a loop's schedule: every line is there for short loops, few for long ones.
#include "plan/loop_drawing.h"

#include "reprise/loops.h"

#include <doctest/doctest.h>

TEST_CASE("a short loop is drawn whole") {
  const auto d = reprise::loop_drawing(4, 2, 0);
  CHECK(d.steps == 4);
  CHECK(d.evaluations == 4 + static_cast<std::size_t>(reprise::loop_schedule(4, 2).advances));
  CHECK(d.kept == std::vector<std::size_t>{0, 0, 2, 1});
  CHECK(d.advances == std::vector<std::size_t>{0, 3, 0, 0, 1, 5});
  CHECK(d.reversals == std::vector<std::size_t>{3, 3, 2, 4, 1, 6, 0, 7});
}

TEST_CASE("a long loop is drawn with few lines, a very long one not at all") {
  const auto d = reprise::loop_drawing(100'000, 20, 5);
  CHECK(d.evaluations ==
        100'000 + static_cast<std::size_t>(reprise::loop_schedule(100'000, 25).advances));
  CHECK(d.advances.size() < 3 * 2000);
  CHECK(d.reversals.size() < 2 * 500);
  CHECK(d.kept.size() == 2 * 25);
  CHECK(d.disk == 5);
  CHECK(reprise::loop_drawing(10'000'000, 20, 0).evaluations == 0);
  CHECK(reprise::loop_drawing(0, 1, 0).evaluations == 0);
}
