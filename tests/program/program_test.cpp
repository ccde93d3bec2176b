// What is derived from a program is kept by type and name.
#include "program/program.h"

#include <doctest/doctest.h>

using namespace reprise;

TEST_CASE("two derivations of one name but of different types are kept apart") {
  const Program p;
  int made = 0;
  const auto number = [&] { return derive<int>(p, "same name", [&] { return ++made, 7; }); };
  const auto text = [&] {
    return derive<std::string>(p, "same name", [&] { return ++made, std::string("seven"); });
  };
  CHECK(*number() == 7);
  CHECK(*text() == "seven");
  CHECK(*number() == 7);
  CHECK(*text() == "seven");
  CHECK(made == 2);
}

TEST_CASE("what is derived inside another derivation is kept apart, whatever the names") {
  const Program p;
  const auto outer =
      derive<int>(p, "n", [&] { return *derive<int>(p, "n", [] { return 1; }) + 1; });
  CHECK(*outer == 2);
  CHECK(*derive<int>(p, "n'", [] { return 3; }) == 3);
  CHECK(*derive<int>(p, "n", [] { return 4; }) == 2);
}
