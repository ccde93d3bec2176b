// while_loop with .checkpoints: reverse mode for loops whose length is known only when they have
// run. Results and gradients are those of Equinox's checkpointed loop (golden/loops.json), with any
// number of checkpoints the same bits.
#include "derivatives.h"
#include "error_text.h"
#include "reprise/loops.h"
#include "test_data.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <functional>

namespace {

using namespace check;
using Json = nlohmann::json;
using Two = std::tuple<Array, Array>;
using Three = std::tuple<Array, Array, Array>;

Two counted(const std::function<Array(Two)>& more, const std::function<Array(Array)>& next,
            const Array& x, rp::LoopOptions o) {
  auto step = [=](Two c) {
    Array v = next(std::get<0>(c));
    return Two{v, std::get<1>(c) + 1};
  };
  return rp::while_loop(more, step, Two{x, Array(0)}, o);
}

Two newton_sqrt(const Arrays& x, rp::LoopOptions o) {
  const Array a = x[0];
  auto more = [=](Two c) { return rp::abs(std::get<0>(c) * std::get<0>(c) - a) > 1e-5; };
  return counted(
      more, [=](Array v) { return 0.5 * (v + a / v); }, rp::full({}, 4.0, rp::float32), o);
}
Two grow_one(const Array& v, const Array& s, rp::LoopOptions o) {
  return counted([](Two c) { return rp::sum(std::get<0>(c)) < 10; }, [=](Array u) { return u * s; },
                 v, o);
}
Two grow(const Arrays& x, rp::LoopOptions o) { return grow_one(x[0], x[1], o); }
Two collatz_carry(const Arrays& x, rp::LoopOptions o) {
  auto step = [](Three c) {
    auto [k, v, n] = c;
    Array even = rp::equal(k % 2, 0);
    Array next = rp::where(even, rp::floor_divide(k, 2), 3 * k + 1);
    Array value = rp::where(even, rp::sin(v), 1.1 * v);
    return Three{next, value, n + 1};
  };
  auto [k, v, n] = rp::while_loop([](Three c) { return rp::not_equal(std::get<0>(c), 1); }, step,
                                  Three{Array(27), x[0], Array(0)}, o);
  return {v, n};
}
Two adaptive_euler(const Arrays& x, rp::LoopOptions o) {
  const Array k = x[1];
  auto step = [=](Three c) {
    auto [t, y, n] = c;
    Array dt = rp::minimum(0.02 + 0.05 * rp::min(rp::abs(y)), 2.0 - t);
    Array later = t + dt;
    Array next = y - dt * k * rp::tanh(y);
    return Three{later, next, n + 1};
  };
  const Three start{rp::full({}, 0.0, rp::float32), x[0], Array(0)};
  auto [t, y, n] =
      rp::while_loop([](Three c) { return std::get<0>(c) < 2.0 - 1e-6; }, step, start, o);
  return {y, n};
}
Two fixed_point(const Arrays& x, rp::LoopOptions o) {
  const Array w = x[0], b = x[1];
  auto step = [=](Three c) {
    auto [v, before, n] = c;
    Array next = rp::tanh(rp::matmul(w, v) + b);
    return Three{next, v, n + 1};
  };
  auto more = [](Three c) { return rp::max(rp::abs(std::get<0>(c) - std::get<1>(c))) > 1e-4; };
  auto [v, before, n] =
      rp::while_loop(more, step, Three{rp::zeros_like(b), rp::ones_like(b), Array(0)}, o);
  return {v, n};
}
Two noise(const Arrays& x, rp::LoopOptions o) {
  auto step = [](Three c) {
    auto [key, v, n] = c;
    Array keys = rp::random::split(key);
    Array drawn = rp::random::normal(keys[1], v.shape());
    return Three{keys[0], v + 0.1 * rp::sin(v) * drawn, n + 1};
  };
  auto [key, v, n] = rp::while_loop([](Three c) { return std::get<2>(c) < 37; }, step,
                                    Three{rp::random::PRNGKey(0), x[0], Array(0)}, o);
  return {v, n};
}
Two no_step(const Arrays& x, rp::LoopOptions o) {
  return counted([](Two c) { return rp::sum(std::get<0>(c)) > 100; },
                 [](Array v) { return rp::sin(v); }, x[0], o);
}
Two one_step(const Arrays& x, rp::LoopOptions o) {
  return counted([](Two c) { return std::get<1>(c) < 1; }, [](Array v) { return rp::sin(v); }, x[0],
                 o);
}
Two many_steps(const Arrays& x, rp::LoopOptions o) {
  const Array r = x[1];
  return counted([](Two c) { return std::get<1>(c) < 500; },
                 [=](Array v) { return r * v * (1 - v); }, x[0], o);
}
Two inside_scan(const Arrays& x, rp::LoopOptions o) {
  const Array w = x[1];
  auto step = [=](Array h, Array v) {
    auto more = [](Two c) { return rp::sum(std::get<0>(c) * std::get<0>(c)) < 4.0; };
    auto [next, n] = counted(
        more, [=](Array u) { return u * w + v; }, 0.1 * h, o);
    return std::pair{next, n};
  };
  auto [h, ns] = rp::scan(step, rp::ones({x[0].shape()[1]}), x[0]);
  return {h, rp::sum(ns)};
}
Two batched(const Arrays& x, rp::LoopOptions o) {
  auto one = [=](Array v, Array s) { return grow_one(v, s, o); };
  auto [out, n] = rp::vmap(one, {.in_axes = {0, std::nullopt}})(x[0], x[1]);
  return {out, rp::sum(n)};
}
Two nested(const Arrays& x, rp::LoopOptions o) {
  const Array a = x[1];
  auto outer = [=](Array v) {
    auto more = [](Two c) { return rp::sum(rp::abs(std::get<0>(c))) < 3.0; };
    return 0.7 * std::get<0>(counted(
                     more, [=](Array u) { return u * a; }, rp::sin(v), o));
  };
  return counted([](Two c) { return std::get<1>(c) < 5; }, outer, x[0], o);
}

using Program = Two (*)(const Arrays&, rp::LoopOptions);
const std::pair<const char*, Program> programs[] = {{"newton_sqrt", newton_sqrt},
                                                    {"grow", grow},
                                                    {"collatz_carry", collatz_carry},
                                                    {"adaptive_euler", adaptive_euler},
                                                    {"fixed_point", fixed_point},
                                                    {"noise", noise},
                                                    {"no_step", no_step},
                                                    {"one_step", one_step},
                                                    {"many_steps", many_steps},
                                                    {"inside_scan", inside_scan},
                                                    {"batched", batched},
                                                    {"nested", nested}};

void flatten(const Json& j, std::vector<float>& into) {
  if (!j.is_array()) return into.push_back(j.get<float>());
  for (const Json& item : j) flatten(item, into);
}
Array array_of(const Json& j) {
  rp::Shape shape;
  for (const Json* at = &j; at->is_array(); at = &at->at(0))
    shape.push_back(static_cast<std::int64_t>(at->size()));
  std::vector<float> values;
  flatten(j, values);
  return rp::array(values, shape);
}
const Json& case_named(const std::string& name) {
  static const Json all = [] {
    std::ifstream file(golden_path("loops.json"));
    return Json::parse(file);
  }();
  for (const Json& c : all["cases"]) {
    if (c["name"] == name) return c;
  }
  FAIL("no golden case " << name);
  return all;
}
// |ours - theirs| <= 1e-6 x the largest magnitude, with room for 500 steps of f32 in another order.
// What is so small that XLA, which has no subnormal numbers, lost it on the way counts as zero.
void check_near(const Array& got, const Json& wanted, double tolerance) {
  const std::vector<double> a = numbers(got), b = numbers(array_of(wanted));
  REQUIRE(a.size() == b.size());
  double largest = 0, worst = 0;
  for (double v : b) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK(worst <= std::max(tolerance * largest, 1e-36));
}
bool same_bits(const Arrays& a, const Arrays& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<float> x = a[i].to_vector<float>(), y = b[i].to_vector<float>();
    if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0)
      return false;
  }
  return a.size() == b.size();
}

