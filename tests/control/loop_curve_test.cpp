// Plain scans and their reversals as loops with checkpoints: the same gradients, bit for bit, in
// the memory that the curve promises.
#include "control/loop_curve.h"

#include "control/loop_schedule.h"
#include "control/records.h"
#include "program/check.h"
#include "program/trace.h"
#include "runtime/compile.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

#include <algorithm>

namespace rp = reprise;
using rp::Array;

namespace {

// As compile() sees it: calls opened, nothing dead.
template <class F>
rp::Program gradient_program(F f, const rp::Arrays& args) {
  const auto all = [=](rp::Arrays x) { return rp::Arrays{rp::grad(f)(x[0], x[1])}; };
  return *rp::lowered(*rp::make_jaxpr(all)(args).program());
}
std::vector<float> run(const rp::Program& p, const rp::Arrays& args) {
  return rp::compile(p)->run(args)[0].to_vector<float>();
}
std::size_t peak(const rp::Program& p) { return rp::compile(p)->code().memory.peak(); }

Array steps(const Array& w, const Array& xs, bool reverse) {
  auto body = [=](Array h, Array x) {
    Array a = rp::tanh(h * w + x);
    Array b = rp::sin(a) * h;
    return std::pair{b + x, rp::sum(b)};
  };
  auto [last, ys] = rp::scan(body, rp::ones_like(w), xs, {.reverse = reverse});
  Array s = rp::sum(last * last);
  return s + rp::sum(ys * ys);
}

}  // namespace

TEST_CASE("a plain scan has a curve, and every point of it the gradient of the plain scan") {
  const rp::Arrays args{rp::random::uniform(rp::random::key(1), {64}),
                        rp::random::uniform(rp::random::key(2), {50, 64})};
  for (const bool reverse : {false, true}) {
    const auto loss = [=](Array w, Array xs) { return steps(w, xs, reverse); };
    const rp::Program plain = gradient_program(loss, args);
    const std::vector<rp::LoopPair> pairs = rp::loop_pairs(plain);
    REQUIRE(pairs.size() == 1);
    const rp::LoopPair& pair = pairs[0];
    CHECK(pair.steps == 50);
    CHECK(pair.carry_bytes == 64 * 4);
    CHECK(pair.residual_bytes >= 50 * 64 * 4);
    const std::vector<rp::LoopPoint> curve = rp::loop_curve(pair);
    REQUIRE(curve.size() > 5);
    const std::vector<float> wanted = run(plain, args);
    std::size_t before = peak(plain);
    for (const rp::LoopPoint& point : curve) {
      INFO(point.checkpoints << " checkpoints");
      CHECK(point.evaluations == rp::loop_schedule(50, point.checkpoints).advances + 1);
      const rp::Program p = rp::with_checkpoints(plain, pair, point.checkpoints);
      rp::check(p);
      CHECK(run(p, args) == wanted);
      CHECK(peak(p) < before);
      before = peak(p);
    }
    CHECK(curve.back().checkpoints == 1);
  }
}

TEST_CASE("points of a curve come with fewer bytes and more evaluations each") {
  rp::LoopPair pair;
  pair.steps = 10'000;
  pair.carry_bytes = 100;
  pair.residual_bytes = 10'000 * 300;
  const std::vector<rp::LoopPoint> curve = rp::loop_curve(pair);
  REQUIRE(curve.size() > 10);
  CHECK(curve.size() <= 64);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    CHECK(curve[i].bytes < curve[i - 1].bytes);
    CHECK(curve[i].evaluations > curve[i - 1].evaluations);
  }
  pair.residual_bytes = 100;  // less than two carries
  CHECK(rp::loop_curve(pair).empty());
}

TEST_CASE("loops that cannot be played again, or that others read, have no curve") {
  const rp::Arrays args{rp::random::uniform(rp::random::key(1), {4}),
                        rp::random::uniform(rp::random::key(2), {5, 4})};
  const auto prints = [](Array w, Array xs) {
    auto body = [=](Array h, Array x) {
      Array a = rp::sin(h * w + x);
      rp::debug::print("{}", rp::sum(a));
      return std::pair{a * a, rp::none};
    };
    return rp::sum(rp::scan(body, w, xs).first);
  };
  CHECK(rp::loop_pairs(gradient_program(prints, args)).empty());
  const auto alone = [](Array w, Array xs) {
    auto body = [](Array h, Array x) { return std::pair{h + x, h}; };
    auto [last, ys] = rp::scan(body, w, xs);
    return rp::sum(last) + rp::sum(ys);
  };
  CHECK(rp::loop_pairs(gradient_program(alone, args)).empty());
}
