// The expected texts are numpy's.
#include "array/access.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <sstream>

using namespace reprise;

namespace {

std::string text(const Nested& values, std::optional<Dtype> dtype = std::nullopt) {
  return to_string(array(values, dtype));
}
std::string range(Shape shape) {
  std::vector<int> values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), 0);
  return to_string(array(values, shape));
}

}  // namespace

TEST_CASE("floats of an array share one format") {
  CHECK(text({1, 2.5, -3}) == "[ 1.   2.5 -3. ]");
  CHECK(text({0.1, 1.0 / 3.0}) == "[0.1        0.33333334]");
  CHECK(text({1.23456789012345, 2}, float64) == "[1.23456789 2.        ]");
  CHECK(text({0.0, -0.0}) == "[ 0. -0.]");
  CHECK(text({1.5, 2.25}, float16) == "[1.5  2.25]");
  CHECK(text({0.1, 1}, bfloat16) == "[0.1 1. ]");
}

TEST_CASE("very large, very small or very different floats are scientific") {
  CHECK(text({1e-5, 1}) == "[1.e-05 1.e+00]");
  CHECK(text({1, 1001.}) == "[1.000e+00 1.001e+03]");
  CHECK(text({1, 1000.}) == "[   1. 1000.]");
  CHECK(text({1e6, 1e6}) == "[1.e+06 1.e+06]");
  CHECK(text({1e6, 1e6}, float64) == "[1000000. 1000000.]");
  CHECK(text({1e8}, float64) == "[1.e+08]");
  CHECK(text({1e-7, 2.5e10}, float64) == "[1.0e-07 2.5e+10]");
  CHECK(text({1e100, 1.}, float64) == "[1.e+100 1.e+000]");
  CHECK(text({0.009235007, 78482960.0}) == "[9.235007e-03 7.848296e+07]");
}

TEST_CASE("infinity and nan are as wide as the numbers") {
  CHECK(text({1, NAN, -INFINITY}) == "[  1.  nan -inf]");
  CHECK(text({NAN, NAN}) == "[nan nan]");
  CHECK(text({-INFINITY}) == "[-inf]");
  CHECK(text({1e-9, INFINITY}) == "[1.e-09    inf]");
}

TEST_CASE("integers and truth values are aligned to the right") {
  CHECK(text({-1, 10, 100}) == "[ -1  10 100]");
  CHECK(text({true, false}) == "[ True False]");
  CHECK(text({255, 0}, uint8) == "[255   0]");
  CHECK(text({-128}, int8) == "[-128]");
  CHECK(to_string(array(std::vector<std::uint64_t>{1ull << 63})) == "[9223372036854775808]");
}

TEST_CASE("a scalar prints as the number") {
  CHECK(to_string(Array(2.5)) == "2.5");
  CHECK(to_string(Array(3)) == "3");
  CHECK(to_string(Array(true)) == "True");
  CHECK(to_string(Array(1e6)) == "1e+06");
  CHECK(text({}, float32) == "[]");
  CHECK(to_string(full_array({float16, {}}, make_literal(float16, 0.1))) == "0.1");
}

TEST_CASE("dimensions are nested brackets") {
  CHECK(text({{1.0, 2.0}, {3.0, 4.0}}) == "[[1. 2.]\n [3. 4.]]");
  CHECK(range({2, 2, 2}) == "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  CHECK(range({1, 1, 1, 2}) == "[[[[0 1]]]]");
  CHECK(range({3, 1}) == "[[0]\n [1]\n [2]]");
}

TEST_CASE("arrays without elements are empty brackets") {
  CHECK(range({0}) == "[]");
  CHECK(range({3, 0}) == "[]");
  CHECK(range({0, 3, 2}) == "[]");
}

TEST_CASE("lines are at most 75 columns wide") {
  CHECK(range({1, 25}) ==
        "[[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
        "  24]]");
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<float>(i / 19.0));
  CHECK(to_string(array(values)) ==
        "[0.         0.05263158 0.10526316 0.15789473 0.21052632 0.2631579\n"
        " 0.31578946 0.36842105 0.42105263 0.47368422 0.5263158  0.57894737\n"
        " 0.6315789  0.68421054 0.7368421  0.7894737  0.84210527 0.8947368\n"
        " 0.94736844 1.        ]");
}

TEST_CASE("more than 1000 elements are summarized") {
  CHECK(range({1001}) == "[   0    1    2 ...  998  999 1000]");
  CHECK(range({1000, 3}) ==
        "[[   0    1    2]\n [   3    4    5]\n [   6    7    8]\n ...\n [2991 2992 2993]\n"
        " [2994 2995 2996]\n [2997 2998 2999]]");
  CHECK(range({2, 2, 300}) ==
        "[[[   0    1    2 ...  297  298  299]\n  [ 300  301  302 ...  597  598  599]]\n\n"
        " [[ 600  601  602 ...  897  898  899]\n  [ 900  901  902 ... 1197 1198 1199]]]");
  CHECK(range({1000}).find("...") == std::string::npos);
}

TEST_CASE("arrays stream") {
  std::ostringstream out;
  out << array({1, 2});
  CHECK(out.str() == "[1 2]");
}

TEST_CASE("a traced array prints its type") {
  CHECK(to_string(make_traced({float32, {3}}, {nullptr, 1, 0, 0, {}})) == "Traced<f32[3]>");
}

TEST_CASE("float0 and keys print") {
  CHECK(to_string(NewArray({float0, {2}}).finish()) == "[(b'',) (b'',)]");
  CHECK(to_string(NewArray({float0, {}}).finish()) == "(b'',)");
  const std::uint32_t words[] = {0, 42};
  CHECK(to_string(from_bytes(words, {Dtype::key, {}})) == "[ 0 42]");
}

TEST_CASE("printing an array without a value is an error") {
  CHECK_THROWS_AS(to_string(Array()), TypeError);
}