Array loss(Program f, const Arrays& x, rp::LoopOptions o) {
  const Array out = std::get<0>(f(x, o));
  return rp::sum(out * out);
}

}  // namespace

TEST_CASE(
    "golden loops of unknown length: results, steps and gradients with 1, 2, 4 and 100 "
    "checkpoints") {
  for (const auto& program : programs) {
    const std::string name = program.first;
    const Program f = program.second;
    INFO(name);
    const Json& golden = case_named(name);
    Arrays x;
    for (const Json& a : golden["args"]) x.push_back(array_of(a));
    const double tolerance = name == "many_steps" ? 1e-4 : 2e-6;
    Arrays first, first_compiled;
    for (const int c : {1, 2, 4, 100}) {
      const rp::LoopOptions o{.checkpoints = c};
      const auto [out, steps] = f(x, o);
      CHECK(steps.item<int>() == golden["steps"].get<int>());
      check_near(out, golden["out"][0], tolerance);
      const Arrays grads = rp::grad([=](Arrays a) { return loss(f, a, o); })(x);
      for (std::size_t i = 0; i < grads.size(); ++i)
        check_near(grads[i], golden["grads"][i], tolerance);
      if (first.empty()) first = grads;
      CHECK(same_bits(grads, first));
      const Arrays compiled = rp::jit(rp::grad([=](Arrays a) { return loss(f, a, o); }))(x);
      for (std::size_t i = 0; i < grads.size(); ++i)
        check_near(compiled[i], golden["grads"][i], tolerance);
      if (first_compiled.empty()) first_compiled = compiled;
      CHECK(same_bits(compiled, first_compiled));
    }
  }
}

