// jit: traced once per types and static values, closures, results of every structure.
#include "derivatives.h"

#include <iostream>
#include <sstream>

namespace {

using namespace check;

enum class Mode { plain, negated };

}  // namespace

TEST_CASE("a jitted function is traced once per argument types") {
  int runs = 0;
  auto f = rp::jit([&](Array x, Array y) { return ++runs, x * y; });
  CHECK(numbers(f(doubles({1.0, 2.0}), doubles({3.0, 4.0}))) == std::vector<double>{3, 8});
  CHECK(numbers(f(doubles({5.0, 6.0}), doubles({1.0, 2.0}))) == std::vector<double>{5, 12});
  CHECK(runs == 1);
  CHECK(f(rp::ones({2}), rp::ones({2})).dtype() == rp::float32);
  CHECK(runs == 2);  // another dtype
  f(rp::ones({3}), rp::ones({3}));
  CHECK(runs == 3);  // another shape
  f(2.0, 3.0);
  CHECK(runs == 4);  // weak types
  CHECK(f(4.0, 5.0).item<double>() == 20.0);
  CHECK(runs == 4);
}

TEST_CASE("copies of a jitted function share what was traced") {
  int runs = 0;
  const auto f = rp::jit([&](Array x) { return ++runs, x + 1.0; });
  const auto same = f;
  f(1.0);
  same(2.0);
  CHECK(runs == 1);
}

TEST_CASE("static arguments are part of the key: numbers, bools, enums, text") {
  int runs = 0;
  auto f = rp::jit([&](Array x, int n, bool twice, Mode mode, std::string unit) {
    ++runs;
    Array y = x * n;
    if (twice) y = y * 2.0;
    if (mode == Mode::negated) y = -y;
    return unit == "kilo" ? y / 1000.0 : y;
  });
  const Array x = doubles({1.0});
  CHECK(f(x, 3, false, Mode::plain, "").item<double>() == 3.0);
  CHECK(f(x, 3, false, Mode::plain, "").item<double>() == 3.0);
  CHECK(runs == 1);
  CHECK(f(x, 4, false, Mode::plain, "").item<double>() == 4.0);
  CHECK(f(x, 4, true, Mode::plain, "").item<double>() == 8.0);
  CHECK(f(x, 4, true, Mode::negated, "").item<double>() == -8.0);
  CHECK(f(x, 4, true, Mode::negated, "kilo").item<double>() == -0.008);
  CHECK(runs == 5);
  CHECK(f(x, 3, false, Mode::plain, "").item<double>() == 3.0);
  CHECK(runs == 5);
}

TEST_CASE("the structure of trees is part of the key") {
  int runs = 0;
  auto f = rp::jit([&](std::vector<Array> v, std::map<std::string, Array> m) {
    ++runs;
    Array total = 0.0;
    for (const Array& a : v) total = total + a;
    for (const auto& [key, a] : m) total = total + a;
    return total;
  });
  CHECK(f({Array(1.0), Array(2.0)}, {}).item<double>() == 3.0);
  CHECK(f({Array(3.0)}, {{"x", Array(4.0)}}).item<double>() == 7.0);
  CHECK(f({Array(3.0)}, {{"y", Array(5.0)}}).item<double>() == 8.0);
  CHECK(runs == 3);
  CHECK(f({Array(5.0)}, {{"y", Array(6.0)}}).item<double>() == 11.0);
  CHECK(runs == 3);
}

TEST_CASE("results have their structure on every call") {
  struct Stats {
    Array mean, top;
    int count;
  };
  auto f = rp::jit([](Array x) {
    return std::tuple{Stats{rp::mean(x), rp::max(x), static_cast<int>(x.size())},
                      std::vector{x, x * 2.0}};
  });
  for (double scale : {1.0, 2.0}) {
    const auto [stats, both] = f(doubles({scale, 3 * scale}));
    CHECK(stats.mean.item<double>() == 2 * scale);
    CHECK(stats.top.item<double>() == 3 * scale);
    CHECK(stats.count == 2);
    CHECK(numbers(both[1]) == std::vector<double>{2 * scale, 6 * scale});
  }
}

TEST_CASE("concrete arrays are captured when traced") {
  Array w = doubles({1.0, 2.0});
  auto f = rp::jit([&w](Array x) { return x * w; });
  CHECK(numbers(f(doubles({1.0, 1.0}))) == std::vector<double>{1, 2});
  w = doubles({5.0, 5.0});  // as in JAX: the traced program keeps what it saw
  CHECK(numbers(f(doubles({1.0, 1.0}))) == std::vector<double>{1, 2});
}

