// Sections g07, g08, g11, g15, g20 and g21: functions with rules of their own, what policies are
// asked, linear functions and their residuals, derivatives of derivatives.
#include "golden/sections.h"

using namespace golden;

namespace {

const rp::CheckpointOptions everything{.policy = P::everything_saveable};
const Array three = rp::ones({3});

Array relu_of_sin(Array x) {
  x = rp::sin(x);
  x = rp::nn::relu(x);
  return rp::sum(x);
}
Array logsumexp(Array x) { return rp::logsumexp(x); }

Array weighted_sine(Array x, Array y) {
  static const auto plain = [](Array v, Array w) {
    v = rp::sin(v);
    return v * w;
  };
  using Residuals = std::tuple<Array, Array, Array>;
  static const auto g = rp::custom_vjp(
      plain,
      [](Array v, Array w) {
        Array c = rp::cos(v);
        return std::pair{weighted_sine(v, w), Residuals{c, v, w}};
      },
      [](Residuals r, Array ct) {
        const auto [c, v, w] = r;
        Array cw = c * w;
        cw = cw * ct;
        Array s = rp::sin(v);
        return std::tuple{cw, s * ct};
      },
      {.name = "g", .fwd = "g_fwd", .bwd = "g_bwd"});
  return g(x, y);
}
Array of_exp(Array x, Array y) {
  x = rp::exp(x);
  return weighted_sine(x, y);
}
template <class F, class... A>
void forward_and_gradient(Section& s, const F& f, const A&... args) {
  s.forward(f, args...);
  s.traced(rp::grad(f), args...);
}

}  // namespace

TEST_CASE("g07: relu and logsumexp, plain and inside checkpoint") {
  const Array x = three;
  Section plain("g07_custom_rules", "relu plain");
  plain.traced(relu_of_sin, x);
  plain.residuals(relu_of_sin, RP_ARGS(x));
  forward_and_gradient(plain, relu_of_sin, x);
  plain.end();
  auto nothing = rp::checkpoint(relu_of_sin);
  Section remat("g07_custom_rules", "relu remat");
  remat.traced(nothing, x);
  remat.residuals(nothing, RP_ARGS(x));
  forward_and_gradient(remat, nothing, x);
  remat.end();
  auto all = rp::checkpoint(relu_of_sin, everything);
  Section saved("g07_custom_rules", "relu remat everything");
  saved.residuals(all, RP_ARGS(x));
  forward_and_gradient(saved, all, x);
  saved.end();
  Section sum("g07_custom_rules", "logsumexp");
  sum.traced(logsumexp, x);
  sum.residuals(logsumexp, RP_ARGS(x));
  sum.residuals(rp::checkpoint(logsumexp), RP_ARGS(x));
  sum.residuals(rp::checkpoint(logsumexp, everything), RP_ARGS(x));
  sum.end();
}

TEST_CASE("g07: a backward pass of its own, plain and inside checkpoint") {
  const Array x = 1.0, y = 2.0;
  Section s("g07_custom_rules", "custom_vjp");
  s.traced(of_exp, x, y);
  s.residuals(of_exp, RP_ARGS(x, y));
  forward_and_gradient(s, of_exp, x, y);
  auto nothing = rp::checkpoint(of_exp);
  s.traced(nothing, x, y);
  s.residuals(nothing, RP_ARGS(x, y));
  forward_and_gradient(s, nothing, x, y);
  auto all = rp::checkpoint(of_exp, everything);
  s.residuals(all, RP_ARGS(x, y));
  forward_and_gradient(s, all, x, y);
  CHECK_THROWS_AS(rp::jvp(nothing, std::tuple{x, y}, std::tuple{x, x}), rp::TypeError);
  auto sine = rp::custom_vjp([](Array v) { return rp::sin(v); },
                             [](Array v) {
                               Array c = rp::cos(v);
                               return Pair{rp::sin(v), rp::checkpoint_name(c, "cosx")};
                             },
                             [](Array c, Array ct) { return std::tuple{c * ct}; });
  auto twice = rp::checkpoint(
      [sine](Array v) {
        v = sine(v);
        return sine(v);
      },
      {.policy = P::save_only_these_names("cosx"), .strict = true});
  Section names("g07_custom_rules", "names inside custom_vjp fwd");
  names.residuals(twice, RP_ARGS(x));
  names.end();
}

TEST_CASE("g20: arguments that are residuals of a custom backward pass are kept once") {
  using Residuals = std::pair<Array, Array>;
  auto product = rp::custom_vjp([](Array a, Array b) { return a * b; },
                                [](Array a, Array b) {
                                  return std::pair{a * b, Residuals{a, b}};
                                },
                                [](Residuals r, Array ct) {
                                  Array a = ct * r.second;
                                  return std::tuple{a, ct * r.first};
                                });
  const Array x = 1.0, y = 2.0;
  Section s("g20_literals_caching_scan", "custom_vjp in no-remat: residual forwarding of inputs");
  s.residuals([product](Array a, Array b) { return product(a, b); }, RP_ARGS(x, y));
  s.line("-");
  s.residuals(rp::checkpoint([product](Array a, Array b) {
                a = rp::sin(a);
                return product(a, b);
              }),
              RP_ARGS(x, y));
  s.end();
}