TEST_CASE("a while loop has the gradients of the same loop as a scan") {
  auto body = [](Array v) { return rp::sin(v) * 1.2 + 0.1 * v; };
  const Array x = rp::array(std::vector<float>{0.1f, 0.7f, -0.4f});
  for (const int n : {0, 1, 2, 3, 5, 17, 60}) {
    auto scanned = [=](Array v) {
      return rp::sum(rp::fori_loop(
          0, n, [=](Array, Array u) { return body(u); }, v));
    };
    for (const int c : {1, 2, 3, 7, 50}) {
      auto counted_up = [=](Array v) {
        return rp::sum(rp::fori_loop(Array(0), Array(n), [=](Array, Array u) { return body(u); }, v,
                                     {.checkpoints = c}));
      };
      INFO(n << " steps, " << c << " checkpoints");
      CHECK(same_bits({rp::grad(counted_up)(x)}, {rp::grad(scanned)(x)}));
      check_close(rp::jit(rp::grad(counted_up))(x), rp::grad(scanned)(x));
    }
  }
}

TEST_CASE("a traced number of steps") {
  auto f = [](Array x, Array n) {
    return rp::sum(rp::fori_loop(
        Array(0), n, [](Array i, Array v) { return rp::sin(v) + 0.01 * i.astype(rp::float32); }, x,
        {.checkpoints = 3}));
  };
  const auto compiled = rp::jit(rp::grad(f));
  for (const int n : {0, 1, 4, 31}) {
    auto known = [=](Array x) {
      return rp::sum(rp::fori_loop(
          0, n, [](Array i, Array v) { return rp::sin(v) + 0.01 * i.astype(rp::float32); }, x));
    };
    check_close(compiled(rp::ones({4}), Array(n)), rp::grad(known)(rp::ones({4})));
  }
}

TEST_CASE("forward derivatives, checkpoint, cond and linearize of a while loop with a budget") {
  const Array x = rp::array(std::vector<float>{0.3f, 0.9f}),
              dx = rp::array(std::vector<float>{1.f, -0.5f});
  auto more = [](Two c) { return rp::sum(rp::abs(std::get<0>(c))) < 9; };
  auto f = [=](Array v, rp::LoopOptions o) {
    return rp::sum(std::get<0>(counted(
        more, [=](Array u) { return u * 1.3 + rp::sin(u); }, v, o)));
  };
  auto budget = [=](Array v) { return f(v, {.checkpoints = 2}); };
  auto plain = [=](Array v) { return f(v, {}); };
  const auto [y, dy] = rp::jvp(plain, std::tuple{x}, std::tuple{dx});
  const Array g = rp::grad(budget)(x);
  check_close(rp::sum(g * dx), dy);
  check_close(rp::grad(rp::checkpoint(budget))(x), g);
  check_close(rp::jit(rp::grad(rp::checkpoint(budget)))(x), g);
  check_close(rp::grad([=](Array v) {
                return rp::cond(
                    rp::sum(v) > 0, budget, [](Array u) { return rp::sum(u); }, v);
              })(x),
              g);
  const auto [z, linear] = rp::linearize(budget, x);
  check_close(linear(dx), dy);
  const auto [h, dh] = rp::jvp(rp::grad(budget), std::tuple{x}, std::tuple{dx});
  const auto [k, dk] = rp::jvp(
      rp::grad([=](Array v) {  // the same steps, counted before
        Array u = v;
        for (int i = 0;
             i < std::get<1>(counted(
                                 more, [=](Array s) { return s * 1.3 + rp::sin(s); }, x, {}))
                     .item<int>();
             ++i)
          u = u * 1.3 + rp::sin(u);
        return rp::sum(u);
      }),
      std::tuple{x}, std::tuple{dx});
  check_close(h, k);
  check_close(dh, dk);
}

