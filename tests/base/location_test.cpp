#include "base/location.h"

#include "base/error.h"

#include <doctest/doctest.h>

#include <thread>

using namespace reprise;

namespace {

Location place(std::uint32_t line, const char* file = "/home/user/train.cpp") {
  return {file, "loss", line, 7};
}

}  // namespace

TEST_CASE("a location prints as file, line, column and function") {
  CHECK(to_string(place(41)) == "train.cpp:41:7 (loss)");
  CHECK(to_string(Location{"a.cpp", "operator()", 3, 0}) == "a.cpp:3 (<lambda>)");
  CHECK(to_string(Location{"a.cpp", "operator()<reprise::Array>", 3, 0}) == "a.cpp:3 (<lambda>)");
  CHECK(to_string(Location{}) == "");
}

TEST_CASE("Location::current is the line of the call") {
  const Location here = Location::current();
  CHECK(here.line == __LINE__ - 1);
  CHECK(to_string(here).starts_with("location_test.cpp:"));
}

TEST_CASE("the outermost place wins") {
  CHECK(user_location().line == 0);
  {
    const AtUser outer(place(1));
    const AtUser inner(place(2));
    CHECK(user_location().line == 1);
  }
  CHECK(user_location().line == 0);
}

TEST_CASE("an equation's place replaces the user's while it runs") {
  const AtUser outer(place(1));
  {
    const AtEquation equation(place(2));
    CHECK(user_location().line == 2);
    const AtUser inner(place(3));
    CHECK(user_location().line == 2);
  }
  CHECK(user_location().line == 1);
}

TEST_CASE("user code that is called by the library has its own places") {
  const AtUser transform(place(1));
  {
    const InUserCode user;
    CHECK(user_location().line == 0);
    const AtUser operation(place(5));
    CHECK(user_location().line == 5);
  }
  CHECK(user_location().line == 1);
}

TEST_CASE("a place inside a library header is replaced by the call of the transform") {
  const AtUser transform(place(1));
  const InUserCode user;
  const AtUser operation(place(99, "/usr/include/c++/12/bits/stl_algo.h"));
  CHECK(user_location().line == 1);
}

TEST_CASE("a place inside a library header is no place when no transform is running") {
  const AtUser operation(place(99, "/usr/include/c++/12/bits/invoke.h"));
  CHECK(user_location().line == 0);
}

TEST_CASE("library files are the standard library and our public headers") {
  CHECK(is_library_file("/usr/include/c++/12/functional"));
  CHECK(is_library_file("/usr/local/include/reprise/array.h"));
  CHECK_FALSE(is_library_file("/home/user/train.cpp"));
}

TEST_CASE("each thread has its own place") {
  const AtUser here(place(1));
  std::uint32_t line = 1;
  std::thread([&] { line = user_location().line; }).join();
  CHECK(line == 0);
}

TEST_CASE("errors carry the user's place and the hint") {
  const AtUser here(place(41));
  CHECK_THROWS_WITH_AS(fail<TypeError>("add: shapes differ, got ", 3),
                       "add: shapes differ, got 3\n  at train.cpp:41:7 (loss)", TypeError);
  CHECK_THROWS_WITH_AS(fail_with_hint<TraceError>("use select", "item: a number is needed"),
                       "item: a number is needed\n  at train.cpp:41:7 (loss)\n  hint: use select",
                       TraceError);
}
