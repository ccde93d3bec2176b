// Tests of JAX beside RematTest that meet checkpoint: forwarding, dead code, offloading, custom
// rules.
#include "remat/upstream.h"
#include "transform/dce.h"

using namespace upstream;

namespace {

using Pair = std::pair<Array, Array>;
Array sine(Array x) { return rp::sin(x); }

struct Live {
  std::vector<bool> used_inputs;
  std::size_t equations;
};
// Equations at any depth.
std::size_t equations_of(const rp::Program& p) {
  std::size_t n = p.eqns.size();
  for (const rp::Equation& e : p.eqns) {
    rp::for_each_program(e.params, [&n](const rp::ProgramPtr& body) { n += equations_of(*body); });
  }
  return n;
}
Live live(const rp::Jaxpr& program, std::vector<bool> wanted) {
  const rp::DceProgram d = rp::dce(*program.program(), wanted);
  return {d.used_inputs, equations_of(d.program)};
}

// sin whose derivative is twice the true one.
Array twice_jvp(Array x) {
  return rp::custom_jvp(sine, [](std::tuple<Array> p, std::tuple<Array> t) {
    return Pair{twice_jvp(std::get<0>(p)), 2 * rp::cos(std::get<0>(p)) * std::get<0>(t)};
  })(x);
}
Array twice_vjp(Array x) {
  auto fwd = [](Array v) { return Pair{twice_vjp(v), v}; };
  auto bwd = [](Array v, Array ct) { return std::tuple{2 * rp::cos(v) * ct}; };
  return rp::custom_vjp(sine, fwd, bwd)(x);
}

std::size_t outputs(const rp::Jaxpr& p) { return p.out_types().size(); }
std::size_t inputs(const rp::Jaxpr& p) { return p.in_types().size(); }

}  // namespace

TEST_CASE("remat_of_jit_input_to_output_forwarding: a result that is the residual is saved once") {
  auto grow = rp::jit([](Array x) { return rp::exp(x); });
  auto square = rp::jit([](Array y) { return y * y; });
  auto f =
      rp::checkpoint([=](Array x) { return square(grow(x)); }, {.policy = P::everything_saveable});
  CHECK(rp::saved_residuals(f, 3.0).size() == 1);
}

TEST_CASE("jit_forwarding_correctness: results that are arguments, constants or each other") {
  const Array c = rp::full({}, 0.7, rp::float64);
  for (int mask = 0; mask < 64; ++mask) {
    auto body = [mask, c](Array x, Array y) {
      std::vector<Array> out;
      if (mask & 1) out.push_back(x);
      if (mask & 2) out.push_back(rp::sin(x) * y);
      if (mask & 4) out.push_back(y);
      if (mask & 8) out.push_back(c);
      if (mask & 16) out.push_back(rp::exp(y));
      if ((mask & 32) && !out.empty()) out.push_back(out.front());
      return out;
    };
    auto run = [body, mask](Array x) {
      auto total = [](const std::vector<Array>& all) {
        Array sum = rp::zeros({}, rp::float64);
        for (const Array& a : all) sum = sum + a * a;
        return sum;
      };
      const Array y = x * 0.5;
      if (mask % 2 == 0) return total(rp::jit(body)(x, y));
      return total(rp::checkpoint(rp::jit(body), {.policy = P::everything_saveable})(x, y));
    };
    auto plain = [body](Array x) {
      Array sum = rp::zeros({}, rp::float64);
      for (const Array& a : body(x, x * 0.5)) sum = sum + a * a;
      return sum;
    };
    INFO("mask " << mask);
    const Array x = rp::full({}, 0.3, rp::float64);
    check_close(rp::grad(run)(x), rp::grad(plain)(x));
    check_close(rp::grad(rp::grad(run))(x), rp::grad(rp::grad(plain))(x));
  }
}

