// What jit keeps is found again by calls that run the same program, and by no others.
#include "derivatives.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string>

namespace {

using namespace check;

struct Sine {};
struct Cosine {};
enum class Scale { one, two };
enum class Shift { one, two };
enum Small : unsigned char { first = 1 };

template <class Tag>
Array tagged(Array x, Tag) {
  if constexpr (std::is_same_v<Tag, Sine> || std::is_same_v<Tag, std::vector<Sine>>)
    return rp::sin(x);
  else
    return rp::cos(x);
}
Array chosen(Array x, Scale s) { return x * (s == Scale::two ? 2.0 : 1.0); }
Array chosen(Array x, Shift s) { return x + (s == Shift::two ? 20.0 : 10.0); }

float float_of(const char (&bytes)[5]) {
  float f = 0;
  std::memcpy(&f, bytes, sizeof f);
  return f;
}

}  // namespace

TEST_CASE("one jit of a generic function runs the program of the argument's C++ type") {
  auto sum_all = rp::jit([](auto tree) {
    Array sum = 0.0;
    for (const Array& leaf : rp::tree_leaves(tree)) sum = sum * 10.0 + leaf;
    return std::pair{sum, tree};
  });
  const auto of_pair = sum_all(std::pair{Array(1.0), Array(2.0)});
  const auto of_vector = sum_all(std::vector<Array>{1.0, 2.0});
  const auto of_array = sum_all(std::array<Array, 2>{3.0, 4.0});
  CHECK(of_pair.first.item<double>() == 12);
  CHECK(of_vector.first.item<double>() == 12);
  CHECK(of_vector.second.size() == 2);
  CHECK(of_array.first.item<double>() == 34);
  CHECK(of_array.second[1].item<double>() == 4);
}

TEST_CASE("types without values of their own, and enums of equal value, are told apart") {
  auto by_tag = rp::jit([](Array x, auto tag) { return tagged(x, tag); });
  CHECK(by_tag(1.0, Sine{}).item<double>() == doctest::Approx(std::sin(1.0)));
  CHECK(by_tag(1.0, Cosine{}).item<double>() == doctest::Approx(std::cos(1.0)));
  CHECK(by_tag(1.0, std::vector<Sine>{}).item<double>() == doctest::Approx(std::sin(1.0)));
  CHECK(by_tag(1.0, std::vector<Cosine>{}).item<double>() == doctest::Approx(std::cos(1.0)));
  auto by_enum = rp::jit([](Array x, auto e) { return chosen(x, e); });
  CHECK(by_enum(3.0, Scale::two).item<double>() == 6);
  CHECK(by_enum(3.0, Shift::two).item<double>() == 23);
  CHECK(by_enum(3.0, Shift::one).item<double>() == 13);
  auto compiled = by_enum.lower(Array(3.0), Scale::two).compile();
  CHECK(compiled(Array(3.0), Scale::two).item<double>() == 6);
  CHECK_THROWS_AS(compiled(Array(3.0), Shift::two), rp::TypeError);
}

TEST_CASE("a checkpoint of a generic function keeps its types apart too") {
  auto by_tag = rp::checkpoint([](Array x, auto tag) { return tagged(x, tag); });
  auto both = rp::grad([=](Array x) { return by_tag(x, Sine{}) + 10.0 * by_tag(x, Cosine{}); });
  CHECK(both(1.0).item<double>() == doctest::Approx(std::cos(1.0) - 10 * std::sin(1.0)));
}

TEST_CASE("lists of numbers are told apart although their bytes look like brackets") {
  using Floats = std::vector<float>;
  auto f = rp::jit([](Array x, Floats a, Floats b) {
    return x * (100.0 * static_cast<double>(a.size()) + static_cast<double>(b.size()));
  });
  const float z = float_of("zzzz");
  CHECK(f(1.0, Floats{z, float_of(")(ab")}, Floats{z}).item<double>() == 201);
  CHECK(f(1.0, Floats{z}, Floats{float_of("ab)("), z}).item<double>() == 102);
  auto g = rp::jit([](Array x, std::vector<std::string> names) {
    return x * static_cast<double>(names.size());
  });
  CHECK(g(1.0, {"a", "b"}).item<double>() == 2);
  CHECK(g(1.0, {"a1:b"}).item<double>() == 1);
  CHECK(g(1.0, {"", ""}).item<double>() == 2);
}

