#include "program/recent.h"

#include "program/trace.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

namespace {

rp::ProgramPtr traced(const rp::FlatFunction& f) {
  return rp::trace(f, {rp::Type{rp::float32, {3}}}).program;
}
Arrays twice(const Arrays& x) {
  return {rp::checkpoint([](Array v) { return rp::sin(v) * 2.f; })(x[0])};
}
Arrays twice_elsewhere(const Arrays& x) {
  return {rp::checkpoint([](Array v) { return rp::sin(v) * 2.f; })(x[0])};
}
Arrays thrice(const Arrays& x) {
  return {rp::checkpoint([](Array v) { return rp::sin(v) * 3.f; })(x[0])};
}

}  // namespace

TEST_CASE("the same function traced again is the same program") {
  const rp::ProgramPtr first = rp::recent(traced(twice));
  CHECK(rp::recent(traced(twice)) == first);
  // other lines: messages would name the wrong ones
  CHECK(rp::recent(traced(twice_elsewhere)) != first);
  CHECK(rp::recent(traced(thrice)) != first);
  CHECK(rp::recent(traced(twice)) == first);
}

TEST_CASE("only the last few programs are kept") {
  std::weak_ptr<const rp::Program> first = rp::recent(traced(twice));
  for (int i = 0; i < 8; ++i) {
    const auto scaled = [i](const Arrays& x) {
      return Arrays{rp::checkpoint([i](Array v) { return v * static_cast<double>(i); })(x[0])};
    };
    CHECK_FALSE(first.expired());
    rp::recent(traced(scaled));
  }
  CHECK(first.expired());
}

TEST_CASE("what a function closes over may change between calls") {
  double number = 2;
  Array array = rp::array({1.f, 2.f, 3.f});
  const auto loss = rp::checkpoint([&](Array x) { return rp::sum(x * array * number); });
  const Array x = rp::ones({3});
  CHECK(rp::grad(loss)(x).to_vector<float>() == std::vector<float>{2, 4, 6});
  number = 3;
  CHECK(rp::grad(loss)(x).to_vector<float>() == std::vector<float>{3, 6, 9});
  array = rp::array({5.f, 5.f, 1.f});
  CHECK(rp::grad(loss)(x).to_vector<float>() == std::vector<float>{15, 15, 3});
}

TEST_CASE("a rule of the user's own sees what it closes over each time") {
  Array slope = rp::array({1.f, 2.f, 3.f});
  const auto f = rp::custom_jvp([](Array x) { return x; },
                                [&](std::tuple<Array> x, std::tuple<Array> dx) {
                                  return std::pair(std::get<0>(x), std::get<0>(dx) * slope);
                                });
  const auto loss = rp::checkpoint([&](Array x) { return rp::sum(f(x)); });
  const Array x = rp::ones({3});
  CHECK(rp::grad(loss)(x).to_vector<float>() == std::vector<float>{1, 2, 3});
  slope = rp::array({4.f, 5.f, 6.f});
  CHECK(rp::grad(loss)(x).to_vector<float>() == std::vector<float>{4, 5, 6});
}