TEST_CASE("a jitted function that closes over a traced value gives its gradient, each time anew") {
  Array current;
  const auto f = rp::jit([&](Array x) { return x * current; });
  auto outer = [&](Array w) {
    current = w;
    return f(Array(3.0)) * w;
  };
  CHECK(rp::grad(outer)(2.0).item<double>() == 12.0);
  CHECK(rp::grad(outer)(5.0).item<double>() == 30.0);
  current = Array(4.0);
  CHECK(f(Array(3.0)).item<double>() == 12.0);
}

TEST_CASE("jit composes with grad and vmap, and keeps its name") {
  auto loss = [](Array w, Array x) { return rp::sum(rp::sin(w * x)); };
  auto step = rp::jit(rp::value_and_grad(loss), {.name = "step"});
  const Array w = doubles({0.5, 1.0}), x = doubles({2.0, 3.0});
  const auto [value, grads] = step(w, x);
  CHECK(value.item<double>() == doctest::Approx(std::sin(1.0) + std::sin(3.0)));
  check_close(grads, rp::grad(loss)(w, x), 1e-14);
  check_close(rp::grad(rp::jit(loss))(w, x), grads, 1e-14);
  const Array rows = rp::vmap(rp::jit(loss), {.in_axes = {std::nullopt, 0}})(w, rp::stack({x, w}));
  CHECK(numbers(rows)[0] == doctest::Approx(value.item<double>()));
  CHECK(text(step, w, x).find("name=step") != std::string::npos);
  CHECK(text(rp::jit(loss), w, x).find("name=<lambda>") != std::string::npos);
}

TEST_CASE("a number is not available inside jit, and the message says what depends on it") {
  auto f =
      rp::jit([](Array x, Array y) { return y.item<double>() > 0 ? x : -x; }, {.name = "choose"});
  try {
    f(1.0, 2.0);
    FAIL("no error");
  } catch (const rp::TraceError& e) {
    const std::string message = e.what();
    CHECK(message.find("choose") != std::string::npos);
    CHECK(message.find("args[1]") != std::string::npos);
    CHECK(message.find("args[0]") == std::string::npos);
  }
}

TEST_CASE("a function traced for very many static values says so once") {
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const auto scaled =
      rp::jit([](Array x, int n) { return x * static_cast<float>(n); }, {.name = "scaled"});
  for (int n = 0; n < 64; ++n) scaled(rp::ones({2}), n);
  // other types are other programs anyway
  for (std::int64_t n = 1; n < 60; ++n) scaled(rp::ones({n}), 1);
  CHECK(said.str() == "");
  for (int n = 64; n < 80; ++n) scaled(rp::ones({2}), n);
  std::cerr.rdbuf(before);
  CHECK(said.str() ==
        "reprise: warning: jit: scaled has been traced for more than 64 different static values "
        "with arguments of the same types, "
        "each becomes a program of its own; pass what changes from call to call as an Array\n");
}

TEST_CASE("a function traced for very many shapes says so once") {
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  const auto doubled = rp::jit([](Array x) { return x + x; }, {.name = "doubled"});
  for (std::int64_t n = 1; n <= 64; ++n) doubled.lower(rp::zeros({n}));
  CHECK(said.str() == "");
  for (std::int64_t n = 65; n < 80; ++n) doubled.lower(rp::zeros({n}));
  std::cerr.rdbuf(before);
  CHECK(said.str() ==
        "reprise: warning: jit: doubled has been traced for more than 64 different shapes or "
        "dtypes of its arguments, each "
        "becomes a program of its own; pad them to a few sizes\n");
}

TEST_CASE("of very many programs those used last are kept") {
  std::ostringstream said;
  std::streambuf* const before = std::cerr.rdbuf(said.rdbuf());
  int runs = 0;
  const auto f = rp::jit([&](Array x) { return ++runs, x + x; });
  for (std::int64_t n = 1; n <= 1024; ++n) f.lower(rp::zeros({n}));
  f.lower(rp::zeros({1}));
  CHECK(runs == 1024);
  f.lower(rp::zeros({1025}));  // in the place of 2
  f.lower(rp::zeros({1}));
  f.lower(rp::zeros({3}));
  CHECK(runs == 1025);
  f.lower(rp::zeros({2}));
  CHECK(runs == 1026);
  std::cerr.rdbuf(before);
}
