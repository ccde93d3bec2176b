// Sections g03, g06, g20 and g23: branches and loops in and around checkpoint.
#include "golden/sections.h"

using namespace golden;

namespace {

const rp::CheckpointOptions everything{.policy = P::everything_saveable};
const Array one = 1.0, yes = rp::full({}, true, rp::bool_);

Array sin_sin_or_cos(Array p, Array x) {
  auto twice = [](Array v) {
    v = rp::sin(v);
    return rp::sin(v);
  };
  return rp::cond(
      p, twice, [](Array v) { return rp::cos(v); }, x);
}
Array four_layers(Array W, Array x) {
  auto body = [W](Array c, rp::None) {
    c = rp::matmul(W, c);
    return std::pair{rp::sin(c), rp::none};
  };
  return rp::sum(rp::scan(body, x, rp::none, {.length = 4}).first);
}
Array three_sins(Array x) {
  auto more = [](Pair c) { return c.first < 3; };
  auto step = [](Pair c) {
    Array i = c.first + 1;
    return Pair{i, rp::sin(c.second)};
  };
  return rp::while_loop(more, step, Pair{Array(0), x}).second;
}

}  // namespace

TEST_CASE("g06: a cond inside checkpoint") {
  const Array p = yes, x = one;
  auto nothing = rp::checkpoint(sin_sin_or_cos);
  Section none("g06_control_flow", "cond none");
  none.traced(sin_sin_or_cos, p, x);
  none.residuals(sin_sin_or_cos, RP_ARGS(p, x));
  none.residuals(nothing, RP_ARGS(p, x));
  none.traced(rp::grad<1>(nothing), p, x);
  none.end();
  auto all = rp::checkpoint(sin_sin_or_cos, everything);
  Section s("g06_control_flow", "cond everything");
  s.residuals(all, RP_ARGS(p, x));
  s.traced(rp::grad<1>(all), p, x);
  s.end();
}

TEST_CASE("g06: a scan inside checkpoint under policies, and a checkpointed step with a policy") {
  const Array W = rp::ones({3, 3}), x = rp::ones({3});
  Section plain("g06_control_flow", "scan in remat: none/everything/dots");
  plain.residuals(four_layers, RP_ARGS(W, x));
  plain.end();
  const std::pair<std::string, rp::Policy> policies[] = {
      {"None", {}},
      {"<function everything_saveable>", P::everything_saveable},
      {"DotsSaveable(only_if_no_batch_dims=False)", P::dots_saveable}};
  for (const auto& [heading, policy] : policies) {
    auto f = rp::checkpoint(four_layers, {.policy = policy});
    Section s("g06_control_flow", heading);
    s.residuals(f, RP_ARGS(W, x));
    s.traced(rp::grad<1>(f), W, x);
    s.end();
  }
  auto layer = rp::checkpoint(
      [](Array v, Pair weights) {
        v = rp::dot(v, weights.first);
        v = v + weights.second;
        v = rp::maximum(v, 0.0);
        return std::pair{v, rp::none};
      },
      {.policy = P::dots_with_no_batch_dims_saveable});
  auto net = [layer](Array Ws, Array bs, Array v) {
    return rp::scan(layer, v, Pair{Ws, bs}).first;
  };
  const Array all_weights = rp::ones({2, 2, 2}), all_biases = rp::ones({2, 2}), v = rp::ones({2});
  Section s("g06_control_flow", "remat of scan body w/ dots policy (tutorial)");
  s.traced(net, all_weights, all_biases, v);
  s.residuals(net, RP_ARGS(all_weights, all_biases), rp::arg("x", v));
  s.forward(net, all_weights, all_biases, v);
  s.traced(
      rp::grad<0, 1, 2>([net](Array Ws, Array bs, Array a) { return rp::sum(net(Ws, bs, a)); }),
      all_weights, all_biases, v);
  s.end();
}

