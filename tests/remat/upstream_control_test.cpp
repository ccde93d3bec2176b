// JAX's RematTest, control flow inside checkpoint: what the linear program computes again.
#include "remat/upstream.h"

using namespace upstream;

namespace {

const rp::CheckpointOptions everything{.policy = P::everything_saveable};
const rp::CheckpointOptions nothing{.policy = P::nothing_saveable};
const rp::CheckpointOptions save_cos{.policy = save_prim("cos")};
const rp::CheckpointOptions save_sin{.policy = save_prim("sin")};
using Pair = std::pair<Array, Array>;

template <class F>
auto in_scan(F f) {
  return [f](const auto& x) {
    auto body = [f](std::decay_t<decltype(x)> v, rp::None) { return std::pair{f(v), rp::none}; };
    return rp::scan(body, x, rp::none, {.length = 1}).first;
  };
}
template <class F>
auto in_cond(F f) {
  return [f](Array x) {
    return rp::cond(
        rp::sum(x) > -INFINITY, f, [](Array v) { return v; }, x);
  };
}
Array sine(Array x) { return rp::sin(x); }
Pair sine_cosine(Pair x) { return {rp::sin(x.first), rp::cos(x.second)}; }

// sin with a rule that computes sin and cos together, in the way that `both` does.
template <class Both>
auto sin_with_rule(Both both) {
  return rp::custom_jvp(sine, [both](std::tuple<Array> p, std::tuple<Array> t) {
    const Pair y_and_slope = both(std::get<0>(p));
    return Pair{y_and_slope.first, y_and_slope.second * std::get<0>(t)};
  });
}
Pair both_in_jit(Array x) {
  return rp::jit([x] { return sine_cosine({x, x}); })();
}
Pair both_in_scan(Array x) { return in_scan(sine_cosine)(Pair{x, x}); }
Pair both_in_cond(Array x) {
  return rp::cond(
      true, sine_cosine, [](Pair v) { return v; }, Pair{x, x});
}

template <class F>
void check_counts(const F& f, const rp::CheckpointOptions& options, const SinCos& wanted) {
  auto c = rp::checkpoint([f](Array x) { return f(x); }, options);
  CHECK(sin_cos(linear_text(c, 4.0)) == wanted);
  check_grads(c, Array(3.0), /*forward=*/false);
}
// The body of the only equation, a scan.
std::string only_scan(const rp::Jaxpr& program) {
  CHECK(program.size() == 1);
  CHECK(contains(program.str(), "= scan["));
  return program.str();
}

}  // namespace

TEST_CASE("remat_scan: cos is computed in the linear and in the transposed loop") {
  auto loop = [](auto body) {
    return [body](Array x) { return rp::scan(body, x, rp::arange(3.0)).first; };
  };
  auto step = [](Array c, Array) { return std::pair{rp::sin(c), rp::none}; };
  auto plain = loop(step);
  auto f = loop(rp::checkpoint(step));
  check_close(f(4.0), plain(4.0));
  check_close(rp::grad(f)(4.0), rp::grad(plain)(4.0));
  CHECK(contains(only_scan(rp::linearize(f, 4.0).second.jaxpr()), " cos "));
  CHECK(contains(only_scan(rp::fwd_bwd(f, 4.0).backward), " cos "));
}

TEST_CASE("remat_of_scan and its policy: sin and cos again, or neither when cos is saved") {
  auto f = [](Array x) {
    auto body = [](Array c, rp::None) { return Pair{rp::sin(c), rp::sin(c)}; };
    return rp::scan(body, x, rp::none, {.length = 3});
  };
  const SinCos again = sin_cos(linear_text(rp::checkpoint(f), 4.0));
  CHECK(again[0] > 0);
  CHECK(again[1] > 0);
  check_grads(rp::checkpoint(f), Array(3.0), /*forward=*/false);
  check_counts(f, save_cos, {0, 0});
}

