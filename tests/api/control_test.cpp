// What scan, cond, while_loop and custom rules accept: structures, weak types, generic functions.
#include "derivatives.h"

namespace {

using namespace check;
using rp::None;
using rp::none;
using std::pair;

struct State {
  Array position, velocity;
};

}  // namespace

TEST_CASE("numbers as initial carries take the type that the body gives them") {
  const auto [end, ys] = rp::scan(
      [](Array c, Array x) {
        return pair{c + x, c};
      },
      0, doubles({1.5, 2.0}));
  CHECK(end.dtype() == rp::float64);
  CHECK(end.item<double>() == 3.5);
  CHECK(numbers(ys) == std::vector<double>{0, 1.5});
  const Array grown =
      rp::while_loop([](Array c) { return c < 10; }, [](Array c) { return c * 1.5; }, 1);
  CHECK(grown.dtype() == rp::float32);
}

TEST_CASE("generic functions, function pointers and mutable lambdas work as bodies") {
  auto generic = [](auto c, auto x) { return pair{c + x, c}; };
  CHECK(rp::scan(generic, Array(0.0), rp::ones({3})).first.item<double>() == 3.0);
  pair<Array, None> (*pointer)(Array, Array) = [](Array c, Array x) { return pair{c * x, none}; };
  CHECK(rp::scan(pointer, Array(1.0), rp::full({3}, 2.0)).first.item<double>() == 8.0);
  int traced = 0;
  auto counting = [&traced](Array c, None) mutable { return ++traced, pair{c + 1.0, none}; };
  CHECK(rp::scan(counting, rp::full({}, 0.0), none, {.length = 100}).first.item<double>() == 100.0);
  CHECK(traced == 1);  // the body is traced, not run per step
  std::function<Array(Array)> negate = [](Array x) { return -x; };
  CHECK(rp::cond(true, negate, negate, Array(2.0)).item<double>() == -2.0);
}

TEST_CASE("structs are carries and results of every construct") {
  auto move = [](State s, Array force) {
    State next{s.position + s.velocity, s.velocity + force};
    return pair{next, s.position};
  };
  const State start{rp::full({}, 0.0), rp::full({}, 1.0)};
  const auto [end, path] = rp::scan(move, start, rp::ones({3}));
  CHECK(end.position.item<double>() == 0 + 1 + 2 + 3);
  CHECK(numbers(path) == std::vector<double>{0, 1, 3});
  const State swapped = rp::cond(
      false, [](State s) { return s; },
      [](State s) {
        return State{s.velocity, s.position};
      },
      start);
  CHECK(swapped.position.item<double>() == 1.0);
  const State far = rp::while_loop([](State s) { return s.position < 20.0; },
                                   [&](State s) { return move(s, Array(1.0)).first; }, start);
  CHECK(far.position.item<double>() == 21.0);
  auto reach = [&](Array v) {
    return rp::scan(move, State{rp::full({}, 0.0), v}, rp::ones({4})).first.position;
  };
  CHECK(rp::grad(reach)(1.0).item<double>() == 4.0);
}

TEST_CASE("closed-over traced values get gradients through every construct") {
  const Array x = rp::full({}, 3.0, rp::float64);
  auto by_scan = [](Array w) {
    return rp::scan(
               [&](Array c, Array k) {
                 return pair{c * w + k, none};
               },
               rp::ones_like(w), doubles({1, 1}))
        .first;
  };
  CHECK(rp::grad(by_scan)(x).item<double>() == 2 * 3.0 + 1);  // w^2 + w + 1
  auto by_cond = [](Array w) {
    return rp::cond(
        true, [&] { return w * w; }, [&] { return w; });
  };
  CHECK(rp::grad(by_cond)(x).item<double>() == 6.0);
  auto by_fori = [](Array w) {
    return rp::fori_loop(
        0, 3, [&](Array, Array c) { return c * w; }, w);
  };
  CHECK(rp::grad(by_fori)(x).item<double>() == 4 * 27.0);
  auto by_while = [](Array w) {
    return rp::while_loop([](Array c) { return c < 100.0; }, [&](Array c) { return c * w; }, w);
  };
  const auto [y, dy] = rp::jvp(by_while, std::tuple{x}, std::tuple{rp::ones_like(x)});
  CHECK(y.item<double>() == 243.0);
  CHECK(dy.item<double>() == 5 * 81.0);
}

TEST_CASE("a body that keeps a traced value after its trace is a TraceError when used") {
  Array leaked;
  auto body = [&](Array c, Array x) {
    leaked = c * x;
    return pair{c + x, none};
  };
  rp::scan(body, Array(0.0), rp::ones({2}));
  CHECK_THROWS_AS(rp::sin(leaked), rp::TraceError);
}

TEST_CASE("custom rules take and return trees") {
  using Args = std::tuple<State, Array>;
  auto energy = [](State s, Array mass) {
    return std::map<std::string, Array>{{"e", mass * s.velocity * s.velocity},
                                        {"p", mass * s.velocity}};
  };
  auto jvp = [energy](Args x, Args dx) {
    auto [s, mass] = x;
    auto [ds, dmass] = dx;
    const auto y = energy(s, mass);
    // Only the velocity counts, with a factor to see that this rule was used.
    return pair{
        y, std::map<std::string, Array>{{"e", ds.velocity * 1000.0}, {"p", ds.velocity * 0.0}}};
  };
  auto f = rp::custom_jvp(energy, jvp);
  auto loss = [&](State s, Array mass) { return f(s, mass).at("e"); };
  const State at{rp::full({}, 1.0), rp::full({}, 2.0)};
  const auto [gs, gm] = rp::grad<0, 1>(loss)(at, 3.0);
  CHECK(gs.velocity.item<double>() == 1000.0);
  CHECK(gs.position.item<double>() == 0.0);
  CHECK(gm.item<double>() == 0.0);

  auto g = rp::custom_vjp(
      energy,
      [=](State s, Array mass) {
        return pair{energy(s, mass), State{s.velocity, mass}};
      },
      [](State residuals, std::map<std::string, Array> ct) {
        Array dv = ct.at("e") * residuals.position * 100.0;
        return Args{State{dv * 0.0, dv}, ct.at("p")};
      });
  auto loss2 = [&](State s, Array mass) {
    const auto y = g(s, mass);
    return y.at("e") + y.at("p") * 7.0;
  };
  const auto [hs, hm] = rp::grad<0, 1>(loss2)(at, 3.0);
  CHECK(hs.velocity.item<double>() == 200.0);
  CHECK(hm.item<double>() == 7.0);
}
