// Checkpoints with a budget: what is saved stays within the bytes, is the best choice, and changes
// no derivative.
#include "remat/within_budget.h"

#include "derivatives.h"
#include "error_text.h"
#include "remat/checkpoint.h"
#include "same_bits.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <sstream>

namespace {

namespace rp = reprise;
using rp::Array;
using rp::Arrays;

// Products of 64 x 64 between cheap values of 16 KiB each.
Array layers(Arrays W, Array x) {
  for (const Array& w : W) {
    const Array h = rp::matmul(x, w);
    x = rp::sin(h);
  }
  return rp::sum(x);
}
Arrays weights(int count) {
  Arrays W;
  for (int i = 0; i < count; ++i) {
    const Array key = rp::random::key(i);
    W.push_back(rp::random::normal(key, {64, 64}) * 0.1f);
  }
  return W;
}
Array input() { return rp::random::normal(rp::random::key(77), {64, 64}); }
constexpr std::int64_t value = 64 * 64 * 4;

template <class F>
std::size_t saved_bytes(const F& f, const Arrays& W, const Array& x) {
  return rp::residual_report(f, W, x).computed_bytes();
}

}  // namespace

TEST_CASE("a budget bounds what a checkpoint saves, and more of it saves more") {
  const Arrays W = weights(6);
  const Array x = input();
  std::size_t before = 0;
  for (const std::int64_t values : {0, 1, 2, 3, 4, 6, 12, 100}) {
    const auto f = rp::checkpoint(layers, {.budget = values * value + 100});
    const std::size_t bytes = saved_bytes(f, W, x);
    CAPTURE(values);
    CHECK(bytes <= static_cast<std::size_t>(values * value + 100));
    CHECK(bytes >= before);
    before = bytes;
  }
  // all six products are worth it, their sines are not
  CHECK(before >= 5 * static_cast<std::size_t>(value));
  CHECK(saved_bytes(rp::checkpoint(layers, {.budget = 0}), W, x) == 0);
}

TEST_CASE("the dearest values are saved first") {
  // one product costs far more than the other, and both results are equally large
  const auto f = [](Array a, Array b, Array x) {
    const Array cheap = rp::matmul(rp::sin(x), b);     // 64 x 4 by 4 x 64
    const Array wide = rp::matmul(rp::cos(cheap), a);  // 64 x 64 by 64 x 64
    return rp::sum(rp::sin(wide));
  };
  const int cheap_line = __LINE__ - 4;
  const Array a = rp::ones({64, 64}), b = rp::ones({4, 64}), x = rp::ones({64, 4});
  const auto report = rp::residual_report(rp::checkpoint(f, {.budget = value}), a, b, x);
  REQUIRE(report.computed_bytes() <= static_cast<std::size_t>(value));
  bool saves_wide = false;
  for (const rp::ResidualDetail& r : report.residuals) {
    for (const rp::EquationPlace& place : r.made_by)
      saves_wide |= r.computed && r.bytes == value && place.at.line > cheap_line;
  }
  CHECK(saves_wide);
}

TEST_CASE("values and derivatives are those without a checkpoint, under every transform") {
  const Arrays W = weights(3);
  const Array x = input();
  for (const std::int64_t budget : {std::int64_t{0}, value, 3 * value}) {
    const auto f = rp::checkpoint(layers, {.budget = budget});
    CAPTURE(budget);
    check_same_elements(f(W, x), layers(W, x));
    const Arrays eager = rp::grad(f)(W, x), plain = rp::grad(layers)(W, x);
    const Arrays compiled = rp::jit(rp::grad(f))(W, x);
    const Arrays reference = rp::jit(rp::grad(layers))(W, x);
    for (std::size_t i = 0; i < W.size(); ++i) {
      check_same_elements(eager[i], plain[i]);
      check::check_close(compiled[i], reference[i]);
    }
    const auto by_x = [&](Array v) { return f(W, v); };
    const auto plain_by_x = [&](Array v) { return layers(W, v); };
    const Array rows = rp::stack({x, x * 2.f});
    check_same_elements(rp::vmap(rp::grad(by_x))(rows), rp::vmap(rp::grad(plain_by_x))(rows));
    const auto [y, dy] = rp::jvp(by_x, std::tuple(x), std::tuple(x));
    const auto [plain_y, plain_dy] = rp::jvp(plain_by_x, std::tuple(x), std::tuple(x));
    check_same_elements(dy, plain_dy);
    const auto twice = [](auto g) { return [g](Array v) { return rp::sum(rp::grad(g)(v)); }; };
    check::check_close(rp::grad(twice(by_x))(x), rp::grad(twice(plain_by_x))(x));
  }
}