TEST_CASE("dce_jaxpr_scan: each carry keeps those it depends on, step by step") {
  auto f = [](std::vector<Array> start) {
    auto body = [](std::vector<Array> c, rp::None) {
      std::vector<Array> next{c[0]};
      for (std::size_t i = 1; i < c.size(); ++i) next.push_back(c[i - 1] + c[i]);
      return std::pair{next, rp::none};
    };
    return rp::scan(body, start, rp::none, {.length = 4}).first;
  };
  const rp::Jaxpr p = rp::make_jaxpr(f)(std::vector<Array>{1.0, 2.0, 3.0, 4.0});
  for (std::size_t i = 1; i < 4; ++i) {
    std::vector<bool> wanted(4), used(4);
    wanted[i] = true;
    std::fill_n(used.begin(), i + 1, true);
    const Live d = live(p, wanted);
    CHECK(d.used_inputs == used);
    CHECK(d.equations == 1 + i);  // the loop and i sums
  }
}

TEST_CASE("dce_jaxpr_scan_overpruning: a checkpointed loop that nobody reads in part") {
  auto f = rp::checkpoint([](Array x) {
    auto body = [](Array c, rp::None) { return Pair{rp::sin(c), rp::cos(c)}; };
    return rp::scan(body, x, rp::none, {.length = 2});
  });
  const rp::Jaxpr p = rp::make_jaxpr(f)(1.0);
  CHECK(live(p, {true, true}).equations == 4);   // checkpoint, scan, sin, cos
  CHECK(live(p, {true, false}).equations == 3);  // without cos
  CHECK(live(p, {false, true}).equations == 4);  // the carry still moves
  CHECK(live(p, {false, false}).equations == 0);
}

TEST_CASE("dce_jaxpr_cond: operands that no branch needs go, the index stays") {
  auto f = [](Array p, Array x, Array y) {
    return rp::cond(
        p,
        [](Array a, Array b) {
          return Pair{rp::sin(a), b};
        },
        [](Array a, Array b) {
          return Pair{a, rp::cos(b)};
        },
        x, y);
  };
  const rp::Jaxpr p = rp::make_jaxpr(f)(Array(true), 1.0, 2.0);
  CHECK(live(p, {true, false}).used_inputs == std::vector<bool>{true, true, false});
  CHECK(live(p, {false, true}).used_inputs == std::vector<bool>{true, false, true});
  CHECK(live(p, {false, false}).equations == 0);
}

TEST_CASE("remat_jaxpr_offloadable: three values go to the host and come back") {
  const rp::Policy all = [](const rp::EquationInfo&) {
    return rp::Offloadable{"device", "pinned_host"};
  };
  auto f = [](Array x) { return rp::sum(rp::sin(rp::sin(rp::sin(x)))); };
  const rp::FwdBwd programs = rp::fwd_bwd(rp::checkpoint(f, {.policy = all}), rp::arange(16.0));
  CHECK(outputs(programs.forward) == 4);
  CHECK(count(programs.forward.str(), "MemorySpace.Host") == 3);
  CHECK(inputs(programs.backward) == 4);
  CHECK(count(programs.backward.str(), "MemorySpace.Device") == 3);
  check_close(rp::grad(rp::checkpoint(f, {.policy = all}))(rp::arange(16.0)),
              rp::grad(f)(rp::arange(16.0)));
}

TEST_CASE("remat_scan_jaxpr_offloadable: one name is saved, two are offloaded per step") {
  auto f = rp::checkpoint(
      [](Array x) {
        auto body = [](Pair c, rp::None) {
          Array y = rp::checkpoint_name(rp::sin(c.first), "y");
          Array z = rp::checkpoint_name(rp::sin(y), "z");
          Array w = rp::checkpoint_name(rp::sin(z), "w");
          return std::pair{Pair{w, rp::sum(w)}, rp::none};
        };
        return rp::scan(body, Pair{x, rp::full({}, 1.0)}, rp::none, {.length = 10}).first.second;
      },
      {.policy = P::save_and_offload_only_these_names({.names_which_can_be_saved = {"y"},
                                                       .names_which_can_be_offloaded = {"z", "w"},
                                                       .offload_src = "device",
                                                       .offload_dst = "pinned_host"})});
  const rp::FwdBwd programs = rp::fwd_bwd(f, rp::arange(4.0));
  CHECK(outputs(programs.forward) == 5);
  CHECK(count(programs.forward.str(), "MemorySpace.Host") == 2);
  CHECK(inputs(programs.backward) == 5);
  CHECK(count(programs.backward.str(), "MemorySpace.Device") == 2);
}