TEST_CASE("g06: a while_loop inside checkpoint, a counted loop with and without checkpoint") {
  auto f = rp::checkpoint(three_sins);
  Section s("g06_control_flow", "while");
  s.traced(f, one);
  s.end();
  CHECK_THROWS_AS(rp::grad(f)(one), rp::RuleError);
  Section linear("g06_control_flow", "linearize of remat(while)");
  linear.numbers({rp::linearize(f, one).second(one).item<double>()});
  linear.end();
  const Pair both = rp::jvp(f, std::tuple{one}, std::tuple{one});
  Section jvp("g06_control_flow", "jvp of remat(while)");
  jvp.numbers({both.first.item<double>(), both.second.item<double>()});
  jvp.end();
  auto counted = [](Array x) {
    return rp::fori_loop(
        0, 3, [](Array, Array c) { return rp::sin(c); }, x);
  };
  Section fori("g06_control_flow", "fori -> scan");
  fori.residuals(counted, rp::arg("x", one));
  fori.residuals(rp::checkpoint(counted), rp::arg("x", one));
  fori.end();
}

TEST_CASE("g03: a weak carry in loops with and without a checkpointed body") {
  auto body = [](Array c, Array x) {
    c = c * x;
    c = rp::sin(c);
    return Pair{c, c};
  };
  auto run = [](auto step) {
    return [step](Array c, Array xs) { return rp::scan(step, c, xs).first; };
  };
  const Array c = 1.0, xs = rp::arange(3.0);
  auto with = run(rp::checkpoint(body));
  auto without = run(body);
  Section s("g03_scan_closure_dtypes", "scan body remat");
  s.traced(with, c, xs);
  s.traced(rp::grad(with), c, xs);
  s.residuals(with, RP_ARGS(c, xs));
  s.end();
  Section plain("g03_scan_closure_dtypes", "scan body no remat");
  plain.residuals(without, RP_ARGS(c, xs));
  plain.traced(rp::grad(without), c, xs);
  plain.end();
}

TEST_CASE("g20: a switch, names in a loop, a mapped gradient, numbers in closures") {
  const Array x = 2.0;
  using F = Array (*)(Array);
  auto choose = [](Array i, Array v) {
    const std::vector<F> branches = {[](Array a) { return rp::sin(a); },
                                     [](Array a) { return rp::cos(a); },
                                     [](Array a) { return a * a; }};
    return rp::switch_(i, branches, v);
  };
  Section s("g20_literals_caching_scan", "cond with closures / switch");
  s.residuals(choose, rp::arg("i", Array(1)), RP_ARGS(x));
  s.forward(choose, Array(1), x);
  s.end();
  auto named = [](Array c) {
    auto body = [](Array v, rp::None) {
      v = rp::sin(v);
      v = rp::checkpoint_name(v, "n");
      return std::pair{v * 1.0, rp::none};
    };
    return rp::scan(body, c, rp::none, {.length = 4}).first;
  };
  Section names("g20_literals_caching_scan", "named scan body no remat");
  names.residuals(named, rp::arg("c", one));
  names.end();
  auto product = rp::checkpoint(
      [](Array W, Array v) {
        v = rp::matmul(W, v);
        v = rp::sin(v);
        return rp::sum(v);
      },
      {.policy = P::dots_saveable});
  Section mapped("g20_literals_caching_scan", "vmap of remat grads");
  mapped.traced(rp::vmap(rp::grad(product), {.in_axes = {std::nullopt, 0}}), rp::ones({3, 3}),
                rp::ones({5, 3}));
  mapped.end();
  auto loop = [](Array v) {
    for (int i = 0; i < 2; ++i) {
      auto layer = [i](Array y) {
        y = rp::sin(y);
        return y * i;
      };
      v = rp::checkpoint(layer)(v);
    }
    return v;
  };
  Section closures("g20_literals_caching_scan", "closure fun in loop");
  closures.traced(loop, one);
  closures.end();
}

TEST_CASE("g23: the transpose of a scan with a constant, a carry and scanned inputs and outputs") {
  auto f = [](Array W, Array c, Array xs) {
    auto body = [W](Array v, Array x) {
      Array s = W * v;
      s = rp::sin(s);
      s = s * x;
      return Pair{s, rp::cos(v)};
    };
    return rp::scan(body, c, xs);
  };
  Section s("g23_scan_transpose", "");
  s.traced([f](Pair ct, Array W, Array c, Array xs) { return rp::vjp(f, W, c, xs).second(ct); },
           Pair{Array(2.0), rp::ones({3})}, Array(3.0), Array(1.0), rp::ones({3}));
  s.end();
}