TEST_CASE("a budget of a mapped function bounds the values of all elements") {
  const Arrays W = weights(3);
  const auto f = rp::checkpoint(layers, {.budget = 2 * value});
  const auto mapped = [&](Array rows) {
    return rp::sum(rp::vmap([&](Array v) { return f(W, v); })(rows));
  };
  const Array rows = rp::ones({4, 64, 64});
  CHECK(rp::residual_report(mapped, rows).computed_bytes() <= 2 * static_cast<std::size_t>(value));
}

TEST_CASE("calls, checkpoints and loops inside share the budget") {
  const Array w = weights(1)[0], x = input();
  const auto inner = rp::jit([](Array m, Array v) { return rp::sin(rp::matmul(v, m)); });
  const auto nested = rp::checkpoint([](Array m, Array v) { return rp::cos(rp::matmul(v, m)); });
  const auto f = [&](Array m, Array v) {
    const Array a = inner(m, v);
    const Array b = nested(m, a);
    const auto step = [&](Array c, Array) { return std::tuple(rp::sin(rp::matmul(c, m)), c); };
    const auto [last, all] = rp::scan(step, b, rp::zeros({3}));
    return rp::sum(last) + rp::sum(all);
  };
  for (const std::int64_t budget : {std::int64_t{0}, value, 2 * value, 40 * value}) {
    const auto g = rp::checkpoint(f, {.budget = budget});
    CAPTURE(budget);
    CHECK(rp::residual_report(g, w, x).computed_bytes() <= static_cast<std::size_t>(budget));
    check::check_close(rp::grad(g)(w, x), rp::grad(f)(w, x));
  }
}

TEST_CASE("with a policy the budget chooses among what that saves") {
  const Arrays W = weights(4);
  const Array x = input();
  const auto dots = rp::checkpoint_policies::dots_saveable;
  const auto f = rp::checkpoint(layers, {.policy = dots, .budget = 2 * value});
  const auto report = rp::residual_report(f, W, x);
  CHECK(report.computed_bytes() == 2 * static_cast<std::size_t>(value));
  for (const rp::ResidualDetail& r : report.residuals) {
    if (!r.computed) continue;
    REQUIRE(!r.made_by.empty());
    CHECK_MENTIONS(r.made_by[0].what, "dot_general");
  }
}

TEST_CASE("a budget prints as a policy, and is read back") {
  const auto f = rp::checkpoint([](Array v) { return rp::sin(rp::sin(v)); }, {.budget = 1000});
  std::ostringstream text;
  text << rp::make_jaxpr(f)(rp::ones({3}));
  CHECK_MENTIONS(text.str(), "policy=save_within_budget(1000)");
  for (const rp::Policy& base : {rp::Policy(), rp::checkpoint_policies::dots_saveable}) {
    const rp::Policy policy = rp::within_budget(base, 4096);
    const auto read = rp::policy_from_repr(policy.jax_repr());
    REQUIRE(read);
    CHECK(read->key() == policy.key());
  }
  CHECK_FALSE(rp::policy_from_repr("save_within_budget(x)"));
  CHECK_FALSE(rp::policy_from_repr("save_within_budget(3, unknown)"));
}

TEST_CASE("budgets that are no sizes are type errors") {
  const auto f = rp::checkpoint([](Array v) { return rp::sin(v); }, {.budget = -1});
  CHECK_MENTIONS(message<rp::TypeError>([&] { return f(rp::ones({3})); }),
                 "checkpoint: a budget is from 0 to 2^57 bytes, got -1");
}
