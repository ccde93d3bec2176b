// The texts in corpus/ once were defects, or lead fuzzers to much of the reader; none may be one
// again. tools/fuzz_programs.cpp finds more.
#include "fuzz/try_program.h"
#include "test_data.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

TEST_CASE("every text of the corpus is read or refused with an error of the library") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path("../fuzz/corpus"))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::string name = entry.path().filename();
    CAPTURE(name);
    CHECK_NOTHROW(try_program(text));
    ++count;
  }
  CHECK(count > 20);
}