TEST_CASE("static numbers are keys by their bits") {
  int runs = 0;
  auto f = rp::jit([&](Array x, double d) { return ++runs, std::signbit(d) ? -x : x; });
  CHECK(f(1.0, 0.0).item<double>() == 1);
  CHECK(f(1.0, -0.0).item<double>() == -1);
  CHECK(f(1.0, std::nan("")).item<double>() == 1);
  f(1.0, std::nan(""));
  CHECK(runs == 3);
  auto wide = rp::jit([&](Array x, long double d) { return ++runs, x * static_cast<double>(d); });
  CHECK(wide(1.0, 3.0L).item<double>() == 3);
  CHECK(wide(1.0, 3.0L).item<double>() == 3);
  CHECK(runs == 4);
  auto small = rp::jit([&](Array x, Small s) { return ++runs, x * static_cast<double>(s); });
  CHECK(small(2.0, first).item<double>() == 2);
  CHECK(runs == 5);
}

TEST_CASE("truth values in a vector, missing values and missing text are static arguments") {
  int runs = 0;
  auto f = rp::jit([&](Array x, std::vector<bool> keep) {
    ++runs;
    Array sum = 0.0;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i]) sum = sum + x[i];
    }
    return sum;
  });
  const Array x = rp::array({1.0, 2.0, 4.0});
  CHECK(f(x, {true, false, true}).item<double>() == 5);
  CHECK(f(x, {false, true, true}).item<double>() == 6);
  CHECK(f(x, {true, false, true}).item<double>() == 5);
  CHECK(f(x, {true}).item<double>() == 1);
  CHECK(runs == 3);
  using Maybe = std::optional<std::optional<int>>;
  auto depth = rp::jit([](Array y, Maybe m) { return y * (!m ? 0.0 : !*m ? 1.0 : 2.0); });
  CHECK(depth(1.0, Maybe()).item<double>() == 0);
  CHECK(depth(1.0, Maybe(std::in_place)).item<double>() == 1);
  CHECK(depth(1.0, Maybe(7)).item<double>() == 2);
  auto named = rp::jit([](Array y, const char* name) {
    return y * (name == nullptr ? 0.0 : *name == 0 ? 1.0 : 2.0);
  });
  CHECK(named(1.0, nullptr).item<double>() == 0);
  CHECK(named(1.0, "").item<double>() == 1);
}

TEST_CASE("Dicts differ by keys and by where the arrays stand") {
  auto f = rp::jit([](rp::Dict d) {
    const auto& [key, node] = *d.items().begin();
    return rp::tree_leaves(d)[0] + 10.0 * static_cast<double>(key.size()) +
           static_cast<double>(node.index());
  });
  rp::Dict flat, deep, quoted;
  flat["a"] = Array(0.0);
  deep["a"]["b"] = Array(0.0);
  quoted["a']['b"] = Array(0.0);
  CHECK(f(flat).item<double>() == 10);
  CHECK(f(deep).item<double>() == 11);
  CHECK(f(quoted).item<double>() == 60);
}

TEST_CASE("static arrays are keys by type and elements") {
  auto f = rp::jit(rp::static_argnums<1>([](Array x, Array table) {
    return x * static_cast<double>(table.to_vector<double>()[0]) +
           static_cast<double>(table.ndim());
  }));
  CHECK(f(1.0, rp::array({2.0})).item<double>() == 3);
  CHECK(f(1.0, rp::array({3.0})).item<double>() == 4);
  CHECK(f(1.0, Array(2.0)).item<double>() == 2);
  CHECK(f(1.0, rp::array({2.0}, rp::float64)).item<double>() == 3);
}
