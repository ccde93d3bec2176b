// One run of a program as plain equations.
#include "remat/straight_line.h"

#include "program/print.h"
#include <reprise/reprise.h>

#include <doctest/doctest.h>

namespace rp = reprise;
using rp::Array;

namespace {

template <class F>
std::string line_of(const F& f, const Array& x) {
  const rp::Jaxpr jaxpr = rp::make_jaxpr(f)(x);
  const rp::ProgramPtr line = rp::straight_line(*jaxpr.program(), {x});
  CHECK(rp::eval(*line, {x})[0].to_vector<float>() == jaxpr.eval({x})[0].to_vector<float>());
  return rp::to_text(*line);
}

}  // namespace

TEST_CASE("straight_line opens calls and checkpoints at any depth") {
  const auto f = rp::jit(rp::checkpoint([](Array x) { return rp::nn::relu(rp::sin(x)); }));
  CHECK(line_of(f, rp::array(0.5)) ==
        R"({ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = max b 0.0:f32[] in (c,) })");
}

TEST_CASE("straight_line unrolls loops in the order of their steps") {
  const auto step = [](Array c, Array x) { return std::pair{c * x, rp::sin(c)}; };
  const auto f = [&](Array xs) {
    return rp::scan(step, rp::full({}, 2.0, rp::float32), xs, {.reverse = true}).second;
  };
  CHECK(line_of(f, rp::array({3.0, 4.0})) == R"({ lambda ; a:f32[2]. let
    b:f32[] c:f32[] = unstack[axis=0] a
    d:f32[] = mul 2.0:f32[] c
    e:f32[] = sin 2.0:f32[]
    _:f32[] = mul d b
    f:f32[] = sin d
    g:f32[2] = stack[axis=0] f e
  in (g,) })");
  const auto none = [&](Array x) { return rp::scan(step, x, rp::zeros({0})).second; };
  CHECK(line_of(none, rp::array(1.0)).find("f32[0] = broadcast_in_dim") != std::string::npos);
}

TEST_CASE("straight_line takes the branches and the number of steps that the arguments take") {
  const auto f = [](Array x) {
    const Array y =
        rp::while_loop([](Array v) { return v < 4.0; }, [](Array v) { return v * 2.0; }, x);
    return rp::cond(
        y > 5.0, [](Array v) { return rp::sin(v); }, [](Array v) { return rp::cos(v); }, y);
  };
  const std::string two_steps = line_of(f, rp::array(1.0)), one_step = line_of(f, rp::array(3.0));
  CHECK(two_steps.find("cos") != std::string::npos);
  CHECK(two_steps.find("sin") == std::string::npos);
  CHECK(one_step.find("sin") != std::string::npos);
}