TEST_CASE("g08: a policy is asked about every equation of the forward pass, in order") {
  std::vector<std::string> asked;
  const rp::Policy policy = [&asked](const rp::EquationInfo& e) {
    asked.push_back(std::string(e.primitive) + (e.name.empty() ? "" : " '" + e.name + "'"));
    return false;
  };
  auto twice_cos = rp::jit([](Array z) {
    z = rp::cos(z);
    return z * 2.0;
  });
  auto f = rp::checkpoint(
      [twice_cos](Array W, Array x, Array i) {
        Array y = rp::matmul(W, x);
        y = rp::sin(y);
        y = rp::checkpoint_name(y, "nm");
        y = twice_cos(y);
        y = rp::nn::relu(y);
        auto body = [](Array c, rp::None) { return std::pair{rp::tanh(c), rp::none}; };
        y = rp::scan(body, y, rp::none, {.length = 2}).first;
        y = rp::sum(y);
        return y * i;
      },
      {.policy = policy});
  rp::grad<0, 1>(f)(rp::ones({2, 3}), three, Array(3));
  const std::string text = read_file("jax/g08_policy_args_effects_random.out");
  const std::regex line(R"(policy: \w+ (\w+) \(.*\{(?:'name': ('\w+'))?)");
  std::vector<std::string> theirs;
  for (std::sregex_iterator i(text.begin(), text.end(), line), end; i != end; ++i) {
    theirs.push_back(i->str(1) + ((*i)[2].matched ? " " + i->str(2) : ""));
  }
  REQUIRE(theirs.size() == 15);
  CHECK(asked == theirs);
}

TEST_CASE("g08: what a checkpoint prints, and where that stands in its gradient") {
  Section s("g08_policy_args_effects_random", "effects: debug print");
  const auto f = rp::checkpoint([](Array x) {
    Array y = rp::sin(x);
    rp::debug::print("y={}", y);
    return rp::sin(y);
  });
  s.traced(f, Array(1.0));
  s.traced([&](Array x) { return rp::grad(f)(x); }, Array(1.0));
  s.end();
}

TEST_CASE("g11, g15: linear functions and their residuals, of numbers and arrays") {
  Section s("g15_eager_misc", "eager vjp residuals for scalar consts");
  auto linear = [&s](const auto& f, const auto&... args) {
    s.program(rp::vjp(f, args...).second.jaxpr().str());
  };
  auto twice = [](Array x) { return x * 2.0; };
  auto product = [](Array x, Array y) { return x * y; };
  linear(twice, three);
  linear(twice, Array(1.0));
  s.skip(
      "[NotNeeded()] [] { lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }");  // a numpy
                                                                                          // scalar
  linear(product, Array(2.0), Array(3.0));
  linear(product, rp::full({}, 2.0, rp::float32), Array(3.0));
  linear([](Array x) { return rp::sin(x); }, Array(3.0));
  const Array a = rp::ones({2});
  linear(rp::checkpoint(product), a, a);
  s.end();
  auto f = [](Array x, Array W) {
    x = rp::matmul(W, x);
    return rp::sin(x);
  };
  const Array x = three, W = rp::ones({3, 3});
  Section both("g11_lowering_vjp_log_pp", "fwd_and_bwd");
  both.program(rp::vjp(rp::checkpoint(f), x, W).second.jaxpr().str());
  const auto [gx, gW] = rp::vjp(f, x, W).second(f(x, W));
  both.skip(", [ShapedArray(float32[3])]), PyTreeDef((*, *)), PyTreeDef(*))], [[*, *], []]))");
  std::vector<double> values = gx.to_vector<double>();
  values.push_back(gW.to_vector<double>()[0]);
  values.resize(6, values.back());
  both.numbers(values);
  both.program(rp::vjp(f, x, W).second.jaxpr().str());
  both.program(rp::vjp(rp::checkpoint(f), x, W).second.jaxpr().str());
  both.end();
  Section unused("g11_lowering_vjp_log_pp", "vjp with_refs / args_res replaced");
  unused.program(
      rp::vjp([](Array v, Array) { return v * 2.0; }, Array(1.0), Array(2.0)).second.jaxpr().str());
  unused.end();
}

TEST_CASE("g15: jacobians of checkpoint, shapes, aux results") {
  auto h = rp::checkpoint([](Array x) {
    x = rp::sin(x);
    x = rp::sin(x);
    return rp::sum(x);
  });
  const Array x = rp::arange(2.0);
  Section s("g15_eager_misc", "jacrev/jacfwd/hessian");
  std::vector<double> values = rp::hessian(h)(x).to_vector<double>();
  s.numbers({values[0], values[1]});
  const std::vector<double> forward = rp::jacfwd(h)(x).to_vector<double>(),
                            reverse = rp::jacrev(h)(x).to_vector<double>();
  s.numbers({values[2], values[3], forward[0], forward[1], reverse[0], reverse[1]});
  s.traced([h](Array v, Array t) { return rp::jvp(rp::grad(h), std::tuple{v}, std::tuple{t}); }, x,
           x);
  s.end();
  CHECK(rp::to_string(rp::eval_shape(h, x).type()) == "f32[]");
  using Aux = std::pair<Array, Array>;
  auto aux = rp::checkpoint([](Array v) { return std::pair{rp::sin(v), Aux{v, Array(3)}}; });
  const auto [value, gradient] = rp::value_and_grad(aux, rp::has_aux)(1.0);
  Section has_aux("g15_eager_misc", "has_aux");
  has_aux.numbers(
      {value.first.item<double>(), value.second.first.item<double>(), gradient.item<double>()});
  CHECK(value.second.second.item<int>() == 3);
  has_aux.end();
}