TEST_CASE("remat_of_scan_funky_custom_jvp: a rule with jit, in a loop") {
  auto once = in_scan(sin_with_rule(both_in_jit));
  check_counts(once, save_cos, {0, 0});
  check_counts(once, save_sin, {0, 1});
  check_counts(once, everything, {0, 0});
  check_counts(once, nothing, {1, 1});  // the carry keeps sin alive
  check_counts([once](Array x) { return once(once(x)); }, nothing, {2, 2});
}

TEST_CASE("remat_of_scan_funky_custom_jvp2: a rule with a loop, in a loop") {
  auto once = in_scan(sin_with_rule(both_in_scan));
  check_counts(once, save_cos, {1, 0});
  check_counts(once, save_sin, {0, 1});
  check_counts(once, everything, {0, 0});
  check_counts(once, nothing, {1, 1});
  check_counts([once](Array x) { return once(once(x)); }, nothing, {2, 2});
}

TEST_CASE("const_in_jvp_scan and const_in_jvp_cond: a rule that makes a constant") {
  auto times = [](Array x) { return x * rp::arange(3.0); };
  auto f = rp::custom_jvp(times, [times](std::tuple<Array> p, std::tuple<Array> t) {
    return Pair{times(std::get<0>(p)), times(std::get<0>(t))};
  });
  auto looped = rp::checkpoint([f](Array x) { return rp::sum(in_scan(f)(x)); });
  check_close(rp::grad(looped)(rp::arange(3.0)), rp::arange(3.0));
  auto chosen = rp::checkpoint([f](Array x) {
    return rp::sum(rp::cond(
        rp::sum(x) > 0, f, [](Array v) { return v; }, x));
  });
  check_close(rp::grad(chosen)(rp::arange(3.0)), rp::arange(3.0));
}

TEST_CASE("remat_of_cond and its policy: only what the coefficients need is computed again") {
  auto twice = [](Array c) { return Pair{rp::sin(c), rp::sin(c)}; };
  auto same = rp::checkpoint([twice](Array x) { return rp::cond(x > 0.0, twice, twice, x); });
  const SinCos shallow = sin_cos(linear_text(same, 4.0));
  CHECK(shallow[0] == 0);
  CHECK(shallow[1] > 0);
  check_grads(same, Array(3.0), /*forward=*/false);
  auto deep = rp::checkpoint([](Array x) {
    return rp::cond(
        x > 0.0, [](Array c) { return rp::sin(rp::sin(c)); }, [](Array c) { return c; }, x);
  });
  const SinCos both = sin_cos(linear_text(deep, 4.0));
  CHECK(both[0] > 0);
  CHECK(both[1] > 0);
  check_grads(deep, Array(3.0), /*forward=*/false);
  check_counts(
      [](Array x) {
        return rp::cond(
            x > 0.0, sine, [](Array c) { return c; }, x);
      },
      save_cos, {0, 0});
}

TEST_CASE("remat_of_cond_funky_custom_jvp: a rule with jit or a cond, in a cond") {
  auto run = [](auto rule) {
    auto once = in_cond(sin_with_rule(rule));
    check_counts(once, save_cos, {0, 0});
    check_counts(once, save_sin, {0, 1});
    check_counts(once, everything, {0, 0});
    check_counts(once, nothing, {0, 1});
    check_counts([once](Array x) { return once(once(x)); }, nothing, {1, 2});
  };
  run(both_in_jit);
  run(both_in_cond);
}

TEST_CASE("remat_of_while_loop, with and without policy: the linear program runs the whole loop") {
  auto f = [](Array x) {
    auto more = [](Pair s) { return s.first < 3; };
    auto step = [](Pair s) { return Pair{s.first + 1, rp::sin(s.second)}; };
    return rp::while_loop(more, step, Pair{0, x}).second;
  };
  const auto [y, linear] = rp::linearize(rp::checkpoint(f), 3.0);
  check_close(linear(1.0), rp::grad([](Array x) { return rp::sin(rp::sin(rp::sin(x))); })(3.0));
  for (const rp::CheckpointOptions& o : {rp::CheckpointOptions{}, save_cos}) {
    const SinCos again = sin_cos(linear_text(rp::checkpoint(f, o), 4.0));
    CHECK(again[0] > 0);
    CHECK(again[1] > 0);
  }
}