TEST_CASE("offload a value with many results and a product without batch dimensions") {
  const rp::Policy all = [](const rp::EquationInfo&) {
    return rp::Offloadable{"device", "pinned_host"};
  };
  auto sorted =
      rp::checkpoint([](Array x) { return rp::sum(rp::sin(rp::sort(x)) * x); }, {.policy = all});
  auto plain = [](Array x) { return rp::sum(rp::sin(rp::sort(x)) * x); };
  const Array x = rp::array(std::vector<float>{3, 1, 2});
  check_close(rp::grad(sorted)(x), rp::grad(plain)(x));
  auto dots =
      rp::checkpoint([](Array v) { return rp::sum(rp::sin(rp::dot(v, v))); },
                     {.policy = P::offload_dot_with_no_batch_dims("device", "pinned_host")});
  CHECK(count(rp::fwd_bwd(dots, rp::ones({2, 2})).forward.str(), "MemorySpace.Host") == 1);
}

TEST_CASE(
    "custom_jvp and custom_vjp under checkpoint: the factor of the rule counts once per call") {
  auto run = [](auto f) {
    auto plain = [f](Array x) { return f(f(x)); };
    auto g = rp::checkpoint(plain);
    check_close(g(2.0), Array(std::sin(std::sin(2.0))));
    check_close(rp::grad(g)(2.0), Array(4 * std::cos(std::sin(2.0)) * std::cos(2.0)));
    check_close(rp::grad(rp::checkpoint(rp::grad(g)))(2.0), rp::grad(rp::grad(plain))(2.0));
    check_close(rp::grad(rp::grad(rp::checkpoint(rp::grad(g))))(2.0),
                rp::grad(rp::grad(rp::grad(plain)))(2.0));
  };
  run(twice_jvp);
  run(twice_vjp);
}

TEST_CASE("scan_vjp_forwards_extensive_residuals: the scanned argument is its own residual") {
  auto f = [](Array c, Array xs) {
    auto body = [](Array v, Array x) { return std::pair{v * rp::sin(x), rp::none}; };
    return rp::scan(rp::checkpoint(body), c, xs).first;
  };
  const Array c = 1.0, xs = rp::arange(3.0);
  const auto list = rp::saved_residuals(f, RP_ARGS(c, xs));
  REQUIRE(list.size() == 2);
  CHECK(list[0].origin == "from the argument xs");
  CHECK(list[1].origin.find("output of scan from ") == 0);
}

TEST_CASE("grad_remat_while_fixpoint: a loop that swaps its carries can be linearized") {
  auto f = rp::checkpoint([](Array x, Array y) {
    using State = std::tuple<Array, Array, Array>;
    auto more = [](State s) { return std::get<2>(s) < 3; };
    auto swap = [](State s) { return State{std::get<1>(s), std::get<0>(s), std::get<2>(s) + 1}; };
    return std::get<0>(rp::while_loop(more, swap, State{x, y, 0}));
  });
  const auto [y, linear] = rp::linearize(f, 1.0, 2.0);
  CHECK(y.item<float>() == 2);
  CHECK(linear(3.0, 5.0).item<float>() == 5);
}

TEST_CASE(
    "softmax of four numbers keeps three values, six numbers; scalar products have a hessian under "
    "checkpoint") {
  std::size_t elements = 0;
  const auto list =
      rp::saved_residuals([](Array x) { return rp::nn::softmax(x); }, rp::arange(4.0));
  for (const rp::SavedResidual& r : list) elements += r.bytes / sizeof(float);
  CHECK(list.size() == 3);
  CHECK(elements == 6);
  auto f = rp::checkpoint([](Array x) { return rp::dot(x, x); });
  CHECK(rp::hessian(f)(1.0).item<float>() == 2);
}
