#include "base/nearest.h"

#include <doctest/doctest.h>

using reprise::edit_distance;

TEST_CASE("the distance of two words counts letters to insert, drop or replace") {
  CHECK(edit_distance("dots", "dots") == 0);
  CHECK(edit_distance("dot", "dots") == 1);
  CHECK(edit_distance("dots", "dats") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}
