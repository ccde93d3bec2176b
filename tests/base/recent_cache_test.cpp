#include "base/recent_cache.h"

#include <doctest/doctest.h>

#include <string>

using reprise::RecentCache;

namespace {

std::shared_ptr<const int> number(int n) { return std::make_shared<const int>(n); }

}  // namespace

TEST_CASE("of what nobody holds the last used are kept") {
  RecentCache<std::string, int> cache(2);
  cache.add("a", number(1));
  cache.add("b", number(2));
  CHECK(**cache.find("a") == 1);
  cache.add("c", number(3));  // b was used before a
  CHECK(!cache.find("b"));
  CHECK(**cache.find("a") == 1);
  CHECK(**cache.find("c") == 3);
  CHECK(cache.size() == 2);
}

TEST_CASE("what somebody holds is found for as long as he does") {
  RecentCache<std::string, int> cache(1);
  std::shared_ptr<const int> held = number(1);
  cache.add("held", held);
  for (int i = 0; i < 300; ++i) cache.add(std::to_string(i), number(i));
  CHECK(*cache.find("held") == held);
  cache.clear();
  CHECK(*cache.find("held") == held);
  cache.clear();
  held.reset();
  CHECK(!cache.find("held"));
  CHECK(cache.size() == 0);
}

TEST_CASE("weights add up to no more than the limit, but the last one stays") {
  RecentCache<int, int> cache(10);
  for (int i = 0; i < 5; ++i) cache.add(i, number(i), 4);
  CHECK(cache.size() == 2);
  CHECK(cache.weight() == 8);
  cache.add(9, number(9), 100);
  CHECK(cache.size() == 1);
  CHECK(**cache.find(9) == 9);
}

TEST_CASE("null is a value: it is known that there is none") {
  RecentCache<int, int> cache(2);
  cache.add(1, nullptr);
  REQUIRE(cache.find(1).has_value());
  CHECK(*cache.find(1) == nullptr);
  CHECK(!cache.find(2).has_value());
}