TEST_CASE("mapped gradients: one length for all elements, and lengths that differ") {
  auto f = [](Array v, Array n) {
    return rp::sum(rp::fori_loop(Array(0), n, [](Array, Array u) { return rp::sin(u * 1.1); }, v,
                                 {.checkpoints = 2}));
  };
  const Array xs = rp::array(std::vector<float>{0.3f, 0.9f, 0.5f, 0.1f}, rp::Shape{2, 2});
  const auto g = rp::grad(f);
  const auto each = [&](int a, int b) {
    return rp::stack({g(xs[0], Array(a)), g(xs[1], Array(b))});
  };
  check_close(rp::vmap(g, {.in_axes = {0, std::nullopt}})(xs, Array(5)), each(5, 5));
  for (const auto& both : {std::pair{2, 3}, {0, 7}, {9, 1}, {0, 0}}) {
    const int a = both.first, b = both.second;
    INFO(a << " and " << b << " steps");
    const Array lengths = rp::array(std::vector<int>{a, b});
    check_close(rp::vmap(g)(xs, lengths), each(a, b));
    check_close(rp::jit(rp::vmap(g))(xs, lengths), each(a, b));
  }
  const Array lengths = rp::array(std::vector<int>{2, 3, 0, 6}, rp::Shape{2, 2});
  const Array all = rp::vmap(rp::vmap(g))(rp::stack({xs, xs}), lengths);
  check_close(all, rp::stack({each(2, 3), each(0, 6)}));
  check_close(rp::jit(rp::vmap(rp::vmap(g)))(rp::stack({xs, xs}), lengths), all);
}

TEST_CASE("mapped gradients of golden loops are those of their elements") {
  const Array starts = rp::array(std::vector<float>{7.0f, 2.0f, 40.0f, 0.3f});
  auto root = [](Array a) { return std::get<0>(newton_sqrt({a}, {.checkpoints = 2})); };
  auto scaled = [=](Array a) { return root(a) * a; };  // closes over what is mapped
  const auto slope = rp::grad(scaled);
  Arrays each;
  for (int i = 0; i < 4; ++i) each.push_back(slope(starts[i]));
  check_close(rp::vmap(slope)(starts), rp::stack(each));
  check_close(rp::jit(rp::vmap(slope))(starts), rp::stack(each));
  const auto curve = rp::jacfwd(slope);
  Arrays bends;
  for (int i = 0; i < 4; ++i) bends.push_back(curve(starts[i]));
  check_close(rp::vmap(curve)(starts), rp::stack(bends));
  auto linear = [=](Array a) { return rp::linearize(root, a).second(Array(1.0f)); };
  check_close(rp::vmap(linear)(starts), rp::vmap(rp::grad(root))(starts));
}

TEST_CASE("budgets of while loops that are none") {
  auto loop = [](rp::LoopOptions o) {
    return [=] {
      rp::while_loop([](Array v) { return v < 10; }, [](Array v) { return v * 2; }, Array(1.0), o);
    };
  };
  CHECK_MENTIONS(message<rp::TypeError>(loop({.checkpoints = 0})),
                 "while_loop: .checkpoints must be at least 1, got 0");
  CHECK_MENTIONS(message<rp::TypeError>(loop({.checkpoints = rp::automatic})),
                 "while_loop: .checkpoints = automatic needs a known number of steps");
  CHECK_MENTIONS(message<rp::RuleError>([] {
                   return rp::grad([](Array x) {
                     return rp::while_loop([](Array v) { return v < 10; },
                                           [](Array v) { return v * 2; }, x);
                   })(1.0);
                 }),
                 "give .checkpoints");
}
